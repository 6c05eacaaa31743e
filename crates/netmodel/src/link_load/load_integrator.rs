//! Integration of a link's load over time.

use pdes_core::SimTime;
use serde::{Deserialize, Serialize};

use super::bins::Bins;

/// Integrates the load of a link over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LoadIntegrator {
    /// Instant up to which the load is counted [ps].
    counted_until: u64,
    /// Load up to the capacity, integrated over the time during which the link was a bottleneck [load times ps].
    held: u128,
    /// Bytes of the messages that were sent over it.
    pub(crate) bytes: u64,
    /// Load integrated over time, by bins [load times ps].
    pub(crate) bins: Bins,
}

impl LoadIntegrator {
    /// Counts the load from the last call to now; `is_bottleneck` tells whether the link limited messages.
    #[inline]
    pub(crate) fn count(&mut self, load: u64, capacity: u64, is_bottleneck: bool, now: SimTime) {
        let now = now.as_picos();
        if now <= self.counted_until {
            return;
        }
        if load > 0 {
            self.bins.add_over(self.counted_until, now, load as f64);
            if is_bottleneck {
                self.held += u128::from(load.min(capacity)) * u128::from(now - self.counted_until);
            }
        }
        self.counted_until = now;
    }

    /// Returns the time during which the link was full [ps]: the time in which it carries at its capacity what it has carried as a
    /// bottleneck. A bottleneck keeps its limit until the next boundary, also after flows have left it, so it is not always full.
    pub(crate) fn saturated(&self, capacity: u64) -> u64 {
        (self.held / u128::from(capacity)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_and_times_are_summed_up() {
        let mut integrator = LoadIntegrator::default();
        let bottlenecks = [(0, true, 10), (98, false, 30), (50, true, 100), (120, true, 150)];
        for (load, is_bottleneck, picos) in bottlenecks {
            integrator.count(load, 100, is_bottleneck, SimTime::from_picos(picos));
        }
        integrator.count(7, 100, true, SimTime::from_picos(120));
        assert_eq!(integrator.saturated(100), 35 + 50, "half of 70 ps, and 50 ps");
        let sum: f64 = integrator.bins.coarsened(integrator.bins.scale(), 200).iter().sum();
        assert_eq!(sum, (98 * 20 + 50 * 70 + 120 * 50) as f64);
    }
}
