//! Cutter of unfolded ranks: filters and renumbers the actions one by one.

use std::ops::Range;
use std::sync::Arc;

use crate::archive::cut::renumbering::{RemovedRequests, Renumbering, UsedIds};
use crate::record::Record;
use crate::trace::{Cursor, RankTrace};

/// Iterator over the kept actions of a rank.
#[derive(Clone)]
pub(super) struct KeptActions<'a> {
    cursor: Cursor<'a>,
    renumbering: Arc<Renumbering>,
    removed: RemovedRequests,
    used: Arc<UsedIds>,
}

impl<'a> KeptActions<'a> {
    /// Reads the rank once to find the kept requests and calls, and adds them to the tables.
    pub(super) fn new(
        trace: &'a RankTrace,
        names: Arc<Renumbering>,
        ranks: &Range<u32>,
        tables: &mut RankTrace,
    ) -> Self {
        let start = Self {
            cursor: trace.cursor(),
            renumbering: names,
            removed: RemovedRequests::new(trace.slots),
            used: Arc::new(UsedIds::default()),
        };
        let mut all = start.clone();
        let used = UsedIds::from_records(all.by_ref(), &start.renumbering);
        start.renumbering.add_side_tables(tables, &trace.side_tables, ranks, &used);
        tables.pending_at_end = used.renumber_pending(&trace.pending_at_end, &all.removed).into();
        Self { used: Arc::new(used), ..start }
    }
}

impl Iterator for KeptActions<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        loop {
            let record = Record::encode(self.cursor.next()?);
            if let Some(record) = self.renumbering.renumber_record(record, &mut self.removed) {
                return Some(self.used.renumber(record));
            }
        }
    }
}
