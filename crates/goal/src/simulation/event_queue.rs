//! Event queue of the ordered engine: one entry per change of a host's next event.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::host::NextEvent;

/// Hosts ordered by the time and stamp of their next event; entries may be outdated.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Entry>,
}

/// Next event of a host. The greatest one is the earliest, as the heap is one of maxima; stamps differ.
#[derive(Clone, Copy, Debug)]
struct Entry {
    next: NextEvent,
    host: u32,
}

impl EventQueue {
    #[inline]
    pub(crate) fn push(&mut self, next: NextEvent, host: u32) {
        self.heap.push(Entry { next, host });
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(NextEvent, u32)> {
        self.heap.pop().map(|Entry { next, host }| (next, host))
    }
}

impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        other.next.cmp(&self.next)
    }
}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.next == other.next
    }
}

impl Eq for Entry {}
