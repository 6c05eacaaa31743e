//! Reading the actions of a rank in order.

use std::slice;

use crate::action::Action;
use crate::record::Record;
use crate::store::Records;

/// Reads the actions of a rank in order.
///
/// A step takes constant time and never allocates. A clone goes on from the same place.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    records: &'a Records,
    chunk: slice::Iter<'a, Record>,
    next_chunk: usize,
    /// Actions up to the end of `chunk`.
    opened: u64,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(records: &'a Records) -> Self {
        Self { records, chunk: [].iter(), next_chunk: 0, opened: 0 }
    }

    /// Returns the index of the next action, which is the number of actions read.
    pub fn position(&self) -> u64 {
        self.opened - self.chunk.len() as u64
    }

    #[cold]
    fn open_chunk(&mut self) -> Option<Action> {
        let chunk = self.records.chunk(self.next_chunk)?;
        self.chunk = chunk.iter();
        self.next_chunk += 1;
        self.opened += chunk.len() as u64;
        self.chunk.next().map(|record| record.decode())
    }
}

impl Iterator for Cursor<'_> {
    type Item = Action;

    #[inline]
    fn next(&mut self) -> Option<Action> {
        match self.chunk.next() {
            Some(record) => Some(record.decode()),
            None => self.open_chunk(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.records.len() - self.position()).ok();
        (left.unwrap_or(usize::MAX), left)
    }
}
