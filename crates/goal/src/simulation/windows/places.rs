//! The order of all events, for the records of them.

use super::super::pool::Pool;
use super::records::{Log, Record, record_of, stamp};
use super::sorting::sort;
use super::work::Work;

/// So few records are not forgotten. Those of few hosts stay in the caches; of many hosts, many are of events that have not happened
/// everywhere, and to go through them more often takes longer than it saves. In debug builds far fewer, so that tests forget, too.
fn few(hosts: u32) -> u64 {
    match cfg!(debug_assertions) {
        true => 64,
        false => (u64::from(hosts) << 12).clamp(1 << 16, 1 << 19),
    }
}

/// The number of a record that is forgotten, and of one that is kept and has none yet.
const FORGOTTEN: u32 = u32::MAX;
const KEPT: u32 = FORGOTTEN - 1;

/// The rank of what an event has created that has no place yet.
const UNKNOWN: u64 = u64::MAX;

/// Gives records their places in the order of all events, between windows.
///
/// Only what has not happened yet is compared. Of the records before that, a few are therefore enough, with their places; once
/// there are many others, these are [forgotten](Places::forget), so that records take the memory of what waits, and not of all
/// that has happened.
#[derive(Debug)]
pub(super) struct Places<'a> {
    log: &'a Log,
    /// For each part, that the records before this one have places.
    placed: Vec<u32>,
    thresholds: Thresholds,
    /// How many places there are.
    count: u32,
    /// All events before this time have places \[ps\].
    placed_until: u64,
    /// So few records are not forgotten.
    few: u64,
    /// Events as they are sorted: by what, and their number.
    order: Vec<(u64, u32)>,
    scratch: Vec<(u64, u32)>,
    /// The new numbers of records.
    numbers: Vec<u32>,
}

/// What is to be done between windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    Places,
    Forgetting,
}

/// What makes something due.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Thresholds {
    /// So many records have places.
    pub(super) placed: u64,
    /// Records are forgotten where there are more.
    pub(super) limit: u64,
}

impl Due {
    /// Returns what is due where there are so many records, and so many comparisons have led to another one since places were
    /// given.
    pub(super) fn new(records: u64, steps: u64, Thresholds { placed, limit }: Thresholds) -> Self {
        if records > limit {
            return Self::Forgetting;
        }
        // So far comparing has cost about as much as places do.
        if steps > records - placed { Self::Places } else { Self::Nothing }
    }
}

impl<'a> Places<'a> {
    /// Makes those of a log, of which so many events come before all others.
    pub(super) fn new(log: &'a Log, seeds: u32) -> Self {
        let placed = (0..log.parts()).map(|part| log.start(part)).collect();
        let few = few(seeds);
        let (order, scratch, numbers) = Default::default();
        Self {
            log,
            placed,
            count: seeds,
            placed_until: 0,
            few,
            thresholds: Thresholds { placed: 0, limit: few },
            order,
            scratch,
            numbers,
        }
    }

    /// Returns what makes something due.
    pub(super) fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// Does what is due before a time for the only part there is.
    #[inline]
    pub(super) fn keep_up(&mut self, work: &mut Work<'_>, until: u64) {
        let Work { records, pool, .. } = work;
        let due = Due::new(records.count(), records.steps, self.thresholds);
        let mut ends = [records.next];
        match due {
            Due::Nothing => return,
            Due::Places => self.place(&ends, until),
            Due::Forgetting => self.forget(&mut ends, until, &mut [pool]),
        }
        (records.next, records.steps) = (ends[0], 0);
    }

    /// Counts the records that have places.
    fn count_placed(&mut self) {
        let placed = (0..).zip(&self.placed).map(|(part, &end)| u64::from(end - self.log.start(part)));
        self.thresholds.placed = placed.sum();
    }

    /// Gives all events before a time a place, of which there are no others than in the records before the ends of their parts.
    pub(super) fn place(&mut self, ends: &[u32], until: u64) {
        if self.placed_until == until {
            return;
        }
        self.placed_until = until;
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        for (&placed, &end) in self.placed.iter().zip(ends) {
            let rest = (placed..end).map(|number| (self.log.get(number), number));
            let complete = rest.filter(|(record, _)| !record.is_placed() && record.time < until);
            order.extend(complete.map(|(record, number)| (record.time, number)));
        }
        sort(&mut order, &mut self.scratch);
        for group in order.chunk_by_mut(|one, other| one.0 == other.0) {
            match group {
                [(_, number)] => self.give_place(*number),
                _ => self.place_group(group),
            }
        }
        self.order = order;
        for (placed, &end) in self.placed.iter_mut().zip(ends) {
            while *placed < end && self.log.get(*placed).is_placed() {
                *placed += 1;
            }
        }
        self.count_placed();
    }

    fn give_place(&mut self, number: u32) {
        let time = self.log.get(number).time;
        self.log.set(number, Record::placed(time, self.count));
        self.count += 1;
    }

