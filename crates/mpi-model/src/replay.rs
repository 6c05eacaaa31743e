//! The replay of one rank: a process of the engine.

mod flights;
mod message;
mod pending;
mod test;

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;

use pdes_core::{Fault, Outbox, Pause, Process, Rank, SimDuration, SimTime, Turn};
use trace_mmap::{Action, RankTrace, SendRecv, Slot, Trace};

use crate::collective::{Layout, Member, Step};
use crate::error::{ReplayError, ReplayErrorKind};
use crate::machine::{Machine, Work};
use crate::matching::{Port, Ports, Receive};
use crate::notice::Notice;
use crate::parameters::Parameters;
use crate::program::{Next, Program};
use crate::request::{Awaited, Completion, Request, RequestId, Requests};
use crate::statistics::{ActionKind, Statistics};
use crate::token::{Message, Token};
use flights::Flights;
use pending::Pending;

/// What all ranks of a replay share.
#[derive(Debug)]
pub struct World<'t, M> {
    machine: &'t M,
    parameters: &'t Parameters,
    trace: &'t Trace,
    /// Which ranks share a node.
    layout: Layout,
    /// One plus the number of failed tests since the last successful one. Read and written only in turns that the
    /// engine has granted, and these are totally ordered.
    test_factor: AtomicU64,
}

impl<'t, M: Machine> World<'t, M> {
    /// Puts a trace on a machine.
    pub fn new(trace: &'t Trace, machine: &'t M, parameters: &'t Parameters) -> Self {
        let nodes: Vec<u32> = (0..trace.ranks()).map(|rank| machine.node(Rank::new(rank))).collect();
        Self { machine, parameters, trace, layout: Layout::new(&nodes), test_factor: AtomicU64::new(1) }
    }

    /// Makes the processes of all ranks, in their order.
    ///
    /// # Errors
    /// Where two ranks that the trace connects have no path.
    pub fn processes(&'t self) -> Result<Vec<RankProcess<'t, M>>, Box<ReplayError<M::Error>>> {
        (0..self.trace.ranks()).map(|rank| RankProcess::new(self, Rank::new(rank))).collect()
    }
}

/// The replay of one rank.
pub struct RankProcess<'t, M: Machine> {
    world: &'t World<'t, M>,
    me: Rank,
    trace: &'t RankTrace,
    program: Program<'t>,
    clock: SimTime,
    /// When the rank posted a send or a receive last, and how many at that instant.
    last_post: SimTime,
    posts: u32,
    /// When the action in progress began.
    began: SimTime,
    /// What is left of the action in progress.
    pending: Pending,
    /// The request without which the rank cannot go on.
    awaited: Option<RequestId>,
    requests: Requests,
    ports: Ports<M::Path>,
    flights: Flights,
    /// Failures of messages that were there before their receives were posted; see [`Token::Clash`].
    clashes: VecDeque<Failure<M::Error>>,
    picos_per_flop: f64,
    statistics: Statistics,
}

/// Why a rank does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// What it waits for.
    pub awaited: Awaited,
    /// The index of the action in progress, from 0.
    pub action: u64,
    /// The collective operation of which that is part.
    pub operation: Option<ActionKind>,
}

/// Whether a rank goes on with its next action.
enum Flow {
    Continue,
    Pause(Pause),
}

type Failure<E> = Fault<Box<ReplayError<E>>>;
type Outcome<E> = Result<Flow, Failure<E>>;

impl<'t, M: Machine> RankProcess<'t, M> {
    fn new(world: &'t World<'t, M>, me: Rank) -> Result<Self, Box<ReplayError<M::Error>>> {
        let trace = world.trace.rank(me);
        let mut ports: Vec<Option<Port<M::Path>>> = (0..trace.ports()).map(|_| None).collect();
        for incoming in trace.incoming() {
            let port = &mut ports[incoming.port.index()];
            if port.is_none() {
                let path = path(world, incoming.peer, me).map_err(|kind| ReplayError {
                    rank: me,
                    action: 0,
                    kind,
                })?;
                *port = Some(Port::new(incoming.peer, Some(path)));
            }
        }
        let member = Member::new(me.get(), &world.layout, &world.parameters.collectives);
        Ok(Self {
            world,
            me,
            trace,
            program: Program::new(trace, member),
            clock: SimTime::ZERO,
            last_post: SimTime::ZERO,
            posts: 0,
            began: SimTime::ZERO,
            pending: Pending::Nothing,
            awaited: None,
            requests: Requests::new(trace.slots()),
            // Every port number belongs to an incoming channel.
            ports: Ports::new(ports.into_iter().flatten().collect()),
            flights: Flights::default(),
            clashes: VecDeque::new(),
            picos_per_flop: 1e12 / world.machine.speed(me),
            statistics: Statistics::default(),
        })
    }

    /// Returns the rank.
    pub fn rank(&self) -> Rank {
        self.me
    }

    /// Returns what the rank did.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns what the rank waits for, if it does.
    pub fn waiting(&self) -> Option<Waiting> {
        match self.requests.get(self.awaited?) {
            Request::Pending(awaited) => {
                Some(Waiting { awaited, action: self.action(), operation: self.program.operation() })
            }
            Request::Inactive | Request::Complete(_) => None,
        }
    }

