//! The last operations of a rank, before which receives may be posted.

use std::collections::VecDeque;

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::Tag;
use trace_mmap::folded::State;

use super::{Held, Reach, Role, is_computation};
use crate::transform::Step;
use crate::transform::messages::{Received, received, sent};
use crate::transform::state::Stateful;

/// The last operations, all of which a receive may be posted before, unless both take the same messages.
#[derive(Debug)]
pub(super) struct Window {
    rank: Rank,
    /// Operations before the first computation.
    head: VecDeque<Held>,
    parts: VecDeque<Part>,
    /// Number of the first part among all.
    first: u64,
    /// Number of the first part in which a receive may be posted, by the receives that it must not pass: those of equal source and tag
    /// (`None` for any), whatever the communicator, as two requests without names may have one name.
    behind: FxHashMap<(Option<Rank>, Option<Tag>), u64>,
    /// The same for messages of the rank to itself, which no receive passes.
    behind_own: u64,
    len: usize,
}

/// A computation, with receives that are posted right before it, and the operations up to the next one.
#[derive(Debug)]
struct Part {
    posted: Vec<Held>,
    computation: Held,
    following: VecDeque<Held>,
}

impl Window {
    pub(super) fn new(rank: Rank) -> Self {
        let (head, parts, behind) = (VecDeque::new(), VecDeque::new(), FxHashMap::default());
        Self { rank, head, parts, first: 0, behind, behind_own: 0, len: 0 }
    }

    /// Returns the number of operations.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of computations.
    pub(super) fn computations(&self) -> u64 {
        self.parts.len() as u64
    }

    /// Returns whether the first operation is a computation, or there is none.
    pub(super) fn begins_with_computation(&self) -> bool {
        self.head.is_empty() && self.parts.front().is_none_or(|part| part.posted.is_empty())
    }

    /// Appends an operation.
    pub(super) fn push(&mut self, held: Held) {
        self.len += 1;
        if is_computation(&held.step.op) {
            self.parts.push_back(Part { posted: Vec::new(), computation: held, following: VecDeque::new() });
            return;
        }
        self.hold_back(&held.step, self.end());
        self.parts.back_mut().map_or(&mut self.head, |part| &mut part.following).push_back(held);
    }

    /// Posts a receive as early as it may be: before the first of the last computations in reach.
    pub(super) fn post(&mut self, step: Step, reach: Reach) {
        let Some(receive) = received(&step.op) else { return };
        let in_reach = self.end().saturating_sub(reach.computations.into());
        let place = in_reach.max(self.first).max(self.behind_own).max(self.behind(&receive));
        let held = Held { step, role: Role::Other };
        match self.parts.get_mut((place - self.first) as usize) {
            Some(part) => {
                self.len += 1;
                part.posted.push(held);
                self.behind.insert((receive.from, receive.tag), place);
            }
            None => self.push(held),
        }
    }

    /// Removes the first operation.
    pub(super) fn pop(&mut self) -> Option<Held> {
        if self.head.is_empty()
            && let Some(part) = self.parts.front_mut()
        {
            if part.posted.is_empty() {
                let part = self.parts.pop_front()?;
                self.first += 1;
                self.head = part.following;
                self.len -= 1;
                return Some(part.computation);
            }
            self.head = std::mem::take(&mut part.posted).into();
        }
        let first = self.head.pop_front()?;
        self.len -= 1;
        Some(first)
    }

    /// Returns the number of the part behind the last one.
    fn end(&self) -> u64 {
        self.first + self.computations()
    }

    /// Keeps receives like that of an operation, or all, from being posted before a part.
    fn hold_back(&mut self, step: &Step, part: u64) {
        if let Some(receive) = received(&step.op) {
            self.behind.insert((receive.from, receive.tag), part);
        }
        if sent(&step.op).is_some_and(|sent| sent.to == self.rank) {
            self.behind_own = part;
        }
    }

    /// Returns the number of the first part in which a receive may be posted.
    fn behind(&self, receive: &Received) -> u64 {
        let Received { from, tag, .. } = *receive;
        let latest = |keys: &mut dyn Iterator<Item = u64>| keys.max().unwrap_or(0);
        if from.is_some() && tag.is_some() {
            let keys = [(from, tag), (None, tag), (from, None), (None, None)];
            return latest(&mut keys.iter().filter_map(|key| self.behind.get(key).copied()));
        }
        let fits = |&(other_from, other_tag): &(Option<Rank>, Option<Tag>)| {
            receive.overlaps(&Received { from: other_from, tag: other_tag, ..*receive })
        };
        latest(&mut self.behind.iter().filter(|(key, _)| fits(key)).map(|(_, part)| *part))
    }
}

impl Stateful for Window {
    /// The operations tell what holds receives back.
    fn state(&mut self, state: &mut State<'_>) {
        self.head.state(state);
        state.word(self.parts.len() as u64);
        for Part { posted, computation, following } in &mut self.parts {
            posted.state(state);
            computation.state(state);
            following.state(state);
        }
    }
}
