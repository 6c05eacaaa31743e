//! Adapter between regions of a network with contention and the engine, which runs them with the ranks on their hosts.

mod windows;

use std::ops::Range;

use mpi_model::{Completion, RankProcess, Replay, ReplayError, Token, Work};
use netmodel::epoch::{EpochCounts, EpochRegion, EpochSummary};
use netmodel::{ForeignState, Message, NetworkRegion, RouteError};
use pdes_core::{
    Cluster, ExchangeCounts, Fault, Interrupt, Outbox, Progress, Rank, Region, RegionBlocks, RegionIndex,
    RegionalEngine, RegionalRun, RegionalTiming, SimDuration, SimTime, SubmittedWork,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Placement;
use crate::checkpoint::Segmented;
use crate::contention::{HostPair, SharedMachine, WorkRequest, end_of_time_error};
use crate::simulation::{MemberRun, RunError, ServerUse};
use crate::storage::{RegionStorage, SavedStorage};
pub(crate) use windows::InWindows;

/// Latest time of an event: work that does not end by then never ends.
const END_OF_TIME: SimTime = SimTime::from_picos(u64::MAX - 1);

/// A region of a machine, as the shared resource of the ranks on its hosts.
#[derive(Debug)]
pub(crate) struct RegionAdapter<'a, N> {
    index: RegionIndex,
    region: N,
    placement: &'a Placement,
    /// Region of each rank.
    homes: &'a [RegionIndex],
    completions: Vec<Completion>,
    /// Storage of the hosts of the region, if ranks access files.
    storage: Option<RegionStorage<'a>>,
    /// Work that came too late.
    late: Option<(SimTime, Rank)>,
}

impl<'a, N> RegionAdapter<'a, N> {
    /// Adapts regions whose numbers begin with `first`; `storage` makes the storage of a region, if ranks access any.
    pub(crate) fn adapt_all(
        first: RegionIndex,
        regions: Vec<N>,
        placement: &'a Placement,
        homes: &'a [RegionIndex],
        storage: impl Fn(RegionIndex) -> Option<RegionStorage<'a>>,
    ) -> Vec<Self> {
        let adapter = |(index, region)| {
            let storage = storage(index);
            Self { index, region, placement, homes, completions: Vec::new(), storage, late: None }
        };
        (first..).zip(regions).map(adapter).collect()
    }

    /// Returns the use of each I/O server of the regions, with its number.
    pub(crate) fn server_use(adapters: &[Self]) -> Vec<(u32, ServerUse)> {
        let storage = adapters.iter().filter_map(|adapter| adapter.storage.as_ref());
        storage.flat_map(RegionStorage::server_use).collect()
    }

    /// Returns the regions.
    pub(crate) fn regions(adapters: &mut [Self]) -> impl Iterator<Item = &mut N> {
        adapters.iter_mut().map(|adapter| &mut adapter.region)
    }
}

/// State of a region, and of its storage.
type SavedAdapter = (Vec<u8>, Option<SavedStorage>);

impl<N: NetworkRegion<Completion>> RegionAdapter<'_, N> {
    fn save(&self) -> SavedAdapter {
        (self.region.save(), self.storage.as_ref().map(RegionStorage::save))
    }

    fn restore(&mut self, (region, storage): &SavedAdapter) -> Result<(), ForeignState> {
        self.region.restore(region)?;
        match (&mut self.storage, storage) {
            (Some(own), Some(state)) => own.restore(state),
            (None, None) => Ok(()),
            _ => Err(ForeignState),
        }
    }

    /// Advances the storage or the network to its next event, whichever comes first; returns the instant.
    #[cold]
    fn advance_with_storage(&mut self, outbox: &mut Outbox<Token, WorkRequest>) -> SimTime {
        let Self { region, storage, completions, late, .. } = self;
        let storage = storage.as_mut().expect("there is storage");
        let Some(at) = storage.next_event(region.next_event()) else {
            storage.set_timer(region);
            region.advance(completions);
            storage.take_arrivals(region.now(), completions);
            return region.now();
        };
        storage.advance(region, at, completions);
        for (completion, size) in storage.failed.drain(..) {
            completion.fail_read(size, outbox);
        }
        if late.is_none() && region.is_late() {
            *late = Some((at, Rank::new(0)));
        }
        at
    }
}

