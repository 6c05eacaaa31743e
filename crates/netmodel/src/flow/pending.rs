//! Submitted messages, computations and timers that are not complete.

use pdes_core::{Bytes, LpId, SimTime, State, StateVisitor};
use serde::{Deserialize, Serialize};

use crate::{HostId, Message};

/// Identifier of a pending item, until its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, State)]
pub(super) struct PendingId(#[state(saved = "a number that is reused")] u32);

/// A pending item and the tag of the caller.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Pending<T> {
    pub(super) work: Work,
    pub(super) tag: T,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
pub(super) enum Work {
    /// A message of this size on a route, and its place in the order of messages.
    Message {
        route: u32,
        size: Bytes,
        #[state(saved = "visited until the flow begins")]
        order: MessageOrder,
    },
    /// A computation.
    Compute { host: HostId, flops: f64 },
    /// A timer.
    Timer,
}

/// Order of messages whose flows begin at one instant: by the sending time, the order number and the submitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, State)]
pub(super) struct MessageOrder {
    sent: SimTime,
    number: u64,
    submitter: LpId,
}

impl MessageOrder {
    /// Returns the sending time.
    #[inline]
    pub(super) fn sent(self) -> SimTime {
        self.sent
    }

    pub(super) fn of<T>(message: &Message<T>) -> Self {
        Self { sent: message.at, number: message.order, submitter: message.submitter }
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

    /// Returns all pending items, in the order of their numbers.
    pub(super) fn items(&self) -> impl Iterator<Item = (PendingId, &Pending<T>)> {
        let mut is_pending = vec![true; self.list.len()];
        self.free_slots.iter().for_each(|id| is_pending[id.0 as usize] = false);
        let items = (0..).map(PendingId).zip(&self.list).zip(is_pending);
        items.filter(|(_, is_pending)| *is_pending).map(|(item, _)| item)
    }

    /// Visits an item where it is used. Its order among messages matters until its flow begins.
    pub(super) fn visit_item(&mut self, id: PendingId, is_flow: bool, visitor: &mut StateVisitor<'_>)
    where
        T: State,
    {
        let Pending { work, tag } = &mut self.list[id.0 as usize];
        work.visit(visitor);
        tag.visit(visitor);
        if let Work::Message { order, .. } = work
            && !is_flow
        {
            order.visit(visitor);
        }
    }

    /// Returns the tag of an item.
    pub(super) fn tag(&self, id: PendingId) -> T {
        self.list[id.0 as usize].tag
    }

    #[inline]
    pub(super) fn work(&self, id: PendingId) -> Work {
        self.list[id.0 as usize].work
    }

    /// Changes the route of a message.
    pub(super) fn set_route(&mut self, id: PendingId, to: u32) {
        if let Work::Message { route, .. } = &mut self.list[id.0 as usize].work {
            *route = to;
        }
    }

    /// Returns the order of a message.
    pub(super) fn order(&self, id: PendingId) -> MessageOrder {
        match self.work(id) {
            Work::Message { order, .. } => order,
            Work::Compute { .. } | Work::Timer => unreachable!("only messages have an order"),
        }
    }

    /// Changes all tags, to test that they show in the state.
    #[cfg(test)]
    pub(super) fn change_tags(&mut self, change: impl FnMut(&mut T)) {
        self.list.iter_mut().map(|pending| &mut pending.tag).for_each(change);
    }

    /// Completes an item; returns its tag. Its number may be reused.
    #[inline]
    pub(super) fn complete(&mut self, id: PendingId) -> T {
        self.free_slots.push(id);
        self.list[id.0 as usize].tag
    }
}
