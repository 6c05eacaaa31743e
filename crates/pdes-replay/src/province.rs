//! Adapter between regions of a network with contention and the engine, which runs them with the ranks on their hosts.

use std::ops::Range;

use mpi_model::{Notice, RankProcess, ReplayError, Token, Work};
use netmodel::epoch::{Booking, EpochCounts, EpochMachine, EpochMail, EpochRegion};
use netmodel::{LinkLoads, RouteError};
use pdes_core::{Crossings, Fault, Filed, Outbox, Rank, Region, RegionIndex, SimTime};

use crate::Placement;
use crate::contention::{EpochSummary, HostPair, Order, SharedMachine, out_of_time};

/// Latest time of an event: work that does not end by then never ends.
const LAST: SimTime = SimTime::from_picos(u64::MAX - 1);

/// A region of a machine, as the shared resource of the ranks on its hosts.
#[derive(Debug)]
pub(crate) struct Province<'a> {
    index: RegionIndex,
    region: EpochRegion<'a, 'a, Notice>,
    placement: &'a Placement,
    /// Region of each rank.
    homes: &'a [RegionIndex],
    done: Vec<Notice>,
}

impl<'a> Province<'a> {
    /// Creates the regions `numbers` of a machine, idle.
    pub(crate) fn make(
        numbers: Range<RegionIndex>,
        machine: &'a EpochMachine<'a>,
        placement: &'a Placement,
        homes: &'a [RegionIndex],
    ) -> Vec<Self> {
        let province = |(index, region)| Self { index, region, placement, homes, done: Vec::new() };
        numbers.clone().zip(machine.parts(numbers)).map(province).collect()
    }

    /// Returns the loads of the links of all regions up to the end of a run.
    pub(crate) fn link_loads(machine: &EpochMachine<'a>, provinces: &mut [Self], end: SimTime) -> LinkLoads {
        machine.link_loads(provinces.iter_mut().map(|province| &mut province.region), end)
    }

    /// Writes the loads of the links of these regions up to the end of a run, for the process that combines those of all regions.
    pub(crate) fn write_link_loads(
        machine: &EpochMachine<'a>,
        numbers: Range<RegionIndex>,
        provinces: &mut [Self],
        end: SimTime,
    ) -> Vec<u8> {
        let regions = provinces.iter_mut().map(|province| &mut province.region);
        machine.write_link_loads(numbers, regions, end)
    }

    /// Sums up the epoch statistics of a run.
    pub(crate) fn summary(provinces: &[Self], crossings: Crossings) -> EpochSummary {
        let Crossings { boundaries, rounds, letters } = crossings;
        let mut counts = EpochCounts { boundaries, rounds, messages: letters, ..EpochCounts::default() };
        for province in provinces {
            let (settlements, evaluations) = province.region.settlements();
            counts.settlements += settlements;
            counts.evaluations += evaluations;
        }
        let violations = provinces.iter().map(|province| province.region.capacity_violation());
        EpochSummary { counts, capacity_violation: violations.fold(0.0, f64::max) }
    }
}

impl<'m> Region<RankProcess<'_, SharedMachine<'m>>> for Province<'_> {
    type Mail = EpochMail<Notice>;
    const MOST_ROUNDS: &'static [u32] = EpochRegion::<Notice>::MOST_ROUNDS;

    fn file(&mut self, filed: Filed<Order>, mail: &mut Vec<(RegionIndex, EpochMail<Notice>)>) {
        let Filed { at, place, from, order: Order { work, notice } } = filed;
        match work {
            Work::Transfer { path: HostPair { src, dst }, bytes } => {
                let booking = Booking { at, place, from, src, dst, size: bytes, tag: notice };
                self.region.send(booking, mail).expect("a rank resolves its route before it sends");
            }
            Work::Compute { rank, flops } => {
                self.region.compute(at, self.placement.host(rank), flops, notice);
            }
            Work::Sleep { duration } => self.region.wake(at.saturating_add(duration), notice),
        }
    }

    fn next(&mut self) -> Option<SimTime> {
        self.region.next_event().map(|at| at.min(LAST))
    }

    fn advance(
        &mut self,
        outbox: &mut Outbox<Token, Order>,
    ) -> Result<(), (Rank, Fault<Box<ReplayError<RouteError>>>)> {
        self.region.advance(&mut self.done);
        let at = self.region.now();
        if at >= LAST {
            return Err(out_of_time(self.region.unfinished()));
        }
        let Self { index, homes, .. } = *self;
        for notice in &self.done {
            notice.give_to(at, outbox, |rank| homes[rank.index()] == index);
        }
        self.done.clear();
        Ok(())
    }

    fn receive(&mut self, mail: EpochMail<Notice>) {
        self.region.receive(mail);
    }

    fn next_boundary(&self) -> Option<SimTime> {
        self.region.next_boundary().map(|at| at.min(LAST))
    }

    fn converse(
        &mut self,
        boundary: SimTime,
        conversation: u32,
        round: u32,
        mail: &mut Vec<(RegionIndex, EpochMail<Notice>)>,
    ) {
        self.region.converse(boundary, conversation, round, mail);
    }

    fn enter(&mut self, boundary: SimTime) {
        self.region.enter(boundary);
    }
}
