//! Accelerators: hosts on which ranks of other hosts compute in some regions of their programs.

use std::collections::{BTreeMap, BTreeSet};

use mpi_model::Accelerator;
use netmodel::{HostId, Platform, RouteError, name_matches as matches};
use pdes_core::{Bytes, Rank, RegionIndex};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::contention::RegionPlan;
use crate::placement::Placement;

/// Text for the host of a rank in the name of its accelerators.
const OWN_HOST: &str = "{host}";

/// Regions of programs whose computations accelerators do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Offload {
    /// Name of the regions or call sites, in which `*` stands for any text; before the first one, the empty name.
    pub region: String,
    /// Name of the accelerators, hosts of the platform, in which `*` stands for any text and, before that, `{host}` for the host of the
    /// rank. The ranks of a host have these in turn.
    pub to: String,
    /// Data that are copied to the accelerator where such a region begins.
    pub copy_in: Bytes,
    /// Data that are copied back where it ends.
    pub copy_out: Bytes,
}

/// The reason why regions cannot be computed on accelerators.
#[derive(Debug, thiserror::Error)]
pub enum OffloadError {
    /// A host with ranks has no accelerators.
    #[error(
        "compute.offload: to = {to:?}: the platform has no such host for the ranks on {host:?}; {OWN_HOST} stands for the name of their host, and * \
         for any text behind it"
    )]
    NoAccelerator {
        /// Name of the accelerators.
        to: String,
        /// The host.
        host: String,
    },
    /// There is no way for the data.
    #[error("compute.offload: to = {to:?}: {source}; leave copy_in and copy_out out, or add the route")]
    NoRoute {
        /// Name of the accelerators.
        to: String,
        /// Cause.
        source: RouteError,
    },
    /// Epochs cut between a host and its accelerator.
    #[error(
        "compute.offload: with epochs the accelerator {accelerator:?} is in another region of the network than {host:?}; take network.epoch_s = 0, \
         or a network.regions file with both in one region"
    )]
    OtherRegion {
        /// The accelerator.
        accelerator: String,
        /// The host.
        host: String,
    },
}

/// The accelerators of the hosts of a platform.
#[derive(Debug)]
pub(crate) struct Accelerators {
    rules: Vec<Rule>,
    /// Hosts whose ranks compute on each accelerator.
    users: BTreeMap<HostId, BTreeSet<HostId>>,
}

#[derive(Debug)]
struct Rule {
    offload: Offload,
    hosts: AcceleratorsOf,
}

#[derive(Debug)]
enum AcceleratorsOf {
    /// All hosts have these.
    All(Vec<HostId>),
    Each(FxHashMap<HostId, Vec<HostId>>),
}

impl Accelerators {
    /// Finds the accelerators of all hosts of a platform; `None` if no region is computed on any.
    pub(crate) fn new(offloads: &[Offload], platform: &Platform) -> Option<Self> {
        let rule = |offload: &Offload| Rule {
            offload: offload.clone(),
            hosts: AcceleratorsOf::named(&offload.to, platform),
        };
        let (rules, users) = (offloads.iter().map(rule), BTreeMap::new());
        (!offloads.is_empty()).then(|| Self { rules: rules.collect(), users })
    }

    /// Returns the hosts that are accelerators, of the platform or because a program computes on them.
    pub(crate) fn all(used: Option<&Self>, platform: &Platform) -> BTreeSet<HostId> {
        let rules = used.into_iter().flat_map(|accelerators| &accelerators.rules);
        rules.flat_map(|rule| rule.hosts.all()).chain(platform.accelerators()).collect()
    }

    /// Returns the accelerator of a rank in a region.
    pub(crate) fn host(&self, placement: &Placement, rank: Rank, region: &str) -> Option<HostId> {
        self.rule(region)?.accelerator(placement, rank)
    }

    /// Returns the accelerator of a rank in a region, with the routes of its copies.
    pub(crate) fn find<Route>(
        &self,
        (platform, placement): (&Platform, &Placement),
        rank: Rank,
        region: &str,
        route: impl Fn(HostId, HostId) -> Result<Route, RouteError>,
    ) -> Option<Accelerator<Route>> {
        let rule = self.rule(region)?;
        let (own, id) = (placement.host(rank), rule.accelerator(placement, rank)?);
        let copy = |src, dst, bytes: Bytes| {
            let route = || route(src, dst).expect("the routes of copies were checked");
            (bytes > Bytes::ZERO).then(|| (route(), bytes))
        };
        let host = platform.host(id);
        Some(Accelerator {
            host: id.get(),
            speed: host.speed,
            memory_bandwidth: host.memory_bandwidth.map_or(f64::INFINITY, |all| all / f64::from(host.cores)),
            copy_in: copy(own, id, rule.offload.copy_in),
            copy_out: copy(id, own, rule.offload.copy_out),
        })
    }

