//! The replay of one rank, as a logical process of the engine.

mod arrivals;
mod calls;
mod cancel;
mod causes;
mod flights;
mod line;
mod mailbox;
mod message;
mod operation;
mod outcome;
mod partners;
mod passages;
mod pending;
mod persistent;
mod places;
mod probe;
mod shelf;
mod snapshot;
mod state;
mod strand;
mod tag;
mod tape;
mod test;
mod times;
mod world;

use std::collections::{BTreeMap, VecDeque};

use pdes_core::{Fault, Outbox, Pause, Process, Rank, SimDuration, SimTime, Turn, Wake, Wire};
use trace_mmap::{Action, CommId, Cursor, LocationId, RankTrace, SendRecv, Slot};

use crate::breakdown::region_name;
use crate::error::{ReplayError, ReplayErrorKind};
use crate::machine::{Machine, Work};
use crate::matching::{Port, Ports, Receive};
use crate::notice::Notice;
use crate::parameters::Parameters;
use crate::request::{Awaited, Completion, OperationIndex, Request, RequestId, Requests};
use crate::statistics::{ActionKind, Statistics};
use crate::token::{Message, Party, Token};
use crate::wait_state::WaitState;
use causes::Causes;
use flights::Flights;
use mailbox::Mailbox;
use operation::Operation;
use partners::Partners;
use pending::Pending;
use persistent::Persistent;
use places::Places;
pub use snapshot::{Snapshot, Stretch};
pub use state::{RankState, RestoreError};
use strand::Strand;
use tape::Tape;
pub use world::World;

/// Every 64th computation that the rank could run ahead of is scheduled instead, which bounds the run-ahead.
const MOST_AHEAD: u8 = 64;

/// The replay of one rank: a logical process.
///
/// The engine delivers tokens (envelopes, arrivals, completions) in any wall-clock order and resumes the process; the process
/// reads actions from its trace until one has to wait. See [`Process`] for the laws that make the result independent of the
/// schedule.
pub struct RankProcess<'t, M: Machine> {
    world: &'t World<'t, M>,
    me: Rank,
    trace: &'t RankTrace,
    cursor: Cursor<'t>,
    /// Thread of control that runs now: the program, or a non-blocking operation.
    strand: Strand,
    /// Begin of the action in progress.
    began: SimTime,
    /// Remainder of the action in progress.
    pending: Pending,
    /// Request for which the rank waits.
    awaited: Option<RequestId>,
    requests: Requests,
    ports: Ports<M::Path>,
    /// Collective operations in progress.
    operations: Vec<Option<Box<Operation<'t>>>>,
    /// Number of pending conditional waits besides the action in progress: operations that poll for a member, and one for a
    /// mailbox.
    bound: u32,
    /// Number of operations begun on `MPI_COMM_WORLD`.
    on_world: u32,
    /// Number of computations that the rank could run ahead of, modulo [`MAX_AHEAD`].
    ahead: u8,
    /// Queues of all messages and receives of this rank, where it receives from any source.
    mailbox: Option<Box<Mailbox>>,
    /// Map from the slots of the trace to requests, where it is not the identity.
    places: Option<Box<Places>>,
    /// State that most ranks never need: there may be millions of ranks.
    rare: Option<Box<Rare<M>>>,
    picos_per_flop: f64,
    /// Factor of the duration of computations in the current region of the program.
    pace: f64,
    statistics: Statistics,
    /// Times at which the peers of requests were ready, where a breakdown is requested.
    partners: Option<Box<Partners>>,
    /// Critical paths to the clock and to the completions of requests, where they are followed.
    causes: Option<Box<Causes<'t>>>,
    /// Recorder of events, where a timeline is requested.
    tape: Option<Box<Tape>>,
}

/// State of a rank that only some calls, errors and machines need.
struct Rare<M: Machine> {
    flights: Flights,
    /// Number of operations begun on each other communicator.
    operations_on: BTreeMap<CommId, u32>,
    /// Failures of messages that arrived before their receives were posted; see [`Token::MatchError`].
    clashes: VecDeque<Failure<M::Error>>,
    /// Number of non-blocking operations begun.
    branches: u32,
    /// Number of conditional events granted.
    granted: u64,
    persistent: BTreeMap<RequestId, Persistent>,
    /// Routes to other ranks, looked up by operations in closed form.
    ways: BTreeMap<Rank, M::Path>,
    /// Announcements to be dropped when they arrive, by port and tag.
    ignored: Vec<(usize, u32)>,
}

