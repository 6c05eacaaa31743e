//! Wait states: separates waiting for a rank from waiting for data (transfer), by the time at which the peer was ready.

use pdes_core::{Rank, SimDuration, SimTime};
use serde::{Deserialize, Serialize};

use super::request_table::RequestTable;
use super::{Carrier, Match, ObservedRank, Observer, Sent, Wait};
use crate::point_to_point::{OperationIndex, RequestId};
use crate::token::Message;
use crate::wait_state::WaitState;

/// Peers of the requests of a rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WaitStates {
    peers: RequestTable<Peer>,
    /// Last peer for which each non-blocking operation waited: the one for which the program will wait.
    of_operations: Vec<Peer>,
    /// Non-blocking operation that runs now.
    operation: Option<OperationIndex>,
    /// Last peer of requests that are being completed together.
    last: Peer,
}

/// Peer of a request. The greatest is the last one to be ready, which counts where several requests are completed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Peer {
    /// Time at which it was ready: it had sent its message, or posted its receive.
    pub ready: SimTime,
    /// Wait state of waiting for it.
    pub state: WaitState,
    /// The peer, where it was late: where `ready` is after the begin of the wait.
    pub rank: Rank,
}

/// A peer that has always been ready.
impl Default for Peer {
    fn default() -> Self {
        Self { ready: SimTime::ZERO, state: WaitState::LateSender, rank: Rank::new(0) }
    }
}

impl WaitStates {
    pub(super) fn new(rank: &ObservedRank<'_>) -> Self {
        Self {
            peers: RequestTable::new(rank),
            of_operations: Vec::new(),
            operation: None,
            last: Peer::default(),
        }
    }

    /// Returns the peer of a complete request. A request without a match has none.
    #[inline]
    pub(crate) fn get(&self, request: RequestId) -> Peer {
        self.peers.get(request).copied().unwrap_or_default()
    }

    /// Returns the last peer for which a non-blocking operation waited.
    pub(crate) fn of_operation(&self, operation: OperationIndex) -> Peer {
        self.of_operations.get(operation.index()).copied().unwrap_or_default()
    }

    /// Returns whether the program is the current thread of control.
    pub(super) fn is_in_program(&self) -> bool {
        self.operation.is_none()
    }

    /// Returns the peer for which the program has waited; a non-blocking operation only keeps it.
    #[inline(always)]
    pub(super) fn classify(&mut self, wait: &Wait) -> Option<Peer> {
        let Peer { ready, state, rank } = wait.request.map_or(self.last, |request| self.get(request));
        let (ready, state) = (ready.max(wait.begin).min(wait.end), state.in_operation(wait.kind));
        let peer = Peer { ready, state, rank };
        let Some(operation) = self.operation else { return Some(peer) };
        if ready > wait.begin {
            self.keep_last(operation, peer);
        }
        None
    }

    #[cold]
    fn keep_last(&mut self, operation: OperationIndex, peer: Peer) {
        let last = &mut self.of_operations[operation.index()];
        *last = peer.max(*last);
    }
}

impl Observer for WaitStates {
    type Saved = Self;

    fn save(&self) -> Self {
        self.clone()
    }

    fn restore(&mut self, saved: Self) {
        *self = saved;
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
            self.peers.get_mut(sent.request).rank = sent.to;
        }
    }

    #[inline(always)]
    fn message_matched(&mut self, matched: &Match<'_>, _: &mut dyn Carrier) {
        *self.peers.get_mut(matched.request) =
            Peer { ready: matched.message.posted, state: WaitState::LateSender, rank: matched.from };
    }

    fn message_probed(&mut self, request: RequestId, from: Rank, _: crate::ReceiveQueue, message: &Message) {
        *self.peers.get_mut(request) =
            Peer { ready: message.posted, state: WaitState::LateSender, rank: from };
    }

    #[inline(always)]
    fn send_completed(&mut self, request: RequestId, received: SimTime) {
        let peer = self.peers.get_mut(request);
        *peer = Peer { ready: received, state: WaitState::LateReceiver, ..*peer };
    }

    /// The time is later than that at which the member sent it, by the duration of the data.
    fn time_received(&mut self, from: Rank, message: &Message, request: RequestId) {
        let delay = SimDuration::from_picos(message.bytes.get());
        let since_start = message.posted.checked_since(SimTime::ZERO + delay).unwrap_or(SimDuration::ZERO);
        *self.peers.get_mut(request) =
            Peer { ready: SimTime::ZERO + since_start, state: WaitState::LateSender, rank: from };
    }

    fn operation_started(&mut self, operation: OperationIndex) {
        if self.of_operations.len() <= operation.index() {
            self.of_operations.resize(operation.index() + 1, Peer::default());
        }
        self.of_operations[operation.index()] = Peer::default();
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

    fn iterations_skipped(&mut self, time: SimDuration) {
        let shift = |peer: &mut Peer| peer.ready = peer.ready.saturating_add(time);
        self.peers.for_each(shift);
        self.of_operations.iter_mut().for_each(shift);
    }
}
