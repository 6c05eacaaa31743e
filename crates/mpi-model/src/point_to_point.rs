//! Point-to-point messages of a rank: sends and receives, their matching and their protocols, and the requests that they complete.

mod arrival;
mod eager;
mod mailbox;
mod matching;
mod one_sided;
mod persistent;
mod probe;
mod progress;
mod protocol;
mod receive;
mod request;
mod send;
mod settle;
mod slab_queue;
mod slot_map;
mod status;
mod tag;
mod times;
mod transfer;

use std::collections::{BTreeMap, VecDeque};

use pdes_core::{Bytes, Rank, SimTime, StateVisitor};
use trace_mmap::{CommId, Slot, Source};

use crate::collective::runner::{OperationCounts, operations_on};
use crate::context::{Failure, RankContext, RankOutbox};
use crate::error::ReplayErrorKind;
use crate::machine::{Machine, UncontendedTransfer};
use crate::observer::{Analysis, Network};
use crate::parameters::{Outcomes, Parameters, Progress};
use crate::replay::Replay;
use crate::source::Reply;
use crate::token::Token;
use eager::EagerMessages;
use mailbox::Mailbox;
use matching::{Port, Ports};
pub(crate) use matching::{Receive, UnexpectedMessage};
pub(crate) use one_sided::arrived as put_arrived;
pub(crate) use persistent::Persistent;
pub(crate) use progress::AwaitedByCall;
use progress::CallProgress;
pub use request::{Awaited, OperationIndex, RequestId};
pub(crate) use request::{Request, RequestCompletion, Requests};
pub(crate) use slot_map::SlotMap;
pub use status::Status;
pub(crate) use status::Statuses;
pub(crate) use tag::{EXPOSURE, MessageClass, ONE_SIDED, kind_of, number_of, operation_tag, relative_to};

/// Point-to-point messages of a rank: its requests, and the queues and the routes of its messages.
pub(crate) struct PointToPoint<'t, M: Machine, A: Analysis> {
    replay: &'t Replay<'t, M, A>,
    me: Rank,
    pub(crate) requests: Requests,
    pub(crate) ports: Ports<M::Route>,
    /// Routes to other ranks, looked up by operations in closed form and for critical paths.
    routes: BTreeMap<Rank, M::Route>,
    /// Queues of all messages and receives of this rank, where it receives from any source.
    pub(crate) mailbox: Option<Box<Mailbox>>,
    /// Calls in which data move, where they do so inside calls only.
    pub(crate) progress: Option<Box<CallProgress>>,
    /// There is a mailbox, or data move inside calls only.
    pub(crate) depends_on_time: bool,
    /// Source of the outcomes of this rank.
    outcomes: Outcomes,
    /// Receives and probes from any source had several sources in the recorded run, and outcomes are to be reenacted.
    has_kept_sources: bool,
    /// Map from the slots of the trace to requests, where it is not the identity.
    slot_map: Option<Box<SlotMap>>,
    /// What a program that runs is told of its messages.
    pub(crate) statuses: Option<Box<Statuses>>,
    /// State that most ranks never need: there may be millions of ranks.
    cold: Option<Box<ColdState<M>>>,
}

/// State that only some calls, errors and machines need.
struct ColdState<M: Machine> {
    eager_messages: EagerMessages,
    /// Failures of messages that arrived before their receives were posted; see [`Token::MatchError`].
    match_errors: VecDeque<Failure<M::Error>>,
    /// By the slots of the trace, whose requests may change places.
    persistent: BTreeMap<Slot, Persistent>,
    /// Announcements to be dropped when they arrive, by port and tag.
    ignored_announcements: Vec<(usize, u32)>,
}

/// A message of a collective operation, as one side sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CollectiveMessage {
    /// The other side.
    pub(crate) peer: Rank,
    pub(crate) communicator: CommId,
    pub(crate) tag: u32,
    /// Size of the message, or of the buffer.
    pub(crate) bytes: Bytes,
}

