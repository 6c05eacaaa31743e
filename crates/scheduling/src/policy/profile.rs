//! The nodes that are free from now on, as far as is planned.

use super::pool::Pool;
use crate::{Date, Span};

/// A step function of time: free nodes. Mu'alem and Feitelson, Utilization, Predictability, Workloads, and User Runtime Estimates in
/// Scheduling the IBM SP2 with Backfilling, 2001.
pub(super) struct Profile<P> {
    /// Dates in ascending order, each with the nodes that are free until the next one; those of the last one stay free.
    steps: Vec<(Date, P)>,
}

/// Nodes that are not free for a while.
#[derive(Clone)]
pub(super) struct Slot<P> {
    pub(super) start: Date,
    pub(super) end: Date,
    pub(super) nodes: P,
}

impl<P: Pool> Profile<P> {
    /// Creates the profile in which the nodes that are free now stay free.
    pub(super) fn new(now: Date, free: P) -> Self {
        Self { steps: vec![(now, free)] }
    }

    /// Frees nodes for good from a date on.
    pub(super) fn free_from(&mut self, date: Date, nodes: &P) {
        let first = self.step_at(date);
        self.steps[first..].iter_mut().for_each(|(_, free)| free.insert(nodes));
    }

    /// Takes the nodes of a slot, all of which are free.
    pub(super) fn take(&mut self, slot: &Slot<P>) {
        let (first, end) = (self.step_at(slot.start), self.step_at(slot.end));
        self.steps[first..end].iter_mut().for_each(|(_, free)| free.remove(&slot.nodes));
    }

    /// Gives back the nodes of a slot.
    pub(super) fn give_back(&mut self, slot: &Slot<P>) {
        let (first, end) = (self.step_at(slot.start), self.step_at(slot.end));
        self.steps[first..end].iter_mut().for_each(|(_, free)| free.insert(&slot.nodes));
        self.steps.dedup_by(|(_, later), (_, free)| later == free);
    }

    /// Returns the earliest slot of so many nodes. Takes time by the square of the number of steps at most.
    pub(super) fn earliest(&self, count: u32, length: Span) -> Slot<P> {
        let slot = |(index, &(start, ref free)): (usize, &(Date, P))| {
            let end = start + length;
            let mut free = free.clone();
            let mut later = self.steps[index + 1..].iter().take_while(|(date, _)| *date < end);
            while free.len() >= count {
                match later.next() {
                    Some((_, nodes)) => free.intersect(nodes),
                    None => return Some(Slot { start, end, nodes: free.lowest(count)? }),
                }
            }
            None
        };
        self.steps.iter().enumerate().find_map(slot).expect("no job is larger than the machine")
    }

    /// Returns the index of the step that begins at a date, which is made if there is none.
    fn step_at(&mut self, date: Date) -> usize {
        match self.steps.binary_search_by_key(&date, |(date, _)| *date) {
            Ok(index) => index,
            Err(index) => {
                let free = self.steps[index - 1].1.clone();
                self.steps.insert(index, (date, free));
                index
            }
        }
    }
}
