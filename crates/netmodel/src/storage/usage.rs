//! Use of I/O servers: amounts, queues, hits of caches, and amounts over time.

use pdes_core::{Counter, SimDuration, SimTime, State};
use serde::{Deserialize, Serialize};

use super::{Access, Direction};

/// Maximum number of intervals of a series.
const MAX_INTERVALS: usize = 256;

/// Use of an I/O server up to an instant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, State)]
pub struct ServerUsage {
    /// Amounts read from and written to the device \[B\], what was merged or read ahead included.
    pub read_bytes: Counter,
    /// See `read_bytes`.
    pub written_bytes: Counter,
    /// Number of requests to the device.
    pub requests: Counter,
    /// Amounts that reads found in the cache, and did not find there \[B\].
    pub hit_bytes: Counter,
    /// See `hit_bytes`.
    pub missed_bytes: Counter,
    /// Largest number of requests that waited for the device.
    #[state(saved = "a maximum")]
    pub longest_queue: u64,
    /// Integral of the number of waiting requests over time [ps].
    #[state(saved = "a watched period is repeated before")]
    queue_ps: u128,
    queue: u64,
    queue_since: SimTime,
    /// The last instant at which accesses ended, and the one before.
    ends: (SimTime, SimTime),
    /// Amounts read and written over time.
    #[state(saved = "a watched period is repeated before")]
    pub read: Series,
    /// See `read`.
    #[state(saved = "a watched period is repeated before")]
    pub written: Series,
    /// Period that may be repeated.
    #[serde(skip)]
    #[state(skip = "it is announced anew")]
    watched: Option<WatchedUsage>,
}

/// Use in a period that may be repeated.
#[derive(Clone, Debug, PartialEq)]
struct WatchedUsage {
    period: SimDuration,
    repetitions: u64,
    /// Integral of the queue at its begin [ps].
    queue_ps: u128,
    /// Accesses that ended in it: the times over which they are counted, directions and amounts.
    accesses: Vec<(SimTime, SimTime, Direction, u64)>,
}

impl ServerUsage {
    /// Notes the number of requests that wait from now on.
    pub(super) fn queued(&mut self, now: SimTime, queue: u64) {
        self.queue_ps = self.queue_until(now);
        (self.queue, self.queue_since) = (queue, now);
        self.longest_queue = self.longest_queue.max(queue);
    }

    /// Returns the integral of the number of waiting requests until an instant [ps].
    fn queue_until(&self, now: SimTime) -> u128 {
        let elapsed = now.as_picos().saturating_sub(self.queue_since.as_picos());
        self.queue_ps + u128::from(elapsed) * u128::from(self.queue)
    }

    /// Notes an access from its begin to its end. Its amount is counted since the last end of another one: devices do not tell when
    /// they come to an access.
    pub(super) fn accessed(&mut self, (begin, end): (SimTime, SimTime), access: &Access) {
        if self.ends.0 != end {
            self.ends = (end, self.ends.0);
        }
        let begin = begin.max(self.ends.1);
        self.requests.0 += 1;
        match access.direction {
            Direction::Read => self.read_bytes.0 += access.bytes,
            Direction::Write => self.written_bytes.0 += access.bytes,
        }
        self.series(access.direction).add_over((begin, end), access.bytes);
        if let Some(watched) = &mut self.watched {
            watched.accesses.push((begin, end, access.direction, access.bytes));
        }
    }

    fn series(&mut self, direction: Direction) -> &mut Series {
        if direction == Direction::Read { &mut self.read } else { &mut self.written }
    }

    /// Counts the queue up to now; if no access is in progress, it does not matter any more when the last ones ended.
    pub(super) fn settle(&mut self, now: SimTime, is_idle: bool) {
        self.queued(now, self.queue);
        if is_idle {
            self.ends = (now, now);
        }
    }

    /// Announces that the period which begins now may be repeated so many times.
    pub(super) fn watch(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        let queue_ps = self.queue_until(now);
        self.watched = Some(WatchedUsage { period, repetitions, queue_ps, accesses: Vec::new() });
    }