    /// Gives places to events of one time: first to what was created before, then to what those events have created, and so
    /// on.
    fn place_group(&mut self, mut group: &mut [(u64, u32)]) {
        while !group.is_empty() {
            for (rank, number) in group.iter_mut() {
                let stamp = self.log.get(*number).stamp;
                let creator = self.log.get(record_of(stamp));
                *rank = match creator.is_placed() {
                    true => creator.stamp << 32 | stamp & u64::from(u32::MAX),
                    false => UNKNOWN,
                };
            }
            sort(group, &mut self.scratch);
            let known = group.partition_point(|&(rank, _)| rank != UNKNOWN);
            let (first, rest) = group.split_at_mut(known);
            first.iter().for_each(|&(_, number)| self.give_place(number));
            group = rest;
        }
    }

    /// Forgets the records of events before a time to which no stamp in the pools leads, and gives the others other numbers, also in
    /// the pools. All stamps that are compared later have to be there. `O(n)` for `n` records and slots, but for the order of
    /// events of one time.
    #[cold]
    pub(super) fn forget(&mut self, ends: &mut [u32], until: u64, pools: &mut [&mut Pool]) {
        let log = self.log;
        let mut shifts = Vec::new();
        let mut records = 0;
        for (part, end) in ends.iter().enumerate() {
            shifts.push(records);
            records += (end - log.start(part)) as usize;
        }
        let place = |number: u32| {
            let part = log.part_of(number);
            shifts[part] + (number - log.start(part)) as usize
        };
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.clear();
        numbers.resize(records, FORGOTTEN);
        let mut incomplete: Vec<(u32, Record)> = Vec::new();
        for (part, &end) in ends.iter().enumerate() {
            for number in log.since(until, log.start(part)..end) {
                let record = log.get(number);
                if !record.is_placed() {
                    incomplete.push((number, record));
                    numbers[place(number)] = KEPT;
                }
            }
        }
        let mut kept = std::mem::take(&mut self.order);
        kept.clear();
        let waiting = pools.iter_mut().flat_map(|pool| pool.stamps().map(|stamp| *stamp));
        for number in incomplete.iter().map(|(_, record)| record.stamp).chain(waiting).map(record_of) {
            let new = &mut numbers[place(number)];
            if *new == FORGOTTEN {
                *new = KEPT;
                kept.push((log.get(number).time, number));
            }
        }
        self.sort(&mut kept);
        for (part, end) in ends.iter_mut().enumerate() {
            *end = log.start(part);
        }
        let mut renumber = |number: u32| {
            let end = &mut ends[log.part_of(number)];
            numbers[place(number)] = *end;
            *end += 1;
            numbers[place(number)]
        };
        for (count, &(time, number)) in (0..).zip(&kept) {
            log.set(renumber(number), Record::placed(time, count));
        }
        for (number, _) in &mut incomplete {
            *number = renumber(*number);
        }
        let renumbered =
            |stamp: u64| u64::from(numbers[place(record_of(stamp))]) << 32 | stamp & u64::from(u32::MAX);
        for &(number, record) in &incomplete {
            log.set(number, Record { stamp: renumbered(record.stamp), ..record });
        }
        for stamp in pools.iter_mut().flat_map(|pool| pool.stamps()) {
            *stamp = renumbered(*stamp);
        }
        self.count = kept.len() as u32;
        self.placed_until = until;
        for (part, placed) in self.placed.iter_mut().enumerate() {
            *placed = log.start(part);
        }
        for &(_, number) in &kept {
            self.placed[log.part_of(number)] += 1;
        }
        self.count_placed();
        self.thresholds.limit = self.few + 8 * (kept.len() + incomplete.len()) as u64;
        (self.order, self.numbers) = (kept, numbers);
    }

