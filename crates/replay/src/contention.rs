//! Machine whose links and cores are shared, and its regions.

use std::ops::Range;

use mpi_model::{Accelerator, Completion, ComputationNoise, FilePlace, Machine, UncontendedTransfer, Work};
use netmodel::epoch::EpochError;
use netmodel::{ContentionFree, HostId, NetworkParameters, Platform, Regions, Resource, RouteError};
use pdes_core::{Bytes, Rank, RegionIndex, SimDuration, SimTime};
use trace_mmap::CommId;

use crate::Placement;
use crate::noise::HostNoise;
use crate::offload::Accelerators;
use crate::simulation::RunError;
use crate::spec::{Epoch, RunSpec};
use crate::storage::find_file;

/// A platform with placed ranks and with contention: ranks submit all work to the region of their host.
#[derive(Debug)]
pub struct SharedMachine<'a> {
    platform: &'a Platform,
    placement: &'a Placement,
    /// Costs of a message without contention.
    contention_free: ContentionFree,
    /// Flags of the ranks that have a host of their own, if such ranks compute ahead.
    lone_ranks: Option<Box<[bool]>>,
    noise: Option<&'a dyn HostNoise>,
    accelerators: Option<&'a Accelerators>,
    /// Number of the world among the communicators of all programs, if switches carry out their operations.
    switch_communicators: Option<u32>,
}

/// Source and destination host of a message.
#[derive(Clone, Copy, Debug)]
pub struct HostPair {
    pub(crate) src: HostId,
    pub(crate) dst: HostId,
}

/// Work on a machine, and the completion to deliver at its end.
#[derive(Clone, Copy, Debug)]
pub struct WorkRequest {
    pub(crate) work: Work<HostPair>,
    pub(crate) completion: Completion,
}

impl<'a> SharedMachine<'a> {
    /// Creates the machine of ranks placed on a platform.
    pub fn new(platform: &'a Platform, placement: &'a Placement, parameters: &NetworkParameters) -> Self {
        let contention_free = ContentionFree::new(parameters);
        Self {
            platform,
            placement,
            contention_free,
            lone_ranks: None,
            noise: None,
            accelerators: None,
            switch_communicators: None,
        }
    }

    /// Adds noise to the computations of ranks.
    pub fn with_noise(self, noise: Option<&'a dyn HostNoise>) -> Self {
        Self { noise, ..self }
    }

    /// Adds accelerators that compute for ranks.
    pub(crate) fn with_accelerators(self, accelerators: Option<&'a Accelerators>) -> Self {
        Self { accelerators, ..self }
    }

    /// Lets switches carry out the operations of communicators, whose numbers begin with that of the world.
    pub(crate) fn with_switch_communicators(self, switch_communicators: Option<u32>) -> Self {
        Self { switch_communicators, ..self }
    }

    /// Lets ranks with a host of their own, whose speed does not change, advance past their computations at once. This is for runs with epochs only: in an exact run
    /// events elsewhere affect the rounding of the end of a computation, and the order of ties.
    pub(crate) fn with_compute_run_ahead(self) -> Self {
        let (placement, changes) = (self.placement, self.platform.changes());
        let is_lone =
            |&host: &HostId| placement.residents(host) == 1 && !changes.includes(Resource::Speed(host));
        Self { lone_ranks: Some(placement.hosts().iter().map(is_lone).collect()), ..self }
    }
}

