//! Allocation: the hosts that each program of a run gets, in the order of the programs.

use std::collections::{BTreeMap, BTreeSet};

use netmodel::{HostId, NetworkLevel, Platform};
use trace_mmap::{PairTraffic, Trace};

use crate::launches::Start;
use crate::partition::order_by_halves;
use crate::placement::{Placement, PlacementError, PlacementPolicy};
use crate::programs::ProgramSpec;

/// Hosts of a platform, and the programs that have them so far.
#[derive(Debug)]
pub(crate) struct Allocation<'a> {
    platform: &'a Platform,
    seed: u64,
    /// Hosts that policies pass over.
    accelerators: BTreeSet<HostId>,
    /// First program on each host that has any.
    users: BTreeMap<HostId, &'a ProgramSpec>,
}

impl<'a> Allocation<'a> {
    /// Makes the allocation of no hosts. The seed is that of random placements; policies place no ranks on accelerators.
    pub(crate) fn new(platform: &'a Platform, seed: u64, accelerators: BTreeSet<HostId>) -> Self {
        Self { platform, seed, accelerators, users: BTreeMap::new() }
    }

    /// Places the ranks of programs: first those with hosts files, then the others on the hosts that are left for them, each in their order.
    ///
    /// # Errors
    /// If a hosts file is wrong, programs overlap on exclusive hosts, or a program is larger than the hosts that are left.
    pub(crate) fn place(
        mut self,
        programs: &'a [(ProgramSpec, Trace)],
    ) -> Result<Vec<Placement>, PlacementError> {
        let mut placements: Vec<Option<Placement>> = vec![None; programs.len()];
        let mut order: Vec<usize> = (0..programs.len()).collect();
        // Those that follow others come after them.
        let is_later = |spec: &ProgramSpec| spec.hosts.is_none() || matches!(spec.start, Start::After(_));
        order.sort_by_key(|&index| is_later(&programs[index].0));
        for index in order {
            let (spec, trace) = &programs[index];
            match spec.start {
                Start::At(_) => {}
                Start::After(other) => {
                    placements[index] = placements[other].clone();
                    continue;
                }
                Start::Submitted(_) => {
                    placements[index] = Some(self.before_submission(trace)?);
                    continue;
                }
            }
            let placement = match &spec.hosts {
                Some(path) => Placement::from_file(self.platform, path, trace.ranks())?,
                None => self.by_policy(spec, trace)?,
            };
            for &host in placement.hosts() {
                let user = *self.users.entry(host).or_insert(spec);
                if !std::ptr::eq(user, spec) && (user.is_exclusive || spec.is_exclusive) {
                    let host = self.platform.host(host).name.clone();
                    return Err(PlacementError::Overlap { jobs: [user, spec].map(ProgramSpec::label), host });
                }
            }
            placements[index] = Some(placement);
        }
        Ok(placements.into_iter().map(|placement| placement.expect("each program was placed")).collect())
    }

    /// Places a program whose hosts are chosen during the run on the first host, where nothing happens.
    fn before_submission(&self, trace: &Trace) -> Result<Placement, PlacementError> {
        match self.platform.hosts() {
            [] => Err(PlacementError::NoHosts),
            _ => Ok(Placement::repeat(&[HostId::new(0)], trace.ranks())),
        }
    }