impl RegionAdapter<'_, EpochRegion<'_, '_, Completion>> {
    /// Sums up the epoch statistics of a run.
    pub(crate) fn summary(adapters: &[Self], exchange_counts: ExchangeCounts) -> EpochSummary {
        let ExchangeCounts { boundaries, rounds, messages } = exchange_counts;
        let mut counts = EpochCounts { boundaries, rounds, messages, ..EpochCounts::default() };
        for adapter in adapters {
            let (settlements, evaluations) = adapter.region.solve_counts();
            counts.solves += settlements;
            counts.evaluations += evaluations;
        }
        let violations = adapters.iter().map(|adapter| adapter.region.capacity_violation());
        EpochSummary { counts, capacity_violation: violations.fold(0.0, f64::max) }
    }
}

impl<'m, N> Region<RankProcess<'_, SharedMachine<'m>>> for RegionAdapter<'_, N>
where
    N: NetworkRegion<Completion, Message: Serialize + DeserializeOwned>,
{
    type Message = N::Message;
    const MAX_ROUNDS: &'static [u32] = N::MAX_ROUNDS;
    const BEGINS_ANYWHERE: bool = N::BEGINS_ANYWHERE;

    fn submit(
        &mut self,
        submitted: SubmittedWork<WorkRequest>,
        outgoing: &mut Vec<(RegionIndex, N::Message)>,
    ) {
        let SubmittedWork { at, tie_break: place, from, request: WorkRequest { work, completion } } =
            submitted;
        match work {
            Work::Transfer { route: HostPair { src, dst }, bytes } => {
                let message =
                    Message { at, order: place, submitter: from, src, dst, size: bytes, tag: completion };
                self.region.send(message, outgoing).expect("a rank resolves its route before it sends");
            }
            Work::Compute { rank, flops } => {
                self.region.compute(at, self.placement.host(rank), flops, completion);
            }
            Work::Sleep { duration } => self.region.schedule(at.saturating_add(duration), completion),
            Work::Access(access) => {
                let storage = self.storage.as_mut().expect("ranks that access files have storage");
                storage.submit(at, &access, completion);
                if at < self.region.now() {
                    self.late.get_or_insert((at, from));
                }
            }
        }
        if self.late.is_none() && self.region.is_late() {
            self.late = Some((at, from));
        }
    }

    fn next_event_time(&mut self) -> Option<SimTime> {
        let of_network = self.region.next_event();
        let of_storage = self.storage.as_mut().and_then(|storage| storage.next_event(of_network));
        of_storage.or(of_network).map(|at| at.min(END_OF_TIME))
    }

    fn advance(
        &mut self,
        outbox: &mut Outbox<Token, WorkRequest>,
    ) -> Result<(), (Rank, Fault<Box<ReplayError<RouteError>>>)> {
        let at = match &self.storage {
            Some(_) => self.advance_with_storage(outbox),
            None => {
                self.region.advance(&mut self.completions);
                self.region.now()
            }
        };
        if at >= END_OF_TIME {
            let files = self.storage.iter().flat_map(RegionStorage::unfinished);
            return Err(end_of_time_error(self.region.unfinished().into_iter().chain(files)));
        }
        let Self { index, homes, .. } = *self;
        for completion in &self.completions {
            completion.deliver_to_some(at, outbox, |rank| homes[rank.index()] == index);
        }
        self.completions.clear();
        Ok(())
    }

    fn receive(&mut self, message: N::Message) {
        self.region.receive(message);
    }

    fn next_boundary(&self) -> Option<SimTime> {
        self.region.next_boundary().map(|at| at.min(END_OF_TIME))
    }

    fn exchange_round(
        &mut self,
        epoch: Range<SimTime>,
        exchange: u32,
        round: u32,
        outgoing: &mut Vec<(RegionIndex, N::Message)>,
    ) {
        self.region.exchange_round(epoch, exchange, round, outgoing);
    }

    fn begin_epoch(&mut self, boundary: SimTime) {
        self.region.begin_span(boundary);
    }

    fn late_work(&self) -> Option<(SimTime, Rank)> {
        self.late
    }
}

