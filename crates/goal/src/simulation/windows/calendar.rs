//! Calendar queue: buckets of many hosts.

use std::collections::BTreeMap;
use std::ops::Range;

use super::agenda::Agenda;

/// Hosts by the time bucket of their next turn, in a calendar queue (Brown 1988) with fixed bucket width; entries may
/// be outdated.
#[derive(Debug)]
pub(super) struct Calendar {
    /// The first bucket that may have entries.
    today: u64,
    /// Buckets from there on, each at its number modulo their number.
    days: Vec<Vec<u32>>,
    /// Bit per bucket, set if it has entries.
    is_used: [u64; (DAYS / BITS) as usize],
    /// Buckets beyond these.
    later: BTreeMap<u64, Vec<u32>>,
}

const DAYS: u64 = 1024;
/// Least number of buckets per window, unless the window has fewer picoseconds.
const IN_WINDOW: u64 = 8;
const BITS: u64 = u64::BITS as u64;

impl Calendar {
    /// Returns the first bucket in the calendar that has entries.
    #[inline]
    fn used(&self) -> Option<u64> {
        let (words, from) = (DAYS / BITS, self.today % DAYS);
        // The first word is checked once more at the end, for the buckets that wrap around before the current one.
        let found = (0..=words).find_map(|step| {
            let word = (from / BITS + step) % words;
            let kept = match step {
                0 => u64::MAX << (from % BITS),
                _ => u64::MAX,
            };
            let used = self.is_used[word as usize] & kept;
            (used != 0).then(|| word * BITS + u64::from(used.trailing_zeros()))
        });
        found.map(|at| self.today + (at + DAYS - from) % DAYS)
    }
}

impl Agenda for Calendar {
    fn new(_: &Range<u32>) -> Self {
        Self {
            today: 0,
            days: vec![Vec::new(); DAYS as usize],
            is_used: [0; (DAYS / BITS) as usize],
            later: BTreeMap::new(),
        }
    }

    fn day(flight: u64) -> u32 {
        (flight / IN_WINDOW).checked_ilog2().unwrap_or(0)
    }

    #[inline]
    fn enter(&mut self, day: u64, host: u32) {
        if day - self.today < DAYS {
            let at = day % DAYS;
            self.days[at as usize].push(host);
            self.is_used[(at / BITS) as usize] |= 1 << (at % BITS);
        } else {
            self.later.entry(day).or_default().push(host);
        }
    }

    fn next(&self) -> Option<u64> {
        // A bucket in the overflow may have come into the range of the calendar since.
        let later = self.later.first_key_value().map(|(day, _)| *day);
        self.used().into_iter().chain(later).min()
    }

    fn turn(&mut self, day: u64, hosts: &mut Vec<u32>) {
        self.today = day + 1;
        let at = day % DAYS;
        let entries = &mut self.days[at as usize];
        if hosts.is_empty() {
            std::mem::swap(hosts, entries);
        } else {
            hosts.append(entries);
        }
        self.is_used[(at / BITS) as usize] &= !(1 << (at % BITS));
        if let Some(entry) = self.later.first_entry().filter(|entry| *entry.key() == day) {
            hosts.extend(entry.remove());
        }
    }

    #[inline]
    fn one(&self) -> Option<u32> {
        None
    }

    fn remove(&mut self, _: u32) {}
}
