//! Point-to-point messages of a rank: sends and receives, their matching and their protocols, and the requests that they complete.

mod arrival;
mod eager;
mod mailbox;
mod matching;
mod persistent;
mod probe;
mod progress;
mod receive;
mod recurrence;
mod request;
mod send;
mod settle;
mod slab_queue;
mod slot_map;
mod tag;
mod times;
mod transfer;

use std::collections::{BTreeMap, VecDeque};

use pdes_core::{Bytes, Rank, SimDuration};
use serde::{Deserialize, Serialize};
use trace_mmap::{CommId, Slot, Source};

use crate::context::{Failure, RankContext, RankOutbox};
use crate::error::ReplayErrorKind;
use crate::machine::{Machine, UncontendedTransfer};
use crate::observer::{Analysis, Network};
use crate::parameters::{Outcomes, Parameters, Progress};
use crate::replay::Replay;
use crate::token::Token;
use eager::EagerMessages;
use mailbox::Mailbox;
pub(crate) use matching::{Departure, Receive, UnexpectedMessage};
use matching::{Port, Ports, QueuedItems};
pub(crate) use persistent::Persistent;
pub(crate) use progress::AwaitedByCall;
use progress::CallProgress;
pub(crate) use recurrence::write_peer;
pub use request::{Awaited, OperationIndex, RequestId};
pub(crate) use request::{Request, RequestCompletion, Requests};
pub(crate) use slot_map::SlotMap;
pub(crate) use tag::{MessageClass, kind_of, number_of, operation_tag, relative_to};

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
    /// State that most ranks never need: there may be millions of ranks.
    cold: Option<Box<ColdState<M>>>,
}

/// State that only some calls, errors and machines need.
struct ColdState<M: Machine> {
    eager_messages: EagerMessages,
    /// Failures of messages that arrived before their receives were posted; see [`Token::MatchError`].
    match_errors: VecDeque<Failure<M::Error>>,
    persistent: BTreeMap<RequestId, Persistent>,
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

/// State of the point-to-point messages of a rank between two turns. Routes are looked up again.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedMessages {
    requests: Requests,
    queued: QueuedItems,
    mailbox: Option<Box<Mailbox>>,
    progress: Option<Box<CallProgress>>,
    slot_map: Option<Box<SlotMap>>,
    persistent: BTreeMap<RequestId, Persistent>,
    ignored_announcements: Vec<(usize, u32)>,
    eager_messages: EagerMessages,
}

