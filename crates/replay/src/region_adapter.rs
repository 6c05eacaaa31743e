//! Adapter between the regions of a network and the engines, which run them with the ranks on their hosts; the whole machine is one region.

use std::ops::Range;

use mpi_model::{RankProcess, Replay, ReplayError, ReplayErrorKind, Token, Work};
use netmodel::{HostId, Message, NetworkModel, RouteError, SwitchOperation, SwitchOperationKind};
use pdes_core::{
    Cluster, ExchangeCounts, Fault, ForeignState, Interrupt, LpId, Outbox, Progress, Rank, Region,
    RegionBlocks, RegionIndex, RegionalEngine, RegionalRun, RegionalTiming, SimDuration, SimTime, State,
    StateVisitor, SubmittedWork, load_state, save_state,
};

use crate::checkpoint::Segmented;
use crate::contention::{HostPair, SharedMachine, WorkRequest};
use crate::fast_forward::Cuttable;
use crate::network_tag::NetworkTag;
use crate::placement::LpHosts;
use crate::simulation::{MemberRun, RunError, ServerUse};
use crate::storage::StorageResources;

/// Latest time of an event: work that does not end by then never ends.
const END_OF_TIME: SimTime = SimTime::from_picos(u64::MAX - 1);

/// A region of a machine, its links, cores and storage, as the resource of the ranks on its hosts.
#[derive(Debug)]
pub(crate) struct RegionAdapter<'a, N> {
    network: N,
    /// Storage of the hosts of the region, if ranks access files.
    storage: Option<StorageResources<'a>>,
    /// Host of each logical process.
    lp_hosts: &'a LpHosts,
    /// The region, unless it is the whole machine.
    part: Option<Part<'a>>,
    arrived: Vec<NetworkTag>,
    left: Vec<NetworkTag>,
    /// Work that came too late.
    late: Option<(SimTime, LpId)>,
}

/// One of several regions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) index: RegionIndex,
    /// Region of each host.
    pub(crate) hosts: &'a [RegionIndex],
    /// Region of each logical process.
    pub(crate) lp_regions: &'a [RegionIndex],
}

impl Part<'_> {
    /// Returns whether a host belongs to the region.
    pub(crate) fn has(self, host: HostId) -> bool {
        self.hosts[host.index()] == self.index
    }

    fn has_lp(self, lp: LpId) -> bool {
        self.lp_regions[lp.index()] == self.index
    }
}

impl<'a, N> RegionAdapter<'a, N> {
    pub(crate) fn new(
        network: N,
        storage: Option<StorageResources<'a>>,
        lp_hosts: &'a LpHosts,
        part: Option<Part<'a>>,
    ) -> Self {
        Self { network, storage, lp_hosts, part, arrived: Vec::new(), left: Vec::new(), late: None }
    }

    /// Returns the use of each I/O server of the region, with its number.
    pub(crate) fn server_use(&self) -> impl Iterator<Item = (u32, ServerUse)> {
        self.storage.iter().flat_map(StorageResources::server_use)
    }

    /// Returns the network.
    pub(crate) fn into_network(self) -> N {
        self.network
    }
}

/// Between two events of a whole machine, or two spans of several regions, nothing is left to be delivered, and no work was late.
impl<N: NetworkModel<NetworkTag>> State for RegionAdapter<'_, N> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { network, storage, lp_hosts: _, part: _, arrived: _, left: _, late: _ } = self;
        network.visit(visitor);
        visitor.context(storage.is_some());
        storage.iter_mut().for_each(|storage| storage.visit(visitor));
    }
}

