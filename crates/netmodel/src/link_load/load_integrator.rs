//! Integration of a link's load over time.

use pdes_core::{SimDuration, SimTime, State, StateVisitor};
use serde::{Deserialize, Serialize};

use super::bandwidths::AmountsByBandwidth;
use super::bins::{Bins, scale_of};
use crate::epoch::unit::visit_instant;

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
    pub(crate) by_bandwidth: AmountsByBandwidth,
    #[serde(skip)]
    watched: Option<WatchedLoad>,
}

/// Load in a period that may be repeated.
#[derive(Clone, Debug)]
struct WatchedLoad {
    period: u64,
    repetitions: u64,
    /// Sums at its begin.
    held: u128,
    bytes: u64,
    /// Instants between which the load was constant, from the begin on, and its integral until then.
    integrals: Vec<(u64, u128)>,
}

impl WatchedLoad {
    /// Returns the integral of the load up to an instant in the period.
    fn until(&self, at: u64) -> u128 {
        let place = self.integrals.partition_point(|&(end, _)| end < at);
        let (end, until_end) = self.integrals[place];
        let Some(&(begin, until_begin)) = place.checked_sub(1).map(|before| &self.integrals[before]) else {
            return until_end;
        };
        until_begin + (until_end - until_begin) * u128::from(at - begin) / u128::from(end - begin)
    }
}

impl LoadIntegrator {
    /// Counts the load from the last call to now; `is_bottleneck` tells whether the link limited messages.
    #[inline]
    pub(crate) fn count(&mut self, load: u64, capacity: u64, is_bottleneck: bool, now: SimTime) {
        let now = now.as_picos();
        if now <= self.counted_until {
            return;
        }
        if let Some(WatchedLoad { integrals, .. }) = &mut self.watched {
            let until = integrals.last().map_or(0, |&(_, until)| until);
            integrals.push((now, until + u128::from(load) * u128::from(now - self.counted_until)));
        }
        if load > 0 {
            self.bins.add_over(self.counted_until, now, load as f64);
            self.by_bandwidth.add(load as f64 * (now - self.counted_until) as f64);
            if is_bottleneck {
                self.held += u128::from(load.min(capacity)) * u128::from(now - self.counted_until);
            }
        }
        self.counted_until = now;
    }

    /// Goes on with another capacity, which the time that the link [was full](LoadIntegrator::saturated) is counted in from now on.
    pub(crate) fn change_capacity(&mut self, from: u64, to: u64) {
        self.held = (self.held / u128::from(from)).saturating_mul(u128::from(to));
        self.by_bandwidth.set(to as f64);
    }

    /// Announces that the period which begins now may be repeated so many times. The load has been counted up to now.
    pub(crate) fn watch(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        let (now, period) = (now.as_picos(), period.as_picos());
        let Self { held, bytes, .. } = *self;
        self.watched = Some(WatchedLoad { period, repetitions, held, bytes, integrals: vec![(now, 0)] });
    }

    /// Adds the repetitions of the period that was announced last. The load has been counted up to its end.
    pub(crate) fn repeat(&mut self) {
        let Some(watched) = self.watched.take() else { return };
        let WatchedLoad { period, repetitions, held, bytes, ref integrals } = watched;
        self.bytes += (self.bytes - bytes) * repetitions;
        self.held += (self.held - held) * u128::from(repetitions);
        let (Some(&(begin, _)), Some(&(now, each))) = (integrals.first(), integrals.last()) else { return };
        if each == 0 {
            return;
        }
        self.by_bandwidth.add((each * u128::from(repetitions)) as f64);
        let (end, mut added) = (now + period * repetitions, 0);
        let scale = scale_of(end);
        let ends_of_bins = ((now >> scale) + 1..=end >> scale).map(|bin| bin << scale);
        for at in ends_of_bins.filter(|&at| at < end).chain([end]) {
            let (repetition, offset) = ((at - now - 1) / period, (at - now - 1) % period + 1);
            let until = u128::from(repetition) * each + watched.until(begin + offset);
            self.bins.add(at - 1, (until - added) as f64);
            added = until;
        }
    }

    /// Returns the time during which the link was full [ps]: the time in which it carries at its capacity what it has carried as a
    /// bottleneck. A bottleneck keeps its limit until the next boundary, also after flows have left it, so it is not always full.
    pub(crate) fn saturated(&self, capacity: u64) -> u64 {
        (self.held / u128::from(capacity)) as u64
    }
}

impl State for LoadIntegrator {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { counted_until, held, bytes, bins, by_bandwidth, watched: _ } = self;
        // Loads are reported only, and a watched period is repeated before.
        if !visitor.is_observing() {
            visit_instant(counted_until, visitor);
        }
        visitor.saved(held);
        visitor.saved(bytes);
        visitor.saved(bins);
        visitor.saved(by_bandwidth);
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
