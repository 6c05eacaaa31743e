//! The replay of one rank, as a logical process of the engine.

mod arrivals;
mod calls;
mod cancel;
mod closed_form;
mod eager;
mod mailbox;
mod message;
mod operation;
mod outcome;
mod pending;
mod persistent;
mod probe;
mod shared_state;
mod slot_map;
mod snapshot;
mod state;
mod tag;
mod test;
mod thread;

use std::collections::{BTreeMap, VecDeque};

use pdes_core::{Fault, Outbox, Pause, Process, Rank, SimDuration, SimTime, Turn, Wake};
use serde::{Deserialize, Serialize};
use trace_mmap::{Action, CommId, Cursor, LocationId, RankTrace, SendRecv, Slot};

use crate::breakdown::region_name;
use crate::completion::Completion;
use crate::critical_path::CriticalPath;
use crate::error::{ReplayError, ReplayErrorKind};
use crate::machine::{Machine, Work};
use crate::matching::Receive;
use crate::observer::{ActionSpan, Analyses, Analysis, ObservedRank, RankObservers};
use crate::parameters::Parameters;
use crate::point_to_point::PointToPoint;
use crate::request::{Awaited, OperationIndex, Request, RequestCompletion, RequestId, Requests};
use crate::statistics::{ActionKind, Statistics};
use crate::token::{Message, Side, Token};
use eager::EagerMessages;
use mailbox::Mailbox;
use operation::Operation;
use pending::Pending;
use persistent::Persistent;
pub use shared_state::Replay;
use slot_map::SlotMap;
pub use snapshot::{Repetition, Snapshot};
use state::SavedRank;
pub use state::{RankState, RestoreError};
pub(crate) use tag::{kind_of, number_of};
use thread::Thread;

/// Every 64th computation that the rank could run ahead of is scheduled instead, which bounds the run-ahead.
const MAX_AHEAD: u8 = 64;

/// The replay of one rank: a logical process.
///
/// The engine delivers tokens (envelopes, arrivals, completions) in any wall-clock order and resumes the process; the process
/// reads actions from its trace until one has to wait. See [`Process`] for the laws that make the result independent of the
/// schedule.
pub struct RankProcess<'t, M: Machine, A: Analysis = Analyses<'t>> {
    replay: &'t Replay<'t, M, A>,
    me: Rank,
    trace: &'t RankTrace,
    cursor: Cursor<'t>,
    /// Thread of control that runs now: the program, or a non-blocking operation.
    thread: Thread,
    /// Begin of the action in progress.
    action_begin: SimTime,
    /// Remainder of the action in progress.
    pending: Pending,
    /// Request for which the rank waits.
    awaited: Option<RequestId>,
    requests: Requests,
    point_to_point: PointToPoint<'t, M>,
    /// Collective operations in progress.
    operations: Vec<Option<Box<Operation<'t>>>>,
    /// Number of pending conditional waits besides the action in progress: operations that poll for a member, and one for a
    /// mailbox.
    conditional_waits: u32,
    /// Number of operations begun on `MPI_COMM_WORLD`.
    operations_on_world: u32,
    /// Number of computations that the rank could run ahead of, modulo [`MAX_AHEAD`].
    computations_ahead: u8,
    /// Queues of all messages and receives of this rank, where it receives from any source.
    mailbox: Option<Box<Mailbox>>,
    /// Map from the slots of the trace to requests, where it is not the identity.
    slot_map: Option<Box<SlotMap>>,
    /// State that most ranks never need: there may be millions of ranks.
    cold: Option<Box<ColdState<M>>>,
    picos_per_flop: f64,
    /// Factor of the duration of computations in the current region of the program.
    compute_factor: f64,
    observers: RankObservers<A::Observer<'t>>,
}

