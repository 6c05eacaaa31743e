//! The queue of conditional events.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Rank, SimDuration, SimTime};

/// A priority queue of conditional events by (time, rank), with at most one event for each process. O(log n) per operation.
#[derive(Debug, Default)]
pub(crate) struct ConditionalEvents {
    in_order: BTreeSet<(SimTime, Rank)>,
    of_process: BTreeMap<Rank, SimTime>,
}

impl ConditionalEvents {
    /// Schedules the event of a process, in place of the one that it had.
    pub(crate) fn set(&mut self, rank: Rank, at: SimTime) {
        if let Some(before) = self.of_process.insert(rank, at) {
            self.in_order.remove(&(before, rank));
        }
        self.in_order.insert((at, rank));
    }

    /// Removes the event of a process, if it has one.
    #[inline]
    pub(crate) fn remove(&mut self, rank: Rank) {
        // Most programs have none.
        if !self.of_process.is_empty()
            && let Some(at) = self.of_process.remove(&rank)
        {
            self.in_order.remove(&(at, rank));
        }
    }

    /// Returns all events in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SimTime, Rank)> + '_ {
        self.in_order.iter().copied()
    }

    /// Shifts all events in time.
    pub(crate) fn shift_time(&mut self, time: SimDuration) {
        self.of_process.values_mut().for_each(|at| *at += time);
        self.in_order = self.of_process.iter().map(|(&rank, &at)| (at, rank)).collect();
    }

    /// Returns the earliest event.
    pub(crate) fn first(&self) -> Option<(SimTime, Rank)> {
        self.in_order.first().copied()
    }

    /// Removes and returns the earliest event.
    pub(crate) fn pop_first(&mut self) -> Option<(SimTime, Rank)> {
        let (at, rank) = self.in_order.pop_first()?;
        self.of_process.remove(&rank);
        Some((at, rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_replaces_the_one_before() {
        let at = SimTime::from_picos;
        let (one, two) = (Rank::new(1), Rank::new(2));
        let mut events = ConditionalEvents::default();
        events.set(two, at(5));
        events.set(one, at(5));
        events.set(one, at(3));
        events.set(two, at(9));
        assert_eq!(events.first(), Some((at(3), one)));
        events.remove(one);
        assert_eq!(events.pop_first(), Some((at(9), two)));
        assert_eq!(events.pop_first(), None);
    }
}
