//! The machine whose links and cores are shared, and the arbiter that shares them out in the order of time.

use mpi_model::{Machine, Notice, RankProcess, ReplayError, ReplayErrorKind, Token, Work};
use netmodel::{FlowNetwork, HostId, LogGps, NetworkParameters, Platform, RouteError};
use pdes_core::{Arbiter, Bytes, Fault, Outbox, Rank, SimDuration, SimTime};

use crate::Placement;

/// A platform on which ranks are placed, with contention: all work is ordered from a [`Contention`].
#[derive(Debug)]
pub struct SharedMachine<'a> {
    platform: &'a Platform,
    placement: &'a Placement,
    /// What a message costs alone.
    alone: LogGps,
}

/// The hosts at the ends of a message's way.
#[derive(Clone, Copy, Debug)]
pub struct HostPair {
    src: HostId,
    dst: HostId,
}

/// Work on a machine, and who waits for its end.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    work: Work<HostPair>,
    notice: Notice,
}

impl<'a> SharedMachine<'a> {
    /// Places ranks on a platform.
    pub fn new(platform: &'a Platform, placement: &'a Placement, parameters: &NetworkParameters) -> Self {
        Self { platform, placement, alone: LogGps::new(parameters) }
    }
}

impl Machine for SharedMachine<'_> {
    type Path = HostPair;
    type Order = Order;
    type Error = RouteError;

    fn path(&self, from: Rank, to: Rank) -> Result<HostPair, RouteError> {
        let pair = HostPair { src: self.placement.host(from), dst: self.placement.host(to) };
        self.platform.route(pair.src, pair.dst, &mut Vec::new()).map(|()| pair)
    }

    #[inline]
    fn order(&self, work: Work<HostPair>, notice: Notice) -> Option<Order> {
        Some(Order { work, notice })
    }

    fn transfer(&self, HostPair { src, dst }: HostPair, bytes: Bytes) -> Option<SimDuration> {
        let path = self.alone.path(self.platform, src, dst).ok()?;
        self.alone.try_duration(path, bytes)
    }

    fn speed(&self, rank: Rank) -> f64 {
        self.platform.host(self.placement.host(rank)).speed
    }

    fn node(&self, rank: Rank) -> u32 {
        self.placement.host(rank).get()
    }
}

/// The network and the cores of a [`SharedMachine`] at work.
#[derive(Debug)]
pub struct Contention<'a> {
    network: FlowNetwork<'a, Notice>,
    placement: &'a Placement,
    done: Vec<Notice>,
}

impl<'a> Contention<'a> {
    /// Makes the idle network of a machine.
    pub fn new(machine: &SharedMachine<'a>, parameters: &NetworkParameters) -> Self {
        let &SharedMachine { platform, placement, .. } = machine;
        Self { network: FlowNetwork::new(platform, parameters), placement, done: Vec::new() }
    }
}

impl<'t, 'a> Arbiter<RankProcess<'t, SharedMachine<'a>>> for Contention<'a> {
    #[inline]
    fn file(&mut self, _: Rank, at: SimTime, order: Order) {
        let Order { work, notice } = order;
        match work {
            Work::Transfer { path: HostPair { src, dst }, bytes } => {
                let sent = self.network.send(at, src, dst, bytes, notice);
                sent.expect("a rank looks for the way before it sends");
            }
            Work::Compute { rank, flops } => {
                self.network.compute(at, self.placement.host(rank), flops, notice);
            }
            Work::Sleep { duration } => self.network.wake(at.saturating_add(duration), notice),
        }
    }

    #[inline]
    fn next(&mut self) -> Option<SimTime> {
        self.network.next_event()
    }

    fn advance(
        &mut self,
        outbox: &mut Outbox<Token, Order>,
    ) -> Result<(), (Rank, Fault<Box<ReplayError<RouteError>>>)> {
        self.network.advance(&mut self.done);
        let at = self.network.now();
        if at == SimTime::MAX {
            return Err(self.out_of_time());
        }
        for notice in self.done.drain(..) {
            notice.give(at, outbox);
        }
        Ok(())
    }
}

impl Contention<'_> {
    /// The failure of whatever would end after the end of time.
    fn out_of_time(&mut self) -> (Rank, Fault<Box<ReplayError<RouteError>>>) {
        let ranks = self.network.unfinished().map(Notice::rank_concerned);
        let rank = ranks.min().unwrap_or(Rank::new(0));
        let kind = ReplayErrorKind::TooLong {
            what: "a message, a computation or a sleep",
            amount: "this rank, or what is left of it,".to_owned(),
        };
        let error = Box::new(ReplayError { rank, action: 0, kind });
        (rank, Fault { at: SimTime::MAX, order: 0, error })
    }
}