impl<'t, M: Machine, A: Analysis> PointToPoint<'t, M, A> {
    /// Returns what a program that runs is told of its requests.
    pub(crate) fn reply(&self, clock: SimTime) -> Reply<'_> {
        let (requests, statuses) = (&self.requests, self.statuses.as_deref());
        Reply { clock, requests, statuses, found: None, quiet: None }
    }

    /// Creates the ports of the incoming channels of a rank.
    ///
    /// # Errors
    /// A peer has no route to the rank.
    pub(crate) fn new(replay: &'t Replay<'t, M, A>, me: Rank) -> Result<Self, ReplayErrorKind<M::Error>> {
        let trace = replay.trace.rank(me);
        let mut peers = vec![None; trace.ports() as usize];
        for incoming in trace.incoming() {
            peers[incoming.port.index()] = Some(incoming.peer);
        }
        let mut ports = Vec::with_capacity(peers.len());
        for peer in peers {
            let peer = peer.expect("every port belongs to an incoming channel");
            let route = replay.is_placed().then(|| route(replay.machine, peer, me)).transpose()?;
            ports.push(Port::new(peer, route));
        }
        let (has_mailbox, in_calls) =
            (trace.has_timing_dependent_matching(), replay.parameters.progress == Progress::Calls);
        let is_reenacted = replay.parameters.outcomes == Outcomes::Reenact;
        let has_kept_sources = is_reenacted && has_mailbox && trace.recorded_sources().len() > 1;
        // All outcomes of a rank come from one run: what it does after one depends on those before.
        let is_kept = has_kept_sources && trace.depends_on_sources();
        // A program that runs has no recorded outcomes.
        let outcomes = if trace.grows() { Outcomes::Reenact } else { replay.parameters.outcomes };
        Ok(Self {
            replay,
            me,
            outcomes: if is_kept { Outcomes::Recorded } else { outcomes },
            has_kept_sources,
            requests: Requests::new(trace.slots()),
            ports: Ports::new(ports),
            routes: BTreeMap::new(),
            mailbox: has_mailbox.then(|| Box::new(Mailbox::new(trace))),
            progress: in_calls.then(Box::default),
            depends_on_time: has_mailbox || in_calls,
            slot_map: None,
            statuses: trace.grows().then(Box::default),
            cold: None,
        })
    }

    pub(crate) fn parameters(&self) -> &'t Parameters {
        self.replay.parameters
    }

    pub(crate) fn is_reenacted(&self) -> bool {
        self.outcomes == Outcomes::Reenact
    }

    /// Counts a receive or a probe that keeps the recorded source, if it does so because the program depends on it; returns whether it
    /// does.
    pub(crate) fn count_kept_source(&self, context: &mut RankContext<'t, M, A>, from: Source) -> bool {
        let is_kept = self.has_kept_sources && matches!(from, Source::Any { recorded: Some(_), .. });
        if is_kept {
            context.observers.statistics.add_kept_source();
        }
        is_kept
    }

    /// Returns the request of a slot of the trace.
    #[inline]
    pub(crate) fn request(&self, slot: Slot) -> RequestId {
        self.requests.slot(self.slot_map.as_ref().map_or(slot, |places| places.get(slot)))
    }

    pub(crate) fn slot_map(&mut self) -> &mut SlotMap {
        self.slot_map.get_or_insert_default()
    }

    fn cold(&mut self) -> &mut ColdState<M> {
        self.cold.get_or_insert_default()
    }

    /// Defers a failure that may lie after the clock; see [`Token::MatchError`].
    #[cold]
    fn defer_failure(&mut self, failure: Failure<M::Error>, outbox: &mut RankOutbox<'_, M>) {
        self.cold().match_errors.push_back(failure);
        outbox.send(self.me, Token::MatchError);
    }

    /// Takes the failure that has been deferred first.
    pub(crate) fn take_failure(&mut self) -> Option<Failure<M::Error>> {
        self.cold().match_errors.pop_front()
    }

    /// Visits the state; times before `past` make no difference. Returns the requests whose other sides make one, for a visitor that
    /// observes. A rank that is known to fail refuses.
    pub(crate) fn visit(
        &mut self,
        past: SimTime,
        counts: &OperationCounts,
        counts_messages: bool,
        visitor: &mut StateVisitor<'_>,
    ) -> Vec<RequestId> {
        let has_receives = self.has_receives();
        let Self {
            replay,
            me,
            requests,
            ports,
            // Routes are looked up again.
            routes: _,
            mailbox,
            progress,
            depends_on_time: _,
            outcomes: _,
            has_kept_sources: _,
            slot_map,
            // A program that runs refuses.
            statuses: _,
            cold,
        } = self;
        let matter = requests.visit(past, visitor);
        let relative_tag = |tag: u32, id: CommId, visitor: &mut StateVisitor<'_>| {
            relative_to(tag, visitor.first_on(operations_on(id), counts.on(id)))
        };
        // What is counted of a message depends on when it was sent.
        let past = if counts_messages { SimTime::ZERO } else { past };
        let (lp, of_trace) = (replay.lp(*me), replay.trace.rank(*me).ports());
        let path = |peer| route(replay.machine, peer, *me);
        ports.visit((lp, of_trace, past), relative_tag, path, visitor);
        visitor.context(mailbox.is_some());
        mailbox.iter_mut().for_each(|mailbox| mailbox.visit(lp, visitor));
        visitor.context(progress.is_some());
        progress.iter_mut().for_each(|progress| progress.visit(has_receives, visitor));
        visitor.plain(slot_map);
        let mut is_cold = cold.is_some();
        visitor.plain(&mut is_cold);
        if !is_cold {
            return matter;
        }
        let ColdState { eager_messages, match_errors, persistent, ignored_announcements } =
            &mut **cold.get_or_insert_default();
        if !match_errors.is_empty() {
            visitor.refuse();
        }
        eager_messages.visit(lp, visitor);
        visitor.plain(persistent);
        visitor.saved(ignored_announcements);
        for &mut (port, tag) in ignored_announcements {
            let tag = ports.collective_of(port).map_or(tag, |id| relative_tag(tag, id, visitor));
            visitor.compare(&(port, tag));
        }
        matter
    }

    /// Returns the route of a port, looked up on first use.
    fn route_of_port(
        &mut self,
        context: &RankContext<'t, M, A>,
        port: usize,
    ) -> Result<M::Route, Failure<M::Error>> {
        let Port { peer, route: known, .. } = *self.ports.get(port);
        if let Some(route) = known {
            return Ok(route);
        }
        let route = route(self.replay.machine, peer, self.me).map_err(|kind| context.fail(kind))?;
        self.ports.get_mut(port).route = Some(route);
        Ok(route)
    }

    /// Returns the route to a rank, looked up on first use.
    pub(crate) fn route_to(&mut self, to: Rank) -> Result<M::Route, ReplayErrorKind<M::Error>> {
        if let Some(route) = self.routes.get(&to) {
            return Ok(*route);
        }
        let route = route(self.replay.machine, self.me, to)?;
        self.routes.insert(to, route);
        Ok(route)
    }
}