/// State of a rank that only some calls, errors and machines need.
struct ColdState<M: Machine> {
    eager_messages: EagerMessages,
    /// Number of operations begun on each other communicator.
    operations_on: BTreeMap<CommId, u32>,
    /// Failures of messages that arrived before their receives were posted; see [`Token::MatchError`].
    match_errors: VecDeque<Failure<M::Error>>,
    /// Number of non-blocking operations begun.
    nonblocking_operations: u32,
    /// Number of conditional events granted.
    granted_events: u64,
    persistent: BTreeMap<RequestId, Persistent>,
    /// Announcements to be dropped when they arrive, by port and tag.
    ignored_announcements: Vec<(usize, u32)>,
}

/// Reason why a rank is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitReason {
    /// Event for which it waits.
    pub awaited: Awaited,
    /// Index of the action in progress, from 0.
    pub action: u64,
    /// Collective operation to which the wait belongs.
    pub operation: Option<ActionKind>,
}

/// Returns the factor of the duration of computations in a region.
fn compute_factor_in(parameters: &Parameters, region: &str) -> f64 {
    parameters.region_speeds.get(region).map_or(1.0, |speed| speed.recip())
}

/// Control flow after an action: continue with the next one, or pause.
enum Control {
    Continue,
    Pause(Pause),
}

type Failure<E> = Fault<Box<ReplayError<E>>>;
type Outcome<E> = Result<Control, Failure<E>>;

impl<M: Machine> RankProcess<'_, M> {
    /// Returns the critical path to the end of the rank, where [requested](Replay::with_critical_paths).
    pub fn critical_path(&self) -> Option<&CriticalPath> {
        self.observer().critical_path()
    }
}

impl<'t, M: Machine, A: Analysis> RankProcess<'t, M, A> {
    fn new(replay: &'t Replay<'t, M, A>, me: Rank) -> Result<Self, Box<ReplayError<M::Error>>> {
        let trace = replay.trace.rank(me);
        let mut peers = vec![None; trace.ports() as usize];
        for incoming in trace.incoming() {
            peers[incoming.port.index()] = Some(incoming.peer);
        }
        let peers = peers.into_iter().map(|peer| peer.expect("every port belongs to an incoming channel"));
        let point_to_point = PointToPoint::new(replay.machine, me, peers).map_err(|kind| ReplayError {
            rank: me,
            action: 0,
            kind,
        })?;
        let observed = ObservedRank { rank: me, trace, parameters: replay.parameters };
        Ok(Self {
            replay,
            me,
            trace,
            cursor: if replay.stops_at_iterations { trace.cursor_with_boundaries() } else { trace.cursor() },
            thread: Thread::main(),
            action_begin: SimTime::ZERO,
            pending: Pending::Nothing,
            awaited: None,
            requests: Requests::new(trace.slots()),
            point_to_point,
            operations: Vec::new(),
            conditional_waits: u32::from(trace.has_timing_dependent_matching()),
            operations_on_world: 0,
            computations_ahead: 0,
            mailbox: trace
                .has_timing_dependent_matching()
                .then(|| Box::new(Mailbox::new(trace.cancels_receives()))),
            slot_map: None,
            cold: None,
            picos_per_flop: 1e12 / replay.machine.speed(me),
            compute_factor: compute_factor_in(replay.parameters, ""),
            observers: RankObservers::new(&replay.analysis, &observed),
        })
    }

    /// Returns the rank.
    pub fn rank(&self) -> Rank {
        self.me
    }

    /// Returns the number of actions that the rank has begun or passed over.
    pub fn actions(&self) -> u64 {
        self.cursor.position()
    }

    /// Returns the statistics of the rank.
    pub fn statistics(&self) -> &Statistics {
        &self.observers.statistics
    }

    /// Returns the statistics of the rank, and drops everything else.
    pub fn into_statistics(self) -> Statistics {
        self.observers.statistics
    }

