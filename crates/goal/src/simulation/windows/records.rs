//! The order of what is created, found where it is asked for.

use std::cmp::Ordering;

use super::super::memory::growing_table;
use super::sorting::sort;

/// Names something that is created: by its record and its number there.
pub(crate) fn stamp(record: u32, number: u32) -> u64 {
    u64::from(record) << 32 | u64::from(number)
}

/// An event that has created something.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// When it happened \[ps\].
    time: u64,
    /// The stamp of what happened; once the record has its place in the order of all events, that place and [`PLACED`].
    stamp: u64,
}

/// The bits of a stamp, above those of a place, that no record has.
const PLACED: u64 = (u32::MAX as u64) << 32;

impl Record {
    #[inline]
    fn is_placed(self) -> bool {
        self.stamp >= PLACED
    }
}

/// Events that have created something, in no order but that a record stands behind that of the event that has created what
/// happened.
///
/// Of two things, that comes first whose event happened first; where both happened at one time, that of which the event
/// handled what was created first. So one comparison may lead to another one, and so on; usually not far. Where it has
/// led far too often, as between hosts that all do the same at the same times, all records get places, with which comparisons
/// end.
#[derive(Debug, Default)]
pub(crate) struct Records {
    log: Vec<Record>,
    /// The records before this one have places.
    placed: usize,
    /// How many have places.
    places: u32,
    /// Comparisons that have led to another one since places were given.
    steps: usize,
    /// All events before this time have been added \[ps\].
    complete_until: u64,
    /// All events before this time have places \[ps\].
    placed_until: u64,
    /// Events as they are sorted: by what, and their number.
    order: Vec<(u64, u32)>,
    scratch: Vec<(u64, u32)>,
}

impl Records {
    /// Makes room for so many records.
    pub(crate) fn with_capacity(records: usize) -> Self {
        Self { log: growing_table(records), ..Self::default() }
    }

    /// Adds an event before all others, behind those that there are, and returns the number of its record.
    pub(crate) fn seed(&mut self) -> u32 {
        self.log.push(Record { time: 0, stamp: PLACED | u64::from(self.places) });
        self.places += 1;
        self.places - 1
    }

    /// Returns the number that the record of the next event will have.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.log.len() as u32
    }

    /// Adds an event, which has created something.
    #[inline]
    pub(crate) fn add(&mut self, time: u64, stamp: u64) {
        self.log.push(Record { time, stamp });
    }

    /// Returns whether one thing was created before another one.
    pub(crate) fn is_before(&mut self, mut one: u64, mut other: u64) -> bool {
        loop {
            let [a, b] = [one, other].map(|stamp| (stamp >> 32) as usize);
            if a == b {
                return one < other;
            }
            let (a, b) = (self.log[a], self.log[b]);
            if a.time != b.time {
                return a.time < b.time;
            }
            match (a.is_placed(), b.is_placed()) {
                (false, false) => (one, other) = (a.stamp, b.stamp),
                (true, true) => return a.stamp < b.stamp,
                (is_placed, _) => return is_placed,
            }
            self.steps += 1;
            // So far comparing has cost about as much as places would have.
            if self.steps > self.log.len() - self.placed {
                self.place();
            }
        }
    }

    /// Returns which of two things was created first.
    pub(crate) fn compare(&mut self, one: u64, other: u64) -> Ordering {
        match one == other {
            true => Ordering::Equal,
            false if self.is_before(one, other) => Ordering::Less,
            false => Ordering::Greater,
        }
    }

    /// Returns what stamps are compared by whose records have places.
    #[inline]
    fn rank(&self, stamp: u64) -> u64 {
        self.log[(stamp >> 32) as usize].stamp << 32 | stamp & u64::from(u32::MAX)
    }

    /// Says that all events before a time have been added.
    pub(crate) fn complete(&mut self, time: u64) {
        self.complete_until = time;
    }

    /// Gives all events a place that are complete.
    fn place(&mut self) {
        self.steps = 0;
        if self.placed_until == self.complete_until {
            return;
        }
        self.placed_until = self.complete_until;
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        let rest = (self.placed as u32..).zip(&self.log[self.placed..]);
        let complete = rest.filter(|(_, record)| !record.is_placed() && record.time < self.complete_until);
        order.extend(complete.map(|(number, record)| (record.time, number)));
        sort(&mut order, &mut self.scratch);
        for group in order.chunk_by_mut(|one, other| one.0 == other.0) {
            match group {
                [(_, number)] => self.give_place(*number),
                _ => self.place_group(group),
            }
        }
        self.order = order;
        let placed = self.log[self.placed..].iter().take_while(|record| record.is_placed()).count();
        self.placed += placed;
    }

    fn give_place(&mut self, number: u32) {
        self.log[number as usize].stamp = PLACED | u64::from(self.places);
        self.places += 1;
    }

    /// Gives places to events of one time: first to what was created before, then to what those events have created, and so
    /// on.
    fn place_group(&mut self, mut group: &mut [(u64, u32)]) {
        while !group.is_empty() {
            for (rank, number) in group.iter_mut() {
                let stamp = self.log[*number as usize].stamp;
                let is_known = self.log[(stamp >> 32) as usize].is_placed();
                *rank = if is_known { self.rank(stamp) } else { UNKNOWN };
            }
            sort(group, &mut self.scratch);
            let known = group.partition_point(|&(rank, _)| rank != UNKNOWN);
            let (first, rest) = group.split_at_mut(known);
            first.iter().for_each(|&(_, number)| self.give_place(number));
            group = rest;
        }
    }
}