    fn by_policy(&self, spec: &ProgramSpec, trace: &Trace) -> Result<Placement, PlacementError> {
        let (ranks, policy) = (trace.ranks(), spec.placement);
        if self.platform.hosts().is_empty() {
            return Err(PlacementError::NoHosts);
        }
        let hosts = self.ordered_hosts(spec, ranks);
        let cores = |host: HostId| self.platform.host(host).cores;
        let all: u64 = hosts.iter().map(|&host| u64::from(cores(host))).sum();
        let may_repeat =
            !spec.is_exclusive && matches!(policy, PlacementPolicy::Block | PlacementPolicy::Cyclic);
        if hosts.is_empty() || all < ranks.into() && !may_repeat {
            return Err(PlacementError::TooLarge {
                job: spec.label(),
                ranks,
                policy,
                cores: all,
                hosts: hosts.len(),
                all: self.platform.hosts().len(),
                other: self.users.values().next().map(|user| user.label()),
            });
        }
        let copies = |host| if policy == PlacementPolicy::Cyclic { 1 } else { cores(host) as usize };
        let slots = hosts.into_iter().flat_map(|host| std::iter::repeat_n(host, copies(host)));
        let slots: Vec<HostId> = slots.take(ranks.max(1) as usize).collect();
        if policy != PlacementPolicy::Matrix {
            return Ok(Placement::repeat(&slots, ranks));
        }
        let error = |why: String| PlacementError::NoMatrix { job: spec.label(), why };
        if trace.grows() {
            return Err(error("a program in code sends what it decides while it runs".to_owned()));
        }
        let pairs = PairTraffic::all(trace).map_err(|damage| error(damage.to_string()))?;
        let edges: Vec<(u32, u32, u64)> =
            pairs.iter().map(|pair| (pair.from.get(), pair.to.get(), pair.bytes.get())).collect();
        let mut of_ranks = slots.clone();
        let order = order_by_halves(ranks, &edges);
        order.into_iter().zip(slots).for_each(|(rank, host)| of_ranks[rank as usize] = host);
        Ok(Placement::repeat(&of_ranks, ranks))
    }

    /// Returns the hosts that a policy may take, in the order in which it does.
    fn ordered_hosts(&self, spec: &ProgramSpec, ranks: u32) -> Vec<HostId> {
        let platform = self.platform;
        let is_free = |host: &HostId| {
            !self.accelerators.contains(host)
                && self.users.get(host).is_none_or(|user| !(user.is_exclusive || spec.is_exclusive))
        };
        let all = (0..).map(HostId::new).take(platform.hosts().len());
        let mut free: Vec<HostId> = all.filter(is_free).collect();
        match spec.placement {
            PlacementPolicy::Block | PlacementPolicy::Cyclic | PlacementPolicy::Matrix => free,
            PlacementPolicy::Contiguous => {
                let runs = free.chunk_by(|one, next| one.get() + 1 == next.get());
                let cores = |run: &[HostId]| -> u64 {
                    run.iter().map(|&host| u64::from(platform.host(host).cores)).sum()
                };
                let fits = |run: &&[HostId]| cores(run) >= ranks.into();
                // Where none is long enough, the longest one tells what there is.
                let longest = runs.clone().max_by_key(|run| cores(run));
                { runs }.find(fits).or(longest).map_or(Vec::new(), <[HostId]>::to_vec)
            }
            PlacementPolicy::Random => {
                free.sort_by_cached_key(|host| {
                    let key = (self.seed, "placement", spec.label(), host.get());
                    (*blake3::hash(format!("{key:?}").as_bytes()).as_bytes(), *host)
                });
                free
            }
            PlacementPolicy::RoundRobin => {
                let leaves = platform.parts(NetworkLevel::Leaf);
                let mut of_leaf = BTreeMap::<u32, u32>::new();
                let mut rounds = Vec::new();
                for host in free {
                    let round = of_leaf.entry(leaves[host.index()]).or_default();
                    rounds.push((*round, host));
                    *round += 1;
                }
                rounds.sort_unstable();
                rounds.into_iter().map(|(_, host)| host).collect()
            }
            PlacementPolicy::Leaf => self.of_whole_parts(free, NetworkLevel::Leaf),
            PlacementPolicy::Group => self.of_whole_parts(free, NetworkLevel::Group),
        }
    }

    /// Returns those of the free hosts in whose part of the network no other program has a host.
    fn of_whole_parts(&self, free: Vec<HostId>, level: NetworkLevel) -> Vec<HostId> {
        let parts = self.platform.parts(level);
        let used: Vec<u32> = self.users.keys().map(|host| parts[host.index()]).collect();
        free.into_iter().filter(|host| !used.contains(&parts[host.index()])).collect()
    }
}
