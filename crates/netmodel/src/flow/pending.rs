//! Submitted messages, computations and timers that are not complete.

use pdes_core::{Bytes, Rank, SimDuration, SimTime, StateWriter};
use serde::{Deserialize, Serialize};

use crate::{HostId, Message};

/// Identifier of a pending item, until its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PendingId(u32);

/// A pending item and the tag of the caller.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Pending<T> {
    pub(super) work: Work,
    pub(super) tag: T,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Work {
    /// A message of this size on a route, and its place in the order of messages.
    Message { route: u32, size: Bytes, order: MessageOrder },
    /// A computation.
    Compute { host: HostId, flops: f64 },
    /// A timer.
    Timer,
}

/// Order of messages whose flows begin at one instant: by the sending time, the order number and the submitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct MessageOrder {
    sent: SimTime,
    number: u64,
    submitter: Rank,
}

impl MessageOrder {
    pub(super) fn of<T>(message: &Message<T>) -> Self {
        Self { sent: message.at, number: message.order, submitter: message.submitter }
    }

    pub(super) fn write_state(&self, state: &mut StateWriter) {
        state.time(self.sent);
        state.value(&(self.number, self.submitter));
    }
}

/// All pending items.
#[derive(Debug, Serialize, Deserialize)]
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

    /// Returns the order of a message.
    pub(super) fn order(&self, id: PendingId) -> MessageOrder {
        match self.work(id) {
            Work::Message { order, .. } => order,
            Work::Compute { .. } | Work::Timer => unreachable!("only messages have an order"),
        }
    }

    /// Shifts all items in time.
    pub(super) fn shift_time(&mut self, time: SimDuration) {
        for pending in &mut self.list {
            if let Work::Message { order, .. } = &mut pending.work {
                order.sent = order.sent.saturating_add(time);
            }
        }
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
