//! K-way merge of sorted streams of records.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::record::Record;

/// Sorted streams of records, each read in batches.
pub trait RecordStreams {
    /// Error of a stream.
    type Error;

    /// Returns the next batch of a stream, in order and not before earlier ones; empty at its end.
    ///
    /// # Errors
    /// Fails if the stream fails.
    fn next_batch(&mut self, stream: usize) -> Result<Vec<Record>, Self::Error>;
}

/// Merges sorted streams with a heap: O(log streams) per record, and one batch of each in memory.
#[derive(Debug)]
pub struct Merge<S> {
    streams: S,
    batches: Vec<std::vec::IntoIter<Record>>,
    /// Next record of each stream that has any.
    heads: BinaryHeap<Reverse<(Record, usize)>>,
}

impl<S: RecordStreams> Merge<S> {
    /// Starts to merge `count` streams.
    ///
    /// # Errors
    /// Fails if one of them fails.
    pub fn new(streams: S, count: usize) -> Result<Self, S::Error> {
        let pieces = (0..count).map(|_| Vec::new().into_iter()).collect();
        let mut merge = Self { streams, batches: pieces, heads: BinaryHeap::with_capacity(count) };
        (0..count).try_for_each(|stream| merge.advance(stream))?;
        Ok(merge)
    }

    /// Returns the next record of all streams; `None` at the end.
    ///
    /// # Errors
    /// Fails if a stream fails.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot fail")]
    pub fn next(&mut self) -> Result<Option<Record>, S::Error> {
        let Some(Reverse((record, stream))) = self.heads.pop() else { return Ok(None) };
        self.advance(stream)?;
        Ok(Some(record))
    }

    fn advance(&mut self, stream: usize) -> Result<(), S::Error> {
        let mut head = self.batches[stream].next();
        if head.is_none() {
            self.batches[stream] = self.streams.next_batch(stream)?.into_iter();
            head = self.batches[stream].next();
        }
        self.heads.extend(head.map(|record| Reverse((record, stream))));
        Ok(())
    }
}
