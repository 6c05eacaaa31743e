//! Adapter between regions of a network with contention and the engine, which runs them with the ranks on their hosts.

use std::ops::Range;

use mpi_model::{Completion, RankProcess, Replay, ReplayError, Token, Work};
use netmodel::epoch::{EpochCounts, EpochRegion, EpochSummary};
use netmodel::{HostId, Message, NetworkRegion, RouteError};
use pdes_core::{
    Cluster, ExchangeCounts, Fault, ForeignState, Interrupt, LpId, Outbox, Progress, Region, RegionBlocks,
    RegionIndex, RegionalEngine, RegionalRun, RegionalTiming, SimDuration, SimTime, State, StateVisitor,
    SubmittedWork, load_state, save_state,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::checkpoint::Segmented;
use crate::contention::{HostPair, SharedMachine, WorkRequest, end_of_time_error};
use crate::fast_forward::Cuttable;
use crate::simulation::{MemberRun, RunError, ServerUse};
use crate::storage::RegionStorage;

/// Latest time of an event: work that does not end by then never ends.
const END_OF_TIME: SimTime = SimTime::from_picos(u64::MAX - 1);

/// A region of a machine, as the shared resource of the ranks on its hosts.
#[derive(Debug)]
pub(crate) struct RegionAdapter<'a, N> {
    index: RegionIndex,
    region: N,
    /// Host of each logical process.
    lp_hosts: &'a [HostId],
    /// Region of each logical process.
    lp_regions: &'a [RegionIndex],
    completions: Vec<Completion>,
    /// Storage of the hosts of the region, if ranks access files.
    storage: Option<RegionStorage<'a>>,
    /// Work that came too late.
    late: Option<(SimTime, LpId)>,
}

impl<'a, N> RegionAdapter<'a, N> {
    /// Adapts regions whose numbers begin with `first`; `storage` makes the storage of a region, if ranks access any.
    pub(crate) fn adapt_all(
        first: RegionIndex,
        regions: Vec<N>,
        lp_hosts: &'a [HostId],
        lp_regions: &'a [RegionIndex],
        storage: impl Fn(RegionIndex) -> Option<RegionStorage<'a>>,
    ) -> Vec<Self> {
        let adapter = |(index, region)| {
            let storage = storage(index);
            Self { index, region, lp_hosts, lp_regions, completions: Vec::new(), storage, late: None }
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

/// Between two spans, no completion is left to be delivered, and no work was late.
impl<N: NetworkRegion<Completion>> State for RegionAdapter<'_, N> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { index: _, region, lp_hosts: _, lp_regions: _, completions: _, storage, late: _ } = self;
        region.visit(visitor);
        visitor.context(storage.is_some());
        storage.iter_mut().for_each(|storage| storage.visit(visitor));
    }
}

impl<N: NetworkRegion<Completion>> RegionAdapter<'_, N> {
    /// Saves the states of regions.
    fn save_all(adapters: &mut [Self]) -> Vec<Vec<u8>> {
        let save = |adapter| save_state(adapter).expect("a model with checkpoints can be saved");
        adapters.iter_mut().map(save).collect()
    }

    /// Loads the states of regions, each by its number.
    fn load_all(adapters: &mut [Self], states: &[Vec<u8>]) -> Result<(), ForeignState> {
        let state = |index: RegionIndex| states.get(index as usize).ok_or(ForeignState);
        adapters.iter_mut().try_for_each(|adapter| load_state(adapter, state(adapter.index)?))
    }

    fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        self.region.watch_period(now, period, repetitions);
        self.storage.iter_mut().for_each(|storage| storage.watch_period(now, period, repetitions));
    }

    fn repeat_loads(&mut self, now: SimTime) {
        self.region.repeat_loads(now);
        self.storage.iter_mut().for_each(|storage| storage.repeat_loads(now));
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
            *late = Some((at, LpId::new(0)));
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
            Work::Compute { flops } => {
                self.region.compute(at, self.lp_hosts[from.index()], flops, completion);
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
    ) -> Result<(), (LpId, Fault<Box<ReplayError<RouteError>>>)> {
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
        let Self { index, lp_regions, .. } = *self;
        for completion in &self.completions {
            completion.deliver_to_some(at, outbox, |lp| lp_regions[lp.index()] == index);
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

    fn late_work(&self) -> Option<(SimTime, LpId)> {
        self.late
    }
}

/// A replay in epochs or windows, region by region, which can be interrupted and cut between two of them.
pub(crate) struct InRegions<'r, 'a, 't, 'm, N> {
    engine: RegionalEngine,
    span: SimDuration,
    blocks: &'r RegionBlocks,
    /// Regions of this process.
    adapters: Vec<RegionAdapter<'a, N>>,
    world: &'r Replay<'t, SharedMachine<'m>>,
    /// Last cut, from which windows are counted.
    cut: Option<SimTime>,
    /// Counts so far, with the messages that carried critical paths since this process has begun.
    counts: ExchangeCounts,
    timing: Option<RegionalTiming>,
}

impl<'r, 'a, 't, 'm, N> InRegions<'r, 'a, 't, 'm, N> {
    pub(crate) fn new(
        engine: RegionalEngine,
        span: SimDuration,
        blocks: &'r RegionBlocks,
        adapters: Vec<RegionAdapter<'a, N>>,
        world: &'r Replay<'t, SharedMachine<'m>>,
    ) -> Self {
        let (cut, counts, timing) = (None, ExchangeCounts::default(), None);
        Self { engine, span, blocks, adapters, world, cut, counts, timing }
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
        Ok(self.run_to_cut(cluster, processes, None, interrupt, progress)?.0)
    }

    fn save(&mut self, cluster: &mut Cluster) -> Result<Vec<u8>, RunError> {
        let counts = self.exchange_counts(cluster)?;
        let own = RegionAdapter::save_all(&mut self.adapters);
        // The regions of a process follow those of the process before.
        let regions: Vec<Vec<u8>> = cluster.gather(own)?.into_iter().flatten().collect();
        Ok(postcard::to_allocvec(&(counts, self.cut, regions)).expect("memory takes all"))
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), ForeignState> {
        let regions: Vec<Vec<u8>>;
        (self.counts, self.cut, regions) = postcard::from_bytes(state).map_err(|_| ForeignState)?;
        if regions.len() != self.blocks.count() {
            return Err(ForeignState);
        }
        RegionAdapter::load_all(&mut self.adapters, &regions)
    }
}

impl<'t, 'm, N> Cuttable<'t, SharedMachine<'m>> for InRegions<'_, '_, 't, 'm, N>
where
    N: NetworkRegion<Completion, Message: Serialize + DeserializeOwned>,
{
    fn run_to_cut(
        &mut self,
        cluster: &mut Cluster,
        processes: Vec<RankProcess<'t, SharedMachine<'m>>>,
        from: Option<SimTime>,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<(MemberRun<'t, SharedMachine<'m>>, Option<SimTime>), RunError> {
        let mut engine = self.engine.clone().interrupted_by(interrupt.clone());
        let mut adapters = std::mem::take(&mut self.adapters);
        self.cut = from.or(self.cut);
        if let Some(cut) = self.cut {
            engine = engine.continuing_from(cut);
            RegionAdapter::regions(&mut adapters).for_each(|region| region.count_spans_from(cut));
        }
        let done = engine.run_distributed(cluster, self.span, processes, self.blocks, adapters, progress)?;
        let RegionalRun { run, regions, cut, exchange_counts, timing } = done.map_err(RunError::Unordered)?;
        let ExchangeCounts { boundaries, rounds, messages } = exchange_counts;
        self.counts.boundaries += boundaries;
        self.counts.rounds += rounds;
        self.counts.messages += messages;
        (self.adapters, self.timing) = (regions, timing);
        Ok((run, cut))
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.adapters.iter_mut().for_each(|adapter| adapter.visit(visitor));
    }

    fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        self.adapters.iter_mut().for_each(|adapter| adapter.watch_period(now, period, repetitions));
    }

    fn repeat_loads(&mut self, now: SimTime) {
        self.adapters.iter_mut().for_each(|adapter| adapter.repeat_loads(now));
    }
}
