//! The load of a link that is known at all times.

use pdes_core::SimTime;

use super::bins::Bins;

/// Sums up the load of a link over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauge {
    /// Up to where the load is counted [ps].
    since: u64,
    /// How long the link held messages back [ps].
    pub(crate) saturated: u64,
    /// The bytes of the messages that were sent over it.
    pub(crate) bytes: u64,
    /// Loads times picoseconds.
    pub(crate) bins: Bins,
}

impl Gauge {
    /// Counts the load from the last call to now, and whether it is one that holds messages back.
    #[inline]
    pub(crate) fn count(&mut self, load: u64, is_full: bool, now: SimTime) {
        let now = now.as_picos();
        if now <= self.since {
            return;
        }
        if load > 0 {
            self.bins.spread(self.since, now, load as f64);
            if is_full {
                self.saturated += now - self.since;
            }
        }
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_and_times_are_summed_up() {
        let mut gauge = Gauge::default();
        for (load, is_full, picos) in [(0, true, 10), (98, false, 30), (99, true, 100), (120, true, 150)] {
            gauge.count(load, is_full, SimTime::from_picos(picos));
        }
        gauge.count(7, true, SimTime::from_picos(120));
        assert_eq!(gauge.saturated, 120, "an idle link holds nobody back");
        let sum: f64 = gauge.bins.coarse(gauge.bins.scale(), 200).iter().sum();
        assert_eq!(sum, (98 * 20 + 99 * 70 + 120 * 50) as f64);
    }
}
