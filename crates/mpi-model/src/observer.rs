//! Observers: analyses that follow the events of ranks.
//!
//! A replay has one [`Analysis`], which makes an [`Observer`] for each rank. The rank reports its events to its observer, by
//! calls that the compiler resolves: `()` observes nothing and costs nothing, and an analysis that is built in but switched off
//! costs a branch for each event. Analyses are composed by pairs, and [`Analyses`] holds those that come with this crate.
//!
//! # Adding an analysis
//! 1. In a new file, a type implements [`Observer`]. It overrides the events that it needs; all others do nothing.
//! 2. A type that all ranks share, perhaps empty, implements [`Analysis`]: it makes the observers and collects what they find.
//! 3. [`Replay::with_analysis`](crate::Replay::with_analysis) adds it to a replay. An analysis that users switch on by the
//!    configuration is a field of [`Analyses`] and of its observer instead.
//!
//! `tests/calls/observers.rs` adds one that counts the bytes that each rank sends to each other.

mod analyses;
mod composition;
pub(crate) mod critical_path;
mod distributions;
mod events;
mod rank_observers;
mod recorder;
mod request_table;
mod traffic;
mod wait_states;

use pdes_core::{Bytes, Rank, SimTime, StateVisitor};
use trace_mmap::{LocationId, RankTrace};

use crate::cause::Cause;
use crate::context::RankOutbox;
use crate::machine::{Machine, UncontendedTransfer};
use crate::parameters::Parameters;
use crate::point_to_point::{OperationIndex, RequestId};
use crate::statistics::ActionKind;
use crate::token::{Fragment, Message, ReceiveQueue, Token};
pub use analyses::{Analyses, Findings, RankAnalyses};
pub use events::{ActionSpan, Match, Sent, SentTime, UncontendedMessages, Wait};
pub(crate) use rank_observers::RankObservers;
pub use wait_states::Peer;
pub(crate) use wait_states::WaitStates;

/// An analysis of a replay: makes the observers of its ranks, and holds what they share.
///
/// Observers of one process of the operating system share one analysis, from all its threads. Whoever runs the replay merges the
/// analyses of several processes.
pub trait Analysis: Sync {
    /// Observer of one rank.
    type Observer<'a>: Observer + Send
    where
        Self: 'a;

    /// Makes the observer of a rank, which has done nothing yet.
    fn observer<'a>(&'a self, rank: &ObservedRank<'a>) -> Self::Observer<'a>;

    /// Returns whether statistics have breakdowns by region; by default where they have wait states.
    fn needs_breakdowns(&self) -> bool {
        self.needs_wait_states()
    }

    /// Returns whether [`Wait::peer`] is needed. `false` by default.
    fn needs_wait_states(&self) -> bool {
        false
    }

    /// Returns whether, beside wait states, [`Peer::cause`] is needed. `false` by default.
    fn needs_causes(&self) -> bool {
        false
    }
}

/// A rank that is to be observed.
#[derive(Clone, Copy, Debug)]
pub struct ObservedRank<'a> {
    /// The rank.
    pub rank: Rank,
    /// Its trace.
    pub trace: &'a RankTrace,
    /// Parameters of the MPI library.
    pub parameters: &'a Parameters,
}

