//! The queue of conditional events.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{LpId, SimTime};

/// An event that is granted once nothing earlier can happen, at its place in the order of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Candidate {
    pub(crate) at: SimTime,
    pub(crate) kind: CandidateKind,
    pub(crate) lp: LpId,
}

/// The kind of a candidate, in the order of those of one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum CandidateKind {
    /// The process is suspended or at a checkpoint. It may still send at this instant, so no conditional event is granted
    /// before.
    Held,
    Conditional,
}

/// A priority queue of candidates, with at most one for each process. O(log n) per operation.
#[derive(Debug, Default)]
pub(crate) struct ConditionalEvents {
    in_order: BTreeSet<Candidate>,
    of_process: BTreeMap<LpId, Candidate>,
}

impl ConditionalEvents {
    /// Schedules the event of a process, in place of the one that it had.
    pub(crate) fn set(&mut self, lp: LpId, at: SimTime) {
        self.insert(Candidate { at, kind: CandidateKind::Conditional, lp });
    }

    /// Schedules the resumption of a process that is held at this time.
    pub(crate) fn hold(&mut self, lp: LpId, at: SimTime) {
        self.insert(Candidate { at, kind: CandidateKind::Held, lp });
    }

    fn insert(&mut self, candidate: Candidate) {
        if let Some(before) = self.of_process.insert(candidate.lp, candidate) {
            self.in_order.remove(&before);
        }
        self.in_order.insert(candidate);
    }

    /// Removes the event of a process, if it has one.
    #[inline]
    pub(crate) fn remove(&mut self, lp: LpId) {
        // Most programs have none.
        if !self.of_process.is_empty()
            && let Some(candidate) = self.of_process.remove(&lp)
        {
            self.in_order.remove(&candidate);
        }
    }

    /// Returns the earliest event.
    pub(crate) fn first(&self) -> Option<Candidate> {
        self.in_order.first().copied()
    }

    /// Removes and returns the earliest event.
    pub(crate) fn pop_first(&mut self) -> Option<Candidate> {
        let first = self.in_order.pop_first()?;
        self.of_process.remove(&first.lp);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_replaces_the_one_before() {
        let at = SimTime::from_picos;
        let (one, two) = (LpId::new(1), LpId::new(2));
        let mut events = ConditionalEvents::default();
        events.set(two, at(5));
        events.set(one, at(5));
        events.set(one, at(3));
        events.set(two, at(9));
        let conditional = |at, lp| Candidate { at, kind: CandidateKind::Conditional, lp };
        assert_eq!(events.first(), Some(conditional(at(3), one)));
        events.remove(one);
        assert_eq!(events.pop_first(), Some(conditional(at(9), two)));
        assert_eq!(events.pop_first(), None);
    }

    #[test]
    fn processes_that_are_held_come_before_events_of_the_same_instant() {
        let at = SimTime::from_picos;
        let (one, two, three) = (LpId::new(1), LpId::new(2), LpId::new(3));
        let mut events = ConditionalEvents::default();
        events.set(one, at(5));
        events.hold(two, at(5));
        events.set(three, at(4));
        let order = std::iter::from_fn(|| events.pop_first().map(|candidate| candidate.lp));
        assert_eq!(order.collect::<Vec<_>>(), [three, two, one]);
    }
}
