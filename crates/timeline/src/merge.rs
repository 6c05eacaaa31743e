//! One sorted stream from several.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::record::Record;

/// Sorted streams of records, each read piece by piece.
pub trait Streams {
    /// Why a stream may fail.
    type Error;

    /// Returns the next records of a stream, which are not before those that it gave last; none at its end.
    ///
    /// # Errors
    /// Where the stream fails.
    fn refill(&mut self, stream: usize) -> Result<Vec<Record>, Self::Error>;
}

/// Merges sorted streams: O(log of their number) for each record, and one piece of each in memory.
#[derive(Debug)]
pub struct Merge<S> {
    streams: S,
    pieces: Vec<std::vec::IntoIter<Record>>,
    /// The first record of each stream that has any.
    heads: BinaryHeap<Reverse<(Record, usize)>>,
}

impl<S: Streams> Merge<S> {
    /// Begins to merge so many streams.
    ///
    /// # Errors
    /// Where one of them fails.
    pub fn new(streams: S, count: usize) -> Result<Self, S::Error> {
        let pieces = (0..count).map(|_| Vec::new().into_iter()).collect();
        let mut merge = Self { streams, pieces, heads: BinaryHeap::with_capacity(count) };
        (0..count).try_for_each(|stream| merge.advance(stream))?;
        Ok(merge)
    }

    /// Returns the next record.
    ///
    /// # Errors
    /// Where a stream fails.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot fail")]
    pub fn next(&mut self) -> Result<Option<Record>, S::Error> {
        let Some(Reverse((record, stream))) = self.heads.pop() else { return Ok(None) };
        self.advance(stream)?;
        Ok(Some(record))
    }

    fn advance(&mut self, stream: usize) -> Result<(), S::Error> {
        let mut head = self.pieces[stream].next();
        if head.is_none() {
            self.pieces[stream] = self.streams.refill(stream)?.into_iter();
            head = self.pieces[stream].next();
        }
        self.heads.extend(head.map(|record| Reverse((record, stream))));
        Ok(())
    }
}
