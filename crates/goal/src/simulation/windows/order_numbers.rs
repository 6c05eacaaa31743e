//! Order numbers of records: positions in the global order of events, assigned between windows.

use super::super::pool::Pool;
use super::event_handler::EventHandler;
use super::event_log::{EventLog, Record, record_of, stamp};
use super::radix_sort::sort;

/// Returns the number of records up to which the log is not compacted. Those of few hosts stay in the caches; of many
/// hosts, many records are of events that have not happened everywhere, and to scan them more often costs more than it
/// saves. Small in debug builds, so that tests compact, too.
fn min_records(hosts: u32) -> u64 {
    match cfg!(debug_assertions) {
        true => 64,
        false => (u64::from(hosts) << 12).clamp(1 << 16, 1 << 19),
    }
}

/// New number of a record that is dropped, and of one that is kept and has none yet.
const DROPPED: u32 = u32::MAX;
const KEPT: u32 = DROPPED - 1;

/// Sort key of an event whose creator has no order number yet.
const UNNUMBERED: u64 = u64::MAX;

/// Assigns order numbers to records, between windows.
///
/// Only slots that wait or are in flight are compared. Of the records of past events, a few are therefore enough, with
/// their order numbers. Once there are many others, these are [dropped](OrderNumbers::compact), so that the memory of
/// the log grows with the number of slots, not with that of past events (the fossil collection of this engine).
#[derive(Debug)]
pub(super) struct OrderNumbers<'a> {
    log: &'a EventLog,
    /// For each partition, the first record that may lack an order number.
    first_unnumbered: Vec<u32>,
    thresholds: Thresholds,
    /// Number of order numbers assigned.
    next_number: u32,
    /// All events before this time have order numbers \[ps\].
    numbered_until: u64,
    /// Number of records up to which the log is not compacted.
    min_records: u64,
    /// Buffer for sorting events: key and record.
    sorted: Vec<(u64, u32)>,
    scratch: Vec<(u64, u32)>,
    /// New numbers of records, while the log is compacted.
    new_numbers: Vec<u32>,
}

/// Maintenance of the log between windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Maintenance {
    Nothing,
    Numbering,
    Compaction,
}

/// Thresholds of the maintenance.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Thresholds {
    /// Number of records with order numbers.
    pub(super) numbered: u64,
    /// Number of records above which the log is compacted.
    pub(super) limit: u64,
}

impl Maintenance {
    /// Returns the maintenance due with this many records, and this many chained comparisons since the last assignment.
    pub(super) fn new(records: u64, steps: u64, Thresholds { numbered: placed, limit }: Thresholds) -> Self {
        if records > limit {
            return Self::Compaction;
        }
        // Comparing has by now cost about as much as assigning order numbers does.
        if steps > records - placed { Self::Numbering } else { Self::Nothing }
    }
}

impl<'a> OrderNumbers<'a> {
    /// Makes the order numbers of a log whose first `seeds` records are numbered already.
    pub(super) fn new(log: &'a EventLog, seeds: u32) -> Self {
        let placed = (0..log.partition_count()).map(|part| log.start(part)).collect();
        let few = min_records(seeds);
        let (order, scratch, numbers) = Default::default();
        Self {
            log,
            first_unnumbered: placed,
            next_number: seeds,
            numbered_until: 0,
            min_records: few,
            thresholds: Thresholds { numbered: 0, limit: few },
            sorted: order,
            scratch,
            new_numbers: numbers,
        }
    }

    /// Returns the thresholds of the maintenance.
    pub(super) fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// Does the maintenance of a log with a single partition, whose next window starts at `until`.
    #[inline]
    pub(super) fn maintain(&mut self, work: &mut EventHandler<'_>, until: u64) {
        let EventHandler { records, pool, .. } = work;
        let due = Maintenance::new(records.count(), records.chained_comparisons, self.thresholds);
        let mut ends = [records.next_record];
        match due {
            Maintenance::Nothing => return,
            Maintenance::Numbering => self.assign_until(&ends, until),
            Maintenance::Compaction => self.compact(&mut ends, until, &mut [pool]),
        }
        (records.next_record, records.chained_comparisons) = (ends[0], 0);
    }

    /// Counts the records with order numbers.
    fn update_numbered(&mut self) {
        let placed =
            (0..).zip(&self.first_unnumbered).map(|(part, &end)| u64::from(end - self.log.start(part)));
        self.thresholds.numbered = placed.sum();
    }

