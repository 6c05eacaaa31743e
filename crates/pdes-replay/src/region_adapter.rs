//! Adapter between regions of a network with contention and the engine, which runs them with the ranks on their hosts.

mod windows;

use std::collections::BTreeMap;
use std::ops::Range;

use mpi_model::{Completion, RankProcess, Replay, ReplayError, Token, Work};
use netmodel::epoch::{EpochCounts, EpochRegion, EpochSummary};
use netmodel::{ForeignState, HostId, Message, NetworkRegion, RouteError, Storage};
use pdes_core::{
    Cluster, ExchangeCounts, Fault, Interrupt, Outbox, Progress, Rank, Region, RegionBlocks, RegionIndex,
    RegionalEngine, RegionalRun, RegionalTiming, SimDuration, SimTime, SubmittedWork,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Placement;
use crate::checkpoint::Segmented;
use crate::contention::{HostPair, SharedMachine, WorkRequest, end_of_time_error};
use crate::simulation::{MemberRun, RunError};
use crate::storage::OwnDevices;
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
    /// Devices of the hosts of the ranks, if they access files.
    devices: Option<OwnDevices>,
    /// Work that came too late.
    late: Option<(SimTime, Rank)>,
}

impl<'a, N> RegionAdapter<'a, N> {
    /// Adapts regions whose numbers begin with `first`; `storage` is the storage that ranks access, if they do.
    pub(crate) fn adapt_all(
        first: RegionIndex,
        regions: Vec<N>,
        placement: &'a Placement,
        homes: &'a [RegionIndex],
        storage: Option<&Storage>,
    ) -> Vec<Self> {
        let ranks = (0..).map(Rank::new).zip(homes);
        let hosts: BTreeMap<HostId, RegionIndex> =
            ranks.map(|(rank, home)| (placement.host(rank), *home)).collect();
        let adapter = |(index, region)| {
            let is_own = |host| hosts.get(&host) == Some(&index);
            let devices = storage.map(|storage| OwnDevices::new(storage, is_own));
            Self { index, region, placement, homes, completions: Vec::new(), devices, late: None }
        };
        (first..).zip(regions).map(adapter).collect()
    }

    /// Returns the regions.
    pub(crate) fn regions(adapters: &mut [Self]) -> impl Iterator<Item = &mut N> {
        adapters.iter_mut().map(|adapter| &mut adapter.region)
    }
}

/// State of a region, and of its devices.
type SavedAdapter = (Vec<u8>, Option<(Vec<u8>, Option<SimTime>)>);

impl RegionAdapter<'_, EpochRegion<'_, '_, Completion>> {
    fn save(&self) -> SavedAdapter {
        (self.region.save(), self.devices.as_ref().map(OwnDevices::save))
    }

    fn restore(&mut self, (region, devices): &SavedAdapter) -> Result<(), ForeignState> {
        self.region.restore(region)?;
        match (&mut self.devices, devices) {
            (Some(own), Some(state)) => own.restore(state),
            (None, None) => Ok(()),
            _ => Err(ForeignState),
        }
    }

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
                let devices = self.devices.as_mut().expect("ranks that access files have devices");
                devices.submit(&mut self.region, at, &access, completion);
            }
        }
        if self.late.is_none() && self.region.is_late() {
            self.late = Some((at, from));
        }
    }

    fn next_event_time(&mut self) -> Option<SimTime> {
        self.region.next_event().map(|at| at.min(END_OF_TIME))
    }

    fn advance(
        &mut self,
        outbox: &mut Outbox<Token, WorkRequest>,
    ) -> Result<(), (Rank, Fault<Box<ReplayError<RouteError>>>)> {
        self.region.advance(&mut self.completions);
        if let Some(devices) = &mut self.devices {
            devices.advance(&mut self.region, &mut self.completions);
        }
        let at = self.region.now();
        if at >= END_OF_TIME {
            return Err(end_of_time_error(self.region.unfinished().into_iter()));
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
pub(crate) struct InRegions<'r, 't, 'm, 'g, 'p> {
    engine: RegionalEngine,
    epoch: SimDuration,
    blocks: &'r RegionBlocks,
    /// Regions of this process.
    adapters: Vec<EpochAdapter<'r, 'g, 'p>>,
    world: &'r Replay<'t, SharedMachine<'m>>,
    /// Counts so far, with the messages that carried critical paths since this process has begun.
    counts: ExchangeCounts,
    timing: Option<RegionalTiming>,
}

type EpochAdapter<'r, 'g, 'p> = RegionAdapter<'r, EpochRegion<'g, 'p, Completion>>;

impl<'r, 't, 'm, 'g, 'p> InRegions<'r, 't, 'm, 'g, 'p> {
    pub(crate) fn new(
        engine: RegionalEngine,
        epoch: SimDuration,
        blocks: &'r RegionBlocks,
        adapters: Vec<EpochAdapter<'r, 'g, 'p>>,
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
    pub(crate) fn into_parts(self) -> (Vec<EpochAdapter<'r, 'g, 'p>>, Option<RegionalTiming>) {
        (self.adapters, self.timing)
    }
}

impl<'t, 'm> Segmented<'t, SharedMachine<'m>> for InRegions<'_, 't, 'm, '_, '_> {
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
