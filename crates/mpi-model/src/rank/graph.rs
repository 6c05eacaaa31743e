//! Programs that are graphs: operations start when those on which they depend have started or ended.
//!
//! Every operation is a thread of control of its own, which begins at the latest of the times for which it waits. So the times of a
//! rank follow from those of its messages alone, in whatever order they arrive, and a graph runs on every engine. Operations that
//! the graph leaves unordered overlap: a machine with shared cores lets their computations share the core of the rank.
//!
//! For observers an operation is a non-blocking operation of the rank, and the states of the rank follow from the work of all.

mod activity;

use std::cmp::Reverse;

use pdes_core::{Bytes, Pause, Rank, SimDuration, SimTime, StateVisitor};
use serde::{Deserialize, Serialize};
use trace_mmap::{CommId, GraphMessage, GraphOperation, OperationGraph};

use super::pending::Pending;
use super::{Control, Outcome, RankProcess, WaitReason};
use crate::collective::runner::Means;
use crate::context::{Failure, RankOutbox, Thread};
use crate::machine::Machine;
use crate::observer::{ActionSpan, Analysis, Observer, RankObservers, Wait};
use crate::parameters::Parameters;
use crate::point_to_point::{CollectiveMessage, OperationIndex, Request, RequestId, Requests, operation_tag};
use crate::statistics::ActionKind;
use activity::Activity;

/// The graph of a rank, and its operations in progress.
pub(super) struct GraphRunner<'t> {
    graph: &'t OperationGraph,
    progress: GraphProgress,
}

/// Progress of a graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct GraphProgress {
    /// Number of unresolved dependencies of each operation.
    open: Box<[u32]>,
    /// Start of each operation, as far as it is known, and last the end of the rank.
    starts: Box<[Start]>,
    /// Operations that can start; the last one is next.
    ready: Vec<u32>,
    started: u64,
    ended: u64,
    activity: Activity,
}

/// The start of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Start {
    at: SimTime,
    /// Operation for which it waited last; at one instant, the one of the lowest number.
    cause: Reverse<u32>,
}

impl<'t> GraphRunner<'t> {
    pub(super) fn new(graph: &'t OperationGraph, start: SimTime) -> Self {
        let open = graph.dependency_counts();
        let first = Start { at: start, cause: Reverse(u32::MAX) };
        let starts = vec![first; open.len() + 1].into();
        let (ready, activity) = (Vec::new(), Activity::default());
        Self { graph, progress: GraphProgress { open, starts, ready, started: 0, ended: 0, activity } }
    }

    /// Returns the number of operations that have started.
    pub(super) fn started(&self) -> u64 {
        self.progress.started
    }

