//! A collective operation in progress: its steps, and the events for which it waits between them.

use pdes_core::{Rank, SimDuration};
use serde::{Deserialize, Serialize};
use trace_mmap::Communicator;

use super::Means;
use super::closed_form::unpack;
use super::plan::{OperationPlan, Origin};
use crate::collective::{Answer, Schedule, Step, Steps as _};
use crate::context::{Failure, Thread};
use crate::locks::{LockCall, LockName};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::point_to_point::{
    Awaited, EXPOSURE, ONE_SIDED, OperationIndex, Request, RequestId, Requests, operation_tag,
};
use crate::statistics::ActionKind;

/// A collective operation in progress.
pub(super) struct RunningOperation<'t> {
    pub(super) index: OperationIndex,
    pub(super) kind: ActionKind,
    /// Tag of its messages.
    pub(super) tag: u32,
    pub(super) communicator: &'t Communicator,
    /// Action that the operation carries out.
    pub(super) origin: Origin,
    pub(super) schedule: Schedule<'t>,
    /// Number of steps taken from the schedule, and the answers to them.
    pub(super) steps_taken: u64,
    pub(super) answers: Vec<Answer>,
    /// Answer to its last step.
    pub(super) answer: Answer,
    pub(super) thread: Thread,
    /// Its requests that no wait has completed yet, in the order of creation.
    pub(super) requests: Vec<RequestId>,
    pub(super) wait: Wait,
    /// Number of failed polls since the last successful one.
    pub(super) failed_polls: u32,
    /// Request of the program; `None` for a blocking operation.
    pub(super) request: Option<RequestId>,
}

/// Event for which an operation waits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Wait {
    Nothing,
    /// A blocking send or receive.
    One(RequestId),
    /// A combined send and receive.
    Two([RequestId; 2]),
    /// All its requests, in the order of completion.
    All,
    /// All its requests from `next` on, one after the other.
    Each {
        next: usize,
    },
    /// One of its requests, by index.
    Request(usize),
    /// Work of the machine.
    Work,
    /// An operation of switches, after which the member is busy with the data.
    Switches {
        overhead: SimDuration,
    },
    /// Time from a member.
    Time(RequestId),
    /// Numbers from a member.
    Numbers(RequestId),
    /// A poll for an announcement of the member `from` to be granted: first to pay for it, then to carry it out.
    Poll {
        from: Rank,
        paid: bool,
    },
    /// A request of the program.
    Slot(RequestId),
    /// A call on a lock of the memory of a member to be granted.
    Lock {
        of: Rank,
        lock: LockName,
        call: LockCall,
    },
}

impl<'t> RunningOperation<'t> {
    /// Creates the operation with this number on its communicator.
    pub(super) fn new(
        index: OperationIndex,
        origin: Origin,
        OperationPlan { kind, communicator, schedule, .. }: OperationPlan<'t>,
        number: u32,
        thread: Thread,
        request: Option<RequestId>,
    ) -> Self {
        Self {
            index,
            kind,
            tag: match kind {
                ActionKind::WindowPost | ActionKind::WindowStart => EXPOSURE,
                ActionKind::WindowComplete | ActionKind::WindowWait | ActionKind::Fetch => ONE_SIDED,
                _ => operation_tag(number, kind),
            },
            communicator,
            origin,
            schedule,
            steps_taken: 0,
            answers: Vec::new(),
            answer: Answer::Nothing,
            thread,
            requests: Vec::new(),
            wait: Wait::Nothing,
            failed_polls: 0,
            request,
        }
    }

    /// Takes steps until the operation waits; returns whether it has ended.
    pub(super) fn run_steps<M: Machine, A: Analysis>(
        &mut self,
        means: &mut Means<'_, '_, 't, M, A>,
    ) -> Result<bool, Failure<M::Error>> {
        loop {
            if !self.is_wait_over(&means.point_to_point.requests) {
                return Ok(false);
            }
            self.complete_wait(means);
            if !matches!(self.wait, Wait::Nothing) {
                continue;
            }
            match self.next_step() {
                Some(step) => self.step(step, means)?,
                None => {
                    means.context.worked(self.kind);
                    return Ok(true);
                }
            }
        }
    }