impl Machine for SharedMachine<'_> {
    type Route = HostPair;
    type WorkRequest = WorkRequest;
    type Error = RouteError;

    fn route(&self, from: Rank, to: Rank) -> Result<HostPair, RouteError> {
        let pair = HostPair { src: self.placement.host(from), dst: self.placement.host(to) };
        self.platform.route(pair.src, pair.dst, &mut Vec::new()).map(|()| pair)
    }

    #[inline]
    fn work_request(&self, work: Work<HostPair>, completion: Completion) -> Option<WorkRequest> {
        Some(WorkRequest { work, completion })
    }

    fn transfer(&self, HostPair { src, dst }: HostPair, bytes: Bytes, begin: SimTime) -> Option<SimDuration> {
        let route = self.contention_free.route(self.platform, src, dst).ok()?;
        self.contention_free.transfer(self.platform, route, bytes, begin)
    }

    fn uncontended(
        &self,
        HostPair { src, dst }: HostPair,
        bytes: Bytes,
        begin: SimTime,
    ) -> UncontendedTransfer {
        let Ok(route) = self.contention_free.route(self.platform, src, dst) else {
            return UncontendedTransfer::default();
        };
        UncontendedTransfer::new(
            self.contention_free.transfer(self.platform, route, bytes, begin),
            self.contention_free.latency_at(self.platform, route, bytes, begin),
        )
    }

    fn next_change(&self, after: SimTime) -> Option<SimTime> {
        self.platform.changes().next_instant(after)
    }

    #[inline]
    fn has_dedicated_core(&self, rank: Rank) -> bool {
        self.lone_ranks.as_ref().is_some_and(|lone| lone[rank.index()])
    }

    fn has_own_host(&self, rank: Rank) -> bool {
        self.placement.residents(self.placement.host(rank)) == 1
    }

    fn switch_communicator(&self, communicator: CommId) -> Option<u32> {
        self.switch_communicators.map(|world| world + communicator.get())
    }

    fn find_file(&self, rank: Rank, file: &str) -> Result<Option<FilePlace<HostPair>>, RouteError> {
        find_file(self.platform, self.placement.host(rank), file, |src, dst| {
            let pair = HostPair { src, dst };
            self.platform.route(src, dst, &mut Vec::new()).map(|()| pair)
        })
    }

    fn has_file_positions(&self) -> bool {
        self.platform.storage().has_positions()
    }

    fn speed(&self, rank: Rank, at: SimTime) -> f64 {
        self.platform.speed(self.placement.host(rank), at)
    }

    fn has_changing_speed(&self, rank: Rank) -> bool {
        self.platform.changes().includes(Resource::Speed(self.placement.host(rank)))
    }

    fn compute_time(&self, rank: Rank, flops: f64, begin: SimTime) -> Option<SimDuration> {
        self.platform.compute_time(self.placement.host(rank), flops, begin)
    }

    fn has_noise(&self) -> bool {
        self.noise.is_some()
    }

    fn noise(
        &self,
        rank: Rank,
        begin: SimTime,
        length: SimDuration,
        known: &Range<SimTime>,
    ) -> ComputationNoise {
        let noise = self.noise.expect("there is noise");
        noise.in_computation(self.placement.host(rank), begin, length, known)
    }

    fn has_accelerators(&self) -> bool {
        self.accelerators.is_some()
    }

    fn accelerator(&self, rank: Rank, region: &str) -> Option<Accelerator<HostPair>> {
        self.accelerators?
            .find((self.platform, self.placement), rank, region, |src, dst| Ok(HostPair { src, dst }))
    }

    fn memory_bandwidth(&self, rank: Rank) -> f64 {
        self.placement.memory_bandwidth(self.platform, rank)
    }

    fn node(&self, rank: Rank) -> u32 {
        self.placement.host(rank).get()
    }
}

/// Largest quotient of the longest possible epoch and the chosen one: within regions hosts may be much closer to each other.
const MAX_EPOCH_REDUCTION: u64 = 8;

/// The regions of a run.
#[derive(Clone, Debug)]
pub struct RegionPlan {
    /// Region of each host.
    pub hosts: Vec<RegionIndex>,
    /// Number of regions.
    pub count: u32,
    /// Length of epochs or windows.
    pub span: SimDuration,
    /// The regions of hosts and links, where links belong to regions.
    pub regions: Option<Regions>,
}

impl RegionPlan {
    /// Cuts the platform into regions with epochs as `spec` specifies; `None` if rates change at every event.
    pub(crate) fn with_epochs(
        spec: &RunSpec,
        platform: &Platform,
        _: Option<(&[HostId], usize)>,
    ) -> Result<Option<Self>, RunError> {
        if spec.epoch == Epoch::Exact {
            return Ok(None);
        }
        let regions = spec.regions.partition(platform)?;
        let most = regions.lookahead(platform, &spec.network);
        let epoch = match (spec.epoch, most) {
            (Epoch::Fixed(epoch), _) => epoch,
            (_, Some(most)) if most > SimDuration::ZERO => {
                choose_epoch(most, platform.min_latency_phase(&spec.network))
            }
            (_, Some(_)) => return Err(EpochError::NoLookahead { regions: regions.count() }.into()),
            (_, None) => return Ok(None),
        };
        match most {
            Some(most) if epoch > most => {
                Err(EpochError::TooLong { found: epoch, most, regions: regions.count() }.into())
            }
            _ => Ok(Some(Self::of_regions(regions, platform, epoch))),
        }
    }

