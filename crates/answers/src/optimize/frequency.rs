//! Frequencies of hosts whose ranks have slack.

use std::collections::BTreeMap;

use mpi_model::ActionKind;
use netmodel::HostId;

use super::search::Search;
use super::{OptimumError, Slack};

impl Search<'_> {
    /// Gives each host the lowest frequency with which the run is no longer: the lowest frequency to as many hosts as possible, then the next one to
    /// the others. Halves of hosts are tried until single ones fail.
    pub(super) fn lower_frequencies(&mut self) -> Result<Option<Slack>, OptimumError> {
        if !self.spec.other_programs.is_empty() {
            let why = "several programs run: the slack of one is not that of another".to_owned();
            self.refused.insert("frequency".to_owned(), why);
            return Ok(None);
        }
        let mut hosts = self.hosts();
        hosts.sort_unstable();
        hosts.dedup();
        let mut thousandths: Vec<u32> =
            self.allowed.frequencies.iter().map(|part| (1000.0 * part).round() as u32).collect();
        thousandths.sort_unstable();
        for frequency in thousandths {
            let left: Vec<HostId> =
                hosts.iter().copied().filter(|host| !self.best.frequencies.contains_key(host)).collect();
            let before = self.best.clone();
            self.lower(&left, frequency)?;
            let slowed = self.best.frequencies.len() - before.frequencies.len();
            if slowed > 0 {
                let name =
                    format!("{slowed} hosts at x {} of their frequency", f64::from(frequency) / 1000.0);
                let variant = self.best.clone();
                // The time of the best variant is known; the change is told once for all of its hosts.
                let time_ps = self.time(&variant).unwrap_or(self.best_ps);
                self.take(&(name, variant), time_ps, None);
            }
        }
        Ok((!self.best.frequencies.is_empty()).then(|| self.slack()))
    }

    /// Lowers the frequency of hosts that all may be slower, or else of parts of them.
    fn lower(&mut self, hosts: &[HostId], thousandths: u32) -> Result<(), OptimumError> {
        if hosts.is_empty() || self.is_exhausted() {
            return Ok(());
        }
        let variant = self.best.with_frequency(hosts, thousandths);
        self.replay(&[(format!("{} hosts slower", hosts.len()), variant.clone())])?;
        if self.time(&variant).is_some_and(|time_ps| time_ps <= self.best_ps) {
            self.best = variant;
            return Ok(());
        }
        if hosts.len() > 1 {
            let (one, other) = hosts.split_at(hosts.len() / 2);
            self.lower(one, thousandths)?;
            self.lower(other, thousandths)?;
        }
        Ok(())
    }

    /// Returns what the slower hosts save: power goes with the cube of the frequency, time with its reciprocal.
    fn slack(&self) -> Slack {
        let platform = self.simulation().platform();
        let mut busy_s: BTreeMap<HostId, f64> = BTreeMap::new();
        for (host, statistics) in self.hosts().into_iter().zip(&self.base.outcome.program().statistics) {
            *busy_s.entry(host).or_default() += statistics.time(ActionKind::Compute).as_secs_f64();
        }
        let saved = |host: &HostId| {
            let part = self.best.frequencies.get(host).map_or(1.0, |part| f64::from(*part) / 1000.0);
            1.0 - part * part
        };
        let sum = |energy: &dyn Fn(&HostId, f64) -> f64| {
            busy_s.iter().map(|(host, busy)| energy(host, *busy)).sum::<f64>()
        };
        let power = &platform.power().hosts;
        let is_known = busy_s.keys().all(|host| power.contains_key(host));
        let watts = |host: &HostId| {
            power
                .get(host)
                .map_or(0.0, |power| (power.all_cores - power.idle) / f64::from(platform.host(*host).cores))
        };
        let all = sum(&|_, busy| busy);
        let named = |(host, thousandths): (&HostId, &u32)| {
            (platform.host(*host).name.clone(), f64::from(*thousandths) / 1000.0)
        };
        Slack {
            hosts: self.best.frequencies.iter().map(named).collect(),
            saved_share: if all > 0.0 { sum(&|host, busy| busy * saved(host)) / all } else { 0.0 },
            saved_j: is_known.then(|| sum(&|host, busy| busy * saved(host) * watts(host))),
        }
    }
}
