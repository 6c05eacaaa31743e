//! Cutting a trace with a record per action: what is left of the actions of a rank, one by one.

use std::sync::Arc;

use crate::archive::cut::names::{Gone, Names, Slots};
use crate::record::Record;
use crate::trace::{Cursor, RankTrace};

/// Yields what is left of the actions of a rank.
#[derive(Clone)]
pub(super) struct Kept<'a> {
    cursor: Cursor<'a>,
    names: Arc<Names>,
    gone: Gone,
    slots: Arc<Slots>,
}

impl<'a> Kept<'a> {
    /// Reads the rank once to see which requests are left, and adds them to the tables.
    pub(super) fn new(trace: &'a RankTrace, names: Arc<Names>, tables: &mut RankTrace) -> Self {
        let start = Self {
            cursor: trace.cursor(),
            names,
            gone: Gone::new(trace.slots),
            slots: Arc::new(Slots::default()),
        };
        let mut all = start.clone();
        let slots = Slots::used_by(all.by_ref());
        tables.slots = slots.len();
        tables.pending_at_end = slots.pending(&trace.pending_at_end, &all.gone);
        Self { slots: Arc::new(slots), ..start }
    }
}

impl Iterator for Kept<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        loop {
            let record = Record::encode(self.cursor.next()?);
            if let Some(record) = self.names.keep(record, &mut self.gone) {
                return Some(self.slots.renumber(record));
            }
        }
    }
}