impl<N: NetworkModel<NetworkTag>> RegionAdapter<'_, N> {
    /// Announces that the interval of length `period` which begins now may be repeated so many times.
    pub(crate) fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        self.network.watch_period(now, period, repetitions);
        self.storage.iter_mut().for_each(|storage| storage.watch_period(now, period, repetitions));
    }

    /// Adds the loads of the interval that was announced and ends now, as often as it is repeated.
    pub(crate) fn repeat_loads(&mut self, now: SimTime) {
        self.network.repeat_loads(now);
        self.storage.iter_mut().for_each(|storage| storage.repeat_loads(now));
    }

    /// Advances the storage or the network to its next event, whichever comes first; returns the instant.
    #[cold]
    fn advance_with_storage(&mut self, outbox: &mut Outbox<Token, WorkRequest>) -> SimTime {
        let Self { network, storage, arrived, late, .. } = self;
        let storage = storage.as_mut().expect("there is storage");
        let now = match storage.next_event(network.next_event()) {
            // What would end later never does.
            Some(at) if at >= END_OF_TIME => at,
            Some(at) => {
                storage.advance(network, at);
                at
            }
            None => {
                storage.set_timer(network);
                network.advance(arrived);
                storage.take_arrivals(network, network.now(), arrived);
                network.now()
            }
        };
        arrived.extend(storage.ended.drain(..).map(NetworkTag::Ranks));
        for (completion, size) in storage.failed.drain(..) {
            completion.fail_read(size, outbox);
        }
        if late.is_none() && network.is_late() {
            *late = Some((now, LpId::new(0)));
        }
        now
    }

    /// Lets a host take part in an operation of switches, by its number on a communicator.
    // Rare: in the code for messages it would keep these from being inlined.
    #[cold]
    fn operate(
        &mut self,
        message: Message<NetworkTag>,
        (communicator, number): (u32, u32),
        operation: mpi_model::SwitchOperation<u32>,
    ) {
        let kind = match operation.map(HostId::new) {
            mpi_model::SwitchOperation::Allreduce => SwitchOperationKind::Allreduce,
            mpi_model::SwitchOperation::Reduce { to } => SwitchOperationKind::Reduce { to },
            mpi_model::SwitchOperation::Bcast { from } => SwitchOperationKind::Bcast { from },
        };
        self.network.operate(message, SwitchOperation { communicator, number, kind });
    }

    /// Returns the error for work that would end after the last representable time.
    #[cold]
    fn end_of_time_error(&self) -> (LpId, Fault<Box<ReplayError<RouteError>>>) {
        let files = self.storage.iter().flat_map(StorageResources::unfinished).map(NetworkTag::Ranks);
        let unfinished = self.network.unfinished().chain(files);
        let lp = unfinished.filter_map(NetworkTag::owner).min().unwrap_or(LpId::new(0));
        let rank = Rank::new(lp.get());
        let kind = ReplayErrorKind::TimeOverflow {
            what: "a message, a computation or a sleep",
            amount: "this rank, or what is left of it,".to_owned(),
        };
        let error = Box::new(ReplayError { rank, action: 0, kind });
        (lp, Fault { at: SimTime::MAX, order: 0, error })
    }
}

