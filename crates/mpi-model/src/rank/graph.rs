//! Programs that are graphs: operations start when those on which they depend have started or ended.
//!
//! Every operation is a thread of control of its own, which begins at the latest of the times for which it waits. So the times of a
//! rank follow from those of its messages alone, in whatever order they arrive, and a graph runs on every engine. Operations that
//! the graph leaves unordered overlap: a machine with shared cores lets their computations share the core of the rank.

use pdes_core::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};
use trace_mmap::{CommId, GraphMessage, GraphOperation, OperationGraph};

use super::pending::Pending;
use super::{Outcome, RankProcess, WaitReason};
use crate::collective::runner::Means;
use crate::context::{Failure, RankOutbox, Thread};
use crate::machine::Machine;
use crate::observer::{ActionSpan, Analysis};
use crate::point_to_point::{CollectiveMessage, OperationIndex, Request, RequestId, Requests, operation_tag};
use crate::statistics::ActionKind;

/// The graph of a rank, and its operations in progress.
pub(super) struct GraphRunner<'t> {
    graph: &'t OperationGraph,
    progress: GraphProgress,
    /// Operations that can start.
    ready: Vec<u32>,
}

/// Progress of a graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct GraphProgress {
    /// Number of unresolved dependencies of each operation.
    open: Box<[u32]>,
    /// Time at which each operation starts, as far as it is known.
    starts: Box<[SimTime]>,
    started: u64,
    ended: u64,
    /// Time that operations have computed and paid for messages.
    busy: SimDuration,
    /// End of the last operation.
    end: SimTime,
}

impl<'t> GraphRunner<'t> {
    pub(super) fn new(graph: &'t OperationGraph) -> Self {
        let open = graph.dependency_counts();
        let starts = vec![SimTime::ZERO; open.len()].into();
        let (busy, end) = (SimDuration::ZERO, SimTime::ZERO);
        Self {
            graph,
            progress: GraphProgress { open, starts, started: 0, ended: 0, busy, end },
            ready: Vec::new(),
        }
    }

    /// Returns the number of operations that have started.
    pub(super) fn started(&self) -> u64 {
        self.progress.started
    }

    /// Returns the progress, to be restored by [`Self::restore`].
    pub(super) fn save(&self) -> GraphProgress {
        self.progress.clone()
    }

    /// Restores a progress; returns whether it is one of this graph.
    pub(super) fn restore(&mut self, progress: GraphProgress) -> bool {
        let len = self.progress.open.len();
        let is_own = progress.open.len() == len
            && progress.starts.len() == len
            && progress.ended <= progress.started
            && progress.started <= len as u64;
        if is_own {
            self.progress = progress;
        }
        is_own
    }

    fn is_done(&self) -> bool {
        self.progress.ended == self.graph.operations().len() as u64
    }

    /// Starts the operations that depend on nothing.
    fn start_first<M: Machine, A: Analysis>(
        &mut self,
        means: &mut Means<'_, 't, M, A>,
    ) -> Result<(), Failure<M::Error>> {
        if self.progress.started == 0 {
            let open = (0..).zip(&self.progress.open);
            self.ready.extend(open.filter(|(_, open)| **open == 0).map(|(operation, _)| operation));
            self.ready.reverse();
        }
        self.start_ready(means)
    }

    /// Starts the operations that can start, and those that they make ready.
    fn start_ready<M: Machine, A: Analysis>(
        &mut self,
        means: &mut Means<'_, 't, M, A>,
    ) -> Result<(), Failure<M::Error>> {
        while let Some(operation) = self.ready.pop() {
            let start = self.progress.starts[operation as usize];
            self.progress.started += 1;
            self.resolve(operation, true, start);
            means.context.thread = Thread::of_operation(start, operation);
            match self.graph.operations()[operation as usize] {
                GraphOperation::Compute { flops } => {
                    let index = Some(OperationIndex(operation));
                    if !means.context.start_computation(flops, false, index, means.outbox)? {
                        self.end(operation, (ActionKind::Compute, start), means);
                    }
                }
                GraphOperation::Send(message) => self.send(operation, &message, means),
                GraphOperation::Receive(message) => self.receive(operation, &message, means)?,
            }
        }
        // The clock of the rank never decreases, those of its operations do.
        means.context.thread.clock = self.progress.end;
        Ok(())
    }

    fn send<M: Machine, A: Analysis>(
        &mut self,
        operation: u32,
        message: &GraphMessage,
        means: &mut Means<'_, 't, M, A>,
    ) {
        let Means { context, point_to_point, outbox } = means;
        let start = context.thread.clock;
        context.thread.clock += point_to_point.parameters().isend.cost(message.bytes);
        let request = point_to_point.requests.add_part(OperationIndex(operation));
        point_to_point.send_collective(context, envelope(message), request, outbox);
        if matches!(point_to_point.requests.get(request), Request::Complete(_)) {
            point_to_point.take_part(request);
            self.end(operation, (ActionKind::Isend, start), means);
        }
    }