    /// Assigns order numbers to all events before `until`; `ends` are the ends of the partitions' records, which hold
    /// all of these events.
    pub(super) fn assign_until(&mut self, ends: &[u32], until: u64) {
        if self.numbered_until == until {
            return;
        }
        self.numbered_until = until;
        let mut order = std::mem::take(&mut self.sorted);
        order.clear();
        for (&placed, &end) in self.first_unnumbered.iter().zip(ends) {
            let rest = (placed..end).map(|number| (self.log.get(number), number));
            let complete = rest.filter(|(record, _)| !record.is_numbered() && record.time < until);
            order.extend(complete.map(|(record, number)| (record.time, number)));
        }
        sort(&mut order, &mut self.scratch);
        for group in order.chunk_by_mut(|one, other| one.0 == other.0) {
            match group {
                [(_, number)] => self.assign(*number),
                _ => self.assign_group(group),
            }
        }
        self.sorted = order;
        for (placed, &end) in self.first_unnumbered.iter_mut().zip(ends) {
            while *placed < end && self.log.get(*placed).is_numbered() {
                *placed += 1;
            }
        }
        self.update_numbered();
    }

    fn assign(&mut self, number: u32) {
        let time = self.log.get(number).time;
        self.log.set(number, Record::numbered(time, self.next_number));
        self.next_number += 1;
    }

    /// Assigns order numbers to events of one time: first to those that events with order numbers have created, then to
    /// those that these have created, and so on.
    fn assign_group(&mut self, mut group: &mut [(u64, u32)]) {
        while !group.is_empty() {
            for (rank, number) in group.iter_mut() {
                let stamp = self.log.get(*number).stamp;
                let creator = self.log.get(record_of(stamp));
                *rank = match creator.is_numbered() {
                    true => creator.stamp << 32 | stamp & u64::from(u32::MAX),
                    false => UNNUMBERED,
                };
            }
            sort(group, &mut self.scratch);
            let known = group.partition_point(|&(rank, _)| rank != UNNUMBERED);
            let (first, rest) = group.split_at_mut(known);
            first.iter().for_each(|&(_, number)| self.assign(number));
            group = rest;
        }
    }

