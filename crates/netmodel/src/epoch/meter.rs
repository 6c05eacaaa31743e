//! How much more than its capacity a link has carried.

use pdes_core::SimTime;

/// Integrates the load of a link over windows of equal length.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    /// Up to where the load is counted [ps].
    since: u64,
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
        let mut begin = self.since - self.since % window;
        while now - begin >= window {
            let end = begin + window;
            self.carried += u128::from(load) * u128::from(end - self.since);
            self.worst =
                self.worst.max(self.carried.saturating_sub(u128::from(capacity) * u128::from(window)));
            self.carried = 0;
            // All windows in between are alike.
            self.since = if now - end >= 2 * window { now - now % window - window } else { end };
            begin = self.since;
        }
        self.carried += u128::from(load) * u128::from(now - self.since);
        self.since = now;
    }

    /// Returns the most that a window carried beyond the capacity, as a part of it. A window that is not over counts as
    /// if nothing followed.
    pub(super) fn violation(&self, capacity: u64, window: u64) -> f64 {
        let whole = u128::from(capacity) * u128::from(window);
        self.worst.max(self.carried.saturating_sub(whole)) as f64 / whole as f64
    }
}