/// Observer of the events of one rank.
///
/// # Laws
/// - An observer changes nothing: the replay has the same result with any observer.
/// - Calls come in the order in which the rank learns of events, which depends on the schedule where they report what other ranks
///   did (`message_matched`, `data_arrived`, `send_completed`, `time_received`, `data_received`). All times are simulated, and
///   the set of events is the same in every run: an analysis whose result does not depend on their order is deterministic.
/// - The spans of [`action_ended`](Observer::action_ended) and [`rank_ended`](Observer::rank_ended) follow each other without
///   gaps from time zero to the end of the rank. Each wait lies within the span of its action, or within a non-blocking operation.
/// - Operations of a graph are non-blocking operations; the states of the rank, of which each instant has one, are its actions, and
///   are reported when it ends.
/// - A request is posted or sent, then matched, then completed, and then waited for, before it is used again.
/// - Events of non-blocking operations lie between [`operation_resumed`](Observer::operation_resumed) and
///   [`operation_paused`](Observer::operation_paused); their clocks are not that of the program.
/// - A rank that is fast-forwarded reports nothing of the iterations that it skips: its state is [repeated](Observer::visit).
///
/// Methods that are called for every message should be `#[inline]`, and pass the parts of an event that they need out of line: an
/// event whose address escapes has to be built in memory, even where the analysis is switched off.
pub trait Observer {
    /// Visits the state, which is saved with the rank in checkpoints; by default the observer begins anew.
    #[inline(always)]
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let _ = visitor;
    }

    /// An action of the program has ended.
    #[inline(always)]
    fn action_ended(&mut self, action: &ActionSpan) {
        let _ = action;
    }

    /// The rank has ended, with an action of the kind `Finalize`, perhaps of no length. Messages that it sent may still arrive.
    #[inline(always)]
    fn rank_ended(&mut self, last: &ActionSpan) {
        let _ = last;
    }

    /// The program has come to a call site, or to a region.
    #[inline(always)]
    fn region_entered(&mut self, site: LocationId) {
        let _ = site;
    }

    /// The outcome of an action that depends on time has been decided: as in the recorded run, or not.
    #[inline(always)]
    fn outcome_decided(&mut self, action: u64, as_recorded: bool) {
        let _ = (action, as_recorded);
    }

    /// Since the last event, the current thread of control has worked until `now`, in an action of this kind.
    #[inline(always)]
    fn worked(&mut self, kind: ActionKind, now: SimTime) {
        let _ = (kind, now);
    }

    /// Requests are about to be completed together; `later` are those whose completion is after now, with its time.
    #[inline(always)]
    fn completing(&mut self, later: impl Iterator<Item = (SimTime, RequestId)> + Clone) {
        let _ = later;
    }

    /// The current thread of control has waited.
    #[inline(always)]
    fn waited(&mut self, wait: &Wait, network: &mut dyn Network) {
        let _ = (wait, network);
    }

    /// A rank whose program is a graph had nothing to do until a message was complete; [`waited`](Observer::waited) tells the waits of
    /// its operations. Reported at the end of the rank, in the order of time, and by analyses that need wait states only.
    #[inline(always)]
    fn idled(&mut self, wait: &Wait) {
        let _ = wait;
    }

    /// A message has been sent. Data for its receiver arrive before it.
    #[inline(always)]
    fn message_sent(&mut self, sent: &Sent, carrier: &mut dyn Carrier) {
        let _ = (sent, carrier);
    }

    /// A receive has been posted.
    #[inline(always)]
    fn receive_posted(&mut self, request: RequestId, now: SimTime) {
        let _ = (request, now);
    }

    /// A message has matched a posted receive. Data for its sender arrive before it learns of the match.
    #[inline(always)]
    fn message_matched(&mut self, matched: &Match<'_>, carrier: &mut dyn Carrier) {
        let _ = (matched, carrier);
    }

    /// A message that arrived at a port is dropped: nobody will receive it.
    #[inline(always)]
    fn message_dropped(&mut self, port: usize, from: Rank, message: &Message) {
        let _ = (port, from, message);
    }

    /// A probe is about to find a message, for which the rank waits as for this request.
    #[inline(always)]
    fn message_probed(&mut self, request: RequestId, from: Rank, queue: ReceiveQueue, message: &Message) {
        let _ = (request, from, queue, message);
    }

    /// The last byte of a matched message has arrived.
    #[inline(always)]
    fn data_arrived(&mut self, request: RequestId, at: SimTime) {
        let _ = (request, at);
    }

    /// The last byte of a message that this rank sent has arrived, whose receive was posted at `received` by a receiver that was late
    /// by `cause`, where that is [needed](Analysis::needs_causes).
    #[inline(always)]
    fn send_completed(&mut self, request: RequestId, received: SimTime, cause: Cause) {
        let _ = (request, received, cause);
    }

    /// A member of a collective operation in closed form has sent a time to another one.
    #[inline(always)]
    fn time_sent(&mut self, sent: &SentTime<'_>, carrier: &mut dyn Carrier) {
        let _ = (sent, carrier);
    }

    /// A time, or numbers, from another member of a collective operation have completed a request.
    #[inline(always)]
    fn time_received(&mut self, from: Rank, message: &Message, request: RequestId) {
        let _ = (from, message, request);
    }

    /// The current thread of control has spent time on messages of a collective operation in closed form.
    #[inline(always)]
    fn messages_charged(&mut self, kind: ActionKind, messages: &UncontendedMessages) {
        let _ = (kind, messages);
    }

    /// A non-blocking operation begins, or an operation of a graph does once more, later: the last time counts.
    #[inline(always)]
    fn operation_started(&mut self, operation: OperationIndex) {
        let _ = operation;
    }

    /// A non-blocking operation becomes the current thread of control.
    #[inline(always)]
    fn operation_resumed(&mut self, operation: OperationIndex) {
        let _ = operation;
    }

    /// The program becomes the current thread of control again.
    #[inline(always)]
    fn operation_paused(&mut self, operation: OperationIndex) {
        let _ = operation;
    }

    /// A non-blocking operation has ended, and with it its request.
    #[inline(always)]
    fn operation_ended(&mut self, operation: OperationIndex, request: RequestId) {
        let _ = (operation, request);
    }

    /// An operation of a graph has ended, and with it the use of its number.
    #[inline(always)]
    fn operation_dropped(&mut self, operation: OperationIndex) {
        let _ = operation;
    }

    /// Data from the observer of another rank have arrived; see [`Carrier`].
    #[inline(always)]
    fn data_received(&mut self, from: Rank, fragment: Fragment) {
        let _ = (from, fragment);
    }

    /// Returns whether the observer observes anything; events are reported to those that do. `true` by default.
    fn is_active(&self) -> bool {
        true
    }

    /// Adds what the observer has counted to the results that ranks share.
    #[inline(always)]
    fn publish(&mut self) {}

    /// Returns whether the observer counts something of messages that depends on when they were sent.
    fn counts_messages(&self) -> bool {
        false
    }
}

/// The network as a rank sees it.
pub trait Network {
    /// Returns the transfer time without contention of a message that has arrived at a port; zero without a route.
    fn uncontended_from(&mut self, port: usize, bytes: Bytes) -> UncontendedTransfer;

    /// Returns the transfer time without contention of a message to another rank; zero without a route.
    fn uncontended_to(&mut self, to: Rank, bytes: Bytes) -> UncontendedTransfer;
}

/// Carrier of data from the observer of one rank to that of another one, which is perhaps in another process of the operating
/// system. Fragments from one rank to another arrive in order, as [`data_received`](Observer::data_received), and before tokens
/// that are sent later. All observers of the receiver see them, so that only one analysis of a replay can use the carrier.
pub trait Carrier {
    /// Sends a fragment.
    fn carry(&mut self, from: Rank, to: Rank, fragment: Fragment);
}

impl<M: Machine> Carrier for RankOutbox<'_, M> {
    fn carry(&mut self, from: Rank, to: Rank, fragment: Fragment) {
        self.send(to, Token::PathFragment { from, fragment });
    }
}
