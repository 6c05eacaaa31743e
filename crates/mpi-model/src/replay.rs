//! The replay of one rank: a process of the engine.

mod pending;

use std::sync::atomic::{AtomicU64, Ordering};

use pdes_core::{Bytes, Fault, Outbox, Pause, Process, Rank, SimDuration, SimTime, Turn};
use trace_mmap::{Action, OutIdx, RankTrace, SendRecv, Slot, Trace};

use crate::collective::{Member, Step};
use crate::error::{ReplayError, ReplayErrorKind};
use crate::machine::Machine;
use crate::matching::{Port, Ports, Receive};
use crate::parameters::Parameters;
use crate::program::{Next, Program};
use crate::request::{Awaited, Completion, Direction, Request, RequestId, Requests};
use crate::statistics::{ActionKind, Statistics};
use crate::token::{Lane, Message, Token};
use pending::Pending;

/// What all ranks of a replay share.
#[derive(Debug)]
pub struct World<'t, M> {
    machine: &'t M,
    parameters: &'t Parameters,
    trace: &'t Trace,
    /// One plus the number of failed tests since the last successful one. Read and written only in turns that the
    /// engine has granted, and these are totally ordered.
    test_factor: AtomicU64,
}

impl<'t, M: Machine> World<'t, M> {
    /// Puts a trace on a machine.
    pub fn new(trace: &'t Trace, machine: &'t M, parameters: &'t Parameters) -> Self {
        Self { machine, parameters, trace, test_factor: AtomicU64::new(1) }
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
    /// When the action in progress began.
    began: SimTime,
    /// What is left of the action in progress.
    pending: Pending,
    /// The request without which the rank cannot go on.
    awaited: Option<RequestId>,
    requests: Requests,
    ports: Ports<M::Path>,
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
        let member = Member::new(me.get(), world.trace.ranks());
        Ok(Self {
            world,
            me,
            trace,
            program: Program::new(trace, member, world.parameters.collectives),
            clock: SimTime::ZERO,
            began: SimTime::ZERO,
            pending: Pending::Nothing,
            awaited: None,
            requests: Requests::new(trace.slots()),
            // Every port number belongs to an incoming channel.
            ports: Ports::new(ports.into_iter().flatten().collect()),
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
        Fault { at: self.clock, error: Box::new(ReplayError { rank: self.me, action: self.action(), kind }) }
    }

    /// The failure of a receive and the message that it meets, which is the same whichever came first.
    fn clash(
        &self,
        message: Message,
        receive: Receive,
        kind: ReplayErrorKind<M::Error>,
    ) -> Failure<M::Error> {
        let at = message.posted.max(receive.posted);
        Fault { at, error: Box::new(ReplayError { rank: self.me, action: receive.action, kind }) }
    }

    /// Runs action after action.
    fn run(&mut self, turn: &mut Turn, outbox: &mut Outbox<Token>) -> Result<Pause, Failure<M::Error>> {
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
    fn begin(&mut self, action: Action, outbox: &mut Outbox<Token>) -> Outcome<M::Error> {
        match action {
            Action::Compute { flops } => {
                self.compute(flops)?;
                Ok(self.end(ActionKind::Compute))
            }
            Action::Send { to, bytes } => match self.send(to, bytes, outbox) {
                Some(request) => self.complete(Pending::One { request, kind: ActionKind::Send }),
                None => Ok(self.end(ActionKind::Send)),
            },
            Action::Recv { from, bytes } => {
                let request = self.requests.receive();
                self.receive(from.index(), bytes, request, outbox)?;
                self.complete(Pending::One { request, kind: ActionKind::Recv })
            }
            Action::Isend { to, bytes, slot } => {
                self.isend(to, bytes, self.requests.slot(slot), outbox);
                Ok(self.end(ActionKind::Isend))
            }
            Action::Irecv { from, bytes, slot } => {
                self.receive(from.index(), bytes, self.requests.slot(slot), outbox)?;
                Ok(self.end(ActionKind::Irecv))
            }
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
                    self.receive(from.index(), both.recv_bytes, self.requests.receive(), outbox)?;
                }
                self.complete(self.both(Some(ActionKind::SendRecv)))
            }
            Action::Test { slot } => self.test(slot),
            Action::Sleep { seconds } => {
                self.sleep(seconds)?;
                Ok(self.end(ActionKind::Sleep))
            }
            Action::Init | Action::Communicator | Action::Location(_) => Ok(self.end(ActionKind::Marker)),
            Action::Finalize => Ok(self.end(ActionKind::Finalize)),
            Action::Null { slot } => {
                let kind = if slot.is_some() { ActionKind::Isend } else { ActionKind::Send };
                Ok(self.end(kind))
            }
            Action::Collective(_) => unreachable!("the program unfolds collective operations"),
        }
    }

    fn step(&mut self, step: Step, outbox: &mut Outbox<Token>) -> Outcome<M::Error> {
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
            Step::WaitAll => {
                let (from, to) = (self.requests.first_collective(), self.requests.end());
                self.complete(Pending::all(from, to, None))
            }
            Step::WaitEach => {
                self.complete(Pending::EachOfCollective { next: self.requests.first_collective() })
            }
            Step::Compute { flops } => {
                self.compute(flops)?;
                Ok(Flow::Continue)
            }
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

    #[inline]
    fn compute(&mut self, flops: f64) -> Result<(), Failure<M::Error>> {
        match self.later(SimDuration::try_from_picos_f64(flops * self.picos_per_flop)) {
            Some(clock) => {
                self.clock = clock;
                Ok(())
            }
            None => Err(self.too_long("a computation", format!("{flops} flop"))),
        }
    }

    fn sleep(&mut self, seconds: f64) -> Result<(), Failure<M::Error>> {
        // SimGrid's shortest sleep, but for none at all, is one nanosecond.
        let shortest = if seconds > 0.0 { 1e-9 } else { 0.0 };
        match self.later(SimDuration::try_from_secs_f64(seconds.max(shortest))) {
            Some(clock) => {
                self.clock = clock;
                Ok(())
            }
            None => Err(self.too_long("a sleep", format!("{seconds} s"))),
        }
    }

    fn too_long(&self, what: &'static str, amount: String) -> Failure<M::Error> {
        self.fail(ReplayErrorKind::TooLong { what, amount })
    }

    fn later(&self, duration: Option<SimDuration>) -> Option<SimTime> {
        self.clock.checked_add(duration?)
    }

    fn is_detached(&self, bytes: Bytes) -> bool {
        bytes < self.world.parameters.detached_below
    }

    /// Issues a blocking send; returns the request to wait for where the message is not detached.
    #[inline]
    fn send(&mut self, to: OutIdx, bytes: Bytes, outbox: &mut Outbox<Token>) -> Option<RequestId> {
        let channel = &self.trace.outgoing()[to.index()];
        let lane = channel.port.map(Lane::Port);
        let tag = channel.tag.get() as u32;
        let peer = channel.peer;
        let detached = self.is_detached(bytes);
        let request = self.requests.send();
        if detached {
            self.clock += self.world.parameters.send.cost(bytes);
        }
        self.issue(peer, lane, tag, bytes, request, outbox);
        (!detached).then_some(request)
    }

    #[inline]
    fn isend(&mut self, to: OutIdx, bytes: Bytes, request: RequestId, outbox: &mut Outbox<Token>) {
        let channel = &self.trace.outgoing()[to.index()];
        let lane = channel.port.map(Lane::Port);
        let (peer, tag) = (channel.peer, channel.tag.get() as u32);
        self.clock += self.world.parameters.isend.cost(bytes);
        self.issue(peer, lane, tag, bytes, request, outbox);
    }

    fn send_collective(&mut self, to: Rank, bytes: Bytes, request: RequestId, outbox: &mut Outbox<Token>) {
        let lane = Lane::Collective(self.me.get());
        self.issue(to, Some(lane), self.operation_tag(), bytes, request, outbox);
    }

    fn operation_tag(&self) -> u32 {
        self.program.operation().map_or(u32::MAX, |kind| kind as u32)
    }

    /// Puts a message on its way, and its request into the state that follows. A message for a lane that the receiver
    /// does not have is never received.
    #[inline]
    fn issue(
        &mut self,
        to: Rank,
        lane: Option<Lane>,
        tag: u32,
        bytes: Bytes,
        request: RequestId,
        outbox: &mut Outbox<Token>,
    ) {
        let (state, reply) = if self.is_detached(bytes) {
            (Request::Complete(Completion { at: self.clock, received: None }), None)
        } else {
            (Request::Pending(Awaited { direction: Direction::Send, peer: to }), Some(request))
        };
        self.requests.set(request, state);
        self.statistics.add_message(bytes);
        if let Some(lane) = lane {
            let message = Message { posted: self.clock, bytes, tag, reply };
            outbox.send(to, Token::Message { lane, message });
        }
    }

    /// Posts a receive on an incoming channel of the trace.
    #[inline]
    fn receive(
        &mut self,
        channel: usize,
        capacity: Bytes,
        request: RequestId,
        outbox: &mut Outbox<Token>,
    ) -> Result<(), Failure<M::Error>> {
        let incoming = &self.trace.incoming()[channel];
        let tag = incoming.tag.map(|tag| tag.get() as u32);
        let receive = Receive { posted: self.clock, request, action: self.action(), capacity, tag };
        self.post(incoming.port.index(), receive, outbox).map(|_| ())
    }

    fn receive_collective(
        &mut self,
        from: Rank,
        capacity: Bytes,
        request: RequestId,
        outbox: &mut Outbox<Token>,
    ) -> Result<(), Failure<M::Error>> {
        let tag = Some(self.operation_tag());
        let port = self.ports.collective(from);
        if self.ports.get_mut(port).path.is_none() {
            let path = path(self.world, from, self.me).map_err(|kind| self.fail(kind))?;
            self.ports.get_mut(port).path = Some(path);
        }
        let receive = Receive { posted: self.clock, request, action: self.action(), capacity, tag };
        match self.post(port, receive, outbox)? {
            true => Ok(()),
            false => self.check_operation(port),
        }
    }

    /// Posts a receive; returns whether its message was there.
    #[inline]
    fn post(
        &mut self,
        port: usize,
        receive: Receive,
        outbox: &mut Outbox<Token>,
    ) -> Result<bool, Failure<M::Error>> {
        let queue = self.ports.get_mut(port);
        let peer = queue.peer;
        match queue.post(receive) {
            Some(message) => self.matched(port, message, receive, outbox).map(|()| true),
            None => {
                let awaited = Awaited { direction: Direction::Receive, peer };
                self.requests.set(receive.request, Request::Pending(awaited));
                Ok(false)
            }
        }
    }

    /// Lets the data of a message flow: it starts when both sides are there, eager data when it is sent.
    #[inline]
    fn matched(
        &mut self,
        port: usize,
        message: Message,
        receive: Receive,
        outbox: &mut Outbox<Token>,
    ) -> Result<(), Failure<M::Error>> {
        let Message { posted, bytes, reply, .. } = message;
        let Port { peer, path, .. } = *self.ports.get_mut(port);
        if bytes > receive.capacity {
            let kind = ReplayErrorKind::Truncated { peer, sent: bytes, room: receive.capacity };
            return Err(self.clash(message, receive, kind));
        }
        let path = path.expect("a receive is posted after its path is known");
        let wire = bytes + self.world.parameters.envelope;
        let eager = bytes < self.world.parameters.eager_below;
        let start = if eager { posted } else { posted.max(receive.posted) };
        let arrival = self.world.machine.transfer(path, wire).and_then(|time| start.checked_add(time));
        let Some(at) = arrival else {
            let kind = ReplayErrorKind::TooLong { what: "a message", amount: bytes.to_string() };
            return Err(self.clash(message, receive, kind));
        };
        if let Some(request) = reply {
            outbox.send(peer, Token::Arrived { request, at });
        }
        let received = reply.is_none().then_some(bytes);
        self.requests.set(receive.request, Request::Complete(Completion { at, received }));
        Ok(())
    }

    /// Refuses a message and a receive that face each other in a collective port: their operations differ.
    fn check_operation(&mut self, port: usize) -> Result<(), Failure<M::Error>> {
        let queue = self.ports.get_mut(port);
        let (peer, clash) = (queue.peer, queue.clash());
        let Some((message, receive)) = clash else { return Ok(()) };
        let kind = |tag: Option<u32>| tag.and_then(ActionKind::from_number).unwrap_or(ActionKind::Marker);
        let (expected, found) = (kind(receive.tag), kind(Some(message.tag)));
        Err(self.clash(message, receive, ReplayErrorKind::CollectiveMismatch { peer, expected, found }))
    }

    fn arrive(
        &mut self,
        lane: Lane,
        message: Message,
        outbox: &mut Outbox<Token>,
    ) -> Result<Option<RequestId>, Failure<M::Error>> {
        let port = match lane {
            Lane::Port(port) => port.index(),
            Lane::Collective(from) => self.ports.collective(Rank::new(from)),
        };
        match self.ports.get_mut(port).arrive(message) {
            Some(receive) => {
                self.matched(port, message, receive, outbox)?;
                Ok(Some(receive.request))
            }
            None => {
                if matches!(lane, Lane::Collective(_)) {
                    self.check_operation(port)?;
                }
                Ok(None)
            }
        }
    }

    fn test(&mut self, slot: Slot) -> Outcome<M::Error> {
        match self.requests.get(self.requests.slot(slot)) {
            // A test after one that succeeded: the request is gone.
            Request::Inactive => Ok(self.end(ActionKind::Test)),
            Request::Pending(_) | Request::Complete(_) => {
                self.pending = Pending::Test { slot, paid: false };
                Ok(Flow::Pause(Pause::Conditional(self.clock)))
            }
        }
    }

    /// Pays for a test, then looks at the request: both are conditional events, because the price depends on the
    /// tests of all ranks, and the outcome on what arrives before now.
    fn granted_test(&mut self, slot: Slot, paid: bool) -> Outcome<M::Error> {
        let parameters = self.world.parameters;
        // Relaxed: granted turns are ordered by the engine's quiescence.
        let factor = self.world.test_factor.load(Ordering::Relaxed);
        if !paid {
            self.clock += parameters.test * factor;
            self.pending = Pending::Test { slot, paid: true };
            return Ok(Flow::Pause(Pause::Conditional(self.clock)));
        }
        self.pending = Pending::Nothing;
        let request = self.requests.slot(slot);
        match self.requests.get(request) {
            Request::Complete(completion) if completion.at <= self.clock => {
                self.requests.set(request, Request::Inactive);
                self.settle(completion);
                self.world.test_factor.store(1, Ordering::Relaxed);
            }
            _ if parameters.test_grows => {
                self.world.test_factor.store(factor + 1, Ordering::Relaxed);
            }
            _ => {}
        }
        Ok(self.end(ActionKind::Test))
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

impl<M: Machine> Process for RankProcess<'_, M>
where
    M::Path: Send,
{
    type Token = Token;
    /// Boxed: results are returned for every action.
    type Error = Box<ReplayError<M::Error>>;

    #[inline]
    fn deliver(&mut self, token: Token, outbox: &mut Outbox<Token>) -> Result<bool, Fault<Self::Error>> {
        let completed = match token {
            Token::Message { lane, message } => self.arrive(lane, message, outbox)?,
            Token::Arrived { request, at } => {
                self.requests.set(request, Request::Complete(Completion { at, received: None }));
                Some(request)
            }
        };
        Ok(completed.is_some() && completed == self.awaited)
    }

    #[inline]
    fn resume(&mut self, turn: &mut Turn, outbox: &mut Outbox<Token>) -> Result<Pause, Fault<Self::Error>> {
        self.run(turn, outbox)
    }

    fn clock(&self) -> SimTime {
        self.clock
    }
}