impl<M: Machine> Default for ColdState<M> {
    fn default() -> Self {
        Self {
            eager_messages: EagerMessages::default(),
            match_errors: VecDeque::new(),
            persistent: BTreeMap::new(),
            ignored_announcements: Vec::new(),
        }
    }
}

/// Times are those at the begin of a run: an analysis that asks for them is for machines that do not change.
impl<M: Machine, A: Analysis> Network for PointToPoint<'_, M, A> {
    fn uncontended_from(&mut self, port: usize, bytes: Bytes) -> UncontendedTransfer {
        let route = self.ports.get(port).route;
        let machine = self.replay.machine;
        route.map_or(UncontendedTransfer::default(), |route| machine.uncontended(route, bytes, SimTime::ZERO))
    }

    fn uncontended_to(&mut self, to: Rank, bytes: Bytes) -> UncontendedTransfer {
        let route = self.route_to(to);
        let machine = self.replay.machine;
        route.map_or(UncontendedTransfer::default(), |route| machine.uncontended(route, bytes, SimTime::ZERO))
    }
}

fn route<M: Machine>(machine: &M, from: Rank, to: Rank) -> Result<M::Route, ReplayErrorKind<M::Error>> {
    machine.route(from, to).map_err(|source| ReplayErrorKind::NoRoute { from, to, source })
}
