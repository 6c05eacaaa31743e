//! Clock of the measurements.

use std::fmt;
use std::hint;
use std::time::{Duration, Instant};

/// Number of readings from which the time of one is estimated.
const READINGS: usize = 2001;

/// A clock that subtracts the time of reading it.
pub(super) struct Clock {
    origin: Instant,
    overhead: Duration,
    resolution: Duration,
}

impl Clock {
    pub(super) fn new() -> Self {
        let mut intervals: Vec<Duration> = (0..READINGS).map(|_| Instant::now().elapsed()).collect();
        intervals.sort_unstable();
        let overhead = intervals[READINGS / 2];
        intervals.dedup();
        let steps = intervals.windows(2).map(|pair| pair[1] - pair[0]);
        // If all readings are equal there is one interval.
        let resolution = steps.min().unwrap_or(intervals[0]).max(Duration::from_nanos(1));
        Self { origin: Instant::now(), overhead, resolution }
    }

    /// Restarts the clock at 0.
    pub(super) fn restart(&mut self) {
        self.origin = Instant::now();
    }

    /// Runs `work` and returns its start [s], its duration [s] and its result.
    pub(super) fn time<R>(&self, work: impl FnOnce() -> R) -> (f64, f64, R) {
        let start = Instant::now();
        let result = work();
        let duration = start.elapsed().saturating_sub(self.overhead).max(self.resolution);
        ((start - self.origin).as_secs_f64(), duration.as_secs_f64(), result)
    }

    /// Waits in a busy loop, so that neither MPI nor the system is called.
    pub(super) fn wait(&self, seconds: f64) {
        let (start, end) = (Instant::now(), Duration::from_secs_f64(seconds));
        while start.elapsed() < end {
            hint::spin_loop();
        }
    }
}

/// Describes the correction.
impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { overhead, resolution, .. } = self;
        write!(
            f,
            "{} ns per reading, taken off; resolution {} ns",
            overhead.as_nanos(),
            resolution.as_nanos()
        )
    }
}
