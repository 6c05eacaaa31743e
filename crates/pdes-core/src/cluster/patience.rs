//! How long to wait between two looks at something that does not wake anybody up.

use std::thread;
use std::time::Duration;

/// Looks before the thread sleeps: waking up costs more than a few of them.
const LOOKS_AWAKE: u32 = 500;
const FIRST_SLEEP: Duration = Duration::from_micros(10);
/// Long enough to leave the processor to others, short enough to go unnoticed where something comes at last.
const LONGEST_SLEEP: Duration = Duration::from_micros(500);

/// Yields at first, and then sleeps for longer and longer.
pub(crate) struct Patience {
    looks: u32,
    sleep: Duration,
}

impl Patience {
    pub(crate) fn new() -> Self {
        Self { looks: 0, sleep: FIRST_SLEEP }
    }

    /// Returns for how long to sleep before the next look; `None` where that is not worth it yet.
    pub(crate) fn next_sleep(&mut self) -> Option<Duration> {
        if self.looks < LOOKS_AWAKE {
            self.looks += 1;
            return None;
        }
        let sleep = self.sleep;
        self.sleep = (sleep * 2).min(LONGEST_SLEEP);
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
