//! The replay of one rank, as a logical process of the engine: the state of its program.

mod actions;
mod boundary;
mod calls;
mod cancel;
mod checkpoint;
pub(crate) mod file;
mod graph;
pub(crate) mod launch;
mod offload;
mod outcome;
mod pending;
mod probe;
mod program;
mod state;
mod test;
mod window;

use std::task::Poll;

use pdes_core::{Fault, LpId, Outbox, Pause, Process, Rank, SimTime, Turn, Wake};
use serde::{Deserialize, Serialize};
use trace_mmap::Cursor;

use crate::collective::runner::{CollectiveRunner, Means};
use crate::context::{Failure, RankContext, RankOutbox};
use crate::critical_path::CriticalPath;
use crate::error::{ReplayError, ReplayErrorKind};
use crate::locks::Locks;
use crate::machine::Machine;
use crate::observer::{Analyses, Analysis};
use crate::point_to_point::{Awaited, AwaitedByCall, OperationIndex, PointToPoint, Request, RequestId};
use crate::replay::Replay;
use crate::statistics::{ActionKind, Statistics};
use crate::token::Token;
use boundary::BoundaryAction;
pub use boundary::{Interval, RankAtCut};
use file::Files;
use graph::GraphRunner;
use launch::Launched;
use offload::Offload;
use pending::Pending;
use program::Program;

/// The replay of one rank: a logical process.
///
/// The engine delivers tokens (envelopes, arrivals, completions) in any wall-clock order and resumes the process; the process
/// reads actions from its trace until one has to wait. See [`Process`] for the laws that make the result independent of the
/// schedule.
///
/// It holds the state of the program, which reads the trace. Its parts hold the rest: requests and messages, collective operations
/// in progress, and the context that all of them share.
pub struct RankProcess<'t, M: Machine, A: Analysis = Analyses<'t>> {
    context: RankContext<'t, M, A>,
    point_to_point: PointToPoint<'t, M, A>,
    collectives: CollectiveRunner<'t>,
    cursor: Cursor<'t>,
    /// Begin of the action in progress.
    action_begin: SimTime,
    /// Remainder of the action in progress.
    pending: Pending,
    /// Request for which the rank waits.
    awaited: Option<RequestId>,
    /// Number of computations that the rank could run ahead of, modulo [`MAX_AHEAD`](actions::MAX_AHEAD).
    computations_ahead: u8,
    /// Factor of the duration of computations in the current region of the program.
    compute_factor: f64,
    /// Accelerator of the current region, where the machine has accelerators.
    offload: Option<Box<Offload<M::Route>>>,
    /// Number of conditional events granted.
    granted_events: u64,
    boundary_action: BoundaryAction,
    files: Files,
    /// The program, where it is a graph.
    graph: Option<Box<GraphRunner<'t>>>,
    /// The program, where it is known while it runs only.
    program: Option<Box<Program<'t>>>,
    /// Start and end of the program, where a launcher starts it, or it may die.
    launched: Option<Box<Launched<'t>>>,
    /// Locks of its memory that ranks hold.
    locks: Option<Box<Locks>>,
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

/// Control flow after an action: continue with the next one, or pause.
enum Control {
    Continue,
    Pause(Pause),
}

type Outcome<E> = Result<Control, Failure<E>>;

impl<M: Machine> RankProcess<'_, M> {
    /// Returns the critical path to the end of the rank, where [requested](Replay::with_critical_paths).
    pub fn critical_path(&self) -> Option<&CriticalPath> {
        self.observer().critical_path()
    }
}

impl<'t, M: Machine, A: Analysis> RankProcess<'t, M, A> {
    pub(crate) fn new(replay: &'t Replay<'t, M, A>, me: Rank) -> Result<Self, Box<ReplayError<M::Error>>> {
        let point_to_point =
            PointToPoint::new(replay, me).map_err(|kind| ReplayError { rank: me, action: 0, kind })?;
        let trace = replay.trace.rank(me);
        let context = RankContext::new(replay, me);
        let (compute_factor, offload) = (context.compute_factor(""), Offload::new(&context));
        let mut process = Self {
            context,
            point_to_point,
            collectives: CollectiveRunner::default(),
            cursor: if replay.stops_at_iterations { trace.cursor_with_boundaries() } else { trace.cursor() },
            action_begin: SimTime::ZERO,
            pending: if trace.graph().is_some() { Pending::Graph } else { Pending::Nothing },
            awaited: None,
            computations_ahead: 0,
            compute_factor,
            offload,
            granted_events: 0,
            boundary_action: BoundaryAction::default(),
            files: Files::default(),
            graph: trace.graph().map(|graph| Box::new(GraphRunner::new(graph, replay.start()))),
            program: (trace.grows() && replay.is_placed()).then(|| {
                let sources = replay.sources.as_ref().expect("the ranks of a trace that grows have sources");
                Box::new(Program::new(sources.source(me, trace)))
            }),
            launched: replay.launched(me).map(Box::new),
            locks: None,
        };
        if replay.start() > SimTime::ZERO {
            process.context.worked(ActionKind::Sleep);
            process.end(ActionKind::Sleep);
        }
        Ok(process)
    }