/// The rank of what an event has created that has no place yet.
const UNKNOWN: u64 = u64::MAX;

/// The most records.
pub(crate) const MOST: u64 = u32::MAX as u64;

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use proptest::prelude::*;

    use super::{Records, stamp};

    const SEEDS: u32 = 4;

    /// Returns the place of each event in the order of all events: of those that can happen, the first one by time, and by the
    /// order in which what happens was created.
    fn places(events: &[(u64, u32, u32)]) -> Vec<u32> {
        let mut places: Vec<u32> = (0..SEEDS).collect();
        places.resize(events.len() + SEEDS as usize, u32::MAX);
        let children = |of: u32| (SEEDS..).zip(events).filter(move |(_, (_, parent, _))| *parent == of);
        let mut next = BinaryHeap::new();
        let mut happened: Vec<u32> = (0..SEEDS).collect();
        let mut place = SEEDS;
        loop {
            for of in happened.drain(..) {
                for (event, &(time, _, number)) in children(of) {
                    next.push(Reverse((time, places[of as usize], number, event)));
                }
            }
            let Some(Reverse((.., event))) = next.pop() else { return places };
            places[event as usize] = place;
            place += 1;
            happened.push(event);
        }
    }

    proptest! {
        /// Things are compared as in the order of all events, whichever of the events have places.
        #[test]
        fn what_was_created_first_comes_first(
            steps in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![9 => Just(0), 1 => 1_u64..3]), 1..60),
            is_chain in any::<bool>(),
        ) {
            let mut events: Vec<(u64, u32, u32)> = Vec::new();
            for (number, (parent, delay)) in (0..).zip(steps) {
                // Chains that go on side by side, at equal times, are compared back to their beginning.
                let parent = if is_chain { number } else { parent.index(events.len() + SEEDS as usize) as u32 };
                let before = parent.checked_sub(SEEDS).map_or(0, |event| events[event as usize].0);
                events.push((before + if is_chain { 1 } else { delay }, parent, number));
            }
            let places = places(&events);
            let mut records = Records::default();
            (0..SEEDS).for_each(|_| { records.seed(); });
            for &(time, parent, number) in &events {
                records.add(time, stamp(parent, number));
            }
            let end = events.iter().map(|event| event.0).max().unwrap_or(0) + 1;
            for complete in [0, end / 2, end] {
                records.complete(complete);
                if complete > 0 {
                    records.place();
                }
                for one in 0..places.len() as u32 {
                    for other in 0..places.len() as u32 {
                        let expected = (places[one as usize], 1) < (places[other as usize], 0);
                        prop_assert_eq!(records.is_before(stamp(one, 1), stamp(other, 0)), expected);
                    }
                }
            }
        }
    }
}
