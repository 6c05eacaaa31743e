//! Calendar queue: buckets of many hosts.

use std::collections::BTreeMap;
use std::ops::Range;

use super::bucket_queue::BucketQueue;

/// Hosts by the time bucket of their next turn, in a calendar queue (Brown 1988) with fixed bucket width; entries may
/// be outdated.
#[derive(Debug)]
pub(super) struct CalendarQueue {
    /// The first bucket that may have entries.
    current: u64,
    /// Buckets from there on, each at its number modulo their number.
    buckets: Vec<Vec<u32>>,
    /// Bit per bucket, set if it has entries.
    nonempty: [u64; (BUCKETS / BITS) as usize],
    /// Buckets beyond these.
    overflow: BTreeMap<u64, Vec<u32>>,
}

const BUCKETS: u64 = 1024;
/// Least number of buckets per window, unless the window has fewer picoseconds.
const BUCKETS_PER_WINDOW: u64 = 8;
const BITS: u64 = u64::BITS as u64;

impl CalendarQueue {
    /// Returns the first bucket in the calendar that has entries.
    #[inline]
    fn first_nonempty(&self) -> Option<u64> {
        let (words, from) = (BUCKETS / BITS, self.current % BUCKETS);
        // The first word is checked once more at the end, for the buckets that wrap around before the current one.
        let found = (0..=words).find_map(|step| {
            let word = (from / BITS + step) % words;
            let kept = match step {
                0 => u64::MAX << (from % BITS),
                _ => u64::MAX,
            };
            let used = self.nonempty[word as usize] & kept;
            (used != 0).then(|| word * BITS + u64::from(used.trailing_zeros()))
        });
        found.map(|at| self.current + (at + BUCKETS - from) % BUCKETS)
    }
}

impl BucketQueue for CalendarQueue {
    fn new(_: &Range<u32>) -> Self {
        Self {
            current: 0,
            buckets: vec![Vec::new(); BUCKETS as usize],
            nonempty: [0; (BUCKETS / BITS) as usize],
            overflow: BTreeMap::new(),
        }
    }

    fn bucket_width_log2(flight: u64) -> u32 {
        (flight / BUCKETS_PER_WINDOW).checked_ilog2().unwrap_or(0)
    }

    #[inline]
    fn schedule(&mut self, bucket: u64, host: u32) {
        if bucket - self.current < BUCKETS {
            let at = bucket % BUCKETS;
            self.buckets[at as usize].push(host);
            self.nonempty[(at / BITS) as usize] |= 1 << (at % BITS);
        } else {
            self.overflow.entry(bucket).or_default().push(host);
        }
    }

    fn next_bucket(&self) -> Option<u64> {
        // A bucket in the overflow may have come into the range of the calendar since.
        let later = self.overflow.first_key_value().map(|(bucket, _)| *bucket);
        self.first_nonempty().into_iter().chain(later).min()
    }

    fn pop_bucket(&mut self, bucket: u64, hosts: &mut Vec<u32>) {
        self.current = bucket + 1;
        let at = bucket % BUCKETS;
        let entries = &mut self.buckets[at as usize];
        if hosts.is_empty() {
            std::mem::swap(hosts, entries);
        } else {
            hosts.append(entries);
        }
        self.nonempty[(at / BITS) as usize] &= !(1 << (at % BITS));
        if let Some(entry) = self.overflow.first_entry().filter(|entry| *entry.key() == bucket) {
            hosts.extend(entry.remove());
        }
    }

    #[inline]
    fn next_host(&self) -> Option<u32> {
        None
    }

    fn remove(&mut self, _: u32) {}
}
