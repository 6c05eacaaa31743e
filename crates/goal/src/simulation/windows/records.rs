//! The order of what is created, found where it is asked for.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytemuck::Zeroable;

use super::super::memory::table;

/// Names something that is created: by its record and its number there.
pub(crate) fn stamp(record: u32, number: u32) -> u64 {
    u64::from(record) << 32 | u64::from(number)
}

/// Returns the record of a stamp.
pub(super) fn record_of(stamp: u64) -> u32 {
    (stamp >> 32) as u32
}

/// An event that has created something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// When it happened \[ps\].
    pub(super) time: u64,
    /// The stamp of what happened; once the record has its place in the order of all events, that place and [`PLACED`].
    pub(super) stamp: u64,
}

/// The bits of a stamp, above those of a place, that no record has.
const PLACED: u64 = (u32::MAX as u64) << 32;

impl Record {
    /// Makes the record of an event that has this place among all.
    pub(super) fn placed(time: u64, place: u32) -> Self {
        Self { time, stamp: PLACED | u64::from(place) }
    }

    #[inline]
    pub(super) fn is_placed(self) -> bool {
        self.stamp >= PLACED
    }
}

/// The records of events that have created something.
///
/// Of two things, that comes first whose event happened first; where both happened at one time, that of which the event
/// handled what was created first. So one comparison may lead to another one, and so on; usually not far. Where it has
/// led far too often, as between hosts that all do the same at the same times, records get [places](super::places::Places), with
/// which comparisons end.
///
/// Each part of the hosts adds records to a range of its own, and reads those of others to which what it has been sent leads.
/// Those are of windows before, so that all have met since they were written: relaxed accesses suffice.
#[derive(Debug)]
pub(super) struct Log {
    entries: Box<[Entry]>,
    /// The first record of each part, and one behind the last range.
    starts: Vec<u32>,
}

#[derive(Debug, Zeroable)]
#[repr(C)]
struct Entry {
    time: AtomicU64,
    stamp: AtomicU64,
}

/// The most records.
pub(crate) const MOST: u64 = u32::MAX as u64;

impl Log {
    /// Makes room for so many records of each part, of [`MOST`] in all.
    pub(super) fn new(capacities: impl Iterator<Item = usize>) -> Self {
        let mut starts = vec![0];
        starts.extend(capacities.scan(0, |end, capacity| {
            *end += capacity as u32;
            Some(*end)
        }));
        let entries = starts.last().map_or(0, |&end| end as usize);
        Self { entries: table(entries), starts }
    }

    /// Returns the number of parts.
    pub(super) fn parts(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the first record of a part.
    pub(super) fn start(&self, part: usize) -> u32 {
        self.starts[part]
    }

    /// Returns the part of a record.
    pub(super) fn part_of(&self, record: u32) -> usize {
        self.starts[1..].partition_point(|&end| end <= record)
    }

    #[inline]
    pub(super) fn get(&self, record: u32) -> Record {
        let Entry { time, stamp } = &self.entries[record as usize];
        Record { time: time.load(Relaxed), stamp: stamp.load(Relaxed) }
    }

    /// Yields the numbers of those of some records that happened at a time or later.
    pub(super) fn since(&self, time: u64, records: Range<u32>) -> impl Iterator<Item = u32> {
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

    /// Returns whether one thing was created before another one; counts comparisons that lead to another one.
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
            match (a.is_placed(), b.is_placed()) {
                (false, false) => (one, other) = (a.stamp, b.stamp),
                (true, true) => return a.stamp < b.stamp,
                (is_placed, _) => return is_placed,
            }
            *steps += 1;
        }
    }

    /// Returns which of two things was created first; counts as [`Log::is_before`] does.
    pub(super) fn compare(&self, one: u64, other: u64, steps: &mut u64) -> Ordering {
        match one == other {
            true => Ordering::Equal,
            false if self.is_before(one, other, steps) => Ordering::Less,
            false => Ordering::Greater,
        }
    }
}

/// The records of a part.
#[derive(Debug)]
pub(crate) struct Records<'a> {
    log: &'a Log,
    first: u32,
    /// The number that the record of the next event will have.
    pub(super) next: u32,
    /// Comparisons that have led to another one since places were given.
    pub(super) steps: u64,
}

impl<'a> Records<'a> {
    pub(super) fn new(log: &'a Log, part: usize) -> Self {
        Self { log, first: log.start(part), next: log.start(part), steps: 0 }
    }

    /// Returns how many records there are.
    pub(super) fn count(&self) -> u64 {
        u64::from(self.next - self.first)
    }

    /// Adds an event before all others, with its place among such events, and returns the number of its record.
    pub(super) fn seed(&mut self, place: u32) -> u32 {
        let number = self.next;
        self.push(Record::placed(0, place));
        number
    }

    /// Adds an event, which has created something.
    #[inline]
    pub(super) fn add(&mut self, time: u64, stamp: u64) {
        self.push(Record { time, stamp });
    }

    #[inline]
    fn push(&mut self, record: Record) {
        self.log.set(self.next, record);
        self.next += 1;
    }

    /// Returns whether one thing was created before another one.
    pub(super) fn is_before(&mut self, one: u64, other: u64) -> bool {
        self.log.is_before(one, other, &mut self.steps)
    }

    /// Returns which of two things was created first.
    pub(super) fn compare(&mut self, one: u64, other: u64) -> Ordering {
        self.log.compare(one, other, &mut self.steps)
    }
}