    /// Sorts complete events, each with its time, into the order of all events.
    fn sort(&mut self, events: &mut [(u64, u32)]) {
        sort(events, &mut self.scratch);
        for group in events.chunk_by_mut(|one, other| one.0 == other.0) {
            group.sort_unstable_by(|one, other| self.log.compare(stamp(one.1, 0), stamp(other.1, 0), &mut 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use proptest::prelude::*;

    use super::super::super::pool::{Pool, Slot};
    use super::super::records::{Log, Records, stamp};
    use super::Places;

    const SEEDS: u32 = 4;
    const PARTS: usize = 3;

    /// An event: when it happens, by which event it was created, as what number there, and the part that it happens in.
    #[derive(Clone, Copy, Debug)]
    struct Event {
        time: u64,
        parent: u32,
        number: u32,
        part: usize,
    }

    /// Returns the place of each event in the order of all events: of those that can happen, the first one by time, and by the
    /// order in which what happens was created.
    fn places(events: &[Event]) -> Vec<u32> {
        let mut places: Vec<u32> = (0..SEEDS).collect();
        places.resize(events.len() + SEEDS as usize, u32::MAX);
        let children = |of: u32| (SEEDS..).zip(events).filter(move |(_, event)| event.parent == of);
        let mut next = BinaryHeap::new();
        let mut happened: Vec<u32> = (0..SEEDS).collect();
        let mut place = SEEDS;
        loop {
            for of in happened.drain(..) {
                for (event, &Event { time, number, .. }) in children(of) {
                    next.push(Reverse((time, places[of as usize], number, event)));
                }
            }
            let Some(Reverse((.., event))) = next.pop() else { return places };
            places[event as usize] = place;
            place += 1;
            happened.push(event);
        }
    }

    /// What there is of some events: the records of each part, and the number of each event's record.
    struct Recorded<'a> {
        parts: Vec<Records<'a>>,
        numbers: Vec<u32>,
    }

    impl<'a> Recorded<'a> {
        fn new(log: &'a Log, events: &[Event]) -> Self {
            let mut parts: Vec<Records<'_>> = (0..PARTS).map(|part| Records::new(log, part)).collect();
            let mut numbers: Vec<u32> =
                (0..SEEDS).map(|seed| parts[seed as usize % PARTS].seed(seed)).collect();
            for event in events {
                numbers.push(parts[event.part].next);
                parts[event.part].add(event.time, stamp(numbers[event.parent as usize], event.number));
            }
            Self { parts, numbers }
        }

        fn ends(&self) -> Vec<u32> {
            self.parts.iter().map(|part| part.next).collect()
        }
    }

    fn log(events: &[Event]) -> Log {
        Log::new((0..PARTS).map(|_| events.len() + SEEDS as usize))
    }

    proptest! {
        /// Things are compared as in the order of all events, whichever of the events have places.
        #[test]
        fn what_was_created_first_comes_first(
            steps in steps(),
            is_chain in any::<bool>(),
        ) {
            let events = events(steps, is_chain);
            let expected = places(&events);
            let log = log(&events);
            let mut recorded = Recorded::new(&log, &events);
            let mut places = Places::new(&log, SEEDS);
            let end = end(&events);
            for complete in [0, end / 2, end] {
                places.place(&recorded.ends(), complete);
                for one in 0..expected.len() {
                    for other in 0..expected.len() {
                        let [first, second] = [(one, 1), (other, 0)].map(|(event, number)| stamp(recorded.numbers[event], number));
                        let expected = (expected[one], 1) < (expected[other], 0);
                        prop_assert_eq!(recorded.parts[0].is_before(first, second), expected);
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
            waiting in prop::collection::vec((any::<prop::sample::Index>(), 0..PARTS), 1..20),
        ) {
            let events = events(steps, is_chain);
            let expected = places(&events);
            let log = log(&events);
            let mut recorded = Recorded::new(&log, &events);
            let mut places = Places::new(&log, SEEDS);
            let mut pools: Vec<Pool> = (0..PARTS).map(|_| Pool::new()).collect();
            let waiting: Vec<(usize, usize, u32)> = waiting
                .iter()
                .map(|(event, part)| {
                    let event = event.index(expected.len());
                    let slot = Slot { stamp: stamp(recorded.numbers[event], 1), ..Slot::default() };
                    (event, *part, pools[*part].take(slot))
                })
                .collect();
            let end = end(&events);
            let mut ends = recorded.ends();
            for complete in [end / 3, end / 2, end] {
                places.forget(&mut ends, complete, &mut pools.iter_mut().collect::<Vec<_>>());
                let incomplete = events.iter().filter(|event| event.time >= complete).count();
                let records: usize = (0..PARTS).map(|part| (ends[part] - log.start(part)) as usize).sum();
                prop_assert!(records <= 2 * incomplete + waiting.len() + SEEDS as usize);
                for (one, part, place) in &waiting {
                    for (other, other_part, other_place) in &waiting {
                        let stamps = [(part, place), (other_part, other_place)].map(|(part, place)| pools[*part][*place].stamp);
                        let expected = expected[*one].cmp(&expected[*other]);
                        prop_assert_eq!(recorded.parts[0].compare(stamps[0], stamps[1]), expected);
                    }
                }
            }
        }
    }

    /// Events by the ones that have created them, after which time, and in which part.
    fn steps() -> impl Strategy<Value = Vec<(prop::sample::Index, u64, usize)>> {
        let delay = prop_oneof![9 => Just(0), 1 => 1_u64..3];
        prop::collection::vec((any::<prop::sample::Index>(), delay, 0..PARTS), 1..60)
    }

    fn events(steps: Vec<(prop::sample::Index, u64, usize)>, is_chain: bool) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        for (number, (parent, delay, part)) in (0..).zip(steps) {
            // Chains that go on side by side, at equal times, are compared back to their beginning.
            let parent = if is_chain { number } else { parent.index(events.len() + SEEDS as usize) as u32 };
            let before = parent.checked_sub(SEEDS).map_or(0, |event| events[event as usize].time);
            events.push(Event { time: before + if is_chain { 1 } else { delay }, parent, number, part });
        }
        events
    }

    /// Returns a time after all events.
    fn end(events: &[Event]) -> u64 {
        events.iter().map(|event| event.time).max().unwrap_or(0) + 1
    }
}
