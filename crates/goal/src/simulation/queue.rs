//! The queue of hosts by what comes next at them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::host::Next;

/// Hosts in the order of time and stamp.
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
