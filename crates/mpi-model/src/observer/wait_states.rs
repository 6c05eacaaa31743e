//! Wait states: separates waiting for a rank from waiting for data (transfer), by the time at which the peer was ready.

use pdes_core::{Rank, SimDuration, SimTime, State, StateVisitor};
use serde::{Deserialize, Serialize};
use trace_mmap::LocationId;

use super::request_table::RequestTable;
use super::{ActionSpan, Carrier, Match, ObservedRank, Observer, Sent, Wait};
use crate::cause::{Activity, Cause};
use crate::point_to_point::{OperationIndex, RequestId};
use crate::statistics::ActionKind;
use crate::token::Message;
use crate::wait_state::WaitState;

/// Peers of the requests of a rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WaitStates {
    peers: RequestTable<Peer>,
    /// Last peer for which each non-blocking operation waited: the one for which the program will wait. Before the first one, the cause
    /// is that of the rank's lateness at the start of the operation: what the program does meanwhile does not delay it.
    of_operations: Vec<Peer>,
    /// Non-blocking operation that runs now.
    operation: Option<OperationIndex>,
    /// Last peer of requests that are being completed together.
    last: Peer,
    /// Last waits of the program for late messages, in whose place it could have received what it receives later.
    late: Vec<LateMessage>,
    /// Activity that makes the rank late, on request.
    activity: Option<Activity>,
}

/// Wait for a message that has been sent late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, State)]
pub(crate) struct LateMessage {
    /// The sender.
    pub(crate) from: Rank,
    /// Begin of the wait.
    pub(crate) begin: SimTime,
    /// Time at which this message was sent, or the first one that is known to have been sent before.
    pub(crate) sent: SimTime,
    /// Kind of the action that waited.
    #[state(plain)]
    pub(crate) kind: ActionKind,
    /// Index of its region in the breakdown.
    pub(crate) region: usize,
    /// Number of actions since then.
    pub(crate) age: u8,
}

/// Largest number of actions between a late message and one that was sent before.
const MAX_AGE: u8 = 64;
/// Number of late messages that are kept, the last ones.
const MAX_LATE: usize = 8;

/// Peer of a request. The greatest is the last one to be ready, which counts where several requests are completed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Peer {
    /// Time at which it was ready: it had sent its message, or posted its receive.
    pub ready: SimTime,
    /// Wait state of waiting for it.
    pub state: WaitState,
    /// The peer, where it was late: where `ready` is after the begin of the wait.
    pub rank: Rank,
    /// Cause of its lateness.
    pub cause: Cause,
}

/// A peer that has always been ready.
impl Default for Peer {
    fn default() -> Self {
        Self {
            ready: SimTime::ZERO,
            state: WaitState::LateSender,
            rank: Rank::new(0),
            cause: Cause::default(),
        }
    }
}

impl Peer {
    fn sender(message: &Message) -> Self {
        Self { ready: message.posted, cause: message.cause, ..Self::default() }
    }
}

impl Peer {
    /// Visits a peer: one that was ready before `past` is not waited for. The cause may also be that of a post.
    fn visit(&mut self, past: SimTime, visitor: &mut StateVisitor<'_>) {
        let Self { ready, state, rank, cause } = self;
        visitor.compare(cause);
        if visitor.time_from(past, ready) {
            visitor.compare(&(state, rank));
        }
    }
}

impl WaitStates {
    /// Visits the state; times before `past` make no difference. Compared are the peers of those requests and operations that matter.
    pub(super) fn visit(
        &mut self,
        past: SimTime,
        requests: &[RequestId],
        operations: impl Iterator<Item = OperationIndex>,
        visitor: &mut StateVisitor<'_>,
    ) {
        if visitor.is_saving() || visitor.is_loading() {
            visitor.saved(self);
            return;
        }
        let Self { peers, of_operations, operation: _, last: _, late, activity } = self;
        visitor.compare(activity);
        late.visit(visitor);
        if visitor.is_repeating() {
            peers.iter_mut().chain(of_operations).for_each(|peer| peer.visit(past, visitor));
            return;
        }
        requests.iter().for_each(|&request| peers.get_mut(request).visit(past, visitor));
        for operation in operations {
            self.of_operation(operation).visit(past, visitor);
        }
    }

