//! Adapter between regions of a network with contention and the engine, which runs them with the ranks on their hosts.

use mpi_model::{Completion, RankProcess, ReplayError, Token, Work};
use netmodel::epoch::{EpochCounts, EpochRegion, EpochSummary};
use netmodel::{Message, NetworkRegion, RouteError};
use pdes_core::{ExchangeCounts, Fault, Outbox, Rank, Region, RegionIndex, SimTime, SubmittedWork};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Placement;
use crate::contention::{HostPair, SharedMachine, WorkRequest, end_of_time_error};

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
    /// Work that came too late.
    late: Option<(SimTime, Rank)>,
}

impl<'a, N> RegionAdapter<'a, N> {
    /// Adapts regions whose numbers begin with `first`.
    pub(crate) fn adapt_all(
        first: RegionIndex,
        regions: Vec<N>,
        placement: &'a Placement,
        homes: &'a [RegionIndex],
    ) -> Vec<Self> {
        let adapter =
            |(index, region)| Self { index, region, placement, homes, completions: Vec::new(), late: None };
        (first..).zip(regions).map(adapter).collect()
    }

    /// Returns the regions.
    pub(crate) fn regions(adapters: &mut [Self]) -> impl Iterator<Item = &mut N> {
        adapters.iter_mut().map(|adapter| &mut adapter.region)
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
            Work::Access(_) => unreachable!("a replay with files runs in time order"),
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
        boundary: SimTime,
        exchange: u32,
        round: u32,
        outgoing: &mut Vec<(RegionIndex, N::Message)>,
    ) {
        self.region.exchange_round(boundary, exchange, round, outgoing);
    }

    fn begin_epoch(&mut self, boundary: SimTime) {
        self.region.begin_span(boundary);
    }

    fn late_work(&self) -> Option<(SimTime, Rank)> {
        self.late
    }
}