impl<'m, N> Region<RankProcess<'_, SharedMachine<'m>>> for RegionAdapter<'_, N>
where
    N: NetworkModel<NetworkTag> + Send,
{
    type Message = N::Message;
    const MAX_ROUNDS: &'static [u32] = N::MAX_ROUNDS;
    const BEGINS_ANYWHERE: bool = N::BEGINS_ANYWHERE;

    #[inline]
    fn submit(&mut self, submitted: SubmittedWork<WorkRequest>) {
        let SubmittedWork { at, tie_break, from, request } = submitted;
        let WorkRequest { work, completion } = request;
        let tag = NetworkTag::Ranks(completion);
        match work {
            Work::Transfer { route: HostPair { src, dst }, bytes } => {
                let origin = self.lp_hosts.of(from);
                let message =
                    Message { at, order: tie_break, submitter: from, origin, src, dst, size: bytes, tag };
                let sent = self.network.send(message);
                sent.expect("a rank resolves its route before it sends");
            }
            Work::Compute { flops, accelerator } => {
                let host = accelerator.map_or_else(|| self.lp_hosts.of(from), HostId::new);
                self.network.compute(at, host, flops, tag);
            }
            Work::Switches { communicator, number, operation, bytes } => {
                let (host, size) = (self.lp_hosts.of(from), bytes);
                let message = Message {
                    at,
                    order: tie_break,
                    submitter: from,
                    origin: host,
                    src: host,
                    dst: host,
                    size,
                    tag,
                };
                self.operate(message, (communicator, number), operation);
            }
            Work::Sleep { duration } => self.network.schedule(at.saturating_add(duration), tag),
            Work::Abandon { first, end } => {
                let is_dropped = |tag: NetworkTag| {
                    tag.owner().is_some_and(|owner| (first.get()..end.get()).contains(&owner.get()))
                };
                self.network.abandon(at, is_dropped);
            }
            Work::Access(access) => {
                let storage = self.storage.as_mut().expect("ranks that access files have storage");
                storage.submit(&mut self.network, at, access, completion);
                if at < self.network.now() {
                    self.late.get_or_insert((at, from));
                }
            }
        }
        if self.late.is_none() && self.network.is_late() {
            self.late = Some((at, from));
        }
    }

    #[inline]
    fn next_event_time(&mut self) -> Option<SimTime> {
        let of_network = self.network.next_event();
        let next = match &mut self.storage {
            None => of_network,
            Some(storage) => storage.next_event(of_network).or(of_network),
        };
        next.map(|at| at.min(END_OF_TIME))
    }

    fn undisturbed_until(&mut self, submission: SimTime) -> SimTime {
        match self.storage {
            None => self.network.undisturbed_until(submission),
            Some(_) => Region::next_event_time(self).map_or(submission, |next| next.min(submission)),
        }
    }

    fn advance(
        &mut self,
        outbox: &mut Outbox<Token, WorkRequest>,
    ) -> Result<(), (LpId, Fault<Box<ReplayError<RouteError>>>)> {
        let at = match self.storage {
            Some(_) => self.advance_with_storage(outbox),
            None => {
                self.network.advance(&mut self.arrived);
                self.network.now()
            }
        };
        if at >= END_OF_TIME {
            return Err(self.end_of_time_error());
        }
        let part = self.part;
        let is_here = |lp: LpId| part.is_none_or(|part| part.has_lp(lp));
        if N::ENDS_APART {
            self.network.take_left(&mut self.left);
        }
        for tag in self.left.drain(..) {
            if let NetworkTag::Ranks(completion) = tag
                && completion.sender().is_some_and(is_here)
            {
                completion.sent(at, outbox);
            }
        }
        for tag in self.arrived.drain(..) {
            let NetworkTag::Ranks(completion) = tag else { unreachable!("storage takes what is for it") };
            if is_here(completion.owner()) {
                completion.received(at, outbox);
            }
            if !N::ENDS_APART && completion.sender().is_some_and(is_here) {
                completion.sent(at, outbox);
            }
        }
        Ok(())
    }

    fn take_messages(&mut self, messages: &mut Vec<(RegionIndex, N::Message)>) {
        self.network.take_messages(messages);
    }

    fn receive(&mut self, message: N::Message) {
        self.network.receive(message);
    }

    fn next_boundary(&self) -> Option<SimTime> {
        self.network.next_boundary().map(|at| at.min(END_OF_TIME))
    }

    fn exchange_round(&mut self, epoch: Range<SimTime>, exchange: u32, round: u32) {
        self.network.exchange_round(epoch, exchange, round);
    }

    fn begin_epoch(&mut self, epoch: Range<SimTime>) {
        self.network.begin_span(epoch);
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
    worlds: &'r [Replay<'t, SharedMachine<'m>>],
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
        worlds: &'r [Replay<'t, SharedMachine<'m>>],
    ) -> Self {
        let (cut, counts, timing) = (None, ExchangeCounts::default(), None);
        Self { engine, span, blocks, adapters, worlds, cut, counts, timing }
    }

    /// Returns the counts so far. A single process sends no critical paths between regions: theirs are left out, so that the counts
    /// are those of any number of processes.
    pub(crate) fn exchange_counts(&self, cluster: &mut Cluster) -> Result<ExchangeCounts, RunError> {
        let own = self.worlds.iter().map(Replay::path_tokens).sum::<u64>();
        let paths: u64 = cluster.gather(own)?.iter().sum();
        Ok(ExchangeCounts { messages: self.counts.messages.saturating_sub(paths), ..self.counts })
    }

    /// Returns the regions, and their times if they were measured.
    pub(crate) fn into_parts(self) -> (Vec<RegionAdapter<'a, N>>, Option<RegionalTiming>) {
        (self.adapters, self.timing)
    }
}

impl<'t, 'm, N> Segmented<'t, SharedMachine<'m>> for InRegions<'_, '_, 't, 'm, N>
where
    N: NetworkModel<NetworkTag> + Send,
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
        let save = |adapter| save_state(adapter).expect("a model with checkpoints can be saved");
        let own = self.adapters.iter_mut().map(save).collect::<Vec<_>>();
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
        self.adapters.iter_mut().try_for_each(|adapter| {
            let index = adapter.part.map_or(0, |part| part.index);
            load_state(adapter, &regions[index as usize])
        })
    }
}

impl<'t, 'm, N> Cuttable<'t, SharedMachine<'m>> for InRegions<'_, '_, 't, 'm, N>
where
    N: NetworkModel<NetworkTag> + Send,
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
            adapters.iter_mut().for_each(|adapter| adapter.network.count_spans_from(cut));
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
