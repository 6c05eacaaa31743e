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
    /// By time and group: none is before the one at half its place, counted from 1. An event that moves a little, as all do
    /// where a change reaches everything, mostly stays where it is.
    heap: Vec<(SimTime, u32)>,
    /// The place of the event of each group, or [`NONE`].
    places: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Earliest {
    /// Makes room for so many groups.
    pub(crate) fn grow(&mut self, groups: usize) {
        if self.places.len() < groups {
            self.places.resize(groups, NONE);
        }
    }

    /// Sets the earliest event of a group. `O(log n)`.
    pub(crate) fn set(&mut self, group: u32, at: Option<SimTime>) {
        let place = self.places[group as usize];
        match at {
            Some(at) if place == NONE => {
                self.heap.push((at, group));
                self.rise(self.heap.len() - 1, (at, group));
            }
            Some(at) => self.settle(place as usize, (at, group)),
            None if place == NONE => {}
            None => self.remove(place as usize),
        }
    }

    fn remove(&mut self, place: usize) {
        self.places[self.heap[place].1 as usize] = NONE;
        if let Some(last) = self.heap.pop()
            && place < self.heap.len()
        {
            self.settle(place, last);
        }
    }

    /// Puts an event where it belongs, from the place of another one.
    fn settle(&mut self, place: usize, event: (SimTime, u32)) {
        if place > 0 && event < self.heap[(place - 1) / 2] {
            self.rise(place, event);
        } else {
            self.sink(place, event);
        }
    }

    fn rise(&mut self, mut place: usize, event: (SimTime, u32)) {
        while place > 0 {
            let above = (place - 1) / 2;
            if self.heap[above] < event {
                break;
            }
            self.put(place, self.heap[above]);
            place = above;
        }
        self.put(place, event);
    }

    fn sink(&mut self, mut place: usize, event: (SimTime, u32)) {
        while let Some(&(mut first)) = self.heap.get(2 * place + 1) {
            let mut below = 2 * place + 1;
            if let Some(&other) = self.heap.get(below + 1)
                && other < first
            {
                (below, first) = (below + 1, other);
            }
            if event < first {
                break;
            }
            self.put(place, first);
            place = below;
        }
        self.put(place, event);
    }

    fn put(&mut self, place: usize, event: (SimTime, u32)) {
        self.heap[place] = event;
        self.places[event.1 as usize] = place as u32;
    }

    /// Returns the earliest event of all.
    pub(crate) fn next(&self) -> Option<SimTime> {
        self.heap.first().map(|&(at, _)| at)
    }

    /// Takes the earliest event of all, if it is before `end`; returns its group, which then has none. Of events at one
    /// instant, that of the first group is taken. `O(log n)`.
    pub(crate) fn take_before(&mut self, end: SimTime) -> Option<u32> {
        let &(_, group) = self.heap.first().filter(|&&(at, _)| at < end)?;
        self.remove(0);
        Some(group)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Earliest, SimTime};

    proptest! {
        #[test]
        fn the_earliest_of_groups_is_that_of_a_list(
            changes in proptest::collection::vec((0_u32..700, proptest::option::of(0_u64..50), any::<bool>()), 1..300),
        ) {
            let mut earliest = Earliest::default();
            let mut list = Vec::new();
            for (group, at, takes) in changes {
                let at = at.map(|at| if at == 49 { SimTime::MAX } else { SimTime::from_picos(at) });
                earliest.grow(group as usize + 1);
                list.resize(list.len().max(group as usize + 1), None);
                earliest.set(group, at);
                list[group as usize] = at;
                let first = (0..).zip(&list).filter_map(|(group, &at)| Some((at?, group))).min();
                prop_assert_eq!(earliest.next(), first.map(|(at, _)| at));
                let end = SimTime::from_picos(25);
                if takes {
                    let taken = first.filter(|&(at, _)| at < end).map(|(_, group)| group);
                    prop_assert_eq!(earliest.take_before(end), taken);
                    taken.into_iter().for_each(|group| list[group as usize] = None);
                }
            }
        }
    }
}
