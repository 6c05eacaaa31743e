//! How much more than its capacity a link has carried.

use pdes_core::SimTime;

/// Integrates the load of a link over windows of equal length.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    /// Up to where the load is counted [ps].
    since: u64,
    /// The end of the window that it lies in [ps].
    end: u64,
    /// What has been carried in the window of `since`, in loads times picoseconds.
    carried: u128,
    /// The most that any window carried beyond the capacity.
    worst: u128,
}

impl Meter {
    /// Counts the load from the last call to now.
    #[inline]
    pub(super) fn count(&mut self, load: u64, capacity: u64, now: SimTime, window: u64) {
        let now = now.as_picos();
        if now == self.since {
            return;
        }
        if now >= self.end {
            self.turn_over(load, capacity, now, window);
        }
        self.carried += u128::from(load) * u128::from(now - self.since);
        self.since = now;
    }

    /// Closes the windows that are over.
    fn turn_over(&mut self, load: u64, capacity: u64, now: u64, window: u64) {
        self.close(load, capacity, self.end, window);
        self.end = now - now % window + window;
        if self.end - self.since > window {
            // All windows in between are alike: one stands for them.
            self.since = self.end - 2 * window;
            self.close(load, capacity, self.end - window, window);
        }
    }

    /// Closes a window.
    fn close(&mut self, load: u64, capacity: u64, end: u64, window: u64) {
        self.carried += u128::from(load) * u128::from(end - self.since);
        self.worst = self.worst.max(self.carried.saturating_sub(u128::from(capacity) * u128::from(window)));
        (self.carried, self.since) = (0, end);
    }

    /// Returns the most that a window carried beyond the capacity, as a part of it. A window that is not over counts as
    /// if nothing followed.
    pub(super) fn violation(&self, capacity: u64, window: u64) -> f64 {
        let whole = u128::from(capacity) * u128::from(window);
        self.worst.max(self.carried.saturating_sub(whole)) as f64 / whole as f64
    }
}