    /// Adds the repetitions of the period that was watched last, and ends now, to what is not a [`Counter`].
    pub(super) fn repeat(&mut self, now: SimTime) {
        let Some(WatchedUsage { period, repetitions, queue_ps, accesses }) = self.watched.take() else {
            return;
        };
        self.queued(now, self.queue);
        self.queue_ps += (self.queue_ps - queue_ps) * u128::from(repetitions);
        let mut time = SimDuration::ZERO;
        for _ in 0..repetitions {
            time += period;
            for &(begin, end, direction, bytes) in &accesses {
                self.series(direction).add_over((begin + time, end + time), bytes);
            }
        }
    }

    /// Notes a look for an amount in the cache.
    pub(super) fn looked_up(&mut self, bytes: u64, is_hit: bool) {
        (if is_hit { &mut self.hit_bytes } else { &mut self.missed_bytes }).0 += bytes;
    }

    /// Returns the mean number of requests that waited, from the begin to an instant.
    pub fn mean_queue(&self, end: SimTime) -> f64 {
        if end == SimTime::ZERO { 0.0 } else { self.queue_until(end) as f64 / end.as_picos() as f64 }
    }
}

/// Amounts over time, in at most 256 intervals of one length, a power of two of picoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Binary logarithm of the length of an interval.
    log_width: u32,
    /// Amount in each interval from time 0 on.
    amounts: Vec<u64>,
}

impl Series {
    /// Adds an amount evenly over a time.
    fn add_over(&mut self, (begin, end): (SimTime, SimTime), amount: u64) {
        let (begin, end) = (begin.as_picos(), end.as_picos());
        let last = self.extend_to(end);
        let length = end.saturating_sub(begin);
        // The amount up to an instant, rounded down, so that all is added once.
        let until = |at: u64| match length {
            0 => u128::from(amount),
            length => u128::from(amount) * u128::from(at - begin) / u128::from(length),
        };
        let (mut interval, mut added) = (self.interval(begin.min(end)), 0);
        while interval <= last {
            let next = if interval == last { end } else { (interval as u64 + 1) * self.width_ps() };
            self.amounts[interval] += (until(next) - added) as u64;
            (interval, added) = (interval + 1, until(next));
        }
    }

    /// Returns the interval of an instant.
    fn interval(&self, at: u64) -> usize {
        (at / self.width_ps()) as usize
    }

    /// Makes intervals up to an instant, and returns its own.
    fn extend_to(&mut self, at: u64) -> usize {
        while self.interval(at) >= MAX_INTERVALS {
            self.log_width += 1;
            self.amounts = self.amounts.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        let last = self.interval(at);
        if self.amounts.len() <= last {
            self.amounts.resize(last + 1, 0);
        }
        last
    }

    /// Returns the length of an interval \[ps\].
    pub fn width_ps(&self) -> u64 {
        1 << self.log_width.min(63)
    }

    /// Returns the amount in each interval from time 0 on \[B\].
    pub fn amounts(&self) -> &[u64] {
        &self.amounts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_get_coarser_and_lose_nothing() {
        let mut series = Series::default();
        let add = |series: &mut Series, begin, end, amount| {
            series.add_over((SimTime::from_picos(begin), SimTime::from_picos(end)), amount);
        };
        add(&mut series, 3, 3, 5);
        add(&mut series, 253, 255, 1);
        assert_eq!((series.width_ps(), series.amounts().len()), (1, 256));
        assert_eq!((series.amounts()[253], series.amounts()[254]), (0, 1), "whole bytes");
        add(&mut series, 254, 258, 9);
        assert_eq!((series.width_ps(), series.amounts().len()), (2, 130));
        assert_eq!(series.amounts()[126..], [0, 5, 5, 0]);
        add(&mut series, 1 << 39, 1 << 40, 2);
        assert_eq!(series.amounts().iter().sum::<u64>(), 17);
        assert!(series.amounts().len() <= 256);
    }

    #[test]
    fn queues_have_means_over_time() {
        let mut usage = ServerUsage::default();
        usage.queued(SimTime::from_picos(100), 4);
        usage.queued(SimTime::from_picos(200), 1);
        assert_eq!((usage.mean_queue(SimTime::from_picos(400)), usage.longest_queue), (1.5, 4));
    }
}
