//! The order of what is created, found where it is asked for.

use std::cmp::Ordering;

use super::super::memory::growing_table;
use super::super::pool::Pool;
use super::sorting::sort;

/// Names something that is created: by its record and its number there.
pub(crate) fn stamp(record: u32, number: u32) -> u64 {
    u64::from(record) << 32 | u64::from(number)
}

/// Returns the record of a stamp.
fn record_of(stamp: u64) -> usize {
    (stamp >> 32) as usize
}

/// Returns a stamp with the new number of its record.
fn renumbered(stamp: u64, numbers: &[u32]) -> u64 {
    u64::from(numbers[record_of(stamp)]) << 32 | stamp & u64::from(u32::MAX)
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
///
/// Only what has not happened yet is compared. Of the records before that, a few are therefore enough, with their places; once
/// there are many others, these are [forgotten](Records::forget), so that records take the memory of what waits, and not of all
/// that has happened.
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
    /// Records are forgotten where there are more.
    limit: usize,
    /// Events as they are sorted: by what, and their number.
    order: Vec<(u64, u32)>,
    scratch: Vec<(u64, u32)>,
    /// The new numbers of records.
    numbers: Vec<u32>,
}

/// So few records are not forgotten; in debug builds far fewer, so that tests forget, too.
const FEW: usize = if cfg!(debug_assertions) { 64 } else { 1 << 19 };

/// The number of a record that is forgotten, and of one that is kept and has none yet.
const FORGOTTEN: u32 = u32::MAX;
const KEPT: u32 = FORGOTTEN - 1;