    /// Returns the first rule for a region.
    fn rule(&self, region: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| matches(&rule.offload.region, region))
    }

    /// Lets hosts use the accelerators.
    ///
    /// # Errors
    /// A host has none, or there is no route to one.
    pub(crate) fn serve(
        &mut self,
        platform: &Platform,
        hosts: impl IntoIterator<Item = HostId>,
    ) -> Result<(), Box<OffloadError>> {
        for host in hosts {
            for Rule { offload: Offload { to, copy_in, copy_out, .. }, hosts } in &self.rules {
                let accelerators = hosts.of(host);
                if accelerators.is_empty() {
                    let host = platform.host(host).name.clone();
                    return Err(Box::new(OffloadError::NoAccelerator { to: to.clone(), host }));
                }
                for &accelerator in accelerators {
                    let ways = [(host, accelerator, copy_in), (accelerator, host, copy_out)];
                    for (src, dst, _) in ways.into_iter().filter(|(.., bytes)| **bytes > Bytes::ZERO) {
                        let route = platform.route(src, dst, &mut Vec::new());
                        route.map_err(|source| Box::new(OffloadError::NoRoute { to: to.clone(), source }))?;
                    }
                    self.users.entry(accelerator).or_default().insert(host);
                }
            }
        }
        Ok(())
    }

    /// Returns whether an accelerator serves several hosts.
    pub(crate) fn are_shared(&self) -> bool {
        self.users.values().any(|users| users.len() > 1)
    }

    /// Puts accelerators into the regions of the first hosts that use them.
    pub(crate) fn join_regions(&self, regions: &mut [RegionIndex]) {
        for (accelerator, users) in &self.users {
            let user = users.first().expect("an accelerator has users");
            regions[accelerator.index()] = regions[user.index()];
        }
    }

    /// Checks that accelerators are in the regions of their hosts.
    pub(crate) fn check_regions(
        &self,
        plan: &RegionPlan,
        platform: &Platform,
    ) -> Result<(), Box<OffloadError>> {
        let mut pairs = self.users.iter().flat_map(|(id, users)| users.iter().map(move |user| (*id, *user)));
        match pairs.find(|(one, other)| plan.hosts[one.index()] != plan.hosts[other.index()]) {
            None => Ok(()),
            Some(pair) => {
                let [accelerator, host] = [pair.0, pair.1].map(|id| platform.host(id).name.clone());
                Err(Box::new(OffloadError::OtherRegion { accelerator, host }))
            }
        }
    }
}

impl Rule {
    /// Returns the accelerator of a rank; `None` on a host that has none, where nothing computes before a scheduler has chosen another one.
    fn accelerator(&self, placement: &Placement, rank: Rank) -> Option<HostId> {
        let accelerators = self.hosts.of(placement.host(rank));
        let place = (placement.place_on_host(rank) as usize).checked_rem(accelerators.len())?;
        Some(accelerators[place])
    }
}

impl AcceleratorsOf {
    fn named(to: &str, platform: &Platform) -> Self {
        let hosts = (0..).map(HostId::new).zip(platform.hosts());
        let Some((begin, end)) = to.split_once(OWN_HOST) else {
            return Self::All(hosts.filter(|(_, host)| matches(to, &host.name)).map(|(id, _)| id).collect());
        };
        let mut each = FxHashMap::<HostId, Vec<HostId>>::default();
        for (id, host) in hosts {
            let Some(rest) = host.name.strip_prefix(begin) else { continue };
            let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            let owners = ends.filter(|&at| matches(end, &rest[at..]));
            for owner in
                owners.filter_map(|at| platform.host_by_name(&rest[..at])).filter(|&owner| owner != id)
            {
                each.entry(owner).or_default().push(id);
            }
        }
        Self::Each(each)
    }

    fn of(&self, host: HostId) -> &[HostId] {
        match self {
            Self::All(all) => all,
            Self::Each(each) => each.get(&host).map_or(&[], Vec::as_slice),
        }
    }

    fn all(&self) -> Vec<HostId> {
        match self {
            Self::All(all) => all.clone(),
            Self::Each(each) => each.values().flatten().copied().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes with two accelerators each.
    fn platform() -> Platform {
        let names = ["n1", "n1-gpu-0", "n1-gpu-1", "n10", "n10-gpu-0", "n10-gpu-1"];
        let hosts: Vec<String> =
            names.iter().map(|name| format!("{{ name = {name:?}, speed = \"1Gf\", cores = 2 }}")).collect();
        let text = format!("topology = {{ kind = \"graph\" }}\nhost = [{}]\nlink = []\n", hosts.join(", "));
        Platform::from_toml(&text, "nodes").unwrap()
    }

    fn accelerators(to: &str) -> Accelerators {
        let offload =
            Offload { region: "solve*".into(), to: to.into(), copy_in: Bytes::ZERO, copy_out: Bytes::ZERO };
        Accelerators::new(&[offload], &platform()).unwrap()
    }

    #[test]
    fn ranks_have_the_accelerators_of_their_host_in_turn() {
        let hosts = [0, 3, 0, 0, 3].map(HostId::new);
        let placement = Placement::repeat(&hosts, 5);
        let of_ranks = |to: &str| -> Vec<u32> {
            let accelerators = accelerators(to);
            let of_rank = |rank| accelerators.host(&placement, Rank::new(rank), "solve/1").unwrap().get();
            (0..5).map(of_rank).collect()
        };
        assert_eq!(of_ranks("{host}-gpu-*"), [1, 4, 2, 1, 5]);
        assert_eq!(of_ranks("*gpu*"), [1, 1, 2, 4, 2]);
        assert_eq!(accelerators("{host}-gpu-*").host(&placement, Rank::new(0), "halo"), None);
        let all = Accelerators::all(Some(&accelerators("{host}-gpu-*")), &platform());
        assert_eq!(all, [1, 2, 4, 5].map(HostId::new).into());
    }

    #[test]
    fn hosts_without_accelerators_are_refused() {
        let users = |to, hosts: &[u32]| {
            let mut accelerators = accelerators(to);
            accelerators.serve(&platform(), hosts.iter().copied().map(HostId::new))?;
            Ok::<_, Box<OffloadError>>(accelerators.users)
        };
        assert_eq!(users("n1-gpu-*", &[0, 3]).unwrap()[&HostId::new(2)], [0, 3].map(HostId::new).into());
        let error = users("{host}-gpu-*", &[0, 1]).unwrap_err().to_string();
        assert!(
            error.starts_with("compute.offload: to = \"{host}-gpu-*\": the platform has no such host for"),
            "{error}"
        );
        assert!(error.contains("\"n1-gpu-0\""), "{error}");
    }
}
