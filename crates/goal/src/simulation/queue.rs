//! Event queue of the ordered engine: one entry per change of a host's next event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::host::Next;

/// Hosts ordered by the time and stamp of their next event; entries may be outdated.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Reverse<(Next, u32)>>,
}

impl Queue {
    #[inline]
    pub(crate) fn push(&mut self, next: Next, host: u32) {
        self.heap.push(Reverse((next, host)));
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Next, u32)> {
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}