/// A replay in epochs, region by region, which can be interrupted at the end of an epoch.
pub(crate) struct InRegions<'r, 'a, 't, 'm, N> {
    engine: RegionalEngine,
    epoch: SimDuration,
    blocks: &'r RegionBlocks,
    /// Regions of this process.
    adapters: Vec<RegionAdapter<'a, N>>,
    world: &'r Replay<'t, SharedMachine<'m>>,
    /// Counts so far, with the messages that carried critical paths since this process has begun.
    counts: ExchangeCounts,
    timing: Option<RegionalTiming>,
}

impl<'r, 'a, 't, 'm, N> InRegions<'r, 'a, 't, 'm, N> {
    pub(crate) fn new(
        engine: RegionalEngine,
        epoch: SimDuration,
        blocks: &'r RegionBlocks,
        adapters: Vec<RegionAdapter<'a, N>>,
        world: &'r Replay<'t, SharedMachine<'m>>,
    ) -> Self {
        Self { engine, epoch, blocks, adapters, world, counts: ExchangeCounts::default(), timing: None }
    }

    /// Returns the counts so far. A single process sends no critical paths between regions: theirs are left out, so that the counts
    /// are those of any number of processes.
    pub(crate) fn exchange_counts(&self, cluster: &mut Cluster) -> Result<ExchangeCounts, RunError> {
        let paths: u64 = cluster.gather(self.world.path_tokens())?.iter().sum();
        Ok(ExchangeCounts { messages: self.counts.messages.saturating_sub(paths), ..self.counts })
    }

    /// Returns the regions, and their times if they were measured.
    pub(crate) fn into_parts(self) -> (Vec<RegionAdapter<'a, N>>, Option<RegionalTiming>) {
        (self.adapters, self.timing)
    }
}

impl<'t, 'm, N> Segmented<'t, SharedMachine<'m>> for InRegions<'_, '_, 't, 'm, N>
where
    N: NetworkRegion<Completion, Message: Serialize + DeserializeOwned>,
{
    fn run(
        &mut self,
        cluster: &mut Cluster,
        processes: Vec<RankProcess<'t, SharedMachine<'m>>>,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<MemberRun<'t, SharedMachine<'m>>, RunError> {
        let engine = self.engine.clone().interrupted_by(interrupt.clone());
        let adapters = std::mem::take(&mut self.adapters);
        let done = engine.run_distributed(cluster, self.epoch, processes, self.blocks, adapters, progress)?;
        let RegionalRun { run, regions, exchange_counts, timing, .. } = done.map_err(RunError::Unordered)?;
        let ExchangeCounts { boundaries, rounds, messages } = exchange_counts;
        self.counts.boundaries += boundaries;
        self.counts.rounds += rounds;
        self.counts.messages += messages;
        (self.adapters, self.timing) = (regions, timing);
        Ok(run)
    }

    fn save(&self, cluster: &mut Cluster) -> Result<Vec<u8>, RunError> {
        let counts = self.exchange_counts(cluster)?;
        let own: Vec<SavedAdapter> = self.adapters.iter().map(RegionAdapter::save).collect();
        // The regions of a process follow those of the process before.
        let regions: Vec<SavedAdapter> = cluster.gather(own)?.into_iter().flatten().collect();
        Ok(postcard::to_allocvec(&(counts, regions)).expect("memory takes all"))
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), ForeignState> {
        let state = postcard::from_bytes(state).map_err(|_| ForeignState)?;
        let (counts, regions): (ExchangeCounts, Vec<SavedAdapter>) = state;
        if regions.len() != self.blocks.count() {
            return Err(ForeignState);
        }
        self.counts = counts;
        self.adapters.iter_mut().try_for_each(|adapter| adapter.restore(&regions[adapter.index as usize]))
    }
}
