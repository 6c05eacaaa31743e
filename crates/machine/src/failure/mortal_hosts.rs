//! Hosts that die, and how a job recovers from that.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use netmodel::quantity::Seconds;
use netmodel::{HostId, Platform};

use super::component::{Component, FailureError, hosts_of};
use super::section::{FailureList, FailuresSection, Recovery};
use crate::CheckpointRestart;

/// Hosts that die, and what becomes of jobs with ranks there.
#[derive(Clone, Debug)]
pub(super) struct MortalHosts {
    pub(super) components: Vec<Component>,
    pub(super) recovery: Recovery,
    /// Time from a failure until a job goes on \[s\].
    pub(super) restart_s: f64,
    /// Time of a checkpoint \[s\].
    pub(super) checkpoint_s: f64,
    /// Interval between checkpoints that was given \[s\].
    given_interval_s: Option<f64>,
    repair_s: BTreeMap<HostId, f64>,
    spares: Vec<HostId>,
    names: Vec<String>,
}

/// Hosts that wait to take the place of others, with the instants from which on they are in order \[s\].
pub(super) type Spares = VecDeque<(HostId, f64)>;

/// How a job goes on after a failure.
pub(super) struct Resumption {
    /// Instant \[s\]; `None` if it does not.
    pub(super) at_s: Option<f64>,
    /// Hosts that take the place of others, each with the name of that one.
    pub(super) replaced: Vec<(String, String)>,
}

impl MortalHosts {
    /// Returns the hosts that die on a platform, where others are in use; `None` if no host ever dies.
    ///
    /// # Errors
    /// If the platform lacks a component or a spare host.
    pub(super) fn of(
        platform: &Platform,
        (list, section): (&FailureList, &FailuresSection),
        in_use: &[HostId],
    ) -> Result<Option<Self>, FailureError> {
        let (mut components, mut repair_s) = (Vec::new(), BTreeMap::new());
        for (number, failure) in list.0.iter().enumerate().filter(|(_, failure)| failure.kills()) {
            let own = Component::of_section(platform, number, failure)?;
            if let Some(Seconds(seconds)) = failure.repair {
                let dying = own.iter().flat_map(|component| &component.hosts);
                repair_s.extend(dying.map(|host| (*host, seconds)));
            }
            components.extend(own);
        }
        let spares = hosts_of(platform, "spares", &section.spares)?;
        Ok((!components.is_empty()).then(|| Self {
            components,
            recovery: section.recovery,
            restart_s: section.restart.map_or(0.0, |Seconds(seconds)| seconds),
            checkpoint_s: section.checkpoint.map_or(0.0, |Seconds(seconds)| seconds),
            given_interval_s: section.interval.map(|Seconds(seconds)| seconds),
            repair_s,
            spares: spares.into_iter().filter(|spare| !in_use.contains(spare)).collect(),
            names: platform.hosts().iter().map(|host| host.name.clone()).collect(),
        }))
    }

    /// Returns the mean time between failures of some hosts \[s\]; `None` if they fail at given instants only.
    pub(super) fn mtbf_s(&self, hosts: &[HostId]) -> Option<f64> {
        let hosts: BTreeSet<HostId> = hosts.iter().copied().collect();
        let is_own = |component: &&Component| component.hosts.iter().any(|host| hosts.contains(host));
        let rate: f64 = self.components.iter().filter(is_own).map(Component::rate).sum();
        (rate > 0.0).then(|| rate.recip())
    }

    /// Returns the interval between checkpoints of a job on some hosts \[s\]: the given one, or Daly's; `None` if the job writes none.
    pub(super) fn interval_s(&self, hosts: &[HostId]) -> Option<f64> {
        let Self { restart_s, checkpoint_s, .. } = *self;
        // Daly's estimate does not depend on the work.
        let best_s = |mtbf_s| {
            CheckpointRestart { work_s: 0.0, interval_s: 0.0, checkpoint_s, restart_s, mtbf_s }
                .daly_interval_s()
        };
        let best_s = || self.mtbf_s(hosts).filter(|_| checkpoint_s > 0.0).map(best_s);
        self.given_interval_s.or_else(best_s).filter(|_| self.recovery != Recovery::End)
    }

    /// Returns the spares at the begin of a run.
    pub(super) fn spares(&self) -> Spares {
        self.spares.iter().map(|&spare| (spare, 0.0)).collect()
    }

    /// Lets a job whose ranks run on some hosts recover from the failure of others, of which it has one at least, at an instant \[s\]; it takes
    /// spares, and its hosts become those on which it goes on.
    pub(super) fn recover(
        &self,
        hosts: &mut [HostId],
        failed: &[HostId],
        at_s: f64,
        spares: &mut Spares,
    ) -> Resumption {
        let used: BTreeSet<HostId> = hosts.iter().copied().collect();
        let dead: Vec<HostId> = failed.iter().copied().filter(|host| used.contains(host)).collect();
        let mut replaced = Vec::new();
        let repaired_s = |host: &HostId| self.repair_s.get(host).map(|repair_s| at_s + repair_s);
        let mut resumed_s = Some(at_s + self.restart_s);
        let wait_for = |resumed_s: Option<f64>, host: &HostId, may_reboot: bool| {
            let back_s = repaired_s(host).or(may_reboot.then_some(at_s));
            Some(resumed_s?.max(back_s?))
        };
        match self.recovery {
            Recovery::End => resumed_s = None,
            Recovery::Restart => {
                // A host without a time of repair is back after the restart.
                resumed_s = dead.iter().fold(resumed_s, |resumed_s, host| wait_for(resumed_s, host, true));
            }
            Recovery::Spare => {
                for host in &dead {
                    let place =
                        spares.iter().position(|&(spare, from_s)| from_s <= at_s && !failed.contains(&spare));
                    let Some((spare, _)) = place.and_then(|place| spares.remove(place)) else {
                        resumed_s = wait_for(resumed_s, host, false);
                        continue;
                    };
                    hosts.iter_mut().filter(|place| *place == host).for_each(|place| *place = spare);
                    spares.extend(repaired_s(host).map(|from_s| (*host, from_s)));
                    let name = |host: &HostId| self.names[host.index()].clone();
                    replaced.push((name(host), name(&spare)));
                }
            }
            Recovery::Shrink => {
                let left: Vec<HostId> = used.iter().copied().filter(|host| !dead.contains(host)).collect();
                if left.is_empty() {
                    resumed_s =
                        dead.iter().fold(resumed_s, |resumed_s, host| wait_for(resumed_s, host, false));
                } else {
                    let orphans = hosts.iter_mut().filter(|host| dead.contains(host));
                    orphans.zip(left.iter().cycle()).for_each(|(place, host)| *place = *host);
                }
            }
        }
        Resumption { at_s: resumed_s, replaced }
    }
}