    /// The index of the action in progress.
    fn action(&self) -> u64 {
        self.program.position().saturating_sub(1)
    }

    /// The failure of the action in progress.
    fn fail(&self, kind: ReplayErrorKind<M::Error>) -> Failure<M::Error> {
        self.failure(self.clock, self.action(), kind)
    }

    /// The failure of a receive and the message that it meets, which is the same whichever came first.
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

    /// Runs action after action.
    fn run(
        &mut self,
        turn: &mut Turn,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<Pause, Failure<M::Error>> {
        if let Flow::Pause(pause) = self.proceed(turn.granted)? {
            return Ok(pause);
        }
        loop {
            if self.clock > turn.horizon {
                return Ok(Pause::Horizon);
            }
            if turn.steps == 0 {
                return Ok(Pause::TurnOver);
            }
            let flow = match self.program.next() {
                Next::Action(action) => {
                    turn.steps -= 1;
                    self.begin(action, outbox)?
                }
                Next::Step(step) => self.step(step, outbox)?,
                Next::CollectiveDone(kind) => {
                    turn.steps -= 1;
                    self.requests.clear_collective();
                    self.end(kind)
                }
                Next::End => self.complete(Pending::AtEnd { next: 0 })?,
            };
            if let Flow::Pause(pause) = flow {
                return Ok(pause);
            }
        }
    }

    /// Accounts for the action in progress, which is over.
    #[inline]
    fn end(&mut self, kind: ActionKind) -> Flow {
        self.statistics.add_action(kind, self.clock - self.began);
        self.began = self.clock;
        Flow::Continue
    }

    #[inline]
    fn begin(&mut self, action: Action, outbox: &mut Outbox<Token, M::Order>) -> Outcome<M::Error> {
        match action {
            Action::Compute { flops } => self.compute(flops, Some(ActionKind::Compute), outbox),
            Action::Send { to, bytes } => match self.send(to, bytes, outbox) {
                Some(request) => self.complete(Pending::One { request, kind: ActionKind::Send }),
                None => Ok(self.end(ActionKind::Send)),
            },
            Action::Recv { from, bytes } => {
                let request = self.requests.receive();
                self.receive(from.index(), bytes, request, outbox);
                self.complete(Pending::One { request, kind: ActionKind::Recv })
            }
            Action::Isend { to, bytes, slot } => {
                self.isend(to, bytes, self.requests.slot(slot), outbox);
                Ok(self.end(ActionKind::Isend))
            }
            Action::Irecv { from, bytes, slot } => {
                self.receive(from.index(), bytes, self.requests.slot(slot), outbox);
                Ok(self.end(ActionKind::Irecv))
            }
            Action::RecvAny { .. } | Action::IrecvAny { .. } => Err(self.fail(ReplayErrorKind::AnySource)),
            Action::Wait { slot } => {
                self.complete(Pending::One { request: self.requests.slot(slot), kind: ActionKind::Wait })
            }
            Action::WaitAll => {
                let (from, to) = (self.requests.slot(Slot::new(0)), self.requests.send());
                self.complete(Pending::all(from, to, Some(ActionKind::Waitall)))
            }
            Action::SendRecv(id) => {
                let both = *self.trace.send_recv(id);
                if self.is_to_itself(&both) {
                    return Ok(self.end(ActionKind::SendRecv));
                }
                if let Some(to) = both.to {
                    self.isend(to, both.send_bytes, self.requests.send(), outbox);
                }
                if let Some(from) = both.from {
                    self.receive(from.index(), both.recv_bytes, self.requests.receive(), outbox);
                }
                self.complete(self.both(Some(ActionKind::SendRecv)))
            }
            Action::Test { slot } => self.test(slot),
            Action::Sleep { seconds } => self.sleep(seconds, outbox),
            Action::Init | Action::Communicator | Action::Location(_) => Ok(self.end(ActionKind::Marker)),
            Action::Finalize => Ok(self.end(ActionKind::Finalize)),
            Action::Null { slot } => {
                let kind = if slot.is_some() { ActionKind::Isend } else { ActionKind::Send };
                Ok(self.end(kind))
            }
            Action::Collective(_) => unreachable!("the program unfolds collective operations"),
        }
    }

    fn step(&mut self, step: Step, outbox: &mut Outbox<Token, M::Order>) -> Outcome<M::Error> {
        match step {
            Step::Send { to, bytes } => {
                let request = self.requests.send();
                if self.is_detached(bytes) {
                    self.clock += self.world.parameters.send.cost(bytes);
                }
                self.send_collective(to, bytes, request, outbox);
                self.complete(Pending::Part { request })
            }
            Step::Recv { from, bytes } => {
                let request = self.requests.receive();
                self.receive_collective(from, bytes, request, outbox)?;
                self.complete(Pending::Part { request })
            }
            Step::Isend { to, bytes } => {
                let request = self.requests.add_collective();
                self.clock += self.world.parameters.isend.cost(bytes);
                self.send_collective(to, bytes, request, outbox);
                Ok(Flow::Continue)
            }
            Step::Irecv { from, bytes } => {
                let request = self.requests.add_collective();
                self.receive_collective(from, bytes, request, outbox)?;
                Ok(Flow::Continue)
            }
            Step::SendRecv { to, send_bytes, from, recv_bytes } => {
                if to == self.me && from == self.me {
                    return Ok(Flow::Continue);
                }
                self.clock += self.world.parameters.isend.cost(send_bytes);
                self.send_collective(to, send_bytes, self.requests.send(), outbox);
                self.receive_collective(from, recv_bytes, self.requests.receive(), outbox)?;
                self.complete(self.both(None))
            }
            Step::Wait { request } => {
                self.complete(Pending::Part { request: self.requests.of_collective(request) })
            }
            Step::WaitAll => {
                let (from, to) = (self.requests.first_collective(), self.requests.end());
                self.complete(Pending::all(from, to, None))
            }
            Step::WaitEach => {
                self.complete(Pending::EachOfCollective { next: self.requests.first_collective() })
            }
            Step::Compute { flops } => self.compute(flops, None, outbox),
        }
    }

    /// A combined send and receive with oneself is a copy in memory.
    fn is_to_itself(&self, both: &SendRecv) -> bool {
        let me = Some(self.me);
        let to = both.to.map(|to| self.trace.outgoing()[to.index()].peer);
        let from = both.from.map(|from| self.trace.incoming()[from.index()].peer);
        to == me && from == me
    }

    /// The rest of a combined send and receive.
    fn both(&self, kind: Option<ActionKind>) -> Pending {
        Pending::all(self.requests.send(), self.requests.first_collective(), kind)
    }

    /// Computes, as an action of this kind or as part of a collective operation.
    #[inline]
    fn compute(
        &mut self,
        flops: f64,
        kind: Option<ActionKind>,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Outcome<M::Error> {
        let duration = SimDuration::try_from_picos_f64(flops * self.picos_per_flop);
        let work = Work::Compute { rank: self.me, flops };
        if let Some(flow) = duration.and_then(|_| self.order(work, kind, outbox)) {
            return Ok(flow);
        }
        self.advance(duration, "a computation", || format!("{flops} flop"))?;
        Ok(kind.map_or(Flow::Continue, |kind| self.end(kind)))
    }

    fn sleep(&mut self, seconds: f64, outbox: &mut Outbox<Token, M::Order>) -> Outcome<M::Error> {
        // SimGrid's shortest sleep, but for none at all, is one nanosecond.
        let shortest = if seconds > 0.0 { 1e-9 } else { 0.0 };
        let duration = SimDuration::try_from_secs_f64(seconds.max(shortest));
        let work = duration.filter(|&duration| duration > SimDuration::ZERO);
        let order = |duration| self.order(Work::Sleep { duration }, Some(ActionKind::Sleep), outbox);
        if let Some(flow) = work.and_then(order) {
            return Ok(flow);
        }
        self.advance(duration, "a sleep", || format!("{seconds} s"))?;
        Ok(self.end(ActionKind::Sleep))
    }

    /// Has the machine do some work in the order of time, if it does such work so; the rank then waits for its end.
    #[inline]
    fn order(
        &mut self,
        work: Work<M::Path>,
        kind: Option<ActionKind>,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Option<Flow> {
        let order = self.world.machine.order(work, Notice::rank(self.me))?;
        outbox.file(self.clock, 0, order);
        self.pending = Pending::Work { kind };
        self.awaited = None;
        Some(Flow::Pause(Pause::Blocked))
    }

    /// Moves the clock on, unless it would leave its range.
    #[inline]
    fn advance(
        &mut self,
        duration: Option<SimDuration>,
        what: &'static str,
        amount: impl FnOnce() -> String,
    ) -> Result<(), Failure<M::Error>> {
        match duration.and_then(|duration| self.clock.checked_add(duration)) {
            Some(clock) => {
                self.clock = clock;
                Ok(())
            }
            None => Err(self.fail(ReplayErrorKind::TooLong { what, amount: amount() })),
        }
    }

    /// Moves the clock past a completion, and pays for it.
    #[inline]
    fn settle(&mut self, completion: Completion) {
        self.clock = self.clock.max(completion.at);
        if let Some(bytes) = completion.received {
            self.clock += self.world.parameters.receive.cost(bytes);
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
    ) -> Result<bool, Fault<Self::Error>> {
        let completed = match token {
            Token::Message { lane, message } => self.arrive(lane, message, outbox)?,
            Token::Clash => match self.clashes.pop_front() {
                Some(failure) => return Err(failure),
                None => None,
            },
            Token::Arrived { request, at, received } => {
                self.requests.set(request, Request::Complete(Completion { at, received }));
                Some(request)
            }
            Token::Landed { flight, at } => self.land(flight, at),
            Token::Resume { at } => {
                self.clock = at;
                return Ok(true);
            }
        };
        Ok(completed.is_some() && completed == self.awaited)
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
        self.clock
    }
}
