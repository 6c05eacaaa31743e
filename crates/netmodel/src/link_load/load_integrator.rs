//! Integration of a link's load over time.

use pdes_core::SimTime;

use super::bins::Bins;

/// Integrates the load of a link over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadIntegrator {
    /// Instant up to which the load is counted [ps].
    counted_until: u64,
    /// Time during which the link was a bottleneck [ps].
    pub(crate) saturated: u64,
    /// Bytes of the messages that were sent over it.
    pub(crate) bytes: u64,
    /// Load integrated over time, by bins [load times ps].
    pub(crate) bins: Bins,
}

impl LoadIntegrator {
    /// Counts the load from the last call to now; `is_full` tells whether the link was a bottleneck at that load.
    #[inline]
    pub(crate) fn count(&mut self, load: u64, is_full: bool, now: SimTime) {
        let now = now.as_picos();
        if now <= self.counted_until {
            return;
        }
        if load > 0 {
            self.bins.add_over(self.counted_until, now, load as f64);
            if is_full {
                self.saturated += now - self.counted_until;
            }
        }
        self.counted_until = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_and_times_are_summed_up() {
        let mut integrator = LoadIntegrator::default();
        for (load, is_full, picos) in [(0, true, 10), (98, false, 30), (99, true, 100), (120, true, 150)] {
            integrator.count(load, is_full, SimTime::from_picos(picos));
        }
        integrator.count(7, true, SimTime::from_picos(120));
        assert_eq!(integrator.saturated, 120, "an idle link holds nobody back");
        let sum: f64 = integrator.bins.coarsened(integrator.bins.scale(), 200).iter().sum();
        assert_eq!(sum, (98 * 20 + 99 * 70 + 120 * 50) as f64);
    }
}