/// Reason why a rank is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Event for which it waits.
    pub awaited: Awaited,
    /// Index of the action in progress, from 0.
    pub action: u64,
    /// Collective operation to which the wait belongs.
    pub operation: Option<ActionKind>,
}

/// For the process of the operating system that reports deadlocks.
impl Wire for Waiting {
    const SIZE: usize = <(Awaited, u64, Option<ActionKind>)>::SIZE;

    fn write(&self, bytes: &mut Vec<u8>) {
        (self.awaited, self.action, self.operation).write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (awaited, action, operation) = Wire::read(bytes)?;
        Some(Self { awaited, action, operation })
    }
}

/// Returns the factor of the duration of computations in a region.
fn pace_in(parameters: &Parameters, region: &str) -> f64 {
    parameters.region_speeds.get(region).map_or(1.0, |speed| speed.recip())
}

/// Control flow after an action: continue with the next one, or pause.
enum Flow {
    Continue,
    Pause(Pause),
}

type Failure<E> = Fault<Box<ReplayError<E>>>;
type Outcome<E> = Result<Flow, Failure<E>>;

impl<'t, M: Machine> RankProcess<'t, M> {
    fn new(world: &'t World<'t, M>, me: Rank) -> Result<Self, Box<ReplayError<M::Error>>> {
        let trace = world.trace.rank(me);
        let mut peers = vec![None; trace.ports() as usize];
        for incoming in trace.incoming() {
            peers[incoming.port.index()] = Some(incoming.peer);
        }
        let mut ports = Vec::with_capacity(peers.len());
        // Every port number belongs to an incoming channel.
        for peer in peers.into_iter().flatten() {
            let path = path(world, peer, me).map_err(|kind| ReplayError { rank: me, action: 0, kind })?;
            ports.push(Port::new(peer, Some(path)));
        }
        let requests = Requests::new(trace.slots());
        let partners =
            world.breaks_down.then(|| Box::new(Partners::new(requests.of_program(), world.pool.is_some())));
        let shelves = world.shelves.as_ref();
        let causes =
            shelves.and_then(|shelves| Causes::new(me, requests.of_program(), shelves)).map(Box::new);
        Ok(Self {
            world,
            me,
            trace,
            cursor: if world.halts { trace.cursor_by_iterations() } else { trace.cursor() },
            strand: Strand::main(),
            began: SimTime::ZERO,
            pending: Pending::Nothing,
            awaited: None,
            requests,
            ports: Ports::new(ports),
            operations: Vec::new(),
            bound: u32::from(trace.matches_by_time()),
            on_world: 0,
            ahead: 0,
            mailbox: trace.matches_by_time().then(|| Box::new(Mailbox::new(trace.cancels_receives()))),
            places: None,
            rare: None,
            picos_per_flop: 1e12 / world.machine.speed(me),
            pace: pace_in(world.parameters, ""),
            statistics: if world.breaks_down { Statistics::with_breakdown() } else { Statistics::default() },
            partners,
            causes,
            tape: world.recording.map(|recording| Box::new(Tape::new(recording, me))),
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
        &self.statistics
    }

    /// Returns the statistics of the rank, and drops everything else.
    pub fn into_statistics(self) -> Statistics {
        self.statistics
    }

    /// Returns the reason why the rank is blocked, if it is.
    pub fn waiting(&self) -> Option<Waiting> {
        let operation = match self.pending {
            Pending::Operation { index } => Some(index),
            _ => None,
        };
        let (awaited, operation) = match operation {
            Some(index) => (self.operation_waits(index)?, Some(index)),
            None => self.program_waits()?,
        };
        let kind =
            |index: OperationIndex| self.operations[index.index()].as_ref().map(|operation| operation.kind);
        Some(Waiting { awaited, action: self.strand.action, operation: operation.and_then(kind) })
    }

    /// Returns the event for which the program waits, and the non-blocking operation that has to end first.
    fn program_waits(&self) -> Option<(Awaited, Option<OperationIndex>)> {
        if let Some(awaited) = self.outcome_waits() {
            return Some((awaited, None));
        }
        let request = self.awaited?;
        let Request::Pending(awaited) = self.requests.get(request) else { return None };
        let operation = self.operation_at(request);
        Some((operation.and_then(|index| self.operation_waits(index)).unwrap_or(awaited), operation))
    }

    fn rare(&mut self) -> &mut Rare<M> {
        self.rare.get_or_insert_default()
    }

    /// Returns the request of a slot of the trace.
    #[inline]
    fn request(&self, slot: Slot) -> RequestId {
        self.requests.slot(self.places.as_ref().map_or(slot, |places| places.of(slot)))
    }

    /// Returns a failure of the action in progress.
    fn fail(&self, kind: ReplayErrorKind<M::Error>) -> Failure<M::Error> {
        self.failure(self.strand.clock, self.strand.action, kind)
    }

    /// Returns the failure of a receive and the message that it matches, the same whichever came first.
    fn clash(
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
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<Pause, Failure<M::Error>> {
        let looks = turn.granted.then(|| {
            self.rare().granted += 1;
            self.world.looks()
        });
        // A grant is for the earliest conditional event of the rank: the mailbox, a poll of an operation, or the pending action.
        let granted = turn.granted && !self.open_mail(outbox)? && !self.look_for_member(outbox)?;
        let flow = self.proceed(granted, outbox)?;
        // Other processes must see changed prices before the next grant, even if this action pauses.
        if let Some(before) = looks {
            self.world.tell_looks(before, outbox);
        }
        if let Flow::Pause(pause) = flow {
            return Ok(pause);
        }
        loop {
            if self.strand.clock > turn.horizon {
                return Ok(Pause::Horizon);
            }
            if turn.steps == 0 {
                return Ok(Pause::TurnOver);
            }
            let flow = match self.cursor.next() {
                Some(action) => {
                    turn.steps -= 1;
                    self.strand.action = self.cursor.position() - 1;
                    self.begin(action, outbox)?
                }
                None if self.cursor.head().is_some() => return Ok(Pause::Halted),
                None => self.complete(Pending::AtEnd { next: 0 })?,
            };
            if let Flow::Pause(pause) = flow {
                return Ok(pause);
            }
        }
    }

    /// Returns the time of the next conditional event of this rank, as far as it is known.
    fn due(&self) -> Option<SimTime> {
        let mail = self.mailbox.as_ref().and_then(|mailbox| mailbox.due());
        [mail, self.outcome_due(), self.look_due()].into_iter().flatten().min()
    }

    /// Returns whether tokens may change the next conditional event.
    #[inline]
    fn depends_on_time(&self) -> bool {
        self.bound > 0 || self.pending.depends_on_time()
    }

    /// Ends the action in progress and attributes its time.
    #[inline]
    fn end(&mut self, kind: ActionKind) -> Flow {
        self.record_state(kind);
        self.statistics.add_action(kind, self.strand.clock - self.began);
        self.began = self.strand.clock;
        self.spend(kind);
        Flow::Continue
    }

    #[inline]
    fn begin(&mut self, action: Action, outbox: &mut Outbox<Token, M::Order>) -> Outcome<M::Error> {
        match action {
            Action::Compute { flops } => self.compute(flops, outbox),
            Action::Send { to, bytes } => match self.send(to, bytes, self.is_detached(bytes), outbox) {
                Some(request) => self.complete(Pending::One { request, kind: ActionKind::Send }),
                None => Ok(self.end(ActionKind::Send)),
            },
            Action::Recv { from, bytes } => {
                let request = self.requests.receive();
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
                let (from, to) = (self.requests.slot(Slot::new(0)), self.requests.send());
                self.complete(Pending::all(from, to, ActionKind::Waitall))
            }
            Action::SendRecv(id) => {
                let both = *self.trace.send_recv(id);
                if self.is_to_itself(&both) {
                    return Ok(self.end(ActionKind::SendRecv));
                }
                if let Some(to) = both.to {
                    let detached = self.is_detached(both.send_bytes);
                    let request = self.requests.send();
                    self.isend(to, both.send_bytes, detached, (request, ActionKind::SendRecv), outbox);
                }
                if let Some(from) = both.from {
                    self.receive(from.index(), both.recv_bytes, self.requests.receive(), outbox)?;
                }
                self.complete(self.both())
            }
            Action::Test { slot } => self.test(slot),
            Action::Sleep { seconds } => self.sleep(seconds, outbox),
            Action::Init | Action::Communicator => Ok(self.end(ActionKind::Marker)),
            Action::Location(site) => {
                self.statistics.enter(site);
                self.enter_region(site);
                Ok(self.end(ActionKind::Marker))
            }
            Action::Finalize => Ok(self.end(ActionKind::Finalize)),
            Action::Null { slot } => {
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
        let parameters = self.world.parameters;
        if !parameters.region_speeds.is_empty() {
            self.pace = pace_in(parameters, region_name(self.trace.location(site)));
        }
    }

    /// Returns whether both sides of a combined send and receive are the rank itself, which is a copy in memory.
    fn is_to_itself(&self, both: &SendRecv) -> bool {
        let me = Some(self.me);
        let to = both.to.map(|to| self.trace.outgoing()[to.index()].peer);
        let from = both.from.map(|from| self.trace.incoming()[from.index()].peer);
        to == me && from == me
    }

    /// Returns the remainder of a combined send and receive: waiting for both requests.
    fn both(&self) -> Pending {
        Pending::all(self.requests.send(), self.requests.end(), ActionKind::SendRecv)
    }

    /// Replays a computation of the program.
    #[inline]
    fn compute(&mut self, flops: f64, outbox: &mut Outbox<Token, M::Order>) -> Outcome<M::Error> {
        if self.computes(flops * self.pace, None, outbox)? {
            return Ok(self.await_work(ActionKind::Compute));
        }
        Ok(self.end(ActionKind::Compute))
    }

    /// Starts a computation of the program or of an operation; returns whether it has to be waited for.
    #[inline]
    fn computes(
        &mut self,
        flops: f64,
        operation: Option<OperationIndex>,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<bool, Failure<M::Error>> {
        let duration = SimDuration::try_from_picos_f64(flops * self.picos_per_flop);
        let work = Work::Compute { rank: self.me, flops };
        let is_ahead = operation.is_none() && self.goes_ahead();
        if !is_ahead && duration.is_some() && self.order(work, operation, outbox) {
            return Ok(true);
        }
        self.advance(duration, "a computation", || format!("{flops} flop"))?;
        Ok(false)
    }

    /// Returns whether the program runs ahead of its computation. Not while non-blocking operations may compute, and not for one
    /// in [`MAX_AHEAD`], so that a rank that only computes and sends does not submit all its messages at once.
    #[inline]
    fn goes_ahead(&mut self) -> bool {
        if !self.world.machine.computes_alone(self.me) || self.operations.iter().any(Option::is_some) {
            return false;
        }
        self.ahead = (self.ahead + 1) % MOST_AHEAD;
        self.ahead != 0
    }

    fn sleep(&mut self, seconds: f64, outbox: &mut Outbox<Token, M::Order>) -> Outcome<M::Error> {
        // SimGrid's shortest sleep, but for none at all, is one nanosecond.
        let shortest = if seconds > 0.0 { 1e-9 } else { 0.0 };
        let duration = SimDuration::try_from_secs_f64(seconds.max(shortest));
        if let Some(duration) = duration.filter(|&duration| duration > SimDuration::ZERO)
            && self.order(Work::Sleep { duration }, None, outbox)
        {
            return Ok(self.await_work(ActionKind::Sleep));
        }
        self.advance(duration, "a sleep", || format!("{seconds} s"))?;
        Ok(self.end(ActionKind::Sleep))
    }

    /// Submits work to the machine, if it does such work in the order of time; returns whether the work has to be waited for.
    #[inline]
    fn order(
        &mut self,
        work: Work<M::Path>,
        operation: Option<OperationIndex>,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> bool {
        let order = self.world.machine.order(work, Notice::rank(self.me, operation));
        if let Some(order) = order {
            outbox.file(self.strand.clock, 0, order);
        }
        order.is_some()
    }

    fn await_work(&mut self, kind: ActionKind) -> Flow {
        self.hold(Pending::Work { kind, done: false })
    }

    /// Returns the pause of a blocked rank: conditional where the next event is known to depend on time.
    #[inline]
    fn blocked(&self) -> Flow {
        let due = if self.depends_on_time() { self.due() } else { None };
        Flow::Pause(due.map_or(Pause::Blocked, Pause::Conditional))
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
        match duration.and_then(|duration| self.strand.clock.checked_add(duration)) {
            Some(clock) => {
                self.strand.clock = clock;
                Ok(())
            }
            None => Err(self.fail(ReplayErrorKind::TooLong { what, amount: amount() })),
        }
    }

    /// Waits for the completion of a request, and charges the receive overhead.
    #[inline]
    fn settle(&mut self, request: RequestId, completion: Completion, kind: ActionKind) {
        self.wait_for(request, completion.at, kind);
        self.pay(completion);
    }

    /// Charges the receive overhead of a completion.
    #[inline]
    fn pay(&mut self, completion: Completion) {
        if let Some(bytes) = completion.received {
            self.strand.clock += self.world.parameters.receive.cost(bytes);
        }
    }

    /// Returns whether the completion of a request, if there was one, wakes the program.
    #[inline]
    fn wake(
        &mut self,
        completed: Option<RequestId>,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<Wake, Failure<M::Error>> {
        if let Some(request) = completed {
            let goes_on = match self.requests.operation(request) {
                Some(index) => self.part_completed(index, outbox)?,
                None => self.awaited == completed && self.is_last_awaited(),
            };
            if goes_on {
                return Ok(Wake::Ready);
            }
        }
        Ok(self.reconsider())
    }

    #[inline]
    fn reconsider(&self) -> Wake {
        let due = if self.depends_on_time() { self.due() } else { None };
        due.map_or(Wake::No, Wake::Conditional)
    }
}

impl<M: Machine> Default for Rare<M> {
    fn default() -> Self {
        Self {
            flights: Flights::default(),
            operations_on: BTreeMap::new(),
            clashes: VecDeque::new(),
            branches: 0,
            granted: 0,
            persistent: BTreeMap::new(),
            ways: BTreeMap::new(),
            ignored: Vec::new(),
        }
    }
}

fn path<M: Machine>(
    world: &World<'_, M>,
    from: Rank,
    to: Rank,
) -> Result<M::Path, ReplayErrorKind<M::Error>> {
    world.machine.path(from, to).map_err(|source| ReplayErrorKind::NoPath { from, to, source })
}

impl<M: Machine> Process for RankProcess<'_, M> {
    type Token = Token;
    type Order = M::Order;
    /// Boxed: results are returned for every action.
    type Error = Box<ReplayError<M::Error>>;

    #[inline]
    fn deliver(
        &mut self,
        token: Token,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<Wake, Fault<Self::Error>> {
        let completed = match token {
            Token::Message { lane, message } => self.arrive(lane, message, outbox)?,
            Token::Clash => match self.rare().clashes.pop_front() {
                Some(failure) => return Err(failure),
                None => None,
            },
            Token::Arrived { request, at, party } => {
                let received = match party {
                    Party::Receiver { detached } => {
                        self.take_arrival(request, at);
                        detached
                    }
                    Party::Sender { received } => {
                        self.meet(request, WaitState::LateReceiver, received);
                        self.hear_of_receive(request);
                        None
                    }
                };
                self.requests.set(request, Request::Complete(Completion { at, received }));
                Some(request)
            }
            Token::Landed { flight, at } => self.land(flight, at),
            Token::Resume { at, operation: None } => {
                self.strand.clock = at;
                if let Pending::Work { done, .. } = &mut self.pending {
                    *done = true;
                }
                return Ok(Wake::Ready);
            }
            Token::Piece { from, piece } => {
                self.take_piece(from, piece);
                return Ok(Wake::No);
            }
            Token::Looks { tests, probes } => {
                self.world.set_looks(tests, probes);
                return Ok(Wake::No);
            }
            Token::Resume { at, operation: Some(index) } => {
                let goes_on = self.work_done(index, at, outbox)?;
                return Ok(if goes_on { Wake::Ready } else { self.reconsider() });
            }
        };
        self.wake(completed, outbox)
    }

    #[inline]
    fn resume(
        &mut self,
        turn: &mut Turn,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<Pause, Fault<Self::Error>> {
        self.run(turn, outbox)
    }

    fn clock(&self) -> SimTime {
        self.strand.clock
    }
}