    /// Visits the progress of a graph, which has no iterations.
    pub(super) fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { graph, progress } = self;
        visitor.saved(progress);
        let len = graph.operations().len();
        let is_own = progress.open.len() == len
            && progress.starts.len() == len + 1
            && progress.activity.is_valid(progress.starts[len].at)
            && progress.ready.iter().all(|&operation| (operation as usize) < len)
            && progress.ended <= progress.started
            && progress.started <= len as u64;
        if !is_own {
            visitor.refuse();
        }
    }

    /// Returns the number of operations, which stands for the end of the rank where operations have theirs.
    fn last(&self) -> u32 {
        self.graph.operations().len() as u32
    }

    /// Returns the end of the rank, as far as it is known.
    fn end_of_rank(&self) -> SimTime {
        self.progress.starts[self.last() as usize].at
    }

    fn is_done(&self) -> bool {
        self.progress.ended == self.graph.operations().len() as u64
    }

    /// Returns whether an operation can start, or the rank can end.
    pub(super) fn can_continue(&self) -> bool {
        !self.progress.ready.is_empty() || self.is_done()
    }

    /// Makes the operations ready that depend on nothing.
    fn ready_first<O: Observer>(&mut self, observers: &mut RankObservers<O>) {
        let is_open = |operation: &u32| self.progress.open[*operation as usize] == 0;
        self.progress.ready = (0..self.last()).rev().filter(is_open).collect();
        let begins = self.progress.ready.iter().copied().chain([self.last()]);
        begins.for_each(|begin| observers.operation_started(OperationIndex(begin)));
    }

    /// Starts up to as many operations as steps are left, and those that they make ready.
    fn start_ready<M: Machine, A: Analysis>(
        &mut self,
        steps: &mut u32,
        means: &mut Means<'_, '_, 't, M, A>,
    ) -> Result<(), Failure<M::Error>> {
        while *steps > 0
            && let Some(operation) = self.progress.ready.pop()
        {
            *steps -= 1;
            let start = self.progress.starts[operation as usize].at;
            self.progress.started += 1;
            self.run(operation, start, means, |graph, means| graph.start(operation, start, means))?;
        }
        Ok(())
    }

    fn start<M: Machine, A: Analysis>(
        &mut self,
        operation: u32,
        start: SimTime,
        means: &mut Means<'_, '_, 't, M, A>,
    ) -> Result<(), Failure<M::Error>> {
        self.resolve(operation, true, start, &mut means.context.observers);
        match self.graph.operations()[operation as usize] {
            GraphOperation::Compute { flops } => {
                let index = Some(OperationIndex(operation));
                if !means.context.start_computation(flops, false, index, means.outbox)? {
                    self.end(operation, (ActionKind::Compute, start), means);
                }
            }
            GraphOperation::Send(message) => self.send(operation, &message, means),
            GraphOperation::Receive(GraphMessage { peer, tag, number, bytes }) => {
                let message = envelope(peer, tag, number.unwrap_or_default(), bytes);
                self.receive(operation, means, |Means { context, point_to_point, outbox }, request| {
                    point_to_point.receive_collective(context, message, request, outbox)
                })?;
            }
            GraphOperation::ReceiveFirst(filter) => {
                self.receive(operation, means, |Means { context, point_to_point, outbox }, request| {
                    point_to_point.receive_first(context, filter, request, outbox);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    fn send<M: Machine, A: Analysis>(
        &mut self,
        operation: u32,
        &GraphMessage { peer, tag, number, bytes }: &GraphMessage,
        means: &mut Means<'_, '_, 't, M, A>,
    ) {
        let Means { context, point_to_point, outbox } = means;
        let begin = context.thread.clock;
        context.spend(point_to_point.parameters().isend.cost(bytes));
        context.worked(ActionKind::Isend);
        let end = context.thread.clock;
        self.progress.activity.add_work(ActionSpan { kind: ActionKind::Isend, begin, end });
        let request = point_to_point.requests.add_part(OperationIndex(operation));
        match number {
            Some(number) => {
                point_to_point.send_collective(context, envelope(peer, tag, number, bytes), request, outbox);
            }
            None => point_to_point.send_to_mailbox(context, (peer, tag, bytes), request, outbox),
        }
        if matches!(point_to_point.requests.get(request), Request::Complete(_)) {
            point_to_point.take_part(request);
            self.end(operation, (ActionKind::Isend, end), means);
        }
    }

    fn receive<M: Machine, A: Analysis>(
        &mut self,
        operation: u32,
        means: &mut Means<'_, '_, 't, M, A>,
        post: impl FnOnce(&mut Means<'_, '_, 't, M, A>, RequestId) -> Result<(), Failure<M::Error>>,
    ) -> Result<(), Failure<M::Error>> {
        let Means { context, point_to_point, .. } = means;
        let begin = context.thread.clock;
        point_to_point.pay_for_irecv(context, ActionKind::Irecv);
        let end = context.thread.clock;
        self.progress.activity.add_work(ActionSpan { kind: ActionKind::Irecv, begin, end });
        let request = point_to_point.requests.add_part(OperationIndex(operation));
        post(means, request)?;
        self.end_message(operation, request, means);
        Ok(())
    }

    /// Ends the send or the receive with this request, if it is complete.
    fn end_message<M: Machine, A: Analysis>(
        &mut self,
        operation: u32,
        request: RequestId,
        means: &mut Means<'_, '_, 't, M, A>,
    ) {
        let Means { context, point_to_point, .. } = means;
        let Request::Complete(completion) = point_to_point.requests.get(request) else { return };
        point_to_point.take_part(request);
        if let Some(wait_states) = &context.observers.wait_states {
            self.progress.activity.add_arrival(completion.at, wait_states.get(request));
        }
        let (kind, posted) = (self.kind(operation), context.thread.clock);
        point_to_point.settle(context, request, completion, kind);
        self.end(operation, (kind, posted.max(completion.at)), means);
    }

    fn kind(&self, operation: u32) -> ActionKind {
        match self.graph.operations()[operation as usize] {
            GraphOperation::Compute { .. } => ActionKind::Compute,
            GraphOperation::Send(_) => ActionKind::Isend,
            GraphOperation::Receive(_) | GraphOperation::ReceiveFirst(_) => ActionKind::Irecv,
        }
    }

    /// Returns the time at which an operation that has started has posted its message.
    fn posted(&self, operation: u32, parameters: &Parameters) -> SimTime {
        let cost = match &self.graph.operations()[operation as usize] {
            GraphOperation::Send(message) => parameters.isend.cost(message.bytes),
            GraphOperation::Receive(_) | GraphOperation::ReceiveFirst(_) => parameters.irecv,
            GraphOperation::Compute { .. } => SimDuration::ZERO,
        };
        self.progress.starts[operation as usize].at + cost
    }

    /// Ends an operation at the clock of the current thread of control. It has worked since `begin`.
    fn end<M: Machine, A: Analysis>(
        &mut self,
        operation: u32,
        (kind, begin): (ActionKind, SimTime),
        means: &mut Means<'_, '_, 't, M, A>,
    ) {
        let end = means.context.thread.clock;
        means.context.worked(kind);
        let observers = &mut means.context.observers;
        observers.statistics.add_action(kind, SimDuration::ZERO);
        self.progress.activity.add_work(ActionSpan { kind, begin, end });
        self.progress.ended += 1;
        self.progress.postpone(self.last(), (end, operation), observers);
        self.resolve(operation, false, end, observers);
    }

    /// Lets an operation be the current thread of control while a function runs, and perhaps ends it.
    fn run<M: Machine, A: Analysis, T>(
        &mut self,
        operation: u32,
        clock: SimTime,
        means: &mut Means<'_, '_, 't, M, A>,
        steps: impl FnOnce(&mut Self, &mut Means<'_, '_, 't, M, A>) -> T,
    ) -> T {
        let (index, ended) = (OperationIndex(operation), self.progress.ended);
        means.context.thread = Thread::of_operation(clock, operation);
        means.context.observers.operation_resumed(index);
        let result = steps(self, means);
        means.context.observers.operation_paused(index);
        if self.progress.ended > ended {
            means.context.observers.operation_dropped(index);
        }
        // The clock of the rank never decreases, those of its operations do.
        means.context.thread.clock = self.end_of_rank();
        result
    }

    /// Resolves the dependencies on the start or on the end of an operation, which is the current thread of control.
    fn resolve<O: Observer>(
        &mut self,
        operation: u32,
        is_start: bool,
        at: SimTime,
        observers: &mut RankObservers<O>,
    ) {
        for edge in self.graph.dependents(operation).iter().filter(|edge| edge.after_start == is_start) {
            self.progress.postpone(edge.operation, (at, operation), observers);
            let open = &mut self.progress.open[edge.operation as usize];
            *open -= 1;
            if *open == 0 {
                self.progress.ready.push(edge.operation);
            }
        }
    }

    /// Handles the completion of a request of an operation.
    pub(super) fn message_completed<M: Machine, A: Analysis>(
        &mut self,
        OperationIndex(operation): OperationIndex,
        request: RequestId,
        means: &mut Means<'_, '_, 't, M, A>,
    ) {
        let posted = self.posted(operation, means.point_to_point.parameters());
        self.run(operation, posted, means, |graph, means| graph.end_message(operation, request, means));
    }

    /// Handles the end of a computation that the machine did.
    pub(super) fn computed<M: Machine, A: Analysis>(
        &mut self,
        OperationIndex(operation): OperationIndex,
        at: SimTime,
        means: &mut Means<'_, '_, 't, M, A>,
    ) {
        let start = self.progress.starts[operation as usize].at;
        self.run(operation, at, means, |graph, means| {
            graph.end(operation, (ActionKind::Compute, start), means);
        });
    }

    /// Reports the states and the waits of the rank, which has ended; returns its end.
    fn report<M: Machine, A: Analysis>(&mut self, means: &mut Means<'_, '_, 't, M, A>) -> SimTime {
        let (last, end) = (OperationIndex(self.last()), self.end_of_rank());
        let observers = &mut means.context.observers;
        // The path to the end of the rank is that of the operation that ended last.
        observers.operation_resumed(last);
        let mut activity = std::mem::take(&mut self.progress.activity);
        let states = activity.states(means.context.replay.start(), end);
        activity.for_each_wait(&states, |begin, end, peer| {
            let wait = Wait { kind: ActionKind::Waitall, begin, end, request: None, peer: Some(peer) };
            observers.idled(&wait);
        });
        states.iter().for_each(|state| observers.state_ended(state));
        end
    }

    /// Returns the reason why the first operation with a pending message waits.
    pub(super) fn wait_reason(&self, requests: &Requests) -> Option<WaitReason> {
        let (parts, _) = requests.parts();
        let waiting = parts.filter_map(|(request, state)| match state {
            Request::Pending(awaited) => Some((requests.operation(request)?, awaited)),
            Request::Inactive | Request::Complete(_) => None,
        });
        let (OperationIndex(operation), awaited) = waiting.min_by_key(|(OperationIndex(index), _)| *index)?;
        Some(WaitReason { awaited, action: operation.into(), operation: None })
    }
}

impl GraphProgress {
    /// Lets an operation, or the end of the rank, start at this time at the earliest, because of another operation: the current thread of
    /// control.
    fn postpone<O: Observer>(
        &mut self,
        dependent: u32,
        (at, cause): (SimTime, u32),
        observers: &mut RankObservers<O>,
    ) {
        let (start, later) = (&mut self.starts[dependent as usize], Start { at, cause: Reverse(cause) });
        if later > *start {
            *start = later;
            observers.operation_started(OperationIndex(dependent));
        }
    }
}

/// Returns a message as the collective operations of a communicator exchange it: each tag is a communicator.
fn envelope(peer: Rank, tag: u32, number: u32, bytes: Bytes) -> CollectiveMessage {
    let communicator = CommId::new(tag);
    CollectiveMessage { peer, communicator, tag: operation_tag(number, ActionKind::Send), bytes }
}

impl<'t, M: Machine, A: Analysis> RankProcess<'t, M, A> {
    /// Returns the graph of the rank, and the means by which it runs.
    pub(super) fn graph<'a, 'o>(
        &'a mut self,
        outbox: &'a mut RankOutbox<'o, M>,
    ) -> Option<(&'a mut GraphRunner<'t>, Means<'a, 'o, 't, M, A>)> {
        let Self { context, point_to_point, graph, .. } = self;
        Some((graph.as_deref_mut()?, Means { context, point_to_point, outbox }))
    }

    /// Starts what can start, an operation in each step, and ends the rank once all operations have ended.
    #[cold]
    pub(super) fn resume_graph(
        &mut self,
        steps: &mut u32,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Outcome<M::Error> {
        let (graph, mut means) = self.graph(outbox).expect("the program is a graph");
        if graph.progress.started == 0 && graph.progress.ready.is_empty() {
            graph.ready_first(&mut means.context.observers);
        }
        graph.start_ready(steps, &mut means)?;
        if !graph.is_done() {
            let is_blocked = graph.progress.ready.is_empty();
            let pause = self.keep_pending(Pending::Graph);
            return Ok(if is_blocked { pause } else { Control::Pause(Pause::OutOfSteps) });
        }
        self.action_begin = graph.report(&mut means);
        self.complete(Pending::AtEnd { next: 0 })
    }
}
