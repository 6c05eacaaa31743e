//! What will happen when.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use pdes_core::SimTime;

/// Plans for instants that do not change, by time and then by the order in which they were made.
#[derive(Debug)]
pub(crate) struct Agenda<P> {
    queue: BinaryHeap<Reverse<Entry<P>>>,
    made: u64,
}

/// Ordered by time and number, which no two entries share.
#[derive(Clone, Copy, Debug)]
struct Entry<P> {
    at: SimTime,
    number: u64,
    plan: P,
}

impl<P> Entry<P> {
    fn key(&self) -> (SimTime, u64) {
        (self.at, self.number)
    }
}

impl<P> PartialEq for Entry<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for Entry<P> {}

impl<P> PartialOrd for Entry<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Entry<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<P> Default for Agenda<P> {
    fn default() -> Self {
        Self { queue: BinaryHeap::new(), made: 0 }
    }
}

impl<P> Agenda<P> {
    /// Adds a plan. `O(log n)`.
    pub(crate) fn add(&mut self, at: SimTime, plan: P) {
        self.made += 1;
        self.queue.push(Reverse(Entry { at, number: self.made, plan }));
    }

    /// Returns how many plans have been added.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    /// Returns the plans in no order.
    pub(crate) fn plans(&self) -> impl Iterator<Item = &P> {
        self.queue.iter().map(|entry| &entry.0.plan)
    }

    /// Returns the instant of the first plan.
    pub(crate) fn next(&self) -> Option<SimTime> {
        self.queue.peek().map(|entry| entry.0.at)
    }

    /// Takes the first plan, if it is for an instant before `end` and one of the first so many that were added. `O(log n)`.
    pub(crate) fn take_early(&mut self, end: SimTime, made: u64) -> Option<(SimTime, P)> {
        if self.queue.peek()?.0.number > made {
            return None;
        }
        self.take_before(end)
    }

    /// Takes the first plan, if it is for an instant before `end`. `O(log n)`.
    pub(crate) fn take_before(&mut self, end: SimTime) -> Option<(SimTime, P)> {
        if self.next()? >= end {
            return None;
        }
        self.queue.pop().map(|Reverse(Entry { at, plan, .. })| (at, plan))
    }
}

/// The earliest event of each of a number of groups, which may move to and fro.
#[derive(Debug, Default)]
pub(crate) struct Earliest {
    of_group: Vec<Option<SimTime>>,
    /// Holds an entry for the present instant of each group, and old ones.
    queue: BinaryHeap<Reverse<(SimTime, u32)>>,
}

impl Earliest {
    /// Makes room for so many groups.
    pub(crate) fn grow(&mut self, groups: usize) {
        if self.of_group.len() < groups {
            self.of_group.resize(groups, None);
        }
    }

    /// Sets the earliest event of a group. `O(log n)`, amortised.
    pub(crate) fn set(&mut self, group: u32, at: Option<SimTime>) {
        if std::mem::replace(&mut self.of_group[group as usize], at) == at {
            return;
        }
        let Some(at) = at else { return };
        if self.queue.len() > 4 * self.of_group.len() + 64 {
            self.forget_old_entries();
        }
        self.queue.push(Reverse((at, group)));
    }

    fn forget_old_entries(&mut self) {
        let of_group = &self.of_group;
        self.queue.retain(|&Reverse((at, group))| of_group[group as usize] == Some(at));
    }

    /// Returns the earliest event of all.
    pub(crate) fn next(&mut self) -> Option<SimTime> {
        while let Some(&Reverse((at, group))) = self.queue.peek() {
            if self.of_group[group as usize] == Some(at) {
                return Some(at);
            }
            self.queue.pop();
        }
        None
    }

    /// Takes the earliest event of all, if it is before `end`; returns its group, which then has none.
    pub(crate) fn take_before(&mut self, end: SimTime) -> Option<u32> {
        if self.next()? >= end {
            return None;
        }
        let Reverse((_, group)) = self.queue.pop()?;
        self.of_group[group as usize] = None;
        Some(group)
    }
}
