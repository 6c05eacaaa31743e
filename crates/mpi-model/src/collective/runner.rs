//! Runner of the collective operations of a rank: carries out the steps of their schedules by point-to-point messages.
//!
//! A blocking operation runs in place of the program, a non-blocking one beside it, in a thread of control of its own.

mod closed_form;
mod counts;
mod operation;
mod plan;
mod polls;
mod state;
mod step;
mod switches;

use pdes_core::SimTime;

use crate::context::{Failure, RankContext, RankOutbox};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::point_to_point::{
    Awaited, OperationIndex, PointToPoint, Request, RequestCompletion, RequestId, Requests,
};
use crate::statistics::ActionKind;
pub(crate) use counts::{OperationCounts, operations_on};
use operation::RunningOperation;
pub(crate) use plan::Origin;

/// The collective operations of a rank that are in progress.
#[derive(Default)]
pub(crate) struct CollectiveRunner<'t> {
    operations: Vec<Option<Box<RunningOperation<'t>>>>,
    /// Number of operations that poll for a member.
    polls: u32,
    pub(crate) counts: OperationCounts,
}

/// The means by which operations run: their rank and its messages.
pub(crate) struct Means<'a, 'o, 't, M: Machine, A: Analysis> {
    pub(crate) context: &'a mut RankContext<'t, M, A>,
    pub(crate) point_to_point: &'a mut PointToPoint<'t, M, A>,
    pub(crate) outbox: &'a mut RankOutbox<'o, M>,
}

impl<'t> CollectiveRunner<'t> {
    /// Begins the operation of an action; returns its index, and its request unless it is blocking.
    pub(crate) fn begin<M: Machine, A: Analysis>(
        &mut self,
        origin: Origin,
        means: &mut Means<'_, '_, 't, M, A>,
    ) -> (OperationIndex, Option<RequestId>) {
        let plan = plan::plan(means.context, origin).expect("the action is an operation");
        let request = plan.slot.map(|slot| means.point_to_point.request(slot));
        // Messages of collective operations alone are told apart by numbers.
        let number = if origin.is_collective() { self.counts.next_on(plan.communicator.id) } else { 0 };
        let (is_alone, index) = (self.is_idle(), self.free_index());
        let thread = match request {
            Some(_) => means.context.thread.fork(self.counts.next_nonblocking(is_alone)),
            None => means.context.thread,
        };
        if let Some(request) = request {
            let awaited = Awaited::Operation(plan.kind);
            means.point_to_point.requests.set(request, Request::Pending(awaited));
            means.context.observers.operation_started(index);
        }
        let operation = RunningOperation::new(index, origin, plan, number, thread, request);
        self.operations[index.index()] = Some(Box::new(operation));
        (index, request)
    }

    fn free_index(&mut self) -> OperationIndex {
        let index = self.operations.iter().position(Option::is_none).unwrap_or_else(|| {
            // Exact capacity: there may be millions of ranks.
            self.operations.reserve_exact(1);
            self.operations.push(None);
            self.operations.len() - 1
        });
        OperationIndex(index as u32)
    }

    /// Runs an operation as far as possible; returns its kind where it has ended.
    pub(crate) fn run<M: Machine, A: Analysis>(
        &mut self,
        index: OperationIndex,
        means: &mut Means<'_, '_, 't, M, A>,
    ) -> Result<Option<ActionKind>, Failure<M::Error>> {
        let taken = self.operations[index.index()].take();
        let mut operation = taken.expect("an awaited operation is in progress");
        self.polls -= u32::from(operation.is_polling());
        // The operation runs as the current thread of control: its clock, waits and path stand in for those of the program.
        std::mem::swap(&mut means.context.thread, &mut operation.thread);
        let is_beside = operation.request.is_some();
        if is_beside {
            means.context.observers.operation_resumed(index);
        }
        let ended = operation.run_steps(means);
        if is_beside {
            means.context.observers.operation_paused(index);
        }
        std::mem::swap(&mut means.context.thread, &mut operation.thread);
        if !ended? {
            self.polls += u32::from(operation.is_polling());
            self.operations[index.index()] = Some(operation);
            return Ok(None);
        }
        let requests = &mut means.point_to_point.requests;
        debug_assert_eq!(requests.pending_parts(index), 0, "an operation waits for all its requests");
        operation.requests.iter().for_each(|&request| requests.release_part(request));
        match operation.request {
            None => means.context.thread = operation.thread,
            Some(request) => {
                let completion = RequestCompletion { at: operation.thread.clock, received: None };
                means.context.observers.operation_ended(index, request);
                requests.set(request, Request::Complete(completion));
            }
        }
        Ok(Some(operation.kind))
    }

    /// Returns whether an operation does not wait any more, perhaps for a request of the program.
    pub(crate) fn is_wait_over(&self, index: OperationIndex, requests: &Requests) -> bool {
        self.operations[index.index()].as_ref().is_some_and(|operation| operation.is_wait_over(requests))
    }

    /// Handles the completion of a request of an operation; returns whether the program, which waits for a request, can resume.
    pub(crate) fn part_completed<M: Machine, A: Analysis>(
        &mut self,
        index: OperationIndex,
        awaited: Option<RequestId>,
        means: &mut Means<'_, '_, 't, M, A>,
    ) -> Result<bool, Failure<M::Error>> {
        let Some(operation) = &self.operations[index.index()] else { return Ok(false) };
        if !operation.is_wait_over(&means.point_to_point.requests) {
            return Ok(false);
        }
        let Some(request) = operation.request else { return Ok(true) };
        let ended = self.run(index, means)?.is_some();
        Ok(ended && awaited == Some(request))
    }

    /// Handles the end of work that the machine did for an operation; returns whether the program, which waits for a request, can
    /// resume.
    pub(crate) fn work_done<M: Machine, A: Analysis>(
        &mut self,
        index: OperationIndex,
        at: SimTime,
        awaited: Option<RequestId>,
        means: &mut Means<'_, '_, 't, M, A>,
    ) -> Result<bool, Failure<M::Error>> {
        if let Some(operation) = &mut self.operations[index.index()] {
            operation.end_work(at);
        }
        self.part_completed(index, awaited, means)
    }

    /// Returns whether no operation is in progress.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.operations.iter().all(Option::is_none)
    }

    /// Returns the kind of an operation in progress.
    pub(crate) fn kind(&self, index: OperationIndex) -> Option<ActionKind> {
        self.operations[index.index()].as_ref().map(|operation| operation.kind)
    }

    /// Returns the event for which an operation waits.
    pub(crate) fn awaits(&self, index: OperationIndex, requests: &Requests) -> Option<Awaited> {
        self.operations[index.index()].as_ref()?.awaits(requests)
    }

    /// Returns the operation in progress with this request.
    pub(crate) fn with_request(&self, request: RequestId) -> Option<OperationIndex> {
        let mut running = self.operations.iter().flatten();
        Some(running.find(|operation| operation.request == Some(request))?.index)
    }
}