impl<'t, M: Machine, A: Analysis> PointToPoint<'t, M, A> {
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
            ports.push(Port::new(peer, Some(route(replay.machine, peer, me)?)));
        }
        let mailbox = || Box::new(Mailbox::new(trace.cancels_receives() || trace.graph().is_some()));
        let (has_mailbox, in_calls) =
            (trace.has_timing_dependent_matching(), replay.parameters.progress == Progress::Calls);
        let is_reenacted = replay.parameters.outcomes == Outcomes::Reenact;
        let has_kept_sources = is_reenacted && has_mailbox && trace.recorded_sources().len() > 1;
        // All outcomes of a rank come from one run: what it does after one depends on those before.
        let is_kept = has_kept_sources && trace.depends_on_sources();
        Ok(Self {
            replay,
            me,
            outcomes: if is_kept { Outcomes::Recorded } else { replay.parameters.outcomes },
            has_kept_sources,
            requests: Requests::new(trace.slots()),
            ports: Ports::new(ports),
            routes: BTreeMap::new(),
            mailbox: has_mailbox.then(mailbox),
            progress: in_calls.then(Box::default),
            depends_on_time: has_mailbox || in_calls,
            slot_map: None,
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

    pub(crate) fn is_detached(&self, bytes: Bytes) -> bool {
        bytes < self.replay.parameters.detached_below
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
    fn defer_failure(&mut self, failure: Failure<M::Error>, outbox: &mut RankOutbox<M>) {
        self.cold().match_errors.push_back(failure);
        outbox.send(self.me, Token::MatchError);
    }

    /// Takes the failure that has been deferred first.
    pub(crate) fn take_failure(&mut self) -> Option<Failure<M::Error>> {
        self.cold().match_errors.pop_front()
    }

    /// Returns whether all later behaviour follows from requests and from the queues of ports.
    pub(crate) fn is_simple(&self) -> bool {
        self.mailbox.is_none()
            && self.progress.as_ref().is_none_or(|progress| progress.is_simple(self.has_receives()))
            && self.slot_map.as_ref().is_none_or(|places| places.is_identity())
            && self
                .cold
                .as_ref()
                .is_none_or(|cold| cold.match_errors.is_empty() && cold.ignored_announcements.is_empty())
    }

    /// Shifts all requests and queued items in time, and receives by `actions` actions of their rank.
    pub(crate) fn shift_time(&mut self, time: SimDuration, actions: u64) {
        self.requests.shift_time(time);
        self.ports.shift_time(time, actions);
        if let Some(mailbox) = &mut self.mailbox {
            mailbox.shift_time(time);
        }
        if let Some(progress) = &mut self.progress {
            progress.shift_time(time, actions);
        }
        if let Some(cold) = &mut self.cold {
            cold.eager_messages.shift_time(time);
        }
    }

    /// Returns the state between two turns; `None` where the rank is known to fail.
    pub(crate) fn save(&self, context: &RankContext<'t, M, A>) -> Option<SavedMessages> {
        let cold = self.cold.as_deref();
        if cold.is_some_and(|cold| !cold.match_errors.is_empty()) {
            return None;
        }
        Some(SavedMessages {
            requests: self.requests.clone(),
            queued: self.ports.save(context.trace.ports()),
            mailbox: self.mailbox.clone(),
            progress: self.progress.clone(),
            slot_map: self.slot_map.clone(),
            persistent: cold.map_or_else(BTreeMap::new, |cold| cold.persistent.clone()),
            ignored_announcements: cold.map_or_else(Vec::new, |cold| cold.ignored_announcements.clone()),
            eager_messages: cold.map_or_else(EagerMessages::default, |cold| cold.eager_messages.clone()),
        })
    }

    /// Restores a state of a rank that has done nothing yet; returns whether it is one of this rank.
    ///
    /// # Errors
    /// A sender of a queued message has no route to the rank.
    pub(crate) fn restore(&mut self, state: SavedMessages) -> Result<bool, ReplayErrorKind<M::Error>> {
        let SavedMessages {
            requests,
            queued,
            mailbox,
            progress,
            slot_map,
            persistent,
            ignored_announcements,
            eager_messages,
        } = state;
        let (machine, me) = (self.replay.machine, self.me);
        let is_own = requests.slots() == self.requests.slots()
            && mailbox.is_some() == self.mailbox.is_some()
            && progress.is_some() == self.progress.is_some();
        if !is_own || !self.ports.restore(&queued, |peer| route(machine, peer, me))? {
            return Ok(false);
        }
        (self.requests, self.mailbox, self.slot_map) = (requests, mailbox, slot_map);
        self.progress = progress;
        if !persistent.is_empty() || !ignored_announcements.is_empty() || eager_messages.started() > 0 {
            let match_errors = VecDeque::new();
            self.cold =
                Some(Box::new(ColdState { eager_messages, match_errors, persistent, ignored_announcements }));
        }
        Ok(true)
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

impl<M: Machine, A: Analysis> Network for PointToPoint<'_, M, A> {
    fn uncontended_from(&mut self, port: usize, bytes: Bytes) -> UncontendedTransfer {
        let route = self.ports.get(port).route;
        route.map_or(UncontendedTransfer::default(), |route| self.replay.machine.uncontended(route, bytes))
    }

    fn uncontended_to(&mut self, to: Rank, bytes: Bytes) -> UncontendedTransfer {
        let route = self.route_to(to);
        route.map_or(UncontendedTransfer::default(), |route| self.replay.machine.uncontended(route, bytes))
    }
}

fn route<M: Machine>(machine: &M, from: Rank, to: Rank) -> Result<M::Route, ReplayErrorKind<M::Error>> {
    machine.route(from, to).map_err(|source| ReplayErrorKind::NoRoute { from, to, source })
}