    /// Drops the records of events before `until` to which no stamp in the pools refers, and renumbers the others, also
    /// in the pools. All stamps that are compared later must be in the pools. O(n) for n records and slots, apart from
    /// sorting events of equal times.
    #[cold]
    pub(super) fn compact(&mut self, ends: &mut [u32], until: u64, pools: &mut [&mut Pool]) {
        let log = self.log;
        let mut shifts = Vec::new();
        let mut records = 0;
        for (part, end) in ends.iter().enumerate() {
            shifts.push(records);
            records += (end - log.start(part)) as usize;
        }
        let place = |number: u32| {
            let part = log.partition_of(number);
            shifts[part] + (number - log.start(part)) as usize
        };
        let mut numbers = std::mem::take(&mut self.new_numbers);
        numbers.clear();
        numbers.resize(records, DROPPED);
        let mut incomplete: Vec<(u32, Record)> = Vec::new();
        for (part, &end) in ends.iter().enumerate() {
            for number in log.records_since(until, log.start(part)..end) {
                let record = log.get(number);
                if !record.is_numbered() {
                    incomplete.push((number, record));
                    numbers[place(number)] = KEPT;
                }
            }
        }
        let mut kept = std::mem::take(&mut self.sorted);
        kept.clear();
        // Free slots count as well: their stale stamps only keep a few more records.
        let waiting = pools.iter_mut().flat_map(|pool| pool.stamps().map(|stamp| *stamp));
        for number in incomplete.iter().map(|(_, record)| record.stamp).chain(waiting).map(record_of) {
            let new = &mut numbers[place(number)];
            if *new == DROPPED {
                *new = KEPT;
                kept.push((log.get(number).time, number));
            }
        }
        self.sort(&mut kept);
        for (part, end) in ends.iter_mut().enumerate() {
            *end = log.start(part);
        }
        let mut renumber = |number: u32| {
            let end = &mut ends[log.partition_of(number)];
            numbers[place(number)] = *end;
            *end += 1;
            numbers[place(number)]
        };
        for (count, &(time, number)) in (0..).zip(&kept) {
            log.set(renumber(number), Record::numbered(time, count));
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
        self.next_number = kept.len() as u32;
        self.numbered_until = until;
        for (part, placed) in self.first_unnumbered.iter_mut().enumerate() {
            *placed = log.start(part);
        }
        for &(_, number) in &kept {
            self.first_unnumbered[log.partition_of(number)] += 1;
        }
        self.update_numbered();
        self.thresholds.limit = self.min_records + 8 * (kept.len() + incomplete.len()) as u64;
        (self.sorted, self.new_numbers) = (kept, numbers);
    }

    /// Sorts complete events, each with its time, into global order.
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
    use super::super::event_log::{EventLog, PartitionLog, stamp};
    use super::OrderNumbers;

    const SEEDS: u32 = 4;
    const PARTS: usize = 3;

    /// An event: its time, the event that created it, its number there, and the partition in which it happens.
    #[derive(Clone, Copy, Debug)]
    struct Event {
        time: u64,
        parent: u32,
        number: u32,
        part: usize,
    }

    /// Returns the order number of each event by definition: of the events that can happen next, the first is taken by
    /// time, then by creation.
    fn expected_order(events: &[Event]) -> Vec<u32> {
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

    /// The records of each partition, and the record of each event.
    struct Recorded<'a> {
        parts: Vec<PartitionLog<'a>>,
        numbers: Vec<u32>,
    }

    impl<'a> Recorded<'a> {
        fn new(log: &'a EventLog, events: &[Event]) -> Self {
            let mut parts: Vec<PartitionLog<'_>> =
                (0..PARTS).map(|part| PartitionLog::new(log, part)).collect();
            let mut numbers: Vec<u32> =
                (0..SEEDS).map(|seed| parts[seed as usize % PARTS].add_seed(seed)).collect();
            for event in events {
                numbers.push(parts[event.part].next_record);
                parts[event.part].add(event.time, stamp(numbers[event.parent as usize], event.number));
            }
            Self { parts, numbers }
        }

        fn ends(&self) -> Vec<u32> {
            self.parts.iter().map(|part| part.next_record).collect()
        }
    }

    fn log(events: &[Event]) -> EventLog {
        EventLog::new((0..PARTS).map(|_| events.len() + SEEDS as usize))
    }

    proptest! {
        /// Stamps compare in the global order of events, whichever of the events have order numbers.
        #[test]
        fn stamps_compare_in_creation_order(
            steps in steps(),
            is_chain in any::<bool>(),
        ) {
            let events = events(steps, is_chain);
            let expected = expected_order(&events);
            let log = log(&events);
            let mut recorded = Recorded::new(&log, &events);
            let mut places = OrderNumbers::new(&log, SEEDS);
            let end = end(&events);
            for complete in [0, end / 2, end] {
                places.assign_until(&recorded.ends(), complete);
                for one in 0..expected.len() {
                    for other in 0..expected.len() {
                        let [first, second] = [(one, 1), (other, 0)].map(|(event, number)| stamp(recorded.numbers[event], number));
                        let expected = (expected[one], 1) < (expected[other], 0);
                        prop_assert_eq!(recorded.parts[0].is_before(first, second), expected);
                    }
                }
            }
        }

        /// Slots compare as before after compaction, and the records kept are bounded by the numbers of slots and
        /// incomplete events.
        #[test]
        fn compaction_preserves_the_order_of_slots(
            steps in steps(),
            is_chain in any::<bool>(),
            waiting in prop::collection::vec((any::<prop::sample::Index>(), 0..PARTS), 1..20),
        ) {
            let events = events(steps, is_chain);
            let expected = expected_order(&events);
            let log = log(&events);
            let mut recorded = Recorded::new(&log, &events);
            let mut places = OrderNumbers::new(&log, SEEDS);
            let mut pools: Vec<Pool> = (0..PARTS).map(|_| Pool::new()).collect();
            let waiting: Vec<(usize, usize, u32)> = waiting
                .iter()
                .map(|(event, part)| {
                    let event = event.index(expected.len());
                    let slot = Slot { stamp: stamp(recorded.numbers[event], 1), ..Slot::default() };
                    (event, *part, pools[*part].insert(slot))
                })
                .collect();
            let end = end(&events);
            let mut ends = recorded.ends();
            for complete in [end / 3, end / 2, end] {
                places.compact(&mut ends, complete, &mut pools.iter_mut().collect::<Vec<_>>());
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

    /// Events: the event that created each, the delay after it, and the partition.
    fn steps() -> impl Strategy<Value = Vec<(prop::sample::Index, u64, usize)>> {
        let delay = prop_oneof![9 => Just(0), 1 => 1_u64..3];
        prop::collection::vec((any::<prop::sample::Index>(), delay, 0..PARTS), 1..60)
    }

    fn events(steps: Vec<(prop::sample::Index, u64, usize)>, is_chain: bool) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        for (number, (parent, delay, part)) in (0..).zip(steps) {
            // Parallel chains with equal times are compared back to their beginning.
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
