//! Programs whose ranks only poll, perhaps for ever.
//!
//! Polls alone end nothing. Where the clock stands between them, they take delays, which grow until simulated time nears its end: then nothing
//! else can happen, and the run ends in an error. Where a rank computes between its polls, it may stop by its own clock, and that end is far:
//! there the run goes on, with a warning.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pdes_core::{SimDuration, SimTime};

/// Last instant of failed polls: simulated time ends at 213 days.
const LAST_POLL: SimTime = SimTime::from_picos(SimTime::MAX.as_picos() / 10 * 9);
/// Least computation before a poll of a rank that does more than poll \[s\].
pub(crate) const COMPUTES: f64 = 1e-3;
/// Real time after which it is said that ranks only poll.
const PATIENCE: Duration = Duration::from_secs(20);
/// Real time between two looks at all ranks.
const LOOK: Duration = Duration::from_millis(10);

/// Delay of the second failed poll at an instant \[s\].
const SHORTEST_DELAY: f64 = 1e-7;
/// Longest delay of a failed poll \[s\].
const LONGEST_DELAY: f64 = 1e-4;
/// Least part of the time of a row of failed polls that its next delay has: rows that nothing ends reach the end of simulated time.
const LEAST_PART: f64 = 1e-3;

/// The real time since a rank has done anything but poll.
#[derive(Debug, Default)]
pub(crate) struct Polling {
    has_progressed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The first failed poll since then.
    since: Option<Instant>,
    /// Next look at all ranks.
    next: Option<Instant>,
}

impl Polling {
    /// Notes that a rank does something else.
    pub(crate) fn progress(&self) {
        self.has_progressed.store(true, Ordering::Relaxed);
    }

    /// Notes a failed poll; returns whether it is time to look if all ranks do nothing else.
    pub(crate) fn fail(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.has_progressed.swap(false, Ordering::Relaxed) || state.since.is_none() {
            *state = State { since: Some(now), next: Some(now + PATIENCE) };
        }
        let is_due = state.next.is_some_and(|next| now >= next);
        if is_due {
            state.next = Some(now + LOOK);
        }
        is_due
    }

    /// Notes that it has been said; it is said again after twice the time.
    pub(crate) fn said(&self, now: Instant) -> Duration {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = state.since.map_or(Duration::ZERO, |since| now - since);
        state.next = Some(now + passed);
        passed
    }
}

/// Failed polls in a row without other progress of the clock.
#[derive(Default)]
pub(crate) struct FailedPolls {
    /// Instant of the next poll if nothing else happens.
    next: Option<SimTime>,
    /// Instant of the first one.
    begin: SimTime,
    number: u32,
    /// Nothing else has happened until the end of simulated time.
    pub(crate) are_endless: bool,
}

impl FailedPolls {
    /// Returns the delay after a failed poll \[s\]: none after the first ones at an instant, then a doubling one, so that loops of polls
    /// that cost nothing end.
    pub(crate) fn delay(&mut self, clock: SimTime, free: u32) -> Option<f64> {
        if self.next != Some(clock) {
            *self = Self { next: Some(clock), begin: clock, ..Self::default() };
        }
        self.number = self.number.saturating_add(1);
        self.are_endless = clock > LAST_POLL;
        let delays = self.number.checked_sub(free + 1)?;
        let doubled = (SHORTEST_DELAY * f64::from(1 << delays.min(10))).min(LONGEST_DELAY);
        let delay = doubled.max(LEAST_PART * (clock - self.begin).as_secs_f64());
        self.next = SimDuration::try_from_secs_f64(delay).map(|delay| clock + delay);
        Some(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_only_poll_are_told_of_at_growing_intervals() {
        let polling = Polling::default();
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        assert!(!polling.fail(at(0)) && !polling.fail(at(19)));
        polling.progress();
        assert!(!polling.fail(at(21)) && !polling.fail(at(40)));
        assert!(polling.fail(at(41)), "20 s after the first one that followed progress");
        assert!(!polling.fail(at(41)) && polling.fail(at(42)), "a rank was in no call");
        assert_eq!(polling.said(at(42)), Duration::from_secs(21));
        assert!(!polling.fail(at(62)) && polling.fail(at(63)));
    }
}
