//! Submitted messages, computations and timers that are not complete.
//!
//! A message that takes several routes at once is split into *parts*, pending items of their own with its tag. It is complete with the last.

use std::collections::BTreeMap;

use pdes_core::{Bytes, LpId, SimTime, State, StateVisitor};
use serde::{Deserialize, Serialize};

use crate::{HostId, Message};

/// Identifier of a pending item, until its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, State)]
pub(super) struct PendingId(#[state(saved = "a number that is reused")] u32);

/// A pending item and the tag of the caller.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Pending<T> {
    pub(super) work: Work,
    pub(super) tag: T,
}

/// Number of a message in parts, until its completion; reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SplitId(u32);

/// A message in parts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct SplitMessage {
    size: Bytes,
    /// Number of parts that are not complete.
    parts: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
pub(super) enum Work {
    /// A message, or a part of one, of this size on a route, and its place in the order of messages.
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
    /// The messages of which items are parts, apart from these: mostly there is none.
    split_of: BTreeMap<PendingId, SplitId>,
    splits: Vec<SplitMessage>,
    free_splits: Vec<SplitId>,
}

impl<T> Default for PendingList<T> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            free_slots: Vec::new(),
            split_of: BTreeMap::new(),
            splits: Vec::new(),
            free_splits: Vec::new(),
        }
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

    /// Splits a message, which takes its route and these others, into equal parts, the first of which may be a byte longer; returns all.
    pub(super) fn split(&mut self, id: PendingId, others: &[u32]) -> Vec<PendingId> {
        let Work::Message { route, size, order } = self.work(id) else {
            unreachable!("only messages have routes")
        };
        let parts = others.len() as u64 + 1;
        let message = SplitMessage { size, parts: parts as u32 };
        let split = match self.free_splits.pop() {
            Some(split) => {
                self.splits[split.0 as usize] = message;
                split
            }
            None => {
                self.splits.push(message);
                SplitId(self.splits.len() as u32 - 1)
            }
        };
        let (each, longer, tag) = (size.get() / parts, size.get() % parts, self.tag(id));
        let part = |(place, route): (u64, u32)| {
            let size = Bytes::new(each + u64::from(place < longer));
            Work::Message { route, size, order }
        };
        self.list[id.0 as usize].work = part((0, route));
        let others = (1..).zip(others.iter().copied());
        let parts: Vec<PendingId> =
            std::iter::once(id).chain(others.map(|other| self.add(part(other), tag))).collect();
        self.split_of.extend(parts.iter().map(|&part| (part, split)));
        parts
    }

    /// Returns the message of which an item is a part.
    #[inline]
    fn split_of(&self, id: PendingId) -> Option<SplitId> {
        if self.split_of.is_empty() { None } else { self.split_of.get(&id).copied() }
    }

    /// Returns the size of a message, or of that of which it is a part.
    #[inline]
    pub(super) fn whole_size(&self, id: PendingId, size: Bytes) -> Bytes {
        self.split_of(id).map_or(size, |split| self.splits[split.0 as usize].size)
    }

    /// Returns the tags of all work that is not complete.
    pub(super) fn tags(&self) -> impl Iterator<Item = T> {
        let mut is_told = vec![false; self.splits.len()];
        let is_new = move |(id, _): &(PendingId, &Pending<T>)| {
            self.split_of(*id).is_none_or(|split| !std::mem::replace(&mut is_told[split.0 as usize], true))
        };
        self.items().filter(is_new).map(|(_, pending)| pending.tag)
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
        let split = self.split_of(id);
        let Pending { work, tag } = &mut self.list[id.0 as usize];
        work.visit(visitor);
        tag.visit(visitor);
        if let Some(split) = split {
            visitor.compare(&self.splits[split.0 as usize]);
        }
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

    /// Ends an item that may be a part of a message, before it is completed; returns whether it was the last one.
    #[inline]
    pub(super) fn end_part(&mut self, id: PendingId) -> bool {
        self.split_of.is_empty() || self.end_known_part(id)
    }

    #[cold]
    fn end_known_part(&mut self, id: PendingId) -> bool {
        let Some(split) = self.split_of.remove(&id) else { return true };
        let message = &mut self.splits[split.0 as usize];
        message.parts -= 1;
        let is_last = message.parts == 0;
        if is_last {
            self.free_splits.push(split);
        }
        is_last
    }
}
