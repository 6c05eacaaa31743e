//! Cutter of unfolded ranks: filters and renumbers the actions one by one.

use std::ops::Range;
use std::sync::Arc;

use crate::archive::cut::names::{Gone, Names, Used};
use crate::record::Record;
use crate::trace::{Cursor, RankTrace};

/// Iterator over the kept actions of a rank.
#[derive(Clone)]
pub(super) struct Kept<'a> {
    cursor: Cursor<'a>,
    names: Arc<Names>,
    gone: Gone,
    used: Arc<Used>,
}

impl<'a> Kept<'a> {
    /// Reads the rank once to find the kept requests and calls, and adds them to the tables.
    pub(super) fn new(
        trace: &'a RankTrace,
        names: Arc<Names>,
        ranks: &Range<u32>,
        tables: &mut RankTrace,
    ) -> Self {
        let start = Self {
            cursor: trace.cursor(),
            names,
            gone: Gone::new(trace.slots),
            used: Arc::new(Used::default()),
        };
        let mut all = start.clone();
        let used = Used::by(all.by_ref(), &start.names);
        start.names.add_side(tables, &trace.side, ranks, &used);
        tables.pending_at_end = used.pending(&trace.pending_at_end, &all.gone).into();
        Self { used: Arc::new(used), ..start }
    }
}

impl Iterator for Kept<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        loop {
            let record = Record::encode(self.cursor.next()?);
            if let Some(record) = self.names.keep(record, &mut self.gone) {
                return Some(self.used.renumber(record));
            }
        }
    }
}