impl Records {
    /// Makes room for so many records.
    pub(crate) fn with_capacity(records: usize) -> Self {
        Self { log: growing_table(records), limit: FEW, ..Self::default() }
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
            let [a, b] = [one, other].map(record_of);
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
        self.log[record_of(stamp)].stamp << 32 | stamp & u64::from(u32::MAX)
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
                let is_known = self.log[record_of(stamp)].is_placed();
                *rank = if is_known { self.rank(stamp) } else { UNKNOWN };
            }
            sort(group, &mut self.scratch);
            let known = group.partition_point(|&(rank, _)| rank != UNKNOWN);
            let (first, rest) = group.split_at_mut(known);
            first.iter().for_each(|&(_, number)| self.give_place(number));
            group = rest;
        }
    }

    /// Returns whether there are many records.
    #[inline]
    pub(crate) fn are_many(&self) -> bool {
        self.log.len() > self.limit
    }

    /// Forgets the records of complete events to which no stamp in the pool leads, and gives the others other numbers, also in the
    /// pool. All stamps that are compared later have to be there. `O(n)` for `n` records and slots, but for the order of complete
    /// events of one time.
    #[cold]
    pub(crate) fn forget(&mut self, pool: &mut Pool) {
        let until = self.complete_until;
        let mut incomplete: Vec<(u32, Record)> = Vec::new();
        for (number, record) in self.log.iter().enumerate() {
            if record.time >= until && !record.is_placed() {
                incomplete.push((number as u32, *record));
            }
        }
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.clear();
        numbers.resize(self.log.len(), FORGOTTEN);
        for (number, _) in &incomplete {
            numbers[*number as usize] = KEPT;
        }
        let stamps = incomplete.iter().map(|(_, record)| record.stamp);
        let order = self.sort_kept(stamps.chain(pool.stamps().map(|stamp| *stamp)), &mut numbers);
        self.log.clear();
        for &(time, number) in &order {
            numbers[number as usize] = self.next();
            self.log.push(Record { time, stamp: PLACED | u64::from(self.next()) });
        }
        (self.order, self.placed, self.places) = (order, self.log.len(), self.next());
        self.placed_until = until;
        for (number, record) in incomplete {
            numbers[number as usize] = self.next();
            self.log.push(Record { stamp: renumbered(record.stamp, &numbers), ..record });
        }
        pool.stamps().for_each(|stamp| *stamp = renumbered(*stamp, &numbers));
        self.numbers = numbers;
        self.limit = FEW + 8 * self.log.len();
    }

    /// Returns the records of complete events to which stamps lead, each with its time, in the order of all events.
    fn sort_kept(&mut self, stamps: impl Iterator<Item = u64>, numbers: &mut [u32]) -> Vec<(u64, u32)> {
        let mut kept = std::mem::take(&mut self.order);
        kept.clear();
        for number in stamps.map(record_of) {
            if numbers[number] == FORGOTTEN {
                numbers[number] = KEPT;
                kept.push((self.log[number].time, number as u32));
            }
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        sort(&mut kept, &mut scratch);
        self.scratch = scratch;
        for group in kept.chunk_by_mut(|one, other| one.0 == other.0) {
            group.sort_unstable_by(|one, other| self.compare(stamp(one.1, 0), stamp(other.1, 0)));
        }
        kept
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

    use super::super::super::pool::{Pool, Slot};
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
            steps in steps(),
            is_chain in any::<bool>(),
        ) {
            let events = events(steps, is_chain);
            let places = places(&events);
            let mut records = records(&events);
            let end = end(&events);
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

        /// What waits is compared as before once records are forgotten, of which there are no more than of what waits and of
        /// incomplete ones.
        #[test]
        fn what_waits_is_compared_without_what_is_forgotten(
            steps in steps(),
            is_chain in any::<bool>(),
            waiting in prop::collection::vec(any::<prop::sample::Index>(), 1..20),
        ) {
            let events = events(steps, is_chain);
            let places = places(&events);
            let mut records = records(&events);
            let waiting: Vec<usize> = waiting.iter().map(|one| one.index(places.len())).collect();
            let mut pool = Pool::new();
            for &record in &waiting {
                pool.take(Slot { stamp: stamp(record as u32, 1), ..Slot::default() });
            }
            let end = end(&events);
            for complete in [end / 3, end / 2, end] {
                records.complete(complete);
                records.forget(&mut pool);
                let incomplete = events.iter().filter(|event| event.0 >= complete).count();
                prop_assert!(records.log.len() <= 2 * incomplete + waiting.len() + SEEDS as usize);
                for (one, &record) in (0..).zip(&waiting) {
                    for (other, &other_record) in (0..).zip(&waiting) {
                        let [one, other] = [one, other].map(|place| pool[place].stamp);
                        let expected = places[record].cmp(&places[other_record]);
                        prop_assert_eq!(records.compare(one, other), expected);
                    }
                }
            }
        }
    }

    /// Events by the ones that have created them, and after which time.
    fn steps() -> impl Strategy<Value = Vec<(prop::sample::Index, u64)>> {
        prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![9 => Just(0), 1 => 1_u64..3]), 1..60)
    }

    fn events(steps: Vec<(prop::sample::Index, u64)>, is_chain: bool) -> Vec<(u64, u32, u32)> {
        let mut events: Vec<(u64, u32, u32)> = Vec::new();
        for (number, (parent, delay)) in (0..).zip(steps) {
            // Chains that go on side by side, at equal times, are compared back to their beginning.
            let parent = if is_chain { number } else { parent.index(events.len() + SEEDS as usize) as u32 };
            let before = parent.checked_sub(SEEDS).map_or(0, |event| events[event as usize].0);
            events.push((before + if is_chain { 1 } else { delay }, parent, number));
        }
        events
    }

    fn records(events: &[(u64, u32, u32)]) -> Records {
        let mut records = Records::default();
        for _ in 0..SEEDS {
            records.seed();
        }
        for &(time, parent, number) in events {
            records.add(time, stamp(parent, number));
        }
        records
    }

    /// Returns a time after all events.
    fn end(events: &[(u64, u32, u32)]) -> u64 {
        events.iter().map(|event| event.0).max().unwrap_or(0) + 1
    }
}
