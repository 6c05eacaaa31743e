//! Several jobs on hosts that die: in the course of their replay.

use std::error::Error;

use mpi_model::CheckpointTimes;
use netmodel::{HostId, Platform};
use pdes_core::{SimDuration, SimTime};
use replay::{HostDeaths, HostDeathsRun, Recovery};

use super::mortal_hosts::{MortalHosts, Resumption, Spares};
use super::section::{FailureList, FailuresSection};

/// Deaths of hosts in a run of several jobs.
#[derive(Clone, Debug)]
pub(super) struct SeveralJobs {
    pub(super) list: FailureList,
    pub(super) section: FailuresSection,
}

struct SeveralJobsRun {
    mortal: MortalHosts,
    /// The failures of each component.
    failures: Vec<Instants>,
    spares: Spares,
}

/// Instants in ascending order, of which the first ones are known.
struct Instants {
    known: Vec<SimTime>,
    /// The others \[s\].
    further: Box<dyn Iterator<Item = f64> + Send>,
}

impl Instants {
    /// Returns the first instant from another one on; `None` if there is none in simulated time.
    fn next(&mut self, from: SimTime) -> Option<SimTime> {
        while self.known.last().is_none_or(|last| *last < from) {
            let further = SimDuration::try_from_secs_f64(self.further.next()?)?;
            self.known.push(SimTime::ZERO + further);
        }
        self.known.get(self.known.partition_point(|at| *at < from)).copied()
    }
}

impl HostDeaths for SeveralJobs {
    fn check(&self, platform: &Platform) -> Result<(), Box<dyn Error + Send + Sync>> {
        MortalHosts::of(platform, (&self.list, &self.section), &[])?;
        Ok(())
    }

    fn begin(&self, platform: &Platform, in_use: &[HostId]) -> Box<dyn HostDeathsRun> {
        let mortal = MortalHosts::of(platform, (&self.list, &self.section), in_use);
        let mortal = mortal.expect("the platform was checked").expect("hosts die");
        let seed = self.section.seed();
        let failures = mortal
            .components
            .iter()
            .map(|component| Instants { known: Vec::new(), further: Box::new(component.instants(seed)) });
        Box::new(SeveralJobsRun { failures: failures.collect(), spares: mortal.spares(), mortal })
    }
}

impl SeveralJobsRun {
    /// Returns the next failure of each component with one of some hosts.
    fn failures_of(&mut self, hosts: &[HostId], from: SimTime) -> Vec<(usize, SimTime)> {
        let components = self.mortal.components.iter().zip(&mut self.failures).enumerate();
        let of_hosts =
            components.filter(|(_, (component, _))| component.hosts.iter().any(|host| hosts.contains(host)));
        of_hosts.filter_map(|(number, (_, failures))| Some((number, failures.next(from)?))).collect()
    }
}

impl HostDeathsRun for SeveralJobsRun {
    fn next(&mut self, hosts: &[HostId], from: SimTime) -> Option<SimTime> {
        self.failures_of(hosts, from).into_iter().map(|(_, at)| at).min()
    }

    fn checkpoints(&self, hosts: &[HostId]) -> Option<CheckpointTimes> {
        let interval = SimDuration::try_from_secs_f64(self.mortal.interval_s(hosts)?)?;
        let duration = SimDuration::try_from_secs_f64(self.mortal.checkpoint_s)?;
        Some(CheckpointTimes { interval: interval.max(SimDuration::from_picos(1)), duration })
    }

    fn recover(&mut self, hosts: &[HostId], at: SimTime) -> Recovery {
        let mut failures = self.failures_of(hosts, at);
        failures.retain(|(_, instant)| *instant == at);
        let failed = failures.iter().map(|(number, _)| &self.mortal.components[*number]);
        let component = failed.clone().map(|component| component.name.as_str()).collect::<Vec<_>>();
        let component = component.join(", ");
        let failed: Vec<HostId> = failed.flat_map(|component| &component.hosts).copied().collect();
        let mut hosts = hosts.to_vec();
        let Resumption { at_s, replaced } =
            self.mortal.recover(&mut hosts, &failed, at.as_secs_f64(), &mut self.spares);
        let restart = at_s.and_then(SimDuration::try_from_secs_f64).map(|after| SimTime::ZERO + after);
        Recovery { component, restart: restart.map(|restart| (restart.max(at), hosts)), replaced }
    }
}
