//! Event queue of the ordered engine: one entry per change of a host's next event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::host::NextEvent;

/// Hosts ordered by the time and stamp of their next event; entries may be outdated.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<(NextEvent, u32)>>,
}

impl EventQueue {
    #[inline]
    pub(crate) fn push(&mut self, next: NextEvent, host: u32) {
        self.heap.push(Reverse((next, host)));
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(NextEvent, u32)> {
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}
