//! What will happen when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pdes_core::SimTime;

/// Plans for instants that do not change, by time and then by the order in which they were made.
#[derive(Debug)]
pub(super) struct Agenda<P> {
    queue: BinaryHeap<Reverse<Entry>>,
    plans: Vec<Option<P>>,
    vacant: Vec<u32>,
    made: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: SimTime,
    number: u64,
    plan: u32,
}

impl<P> Default for Agenda<P> {
    fn default() -> Self {
        Self { queue: BinaryHeap::new(), plans: Vec::new(), vacant: Vec::new(), made: 0 }
    }
}

impl<P> Agenda<P> {
    /// Adds a plan. `O(log n)`.
    pub(super) fn add(&mut self, at: SimTime, plan: P) {
        let index = match self.vacant.pop() {
            Some(index) => {
                self.plans[index as usize] = Some(plan);
                index
            }
            None => {
                self.plans.push(Some(plan));
                self.plans.len() as u32 - 1
            }
        };
        self.made += 1;
        self.queue.push(Reverse(Entry { at, number: self.made, plan: index }));
    }

    /// Returns the instant of the first plan.
    pub(super) fn next(&self) -> Option<SimTime> {
        self.queue.peek().map(|entry| entry.0.at)
    }

    /// Takes the first plan, if it is for an instant before `end`. `O(log n)`.
    pub(super) fn take_before(&mut self, end: SimTime) -> Option<(SimTime, P)> {
        if self.next()? >= end {
            return None;
        }
        let Reverse(Entry { at, plan, .. }) = self.queue.pop()?;
        self.vacant.push(plan);
        self.plans[plan as usize].take().map(|plan| (at, plan))
    }
}

/// The earliest event of each of a number of groups, which may move to and fro.
#[derive(Debug, Default)]
pub(super) struct Earliest {
    of_group: Vec<Option<SimTime>>,
    /// Holds an entry for the present instant of each group, and old ones.
    queue: BinaryHeap<Reverse<(SimTime, u32)>>,
}

impl Earliest {
    /// Makes room for so many groups.
    pub(super) fn grow(&mut self, groups: usize) {
        if self.of_group.len() < groups {
            self.of_group.resize(groups, None);
        }
    }

    /// Sets the earliest event of a group. `O(log n)`, amortised.
    pub(super) fn set(&mut self, group: u32, at: Option<SimTime>) {
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
    pub(super) fn next(&mut self) -> Option<SimTime> {
        while let Some(&Reverse((at, group))) = self.queue.peek() {
            if self.of_group[group as usize] == Some(at) {
                return Some(at);
            }
            self.queue.pop();
        }
        None
    }

    /// Takes the earliest event of all, if it is before `end`; returns its group, which then has none.
    pub(super) fn take_before(&mut self, end: SimTime) -> Option<u32> {
        if self.next()? >= end {
            return None;
        }
        let Reverse((_, group)) = self.queue.pop()?;
        self.of_group[group as usize] = None;
        Some(group)
    }
}