    /// Takes the next step of the schedule, given the answer to the last one.
    #[inline]
    fn next_step(&mut self) -> Option<Step> {
        let answer = std::mem::take(&mut self.answer);
        if answer != Answer::Nothing {
            self.answers.push(answer);
        }
        self.steps_taken += 1;
        self.schedule.next_step(answer)
    }

    /// Returns whether the operation does not wait any more.
    pub(super) fn is_wait_over(&self, requests: &Requests) -> bool {
        let is_pending = |request| matches!(requests.get(request), Request::Pending(_));
        match self.wait {
            Wait::Nothing => true,
            Wait::One(request) | Wait::Slot(request) | Wait::Time(request) | Wait::Numbers(request) => {
                !is_pending(request)
            }
            Wait::Two(requests) => !requests.into_iter().any(is_pending),
            Wait::All => requests.pending_parts(self.index) == 0,
            Wait::Each { next } => !self.requests.get(next).is_some_and(|&request| is_pending(request)),
            Wait::Request(index) => !is_pending(self.requests[index]),
            Wait::Work | Wait::Switches { .. } | Wait::Poll { .. } | Wait::Lock { .. } => false,
        }
    }

    /// Returns the event for which the operation waits.
    pub(super) fn awaits(&self, requests: &Requests) -> Option<Awaited> {
        let pending = |request| match requests.get(request) {
            Request::Pending(awaited) => Some(awaited),
            Request::Inactive | Request::Complete(_) => None,
        };
        match self.wait {
            Wait::One(request) | Wait::Slot(request) | Wait::Time(request) | Wait::Numbers(request) => {
                pending(request)
            }
            Wait::Two(requests) => requests.into_iter().find_map(pending),
            Wait::Request(index) => pending(self.requests[index]),
            _ => self.requests.iter().copied().find_map(pending),
        }
    }

    /// Advances the clock past the events for which the operation has waited, and charges them.
    fn complete_wait<M: Machine, A: Analysis>(&mut self, means: &mut Means<'_, '_, 't, M, A>) {
        let kind = self.kind;
        let Means { context, point_to_point, .. } = means;
        match std::mem::replace(&mut self.wait, Wait::Nothing) {
            Wait::Nothing | Wait::Work | Wait::Switches { .. } | Wait::Poll { .. } | Wait::Lock { .. } => {}
            Wait::Time(request) => {
                if let Some(received) = point_to_point.take_part(request) {
                    point_to_point.wait_for(context, Some(request), received.at, kind);
                }
            }
            Wait::Numbers(request) => {
                let received = point_to_point.take_part(request).and_then(|completion| completion.received);
                self.answer = Answer::Numbers(unpack(received.unwrap_or_default()));
            }
            Wait::Slot(request) => {
                if let Some(completion) = point_to_point.requests.take_completion(request) {
                    point_to_point.settle(context, request, completion, kind);
                }
            }
            Wait::One(request) => point_to_point.settle_parts(context, &[request], kind),
            Wait::Two(requests) => point_to_point.settle_parts(context, &requests, kind),
            Wait::All => {
                point_to_point.settle_parts(context, &self.requests, kind);
                self.requests.clear();
            }
            Wait::Each { next } if next < self.requests.len() => {
                self.settle_part(next, means);
                self.wait = Wait::Each { next: next + 1 };
            }
            Wait::Each { .. } => {
                self.requests.drain(..).for_each(|part| point_to_point.requests.release_part(part));
            }
            Wait::Request(index) => self.settle_part(index, means),
        }
    }

    fn settle_part<M: Machine, A: Analysis>(&self, index: usize, means: &mut Means<'_, '_, 't, M, A>) {
        let request = self.requests[index];
        if let Some(completion) = means.point_to_point.requests.take_completion(request) {
            means.point_to_point.settle(means.context, request, completion, self.kind);
        }
    }
}
