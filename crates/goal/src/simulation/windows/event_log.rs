//! Log of events that created slots, and the comparison of stamps through it.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytemuck::Zeroable;

use super::super::memory::zeroed_table;

/// Makes a stamp, which identifies a slot by the record of the event that created it and its number there.
pub(crate) fn stamp(record: u32, number: u32) -> u64 {
    u64::from(record) << 32 | u64::from(number)
}

/// Returns the record of a stamp.
pub(super) fn record_of(stamp: u64) -> u32 {
    (stamp >> 32) as u32
}

/// Record of an event that has created something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// Time of the event \[ps\].
    pub(super) time: u64,
    /// Stamp of the event's own slot; once the record has an order number, that number and [`NUMBERED`].
    pub(super) stamp: u64,
}

/// Marks an order number: the bits of a record number that no record has.
const NUMBERED: u64 = (u32::MAX as u64) << 32;

impl Record {
    /// Makes the record of an event with this order number.
    pub(super) fn numbered(time: u64, order_number: u32) -> Self {
        Self { time, stamp: NUMBERED | u64::from(order_number) }
    }

    #[inline]
    pub(super) fn is_numbered(self) -> bool {
        self.stamp >= NUMBERED
    }
}

/// Records of events that have created something, of all partitions.
///
/// Of two slots, the one whose creating event happened first comes first; if both events happened at the same time,
/// their own slots are compared. So one comparison may lead to another, usually not far. When comparisons have chained
/// too often, as between hosts that all do the same at the same times, records get [order
/// numbers](super::order_numbers::OrderNumbers), which end the chains.
///
/// Each partition appends records to a range of its own, and reads records of others only through stamps of messages
/// received. Those records were written in earlier windows, and a barrier lies between the write and the read: relaxed
/// accesses suffice.
#[derive(Debug)]
pub(super) struct EventLog {
    entries: Box<[Entry]>,
    /// First record of each partition, and the end of the last one.
    starts: Vec<u32>,
}

#[derive(Debug, Zeroable)]
#[repr(C)]
struct Entry {
    time: AtomicU64,
    stamp: AtomicU64,
}

/// Maximum number of records.
pub(crate) const MAX_RECORDS: u64 = u32::MAX as u64;

impl EventLog {
    /// Makes a log with room for these numbers of records per partition, at most [`MAX_RECORDS`] in all.
    pub(super) fn new(capacities: impl Iterator<Item = usize>) -> Self {
        let mut starts = vec![0];
        starts.extend(capacities.scan(0, |end, capacity| {
            *end += capacity as u32;
            Some(*end)
        }));
        let entries = starts.last().map_or(0, |&end| end as usize);
        Self { entries: zeroed_table(entries), starts }
    }

    /// Returns the number of partitions.
    pub(super) fn partition_count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the first record of a partition.
    pub(super) fn start(&self, part: usize) -> u32 {
        self.starts[part]
    }

    /// Returns the partition of a record.
    pub(super) fn partition_of(&self, record: u32) -> usize {
        self.starts[1..].partition_point(|&end| end <= record)
    }

    #[inline]
    pub(super) fn get(&self, record: u32) -> Record {
        let Entry { time, stamp } = &self.entries[record as usize];
        Record { time: time.load(Relaxed), stamp: stamp.load(Relaxed) }
    }

    /// Yields the numbers of those `records` that happened at `time` or later.
    pub(super) fn records_since(&self, time: u64, records: Range<u32>) -> impl Iterator<Item = u32> {
        let entries = &self.entries[records.start as usize..records.end as usize];
        let late = move |(number, entry): (u32, &Entry)| (entry.time.load(Relaxed) >= time).then_some(number);
        (records.start..).zip(entries).filter_map(late)
    }

    #[inline]
    pub(super) fn set(&self, record: u32, Record { time, stamp }: Record) {
        let entry = &self.entries[record as usize];
        entry.time.store(time, Relaxed);
        entry.stamp.store(stamp, Relaxed);
    }

    /// Returns true if stamp `one` was created before stamp `other`; adds the number of chained comparisons to `steps`.
    pub(super) fn is_before(&self, mut one: u64, mut other: u64, steps: &mut u64) -> bool {
        loop {
            let [a, b] = [one, other].map(record_of);
            if a == b {
                return one < other;
            }
            let (a, b) = (self.get(a), self.get(b));
            if a.time != b.time {
                return a.time < b.time;
            }
            match (a.is_numbered(), b.is_numbered()) {
                (false, false) => (one, other) = (a.stamp, b.stamp),
                (true, true) => return a.stamp < b.stamp,
                // Order numbers are assigned in global order: a record without one comes after all records that have
                // one.
                (is_placed, _) => return is_placed,
            }
            *steps += 1;
        }
    }

    /// Compares two stamps by creation; counts as [`EventLog::is_before`] does.
    pub(super) fn compare(&self, one: u64, other: u64, steps: &mut u64) -> Ordering {
        match one == other {
            true => Ordering::Equal,
            false if self.is_before(one, other, steps) => Ordering::Less,
            false => Ordering::Greater,
        }
    }
}

/// Records of one partition: appends to the log and compares stamps.
#[derive(Debug)]
pub(crate) struct PartitionLog<'a> {
    log: &'a EventLog,
    first: u32,
    /// Number of the next record.
    pub(super) next_record: u32,
    /// Number of chained comparisons since the last assignment of order numbers.
    pub(super) chained_comparisons: u64,
}

impl<'a> PartitionLog<'a> {
    pub(super) fn new(log: &'a EventLog, part: usize) -> Self {
        Self { log, first: log.start(part), next_record: log.start(part), chained_comparisons: 0 }
    }

    /// Returns the number of records.
    pub(super) fn count(&self) -> u64 {
        u64::from(self.next_record - self.first)
    }

    /// Adds an event before all others, with its order number among such events; returns the number of its record.
    pub(super) fn add_seed(&mut self, order_number: u32) -> u32 {
        let number = self.next_record;
        self.push(Record::numbered(0, order_number));
        number
    }

    /// Adds an event that has created something.
    #[inline]
    pub(super) fn add(&mut self, time: u64, stamp: u64) {
        self.push(Record { time, stamp });
    }

    #[inline]
    fn push(&mut self, record: Record) {
        self.log.set(self.next_record, record);
        self.next_record += 1;
    }

    /// Returns true if stamp `one` was created before stamp `other`.
    pub(super) fn is_before(&mut self, one: u64, other: u64) -> bool {
        self.log.is_before(one, other, &mut self.chained_comparisons)
    }

    /// Compares two stamps by creation.
    pub(super) fn compare(&mut self, one: u64, other: u64) -> Ordering {
        self.log.compare(one, other, &mut self.chained_comparisons)
    }
}
