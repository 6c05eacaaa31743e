//! Programs whose ranks only poll, perhaps for ever.
//!
//! Polls alone end nothing. Where the clock stands between them, they take delays, which grow until simulated time nears its end: then nothing
//! else can happen, and the run ends in an error. Where a rank computes between its polls, it may stop by its own clock, and that end is far:
//! there the run goes on, with a warning.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pdes_core::SimTime;

/// Last instant of failed polls: simulated time ends at 213 days.
pub(crate) const LAST_POLL: SimTime = SimTime::from_picos(SimTime::MAX.as_picos() / 10 * 9);
/// Least computation before a poll of a rank that does more than poll \[s\].
pub(crate) const COMPUTES: f64 = 1e-3;
/// Real time after which it is said that ranks only poll.
const PATIENCE: Duration = Duration::from_secs(20);
/// Real time between two looks at all ranks.
const LOOK: Duration = Duration::from_millis(10);

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