    pub(super) fn new(rank: &ObservedRank<'_>, needs_causes: bool) -> Self {
        Self {
            peers: RequestTable::new(rank),
            of_operations: Vec::new(),
            operation: None,
            last: Peer::default(),
            late: Vec::new(),
            activity: needs_causes.then(|| Activity::of_rank(rank.rank)),
        }
    }

    /// Returns the last late messages, whose order matters for what is to come.
    #[inline]
    pub(super) fn late(&self) -> &[LateMessage] {
        &self.late
    }

    /// Returns the cause of the lateness of the current thread of control, where that is needed.
    #[inline]
    pub(super) fn cause(&self) -> Cause {
        match (self.activity, self.operation) {
            (Some(_), Some(operation)) => self.of_operation(operation).cause,
            (Some(activity), None) => activity.cause,
            (None, _) => Cause::default(),
        }
    }

    /// Returns the cause of the lateness with which a pending receive has been posted, where that is needed.
    #[inline]
    pub(super) fn cause_of_post(&self, request: RequestId) -> Cause {
        if self.activity.is_some() { self.get(request).cause } else { Cause::default() }
    }

    /// The program receives the message of one request: tells the late messages for which it waited before, each with the time for which
    /// it would not have waited if it had received this one first. The next message of its sender has been sent later, and ends the
    /// comparison.
    #[cold]
    pub(super) fn received_later(
        &mut self,
        request: RequestId,
        kind: ActionKind,
        mut tell: impl FnMut(&LateMessage, SimDuration),
    ) {
        if kind >= ActionKind::Barrier || self.operation.is_some() {
            return;
        }
        let Peer { ready, rank, .. } = self.get(request);
        self.late.retain_mut(|late| {
            if late.from == rank {
                return false;
            }
            let sent = ready.max(late.begin);
            if let Some(time) = late.sent.checked_since(sent) {
                tell(late, time);
                late.sent = sent;
            }
            late.sent > late.begin
        });
    }

    /// Returns the peer of a complete request. A request without a match has none.
    #[inline]
    pub(crate) fn get(&self, request: RequestId) -> Peer {
        self.peers.get(request).copied().unwrap_or_default()
    }

    /// Returns the last peer for which a non-blocking operation waited.
    fn of_operation(&self, operation: OperationIndex) -> Peer {
        self.of_operations.get(operation.index()).copied().unwrap_or_default()
    }

    /// Returns whether the program is the current thread of control.
    pub(super) fn is_in_program(&self) -> bool {
        self.operation.is_none()
    }

    /// Returns the peer for which the program has waited; a non-blocking operation only keeps it.
    #[inline(always)]
    pub(super) fn classify(&mut self, wait: &Wait, region: usize) -> Option<Peer> {
        let Peer { ready, state, rank, cause } = wait.request.map_or(self.last, |request| self.get(request));
        let (ready, state) = (ready.max(wait.begin).min(wait.end), state.in_operation(wait.kind));
        let peer = Peer { ready, state, rank, cause };
        let Some(operation) = self.operation else {
            if let Some(activity) = &mut self.activity {
                activity.wait(ready - wait.begin, cause);
            }
            if state == WaitState::LateSender && ready > wait.begin {
                if self.late.len() == MAX_LATE {
                    self.late.remove(0);
                }
                self.late.push(LateMessage {
                    from: rank,
                    begin: wait.begin,
                    sent: ready,
                    kind: wait.kind,
                    region,
                    age: 0,
                });
            }
            return Some(peer);
        };
        if ready > wait.begin {
            self.keep_last(operation, peer);
        }
        None
    }