    /// Returns the observer of the rank.
    pub fn observer(&self) -> &A::Observer<'t> {
        &self.observers.others
    }

    /// Returns the reason why the rank is blocked, if it is.
    pub fn wait_reason(&self) -> Option<WaitReason> {
        let operation = match self.pending {
            Pending::Operation { index } => Some(index),
            _ => None,
        };
        let (awaited, operation) = match operation {
            Some(index) => (self.operation_awaits(index)?, Some(index)),
            None => self.program_awaits()?,
        };
        let kind =
            |index: OperationIndex| self.operations[index.index()].as_ref().map(|operation| operation.kind);
        Some(WaitReason { awaited, action: self.thread.action, operation: operation.and_then(kind) })
    }

    /// Returns the event for which the program waits, and the non-blocking operation that has to end first.
    fn program_awaits(&self) -> Option<(Awaited, Option<OperationIndex>)> {
        if let Some(awaited) = self.outcome_awaits() {
            return Some((awaited, None));
        }
        let request = self.awaited?;
        let Request::Pending(awaited) = self.requests.get(request) else { return None };
        let operation = self.operation_at(request);
        Some((operation.and_then(|index| self.operation_awaits(index)).unwrap_or(awaited), operation))
    }

    fn cold(&mut self) -> &mut ColdState<M> {
        self.cold.get_or_insert_default()
    }

    /// Returns the request of a slot of the trace.
    #[inline]
    fn request(&self, slot: Slot) -> RequestId {
        self.requests.slot(self.slot_map.as_ref().map_or(slot, |places| places.get(slot)))
    }

    /// Returns a failure of the action in progress.
    fn fail(&self, kind: ReplayErrorKind<M::Error>) -> Failure<M::Error> {
        self.failure(self.thread.clock, self.thread.action, kind)
    }

    /// Returns the failure of a receive and the message that it matches, the same whichever came first.
    fn match_failure(
        &self,
        message: Message,
        receive: Receive,
        kind: ReplayErrorKind<M::Error>,
    ) -> Failure<M::Error> {
        let at = message.posted.max(receive.posted);
        self.failure(at, receive.action, kind)
    }

    fn failure(&self, at: SimTime, action: u64, kind: ReplayErrorKind<M::Error>) -> Failure<M::Error> {
        Fault { at, order: action, error: Box::new(ReplayError { rank: self.me, action, kind }) }
    }

    /// Replays actions until one waits, the horizon is passed or the turn is over.
    fn run(
        &mut self,
        turn: &mut Turn,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<Pause, Failure<M::Error>> {
        let prices = turn.granted.then(|| {
            self.cold().granted_events += 1;
            self.replay.poll_prices()
        });
        // A grant is for the earliest conditional event of the rank: the mailbox, a poll of an operation, or the pending action.
        let granted = turn.granted && !self.match_due_pair(outbox)? && !self.poll_for_member(outbox)?;
        let flow = self.resume_action(granted, outbox)?;
        // Other processes must see changed prices before the next grant, even if this action pauses.
        if let Some(before) = prices {
            self.replay.broadcast_poll_prices(before, outbox);
        }
        if let Control::Pause(pause) = flow {
            return Ok(pause);
        }
        loop {
            if self.thread.clock > turn.horizon {
                return Ok(Pause::Horizon);
            }
            if turn.steps == 0 {
                return Ok(Pause::OutOfSteps);
            }
            let flow = match self.cursor.next() {
                Some(action) => {
                    turn.steps -= 1;
                    self.thread.action = self.cursor.position() - 1;
                    self.begin(action, outbox)?
                }
                None if self.cursor.iteration_boundary().is_some() => return Ok(Pause::AtCheckpoint),
                None => self.complete(Pending::AtEnd { next: 0 })?,
            };
            if let Control::Pause(pause) = flow {
                return Ok(pause);
            }
        }
    }

    /// Returns the time of the next conditional event of this rank, as far as it is known.
    fn next_conditional_event(&self) -> Option<SimTime> {
        let mail = self.mailbox.as_ref().and_then(|mailbox| mailbox.due());
        [mail, self.outcome_due(), self.poll_due()].into_iter().flatten().min()
    }

    /// Returns whether tokens may change the next conditional event.
    #[inline]
    fn depends_on_time(&self) -> bool {
        self.conditional_waits > 0 || self.pending.depends_on_time()
    }

    /// Ends the action in progress and attributes its time.
    #[inline]
    fn end(&mut self, kind: ActionKind) -> Control {
        let action = ActionSpan { kind, begin: self.action_begin, end: self.thread.clock };
        self.action_begin = action.end;
        self.observers.action_ended(&action);
        Control::Continue
    }

    #[inline]
    fn begin(&mut self, action: Action, outbox: &mut Outbox<Token, M::WorkRequest>) -> Outcome<M::Error> {
        match action {
            Action::Compute { flops } => self.compute(flops, outbox),
            Action::Send { to, bytes } => match self.send(to, bytes, self.is_detached(bytes), outbox) {
                Some(request) => self.complete(Pending::One { request, kind: ActionKind::Send }),
                None => Ok(self.end(ActionKind::Send)),
            },
            Action::Recv { from, bytes } => {
                let request = self.requests.blocking_receive();
                self.receive(from.index(), bytes, request, outbox)?;
                self.complete(Pending::One { request, kind: ActionKind::Recv })
            }
            Action::Isend { to, bytes, slot } => {
                let (detached, request) = (self.is_detached(bytes), self.request(slot));
                self.isend(to, bytes, detached, (request, ActionKind::Isend), outbox);
                Ok(self.end(ActionKind::Isend))
            }
            Action::Irecv { from, bytes, slot } => {
                self.pay_for_irecv(ActionKind::Irecv);
                self.receive(from.index(), bytes, self.request(slot), outbox)?;
                Ok(self.end(ActionKind::Irecv))
            }
            Action::Wait { slot } => {
                self.complete(Pending::One { request: self.request(slot), kind: ActionKind::Wait })
            }
            Action::WaitAll => {
                let (from, to) = (self.requests.slot(Slot::new(0)), self.requests.blocking_send());
                self.complete(Pending::all(from, to, ActionKind::Waitall))
            }
            Action::SendRecv(id) => {
                let both = *self.trace.send_recv(id);
                if self.is_self_exchange(&both) {
                    return Ok(self.end(ActionKind::SendRecv));
                }
                if let Some(to) = both.to {
                    let detached = self.is_detached(both.send_bytes);
                    let request = self.requests.blocking_send();
                    self.isend(to, both.send_bytes, detached, (request, ActionKind::SendRecv), outbox);
                }
                if let Some(from) = both.from {
                    self.receive(from.index(), both.recv_bytes, self.requests.blocking_receive(), outbox)?;
                }
                self.complete(self.pending_send_recv())
            }
            Action::Test { slot } => self.test(slot),
            Action::Sleep { seconds } => self.sleep(seconds, outbox),
            Action::Init | Action::Communicator => Ok(self.end(ActionKind::Marker)),
            Action::Location(site) => {
                self.observers.region_entered(site);
                self.enter_region(site);
                Ok(self.end(ActionKind::Marker))
            }
            Action::Finalize => Ok(self.end(ActionKind::Finalize)),
            Action::ProcNull { slot } => {
                let kind = if slot.is_some() { ActionKind::Isend } else { ActionKind::Send };
                Ok(self.end(kind))
            }
            Action::Collective(id) => self.collective(id, outbox),
            Action::Call(id) => self.call(id, outbox),
        }
    }

    /// Sets the speed of computations to that of a region of the program, where regions have speeds.
    #[inline]
    fn enter_region(&mut self, site: LocationId) {
        let parameters = self.replay.parameters;
        if !parameters.region_speeds.is_empty() {
            self.compute_factor = compute_factor_in(parameters, region_name(self.trace.location(site)));
        }
    }

    /// Returns whether both sides of a combined send and receive are the rank itself, which is a copy in memory.
    fn is_self_exchange(&self, both: &SendRecv) -> bool {
        let me = Some(self.me);
        let to = both.to.map(|to| self.trace.outgoing()[to.index()].peer);
        let from = both.from.map(|from| self.trace.incoming()[from.index()].peer);
        to == me && from == me
    }

    /// Returns the remainder of a combined send and receive: waiting for both requests.
    fn pending_send_recv(&self) -> Pending {
        Pending::all(self.requests.blocking_send(), self.requests.end(), ActionKind::SendRecv)
    }

    /// Replays a computation of the program.
    #[inline]
    fn compute(&mut self, flops: f64, outbox: &mut Outbox<Token, M::WorkRequest>) -> Outcome<M::Error> {
        if self.start_computation(flops * self.compute_factor, None, outbox)? {
            return Ok(self.await_work(ActionKind::Compute));
        }
        Ok(self.end(ActionKind::Compute))
    }

    /// Starts a computation of the program or of an operation; returns whether it has to be waited for.
    #[inline]
    fn start_computation(
        &mut self,
        flops: f64,
        operation: Option<OperationIndex>,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<bool, Failure<M::Error>> {
        let duration = SimDuration::try_from_picos_f64(flops * self.picos_per_flop);
        let work = Work::Compute { rank: self.me, flops };
        let is_ahead = operation.is_none() && self.runs_ahead();
        if !is_ahead && duration.is_some() && self.submit_work(work, operation, outbox) {
            return Ok(true);
        }
        self.advance(duration, "a computation", || format!("{flops} flop"))?;
        Ok(false)
    }

    /// Returns whether the program runs ahead of its computation. Not while non-blocking operations may compute, and not for one
    /// in [`MAX_AHEAD`], so that a rank that only computes and sends does not submit all its messages at once.
    #[inline]
    fn runs_ahead(&mut self) -> bool {
        if !self.replay.machine.has_dedicated_core(self.me) || self.operations.iter().any(Option::is_some) {
            return false;
        }
        self.computations_ahead = (self.computations_ahead + 1) % MAX_AHEAD;
        self.computations_ahead != 0
    }

    fn sleep(&mut self, seconds: f64, outbox: &mut Outbox<Token, M::WorkRequest>) -> Outcome<M::Error> {
        // SimGrid's shortest sleep, but for none at all, is one nanosecond.
        let shortest = if seconds > 0.0 { 1e-9 } else { 0.0 };
        let duration = SimDuration::try_from_secs_f64(seconds.max(shortest));
        if let Some(duration) = duration.filter(|&duration| duration > SimDuration::ZERO)
            && self.submit_work(Work::Sleep { duration }, None, outbox)
        {
            return Ok(self.await_work(ActionKind::Sleep));
        }
        self.advance(duration, "a sleep", || format!("{seconds} s"))?;
        Ok(self.end(ActionKind::Sleep))
    }

    /// Submits work to the machine, if it does such work in the order of time; returns whether the work has to be waited for.
    #[inline]
    fn submit_work(
        &mut self,
        work: Work<M::Route>,
        operation: Option<OperationIndex>,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> bool {
        let order = self.replay.machine.work_request(work, Completion::of_work(self.me, operation));
        if let Some(order) = order {
            outbox.submit(self.thread.clock, 0, order);
        }
        order.is_some()
    }

    fn await_work(&mut self, kind: ActionKind) -> Control {
        self.keep_pending(Pending::Work { kind, done: false })
    }

    /// Returns the pause of a blocked rank: conditional where the next event is known to depend on time.
    #[inline]
    fn blocked(&self) -> Control {
        let due = if self.depends_on_time() { self.next_conditional_event() } else { None };
        Control::Pause(due.map_or(Pause::Blocked, Pause::Conditional))
    }

    /// Advances the clock.
    ///
    /// # Errors
    /// The clock would overflow.
    #[inline]
    fn advance(
        &mut self,
        duration: Option<SimDuration>,
        what: &'static str,
        amount: impl FnOnce() -> String,
    ) -> Result<(), Failure<M::Error>> {
        match duration.and_then(|duration| self.thread.clock.checked_add(duration)) {
            Some(clock) => {
                self.thread.clock = clock;
                Ok(())
            }
            None => Err(self.fail(ReplayErrorKind::TimeOverflow { what, amount: amount() })),
        }
    }

    /// Waits for the completion of a request, and charges the receive overhead.
    #[inline]
    fn settle(&mut self, request: RequestId, completion: RequestCompletion, kind: ActionKind) {
        self.wait_for(Some(request), completion.at, kind);
        self.pay(completion);
    }

    /// Advances the clock to `at`, the completion of a request or of [several](crate::Wait::request), unless it has passed.
    #[inline(always)]
    fn wait_for(&mut self, request: Option<RequestId>, at: SimTime, kind: ActionKind) {
        let now = self.thread.clock;
        if at > now {
            self.observers.waited(kind, (now, at), request, &mut self.point_to_point);
            self.thread.clock = at;
        }
    }

    /// Reports that the current thread of control has worked until now, in an action of this kind.
    #[inline(always)]
    fn worked(&mut self, kind: ActionKind) {
        self.observers.worked(kind, self.thread.clock);
    }

    /// Charges the receive overhead of a completion.
    #[inline]
    fn pay(&mut self, completion: RequestCompletion) {
        if let Some(bytes) = completion.received {
            self.thread.clock += self.replay.parameters.receive.cost(bytes);
        }
    }

    /// Returns whether the completion of a request, if there was one, wakes the program.
    #[inline]
    fn wake(
        &mut self,
        completed: Option<RequestId>,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<Wake, Failure<M::Error>> {
        if let Some(request) = completed {
            let resumes = match self.requests.operation(request) {
                Some(index) => self.part_completed(index, outbox)?,
                None => self.awaited == completed && self.is_last_awaited(),
            };
            if resumes {
                return Ok(Wake::Ready);
            }
        }
        Ok(self.current_wake())
    }

    #[inline]
    fn current_wake(&self) -> Wake {
        let due = if self.depends_on_time() { self.next_conditional_event() } else { None };
        due.map_or(Wake::No, Wake::Conditional)
    }
}

impl<M: Machine> Default for ColdState<M> {
    fn default() -> Self {
        Self {
            eager_messages: EagerMessages::default(),
            operations_on: BTreeMap::new(),
            match_errors: VecDeque::new(),
            nonblocking_operations: 0,
            granted_events: 0,
            persistent: BTreeMap::new(),
            ignored_announcements: Vec::new(),
        }
    }
}

impl<M: Machine, A: Analysis> Process for RankProcess<'_, M, A> {
    type Token = Token;
    type WorkRequest = M::WorkRequest;
    /// Boxed: results are returned for every action.
    type Error = Box<ReplayError<M::Error>>;

    #[inline]
    fn deliver(
        &mut self,
        token: Token,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<Wake, Fault<Self::Error>> {
        let completed = match token {
            Token::Message { queue: lane, message } => self.message_arrived(lane, message, outbox)?,
            Token::MatchError => match self.cold().match_errors.pop_front() {
                Some(failure) => return Err(failure),
                None => None,
            },
            Token::Arrived { request, at, side } => {
                let received = match side {
                    Side::Receiver { detached } => {
                        self.observers.data_arrived(request, at);
                        detached
                    }
                    Side::Sender { received } => {
                        self.observers.send_completed(request, received);
                        None
                    }
                };
                self.requests.set(request, Request::Complete(RequestCompletion { at, received }));
                Some(request)
            }
            Token::EagerArrived { id, at } => self.eager_arrived(id, at),
            Token::WorkDone { at, operation: None } => {
                self.thread.clock = at;
                if let Pending::Work { done, .. } = &mut self.pending {
                    *done = true;
                }
                return Ok(Wake::Ready);
            }
            Token::PathFragment { from, fragment } => {
                self.observers.data_received(from, fragment);
                return Ok(Wake::No);
            }
            Token::FailedPolls { tests, probes } => {
                self.replay.set_poll_prices(tests, probes);
                return Ok(Wake::No);
            }
            Token::WorkDone { at, operation: Some(index) } => {
                let resumes = self.work_done(index, at, outbox)?;
                return Ok(if resumes { Wake::Ready } else { self.current_wake() });
            }
        };
        self.wake(completed, outbox)
    }

    #[inline]
    fn resume(
        &mut self,
        turn: &mut Turn,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<Pause, Fault<Self::Error>> {
        self.run(turn, outbox)
    }

    fn clock(&self) -> SimTime {
        self.thread.clock
    }
}
