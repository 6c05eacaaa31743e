//! Submitted messages, computations and timers that are not complete.

use pdes_core::Bytes;

use crate::HostId;

/// Identifier of a pending item, until its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PendingId(u32);

/// A pending item and the tag of the caller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending<T> {
    pub(super) work: Work,
    pub(super) tag: T,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// A message of this size on a route.
    Message { route: u32, size: Bytes },
    /// A computation.
    Compute { host: HostId, flops: f64 },
    /// A timer.
    Timer,
}

/// All pending items.
#[derive(Debug)]
pub(super) struct PendingList<T> {
    list: Vec<Pending<T>>,
    free_slots: Vec<PendingId>,
}

impl<T> Default for PendingList<T> {
    fn default() -> Self {
        Self { list: Vec::new(), free_slots: Vec::new() }
    }
}

impl<T: Copy> PendingList<T> {
    pub(super) fn add(&mut self, work: Work, tag: T) -> PendingId {
        let pending = Pending { work, tag };
        match self.free_slots.pop() {
            Some(id) => {
                self.list[id.0 as usize] = pending;
                id
            }
            None => {
                self.list.push(pending);
                PendingId(self.list.len() as u32 - 1)
            }
        }
    }

    /// Returns the tags of all pending items, in the order of their numbers.
    pub(super) fn tags(&self) -> impl Iterator<Item = T> + '_ {
        let mut is_pending = vec![true; self.list.len()];
        self.free_slots.iter().for_each(|id| is_pending[id.0 as usize] = false);
        let pending = self.list.iter().zip(is_pending).filter(|(_, is_pending)| *is_pending);
        pending.map(|(pending, _)| pending.tag)
    }

    #[inline]
    pub(super) fn work(&self, id: PendingId) -> Work {
        self.list[id.0 as usize].work
    }

    /// Calls a function for the tags of all items, and for those of vacant places.
    pub(super) fn for_each_tag(&mut self, change: impl FnMut(&mut T)) {
        self.list.iter_mut().map(|pending| &mut pending.tag).for_each(change);
    }

    pub(super) fn tag(&self, id: PendingId) -> T {
        self.list[id.0 as usize].tag
    }

    /// Completes an item; returns its tag. Its number may be reused.
    #[inline]
    pub(super) fn complete(&mut self, id: PendingId) -> T {
        self.free_slots.push(id);
        self.list[id.0 as usize].tag
    }
}