    /// The program uses messages before it receives others: after a computation or a collective operation, and after many calls, the
    /// order does not matter any more. Call sites are no calls.
    #[cold]
    fn age_late_messages(&mut self, kind: ActionKind) {
        if kind == ActionKind::Marker {
            return;
        }
        let is_message = kind < ActionKind::Barrier;
        if !is_message || matches!(kind, ActionKind::Compute | ActionKind::Sleep) {
            self.late.clear();
        }
        self.late.retain_mut(|late| {
            late.age += 1;
            late.age <= MAX_AGE
        });
    }

    #[cold]
    fn keep_last(&mut self, operation: OperationIndex, peer: Peer) {
        let last = &mut self.of_operations[operation.index()];
        *last = peer.max(*last);
    }
}

impl Observer for WaitStates {
    #[inline]
    fn action_ended(&mut self, action: &ActionSpan) {
        if let Some(activity) = &mut self.activity {
            activity.end(action.kind, action.end - action.begin);
        }
        if !self.late.is_empty() {
            self.age_late_messages(action.kind);
        }
    }

    fn region_entered(&mut self, site: LocationId) {
        if let Some(activity) = &mut self.activity {
            activity.enter(site);
        }
    }

    #[inline]
    fn completing(&mut self, later: impl Iterator<Item = (SimTime, RequestId)> + Clone) {
        let peers = later.map(|(at, request)| {
            let peer = self.get(request);
            Peer { ready: peer.ready.min(at), ..peer }
        });
        self.last = peers.max().unwrap_or_default();
    }

    #[inline(always)]
    fn message_sent(&mut self, sent: &Sent, _: &mut dyn Carrier) {
        if sent.message.reply.is_some() {
            *self.peers.get_mut(sent.request) = Peer { rank: sent.to, ..Peer::default() };
        }
    }

    /// Keeps the cause of the lateness until the message takes its place.
    #[inline(always)]
    fn receive_posted(&mut self, request: RequestId, _: SimTime) {
        if self.activity.is_some() {
            *self.peers.get_mut(request) = Peer { cause: self.cause(), ..Peer::default() };
        }
    }

    #[inline(always)]
    fn message_matched(&mut self, matched: &Match<'_>, _: &mut dyn Carrier) {
        *self.peers.get_mut(matched.request) = Peer { rank: matched.from, ..Peer::sender(matched.message) };
    }

    fn message_probed(&mut self, request: RequestId, from: Rank, _: crate::ReceiveQueue, message: &Message) {
        *self.peers.get_mut(request) = Peer { rank: from, ..Peer::sender(message) };
    }

    #[inline(always)]
    fn send_completed(&mut self, request: RequestId, received: SimTime, cause: Cause) {
        let peer = self.peers.get_mut(request);
        *peer = Peer { ready: received, state: WaitState::LateReceiver, cause, ..*peer };
    }

    /// The time is later than that at which the member sent it, by the duration of the data.
    fn time_received(&mut self, from: Rank, message: &Message, request: RequestId) {
        let delay = SimDuration::from_picos(message.bytes.get());
        let since_start = message.posted.checked_since(SimTime::ZERO + delay).unwrap_or(SimDuration::ZERO);
        *self.peers.get_mut(request) =
            Peer { ready: SimTime::ZERO + since_start, rank: from, ..Peer::sender(message) };
    }

    fn operation_started(&mut self, operation: OperationIndex) {
        if self.of_operations.len() <= operation.index() {
            self.of_operations.resize(operation.index() + 1, Peer::default());
        }
        let cause = self.activity.map_or(Cause::default(), |activity| activity.cause);
        self.of_operations[operation.index()] = Peer { cause, ..Peer::default() };
    }

    fn operation_resumed(&mut self, operation: OperationIndex) {
        self.operation = Some(operation);
    }

    fn operation_paused(&mut self, _: OperationIndex) {
        self.operation = None;
    }

    fn operation_ended(&mut self, operation: OperationIndex, request: RequestId) {
        *self.peers.get_mut(request) = self.of_operations[operation.index()];
    }
}
