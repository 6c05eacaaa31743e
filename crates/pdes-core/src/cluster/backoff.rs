//! Backoff between two polls of a condition that does not wake threads up.

use std::thread;
use std::time::Duration;

/// Number of polls before the thread sleeps: a wake-up costs more than a few of them.
const POLLS_BEFORE_SLEEP: u32 = 500;
const FIRST_SLEEP: Duration = Duration::from_micros(10);

/// An exponential backoff that yields at first, and then sleeps for longer and longer.
pub(crate) struct Backoff {
    polls: u32,
    sleep: Duration,
    /// A sleep becomes longer than the one before by this part of it.
    growth: u32,
    longest: Duration,
}

impl Backoff {
    /// Makes a backoff for waits in which others may need an answer: it sleeps for half a millisecond at most.
    pub(crate) fn new() -> Self {
        Self { polls: 0, sleep: FIRST_SLEEP, growth: 1, longest: Duration::from_micros(500) }
    }

    /// Makes a backoff for waits in which nobody needs an answer. It sleeps for about an eighth of the time waited so far: it adds
    /// little latency to short waits, and in long waits hundreds of idle processes leave a few cores to others. A sleep is short
    /// enough to notice an interrupt at once.
    pub(crate) fn patient() -> Self {
        Self { growth: 8, longest: Duration::from_millis(20), ..Self::new() }
    }

    /// Returns the duration to sleep before the next poll; `None` if the thread should only yield.
    pub(crate) fn next_sleep(&mut self) -> Option<Duration> {
        if self.polls < POLLS_BEFORE_SLEEP {
            self.polls += 1;
            return None;
        }
        let sleep = self.sleep;
        self.sleep = (sleep + sleep / self.growth).min(self.longest);
        Some(sleep)
    }

    /// Yields or sleeps.
    pub(crate) fn pause(&mut self) {
        match self.next_sleep() {
            Some(sleep) => thread::sleep(sleep),
            None => thread::yield_now(),
        }
    }
}
