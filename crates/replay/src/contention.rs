//! Machine whose links and cores are shared, and the shared resource that serves requests in time order.

use mpi_model::{
    Completion, FilePlace, Machine, RankProcess, ReplayError, ReplayErrorKind, Token, UncontendedTransfer,
    Work,
};
use netmodel::epoch::EpochError;
use netmodel::{
    ContentionFree, HostId, Message, NetworkModel, NetworkParameters, Platform, Regions, RouteError,
};
use pdes_core::{
    Bytes, Fault, LpId, Outbox, Rank, Region, RegionIndex, SimDuration, SimTime, State, StateVisitor,
    SubmittedWork,
};

use crate::Placement;
use crate::job::{Epoch, Job};
use crate::simulation::RunError;
use crate::simulation::ServerUse;
use crate::storage::{FileRules, StorageResources, find_file};

/// A platform with placed ranks and with contention: ranks submit all work to a [`Contention`].
#[derive(Debug)]
pub struct SharedMachine<'a> {
    platform: &'a Platform,
    placement: &'a Placement,
    /// Costs of a message without contention.
    contention_free: ContentionFree,
    /// Flags of the ranks that have a host of their own, if such ranks compute ahead.
    lone_ranks: Option<Box<[bool]>>,
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
        Self { platform, placement, contention_free: ContentionFree::new(parameters), lone_ranks: None }
    }

    /// Lets ranks with a host of their own advance past their computations at once. This is for runs with epochs only: in an exact run
    /// events elsewhere affect the rounding of the end of a computation, and the order of ties.
    pub(crate) fn with_compute_run_ahead(self, ranks: u32) -> Self {
        let host = |rank| self.placement.host(Rank::new(rank));
        let mut residents = vec![0_u32; self.platform.hosts().len()];
        (0..ranks).for_each(|rank| residents[host(rank).get() as usize] += 1);
        let is_lone = |rank| residents[host(rank).get() as usize] == 1;
        Self { lone_ranks: Some((0..ranks).map(is_lone).collect()), ..self }
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

    fn transfer(&self, HostPair { src, dst }: HostPair, bytes: Bytes) -> Option<SimDuration> {
        let path = self.contention_free.path_cost(self.platform, src, dst).ok()?;
        self.contention_free.try_duration(path, bytes)
    }

    fn uncontended(&self, HostPair { src, dst }: HostPair, bytes: Bytes) -> UncontendedTransfer {
        let Ok(path) = self.contention_free.path_cost(self.platform, src, dst) else {
            return UncontendedTransfer::default();
        };
        UncontendedTransfer::new(
            self.contention_free.try_duration(path, bytes),
            self.contention_free.latency(path, bytes),
        )
    }

    #[inline]
    fn has_dedicated_core(&self, rank: Rank) -> bool {
        self.lone_ranks.as_ref().is_some_and(|lone| lone[rank.index()])
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

    fn speed(&self, rank: Rank) -> f64 {
        self.platform.host(self.placement.host(rank)).speed
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

/// The regions of a run and the length of its epochs.
#[derive(Clone, Debug)]
pub struct EpochPlan {
    /// The regions.
    pub regions: Regions,
    /// Region of each host.
    pub hosts: Vec<RegionIndex>,
    /// Length of an epoch.
    pub epoch: SimDuration,
}

impl EpochPlan {
    /// Cuts the platform into regions as `job` specifies; `None` if rates change at every event.
    pub(crate) fn new(job: &Job, platform: &Platform) -> Result<Option<Self>, RunError> {
        if job.epoch == Epoch::Exact {
            return Ok(None);
        }
        let regions = job.regions.partition(platform)?;
        let most = regions.lookahead(platform, &job.network);
        let epoch = match (job.epoch, most) {
            (Epoch::Fixed(epoch), _) => epoch,
            (_, Some(most)) if most > SimDuration::ZERO => {
                choose_epoch(most, platform.min_latency_phase(&job.network))
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
    pub(crate) fn without_contention(job: &Job, platform: &Platform) -> Result<Option<Self>, RunError> {
        let regions = job.regions.partition(platform)?;
        // Latencies are rounded.
        let epoch = regions.lookahead(platform, &job.network).map_or(0, |most| most.as_picos());
        let epoch = SimDuration::from_picos(epoch.saturating_sub(1));
        Ok((epoch > SimDuration::ZERO).then(|| Self::of_regions(regions, platform, epoch)))
    }

    fn of_regions(regions: Regions, platform: &Platform, epoch: SimDuration) -> Self {
        let hosts = (0..platform.hosts().len() as u32).map(HostId::new);
        Self { hosts: hosts.map(|host| regions.of_host(host).get()).collect(), regions, epoch }
    }
}

/// The regions and the windows of an exact run on several threads.
#[derive(Clone, Debug)]
pub(crate) struct WindowPlan {
    pub(crate) window: SimDuration,
    /// Region of each host.
    pub(crate) hosts: Vec<RegionIndex>,
    pub(crate) regions: u32,
}

/// Returns the length of epochs, at most `longest`: the shortest phase before data flow, so that a flow that begins in an epoch was
/// sent, and is known, before that epoch. Unknown flows get rates that are not corrected before the end of the epoch: where the phase
/// between regions is three times that within them, a halo exchange of 4 to 8 KB is 7 % late (`docs/notes/epochs.md`).
fn choose_epoch(longest: SimDuration, shortest_phase: Option<SimDuration>) -> SimDuration {
    let least = SimDuration::from_picos(longest.as_picos().div_ceil(MAX_EPOCH_REDUCTION));
    shortest_phase.map_or(longest, |phase| phase.clamp(least, longest))
}

/// The network, the cores and the storage of a [`SharedMachine`], with their state, in any network model.
#[derive(Debug)]
pub struct Contention<'a, N> {
    network: N,
    /// Storage, if there is any.
    storage: Option<StorageResources<'a>>,
    /// Host of each logical process.
    lp_hosts: &'a [HostId],
    completions: Vec<Completion>,
}

impl<'a, N> Contention<'a, N> {
    /// Creates the contention on an idle network between the hosts of a machine.
    pub(crate) fn new(machine: &SharedMachine<'a>, rules: &FileRules, network: N) -> Self {
        let storage = StorageResources::new(machine.platform, machine.placement.hosts(), rules);
        Self { network, storage, lp_hosts: machine.placement.hosts(), completions: Vec::new() }
    }

    /// Returns the use of each I/O server.
    pub(crate) fn server_use(&self) -> Vec<ServerUse> {
        self.storage.iter().flat_map(StorageResources::server_use).collect()
    }

    /// Advances the storage or the network to its next event, whichever comes first; returns the instant, and the reads that fail.
    #[cold]
    fn advance_with_storage(&mut self) -> (SimTime, Vec<(Completion, u64)>)
    where
        N: NetworkModel<Completion>,
    {
        let Self { network, storage, completions, .. } = self;
        let storage = storage.as_mut().expect("there is storage");
        let of_network = network.next_event();
        let now = match storage.next_event(of_network) {
            Some(at) => {
                storage.advance(network, at);
                at
            }
            None => {
                network.advance(completions);
                let now = network.now();
                completions.retain(|completion| !storage.arrived(network, now, *completion));
                now
            }
        };
        completions.append(&mut storage.ended);
        (now, std::mem::take(&mut storage.failed))
    }

    /// Announces that the interval of length `period` which begins now may be repeated so many times.
    pub(crate) fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64)
    where
        N: NetworkModel<Completion>,
    {
        self.network.watch_period(now, period, repetitions);
        self.storage.iter_mut().for_each(|storage| storage.watch_period(now, period, repetitions));
    }

    /// Adds the loads of the interval that was announced and ends now, as often as it is repeated.
    pub(crate) fn repeat_loads(&mut self, now: SimTime)
    where
        N: NetworkModel<Completion>,
    {
        self.network.repeat_loads(now);
        self.storage.iter_mut().for_each(|storage| storage.repeat_loads(now));
    }

    /// Returns the network.
    pub fn into_network(self) -> N {
        self.network
    }
}

/// At a cut, no completion is left to be delivered.
impl<N: NetworkModel<Completion>> State for Contention<'_, N> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { network, storage, lp_hosts: _, completions: _ } = self;
        network.visit(visitor);
        visitor.context(storage.is_some());
        storage.iter_mut().for_each(|storage| storage.visit(visitor));
    }
}

impl<'a, N> Region<RankProcess<'_, SharedMachine<'a>>> for Contention<'a, N>
where
    N: NetworkModel<Completion> + Send,
{
    type Message = ();

    #[inline]
    fn submit(&mut self, submitted: SubmittedWork<WorkRequest>, _: &mut Vec<(RegionIndex, ())>) {
        let SubmittedWork { at, tie_break: order, from: submitter, request } = submitted;
        let WorkRequest { work, completion: tag } = request;
        match work {
            Work::Transfer { route: HostPair { src, dst }, bytes } => {
                let sent = self.network.send(Message { at, order, submitter, src, dst, size: bytes, tag });
                sent.expect("a rank resolves its route before it sends");
            }
            Work::Compute { flops } => {
                self.network.compute(at, self.lp_hosts[submitter.index()], flops, tag);
            }
            Work::Sleep { duration } => self.network.schedule(at.saturating_add(duration), tag),
            Work::Access(access) => {
                let storage = self.storage.as_mut().expect("a file is found where there is storage");
                storage.submit(&mut self.network, at, access, tag);
            }
        }
    }

    #[inline]
    fn next_event_time(&mut self) -> Option<SimTime> {
        let of_network = self.network.next_event();
        match &mut self.storage {
            None => of_network,
            Some(storage) => storage.next_event(of_network).or(of_network),
        }
    }

    fn advance(
        &mut self,
        outbox: &mut Outbox<Token, WorkRequest>,
    ) -> Result<(), (LpId, Fault<Box<ReplayError<RouteError>>>)> {
        let at = match self.storage {
            Some(_) => {
                let (now, failed) = self.advance_with_storage();
                failed.into_iter().for_each(|(completion, size)| completion.fail_read(size, outbox));
                now
            }
            None => {
                self.network.advance(&mut self.completions);
                self.network.now()
            }
        };
        if at == SimTime::MAX {
            let files = self.storage.iter().flat_map(StorageResources::unfinished);
            return Err(end_of_time_error(self.network.unfinished().chain(files)));
        }
        for completion in self.completions.drain(..) {
            completion.deliver(at, outbox);
        }
        Ok(())
    }
}

/// Returns the error for work that would end after the last representable time.
pub(crate) fn end_of_time_error(
    unfinished: impl Iterator<Item = Completion>,
) -> (LpId, Fault<Box<ReplayError<RouteError>>>) {
    let lp = unfinished.map(Completion::owner).min().unwrap_or(LpId::new(0));
    let rank = Rank::new(lp.get());
    let kind = ReplayErrorKind::TimeOverflow {
        what: "a message, a computation or a sleep",
        amount: "this rank, or what is left of it,".to_owned(),
    };
    let error = Box::new(ReplayError { rank, action: 0, kind });
    (lp, Fault { at: SimTime::MAX, order: 0, error })
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
}