    /// Cuts the platform into regions that depend on each other a message later at the earliest, without contention; `None` if there is
    /// only one, or no lookahead.
    pub(crate) fn without_contention(
        spec: &RunSpec,
        platform: &Platform,
        _: Option<(&[HostId], usize)>,
    ) -> Result<Option<Self>, RunError> {
        let regions = spec.regions.partition(platform)?;
        // Latencies are rounded.
        let epoch = regions.lookahead(platform, &spec.network).map_or(0, |most| most.as_picos());
        let epoch = SimDuration::from_picos(epoch.saturating_sub(1));
        Ok((epoch > SimDuration::ZERO).then(|| Self::of_regions(regions, platform, epoch)))
    }

    /// Makes the plan of regions with spans of this length.
    pub(crate) fn of_regions(regions: Regions, platform: &Platform, epoch: SimDuration) -> Self {
        let hosts = (0..platform.hosts().len() as u32).map(HostId::new);
        let hosts = hosts.map(|host| regions.of_host(host).get()).collect();
        Self { hosts, count: regions.count(), span: epoch, regions: Some(regions) }
    }

    /// Joins neighbouring regions to at most this many, with about the same number of ranks, of which these are the hosts, and to
    /// two at least. Links belong to none of them then.
    pub(crate) fn joined(self, ranks: &[HostId], most: u32) -> Self {
        if self.count <= most {
            return self;
        }
        let mut residents = vec![0_u64; self.count as usize];
        ranks.iter().for_each(|host| residents[self.hosts[host.index()] as usize] += 1);
        let (mut before, mut last, mut count) = (0, None, 0);
        let join = |residents: u64| {
            let middle = before + residents / 2;
            before += residents;
            let part = (middle * u64::from(most) / ranks.len() as u64).min(u64::from(most) - 1);
            count += u32::from(last.replace(part) != Some(part));
            count - 1
        };
        let joined: Vec<RegionIndex> = residents.into_iter().map(join).collect();
        if count < 2 {
            return self;
        }
        let hosts = self.hosts.iter().map(|&region| joined[region as usize]).collect();
        Self { hosts, count, span: self.span, regions: None }
    }
}

/// Returns the length of epochs, at most `longest`: the shortest phase before data flow, so that a flow that begins in an epoch was
/// sent, and is known, before that epoch. Unknown flows get rates that are not corrected before the end of the epoch: where the phase
/// between regions is three times that within them, a halo exchange of 4 to 8 KB is 7 % late (`docs/notes/epochs.md`).
fn choose_epoch(longest: SimDuration, shortest_phase: Option<SimDuration>) -> SimDuration {
    let least = SimDuration::from_picos(longest.as_picos().div_ceil(MAX_EPOCH_REDUCTION));
    shortest_phase.map_or(longest, |phase| phase.clamp(least, longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_as_long_as_the_shortest_phase() {
        let picos = SimDuration::from_picos;
        assert_eq!(choose_epoch(picos(3_000), Some(picos(1_000))), picos(1_000));
        assert_eq!(choose_epoch(picos(3_000), Some(picos(10))), picos(375));
        assert_eq!(choose_epoch(picos(3_000), Some(SimDuration::ZERO)), picos(375));
        assert_eq!(choose_epoch(picos(3_000), None), picos(3_000));
    }

    /// Joins regions of two hosts each for ranks on these hosts.
    fn joined(regions: u32, ranks: impl IntoIterator<Item = u32>, most: u32) -> (u32, Vec<RegionIndex>) {
        let hosts = (0..regions).flat_map(|region| [region; 2]).collect();
        let plan = RegionPlan { hosts, count: regions, span: SimDuration::ZERO, regions: None };
        let ranks: Vec<HostId> = ranks.into_iter().map(HostId::new).collect();
        let RegionPlan { count, hosts, .. } = plan.joined(&ranks, most);
        (count, hosts)
    }

    #[test]
    fn regions_are_joined_by_their_ranks() {
        assert_eq!(joined(4, 0..8, 2), (2, vec![0, 0, 0, 0, 1, 1, 1, 1]));
        assert_eq!(joined(4, [0, 1, 2, 3], 2), (2, vec![0, 0, 1, 1, 1, 1, 1, 1]));
        assert_eq!(joined(3, 0..6, 3), (3, vec![0, 0, 1, 1, 2, 2]));
        assert_eq!(joined(3, [0, 1], 2), (3, vec![0, 0, 1, 1, 2, 2]), "all ranks are in the first one");
    }
}