    /// Returns the rank.
    pub fn rank(&self) -> Rank {
        self.context.me
    }

    /// Returns the logical process of the rank.
    pub fn lp(&self) -> LpId {
        self.context.replay.lp(self.context.me)
    }

    /// Returns the number of actions that the rank has begun, has passed over, or passes over at the next iteration boundary.
    pub fn actions(&self) -> u64 {
        self.graph.as_ref().map_or_else(
            || {
                self.actions_of_program()
                    .unwrap_or(self.cursor.position())
                    .saturating_add(self.actions_to_skip())
            },
            |graph| graph.started(),
        )
    }

    /// Returns the statistics of the rank.
    pub fn statistics(&self) -> &Statistics {
        &self.context.observers.statistics
    }

    /// Returns the statistics of the rank, and drops everything else.
    pub fn into_statistics(self) -> Statistics {
        self.context.observers.statistics
    }

    /// Returns the observer of the rank.
    pub fn observer(&self) -> &A::Observer<'t> {
        &self.context.observers.others
    }

    /// Returns the reason why the rank is blocked, if it is.
    pub fn wait_reason(&self) -> Option<WaitReason> {
        let (awaited, operation) = match self.pending {
            Pending::Operation { index } => (self.operation_awaits(index)?, Some(index)),
            Pending::Graph => return self.graph.as_ref()?.wait_reason(&self.point_to_point.requests),
            _ => self.program_awaits()?,
        };
        let operation = operation.and_then(|index| self.collectives.kind(index));
        Some(WaitReason { awaited, action: self.context.thread.action, operation })
    }

    /// Returns the ranks that wait for a lock of the memory of this one, each with a rank that holds it.
    pub fn lock_waits(&self) -> impl Iterator<Item = (Rank, Rank)> {
        self.locks.iter().flat_map(|locks| locks.waiting())
    }

    /// Returns the event for which the program waits, and the non-blocking operation that has to end first.
    fn program_awaits(&self) -> Option<(Awaited, Option<OperationIndex>)> {
        if let Some(awaited) = self.outcome_awaits() {
            return Some((awaited, None));
        }
        let request = self.awaited?;
        let Request::Pending(awaited) = self.point_to_point.requests.get(request) else { return None };
        let operation = self.collectives.with_request(request);
        Some((operation.and_then(|index| self.operation_awaits(index)).unwrap_or(awaited), operation))
    }

    fn operation_awaits(&self, index: OperationIndex) -> Option<Awaited> {
        self.collectives.awaits(index, &self.point_to_point.requests)
    }

    /// Returns the collective operations, and the means by which they run.
    fn collectives<'a, 'o>(
        &'a mut self,
        outbox: &'a mut RankOutbox<'o, M>,
    ) -> (&'a mut CollectiveRunner<'t>, Means<'a, 'o, 't, M, A>) {
        let Self { context, point_to_point, collectives, .. } = self;
        (collectives, Means { context, point_to_point, outbox })
    }

    /// Replays actions until one waits, the horizon is passed or the turn is over.
    fn run(&mut self, turn: &mut Turn, outbox: &mut RankOutbox<'_, M>) -> Result<Pause, Failure<M::Error>> {
        if self.boundary_action.takes_stop() {
            return Ok(Pause::AtCheckpoint);
        }
        let prices = turn.granted.then(|| {
            self.granted_events += 1;
            self.keep_undisturbed(turn.undisturbed_until);
            self.context.replay.poll_prices()
        });
        // A grant is for the earliest conditional event of the rank: a delayed message, the mailbox, a poll of an operation, or the pending
        // action.
        let granted = turn.granted
            && !self.start_due_message(outbox)?
            && !self.match_due_pair(outbox)?
            && !self.poll_for_member(outbox)?;
        let flow = self.resume_action(granted, &mut turn.steps, outbox)?;
        // Other processes must see changed prices before the next grant, even if this action pauses.
        if let Some(before) = prices {
            self.context.replay.broadcast_poll_prices(before, outbox);
        }
        if let Control::Pause(pause) = flow {
            return Ok(pause);
        }
        let mut index = self.cursor.position();
        loop {
            if self.context.thread.clock > turn.horizon {
                return Ok(Pause::Horizon);
            }
            if turn.steps == 0 {
                return Ok(Pause::OutOfSteps);
            }
            let next = match self.cursor.next_action() {
                Some(action) => {
                    self.context.thread.action = index;
                    index += 1;
                    Some(action)
                }
                None if self.cursor.iteration_boundary().is_some() => {
                    if self.stops_at_boundary() {
                        return Ok(Pause::AtCheckpoint);
                    }
                    index = self.cursor.position();
                    continue;
                }
                None => match self.next_of_program()? {
                    Poll::Ready(next) => next,
                    Poll::Pending => return Ok(Pause::Outside),
                },
            };
            // One call, so that the compiler inlines it.
            let flow = match next {
                Some(action) => {
                    turn.steps -= 1;
                    self.begin(action, outbox)?
                }
                None => {
                    self.begin_call(Some(AwaitedByCall::All), outbox)?;
                    self.complete(Pending::AtEnd { next: 0 })?
                }
            };
            if let Control::Pause(pause) = flow {
                return Ok(pause);
            }
        }
    }

    /// Starts the delayed message that is due if the granted event belongs to it; returns whether it did.
    fn start_due_message(&mut self, outbox: &mut RankOutbox<'_, M>) -> Result<bool, Failure<M::Error>> {
        let Some(due) = self.progress_due() else { return Ok(false) };
        let others = [self.mail_due(), self.outcome_due(), self.poll_due()];
        if others.into_iter().flatten().any(|other| other < due) {
            return Ok(false);
        }
        self.point_to_point.start_due_message(&mut self.context, outbox)?;
        Ok(true)
    }

    /// Matches the pair of the mailbox that is due if the granted event belongs to it; returns whether it did.
    fn match_due_pair(&mut self, outbox: &mut RankOutbox<'_, M>) -> Result<bool, Failure<M::Error>> {
        let Some(due) = self.mail_due() else { return Ok(false) };
        if [self.outcome_due(), self.poll_due()].into_iter().flatten().any(|other| other < due) {
            return Ok(false);
        }
        let completed = self.point_to_point.match_due_pair(&mut self.context, outbox)?;
        let operation =
            completed.and_then(|request| Some((self.point_to_point.requests.operation(request)?, request)));
        if let Some((operation, request)) = operation
            && let Some((graph, mut means)) = self.graph(outbox)
        {
            graph.message_completed(operation, request, &mut means);
        }
        Ok(true)
    }

    /// Carries out a poll of an operation if the granted event belongs to it; returns whether it did.
    fn poll_for_member(&mut self, outbox: &mut RankOutbox<'_, M>) -> Result<bool, Failure<M::Error>> {
        let Some((at, index)) = self.collectives.first_poll() else { return Ok(false) };
        if self.outcome_due().is_some_and(|outcome| outcome <= at) {
            return Ok(false);
        }
        let (collectives, mut means) = self.collectives(outbox);
        collectives.poll(index, &mut means)?;
        Ok(true)
    }

    /// Returns the time at which a delayed message begins, if the call in progress has not ended by then.
    #[inline]
    fn progress_due(&self) -> Option<SimTime> {
        let progress = self.point_to_point.progress.as_ref()?;
        progress.due().filter(|_| self.pending.is_some())
    }

    fn mail_due(&self) -> Option<SimTime> {
        self.point_to_point.mailbox.as_ref().and_then(|mailbox| mailbox.due())
    }

    fn poll_due(&self) -> Option<SimTime> {
        self.collectives.first_poll().map(|(at, _)| at)
    }

    /// Returns the time of the next conditional event of this rank, as far as it is known.
    fn next_conditional_event(&self) -> Option<SimTime> {
        let due = [self.progress_due(), self.mail_due(), self.outcome_due(), self.poll_due()];
        due.into_iter().flatten().min()
    }

    /// Returns the next conditional event, as far as it is known, where tokens may change it.
    #[inline(always)]
    fn due(&self) -> Option<SimTime> {
        let depends_on_time = self.point_to_point.depends_on_time
            || self.collectives.is_polling()
            || self.pending.depends_on_time();
        if depends_on_time { self.next_conditional_event() } else { None }
    }

    /// Returns the pause of a blocked rank: conditional where the next event is known to depend on time.
    #[inline]
    fn blocked(&self) -> Control {
        Control::Pause(self.due().map_or(Pause::Blocked, Pause::Conditional))
    }

    #[inline(always)]
    fn current_wake(&self) -> Wake {
        match self.due() {
            None => Wake::No,
            Some(_) if self.is_outcome_certain() => Wake::Ready,
            Some(at) => Wake::Conditional(at),
        }
    }

    /// Takes a token of another rank, or of the machine.
    #[inline(always)]
    fn take(&mut self, token: Token, outbox: &mut RankOutbox<'_, M>) -> Result<Wake, Failure<M::Error>> {
        let Self { context, point_to_point, .. } = self;
        let completed = match token {
            Token::Message { queue, message } => {
                point_to_point.message_arrived(context, queue, message, outbox)?
            }
            Token::MatchError => match point_to_point.take_failure() {
                Some(failure) => return Err(failure),
                None => None,
            },
            Token::Arrived { request, at, side } => {
                point_to_point.data_arrived(context, request, at, side);
                Some(request)
            }
            Token::EagerArrived { id, at } => point_to_point.eager_arrived(context, id, at),
            Token::WorkDone { at, operation: None } => {
                context.thread.clock = at;
                if let Pending::Work { done, .. }
                | Pending::Access { done, .. }
                | Pending::Copy { done, .. } = &mut self.pending
                {
                    *done = true;
                }
                return Ok(Wake::Ready);
            }
            Token::ReadBeyondEnd { size } => {
                return Err(context.fail(ReplayErrorKind::ReadBeyondEnd { size }));
            }
            Token::PathFragment { from, fragment } => {
                context.observers.data_received(from, fragment);
                return Ok(Wake::No);
            }
            Token::Lock(message) => {
                self.lock_called(&message, outbox);
                return Ok(Wake::No);
            }
            Token::Locked { request, at, from, cause } => {
                point_to_point.locked(context, request, at, (from, cause));
                Some(request)
            }
            Token::Started => return Ok(Wake::Ready),
            Token::RankEnded { at, checkpoints } => return Ok(self.rank_ended(at, checkpoints)),
            Token::FailedPolls { tests, probes } => {
                context.replay.set_poll_prices(tests, probes);
                return Ok(Wake::No);
            }
            Token::WorkDone { at, operation: Some(index) } => {
                if let Some((graph, mut means)) = self.graph(outbox) {
                    graph.computed(index, at, &mut means);
                    return Ok(if graph.can_continue() { Wake::Ready } else { self.current_wake() });
                }
                let awaited = self.awaited;
                let (collectives, mut means) = self.collectives(outbox);
                let resumes = collectives.work_done(index, at, awaited, &mut means)?;
                return Ok(if resumes { Wake::Ready } else { self.current_wake() });
            }
        };
        self.wake(completed, outbox)
    }

    /// Returns whether the completion of a request, if there was one, wakes the program.
    #[inline]
    fn wake(
        &mut self,
        completed: Option<RequestId>,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<Wake, Failure<M::Error>> {
        if let Some(request) = completed {
            let resumes = match self.point_to_point.requests.operation(request) {
                Some(index) => {
                    if let Some((graph, mut means)) = self.graph(outbox) {
                        graph.message_completed(index, request, &mut means);
                        return Ok(if graph.can_continue() { Wake::Ready } else { self.current_wake() });
                    }
                    let awaited = self.awaited;
                    let (collectives, mut means) = self.collectives(outbox);
                    collectives.part_completed(index, awaited, &mut means)?
                }
                None => match self.pending {
                    Pending::Operation { index } => {
                        self.collectives.is_wait_over(index, &self.point_to_point.requests)
                    }
                    _ => self.awaited == completed && self.is_last_awaited(),
                },
            };
            if resumes {
                return Ok(Wake::Ready);
            }
        }
        Ok(self.current_wake())
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
        let outbox = &mut RankOutbox::new(outbox, self.context.replay.first_lp);
        if self.launched.is_some()
            && let Some(wake) = self.before_token(&token)?
        {
            return Ok(wake);
        }
        // One call, so that the compiler inlines what takes tokens.
        let wake = self.take(token, outbox)?;
        if self.program.is_some() {
            self.let_foresee();
        }
        Ok(if self.launched.is_some() { self.after_token(wake) } else { wake })
    }

    #[inline]
    fn resume(
        &mut self,
        turn: &mut Turn,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<Pause, Fault<Self::Error>> {
        let outbox = &mut RankOutbox::new(outbox, self.context.replay.first_lp);
        let pause = match self.launched {
            None => self.run(turn, outbox),
            Some(_) => self.resume_launched(turn, outbox),
        };
        if self.program.is_some() {
            self.let_foresee();
        }
        pause
    }

    fn clock(&self) -> SimTime {
        let clock = self.context.thread.clock;
        self.launched.as_ref().map_or(clock, |launched| launched.clock(clock))
    }

    fn has_decided(&self) -> bool {
        self.source_of_program().is_some_and(|source| source.has_decided())
    }

    fn await_decision(&self) -> bool {
        self.source_of_program().is_some_and(|source| source.await_decision())
    }

    fn needs_undisturbed_time(&self) -> bool {
        self.program.is_some() && matches!(self.pending, Pending::Poll { .. })
    }
}
