//! Loads of hosts over time.

use std::collections::BTreeMap;
use std::ops::Range;

use pdes_core::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};

use crate::HostId;
use crate::link_load::bins::{Bins, scale_of};
use crate::observer::NetworkObserver;

/// Loads of the hosts of a platform in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct HostLoads {
    /// Length of a bin.
    pub bin: SimDuration,
    /// Loads of the hosts that computed anything, in the order of the hosts.
    pub hosts: Vec<HostLoad>,
}

/// Load of a host, in bins of time, the last of which may be incomplete.
#[derive(Clone, Debug, PartialEq)]
pub struct HostLoad {
    /// The host.
    pub host: HostId,
    /// Time during which any core computed \[ps\].
    pub busy: Vec<f64>,
    /// Work done \[flop\].
    pub work: Vec<f64>,
}

/// Load of a host at the end of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostTotals {
    host: HostId,
    bins: HostBins,
}

/// Recorder of the loads of hosts: two kilobytes for each host that computes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct HostRecorder {
    hosts: BTreeMap<HostId, HostBins>,
    /// Interval that may be repeated.
    #[serde(skip)]
    watched: Option<WatchedPeriod>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct HostBins {
    busy: Bins,
    work: Bins,
}

/// An interval that may be repeated, with the totals at its begin.
#[derive(Debug)]
struct WatchedPeriod {
    period: SimDuration,
    repetitions: u64,
    before: BTreeMap<HostId, [f64; 2]>,
}

impl HostBins {
    fn totals(&self) -> [f64; 2] {
        [self.busy.total(), self.work.total()]
    }
}

impl HostRecorder {
    /// Returns the instant after the repetitions of the interval that was announced, if any was, and ends now.
    pub(crate) fn after_repetitions(&self, now: SimTime) -> Option<SimTime> {
        let WatchedPeriod { period, repetitions, .. } = self.watched.as_ref()?;
        Some(period.checked_mul(*repetitions).map_or(SimTime::MAX, |time| now.saturating_add(time)))
    }

    /// Returns the loads so far.
    pub(crate) fn totals(&self) -> Vec<HostTotals> {
        self.hosts.iter().map(|(&host, bins)| HostTotals { host, bins: bins.clone() }).collect()
    }
}

/// Repetitions of an interval count as its mean load over their time: bins that are shorter than the interval do not show its course.
impl NetworkObserver for HostRecorder {
    fn computed(&mut self, host: HostId, time: Range<SimTime>, cores: f64, speed: f64) {
        let (from, to) = (time.start.as_picos(), time.end.as_picos());
        if from < to && speed > 0.0 {
            let HostBins { busy, work } = self.hosts.entry(host).or_default();
            busy.add_over(from, to, 1.0);
            work.add_over(from, to, cores * speed / 1e12);
        }
    }

    fn watch_period(&mut self, _: SimTime, period: SimDuration, repetitions: u64) {
        let before = self.hosts.iter().map(|(&host, bins)| (host, bins.totals())).collect();
        self.watched = Some(WatchedPeriod { period, repetitions, before });
    }

    fn repeat_period(&mut self, now: SimTime) {
        let after = self.after_repetitions(now).expect("the interval was announced");
        let Some(WatchedPeriod { period, before, .. }) = self.watched.take() else { return };
        let (from, to) = (now.as_picos(), after.as_picos());
        for (host, bins) in self.hosts.iter_mut().filter(|_| from < to) {
            let [busy, work] = bins.totals();
            let [busy_before, work_before] = before.get(host).copied().unwrap_or_default();
            let each = |sum: f64| sum / period.as_picos() as f64;
            bins.busy.add_over(from, to, each(busy - busy_before));
            bins.work.add_over(from, to, each(work - work_before));
        }
    }
}

impl HostLoads {
    /// Combines the totals of hosts, each of which is in one part of a machine, up to the end of a run.
    pub fn new(end: SimTime, mut totals: Vec<HostTotals>) -> Self {
        totals.sort_by_key(|totals| totals.host);
        let end = end.as_picos();
        let scales = totals.iter().flat_map(|HostTotals { bins, .. }| [bins.busy.scale(), bins.work.scale()]);
        let scale = scales.fold(scale_of(end), u32::max);
        let load = |HostTotals { host, bins }: HostTotals| HostLoad {
            host,
            busy: bins.busy.coarsened(scale, end),
            work: bins.work.coarsened(scale, end),
        };
        Self { bin: SimDuration::from_picos(1 << scale), hosts: totals.into_iter().map(load).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_count_as_the_mean_of_their_interval() {
        let at = SimTime::from_picos;
        let host = HostId::new(3);
        let mut recorder = HostRecorder::default();
        recorder.computed(host, at(0)..at(10), 2.0, 1e12);
        recorder.watch_period(at(10), SimDuration::from_picos(20), 4);
        recorder.computed(host, at(15)..at(25), 1.0, 3e12);
        // Off.
        recorder.computed(host, at(25)..at(30), 1.0, 0.0);
        recorder.repeat_period(at(30));
        recorder.computed(host, at(110)..at(120), 1.0, 1e12);
        let loads = HostLoads::new(at(120), recorder.totals());
        assert_eq!((loads.bin.as_picos(), loads.hosts.len()), (1, 1));
        let HostLoad { busy, work, .. } = &loads.hosts[0];
        assert_eq!(
            [busy[0], busy[12], busy[20], busy[27], busy[30], busy[109]],
            [1.0, 0.0, 1.0, 0.0, 0.5, 0.5]
        );
        assert_eq!(
            [busy.iter().sum::<f64>(), work.iter().sum()],
            [10.0 + 5.0 * 10.0 + 10.0, 20.0 + 5.0 * 30.0 + 10.0]
        );
    }
}