    fn receive<M: Machine, A: Analysis>(
        &mut self,
        operation: u32,
        message: &GraphMessage,
        means: &mut Means<'_, 't, M, A>,
    ) -> Result<(), Failure<M::Error>> {
        let Means { context, point_to_point, outbox } = means;
        point_to_point.pay_for_irecv(context, ActionKind::Irecv);
        let request = point_to_point.requests.add_part(OperationIndex(operation));
        point_to_point.receive_collective(context, envelope(message), request, outbox)?;
        self.end_message(operation, request, means);
        Ok(())
    }

    /// Ends the send or the receive with this request, if it is complete.
    fn end_message<M: Machine, A: Analysis>(
        &mut self,
        operation: u32,
        request: RequestId,
        means: &mut Means<'_, 't, M, A>,
    ) {
        let Means { context, point_to_point, .. } = means;
        let Request::Complete(completion) = point_to_point.requests.get(request) else { return };
        point_to_point.take_part(request);
        let start = self.progress.starts[operation as usize].max(completion.at);
        context.thread = Thread::of_operation(start, operation);
        let kind = match self.graph.operations()[operation as usize] {
            GraphOperation::Receive(_) => ActionKind::Irecv,
            _ => ActionKind::Isend,
        };
        point_to_point.settle(context, request, completion, kind);
        self.end(operation, (kind, start), means);
    }

    /// Ends an operation at the clock of the current thread of control. It has worked since `begin`.
    fn end<M: Machine, A: Analysis>(
        &mut self,
        operation: u32,
        (kind, begin): (ActionKind, SimTime),
        means: &mut Means<'_, 't, M, A>,
    ) {
        let end = means.context.thread.clock;
        means.context.observers.action_ended(&ActionSpan { kind, begin, end });
        self.progress.busy += end - begin;
        self.progress.ended += 1;
        self.progress.end = self.progress.end.max(end);
        self.resolve(operation, false, end);
    }

    /// Resolves the dependencies on the start or on the end of an operation.
    fn resolve(&mut self, operation: u32, is_start: bool, at: SimTime) {
        let GraphProgress { open, starts, .. } = &mut self.progress;
        for edge in self.graph.dependents(operation).iter().filter(|edge| edge.after_start == is_start) {
            let dependent = edge.operation as usize;
            starts[dependent] = starts[dependent].max(at);
            open[dependent] -= 1;
            if open[dependent] == 0 {
                self.ready.push(edge.operation);
            }
        }
    }

    /// Handles the completion of a request of an operation; returns whether the graph is done.
    pub(super) fn message_completed<M: Machine, A: Analysis>(
        &mut self,
        OperationIndex(operation): OperationIndex,
        request: RequestId,
        means: &mut Means<'_, 't, M, A>,
    ) -> Result<bool, Failure<M::Error>> {
        self.end_message(operation, request, means);
        self.start_ready(means)?;
        Ok(self.is_done())
    }

    /// Handles the end of a computation that the machine did; returns whether the graph is done.
    pub(super) fn computed<M: Machine, A: Analysis>(
        &mut self,
        OperationIndex(operation): OperationIndex,
        at: SimTime,
        means: &mut Means<'_, 't, M, A>,
    ) -> Result<bool, Failure<M::Error>> {
        means.context.thread = Thread::of_operation(at, operation);
        self.end(operation, (ActionKind::Compute, self.progress.starts[operation as usize]), means);
        self.start_ready(means)?;
        Ok(self.is_done())
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

/// Returns a message as the collective operations of a communicator exchange it: each tag is a communicator.
fn envelope(&GraphMessage { peer, tag, number, bytes }: &GraphMessage) -> CollectiveMessage {
    let communicator = CommId::new(tag);
    CollectiveMessage { peer, communicator, tag: operation_tag(number, ActionKind::Send), bytes }
}

impl<'t, M: Machine, A: Analysis> RankProcess<'t, M, A> {
    /// Returns the graph of the rank, and the means by which it runs.
    pub(super) fn graph<'a>(
        &'a mut self,
        outbox: &'a mut RankOutbox<M>,
    ) -> Option<(&'a mut GraphRunner<'t>, Means<'a, 't, M, A>)> {
        let Self { context, point_to_point, graph, .. } = self;
        Some((graph.as_deref_mut()?, Means { context, point_to_point, outbox }))
    }

    /// Starts what can start, and ends the rank once all operations have ended.
    #[cold]
    pub(super) fn resume_graph(&mut self, outbox: &mut RankOutbox<M>) -> Outcome<M::Error> {
        let (graph, mut means) = self.graph(outbox).expect("the program is a graph");
        graph.start_first(&mut means)?;
        let (is_done, busy, end) = (graph.is_done(), graph.progress.busy, graph.progress.end);
        if !is_done {
            return Ok(self.keep_pending(Pending::Graph));
        }
        let idle_since = SimTime::ZERO.saturating_add(busy).min(end);
        self.action_begin = idle_since;
        self.end(ActionKind::Waitall);
        self.complete(Pending::AtEnd { next: 0 })
    }
}
