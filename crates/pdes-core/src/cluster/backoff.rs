//! Backoff between two polls of a condition that does not wake threads up.

use std::thread;
use std::time::Duration;

/// Number of polls before the thread sleeps: a wake-up costs more than a few of them.
const POLLS_BEFORE_SLEEP: u32 = 500;
const FIRST_SLEEP: Duration = Duration::from_micros(10);
/// Long enough for hundreds of idle processes on a few cores, short enough to notice an interrupt at once.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// An exponential backoff that yields at first, and then sleeps for about an eighth of the time waited so far: it adds little
/// latency to short waits, and long waits leave the processor to others.
pub(crate) struct Backoff {
    polls: u32,
    sleep: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { polls: 0, sleep: FIRST_SLEEP }
    }

    /// Returns the duration to sleep before the next poll; `None` if the thread should only yield.
    pub(crate) fn next_sleep(&mut self) -> Option<Duration> {
        if self.polls < POLLS_BEFORE_SLEEP {
            self.polls += 1;
            return None;
        }
        let sleep = self.sleep;
        self.sleep = (sleep + sleep / 8).min(LONGEST_SLEEP);
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
