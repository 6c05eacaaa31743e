//! State of the collective operations of a rank between two turns.
//!
//! The steps of an operation in progress are not saved: on restart its schedule is created anew and replayed with the recorded
//! answers; later steps depend on nothing else (the law of [`Steps`]).
//!
//! [`Steps`]: crate::collective::Steps

use serde::{Deserialize, Serialize};

use super::operation::{RunningOperation, Wait};
use super::plan::{OperationPlan, Origin, plan};
use super::{CollectiveRunner, OperationCounts};
use crate::collective::{Answer, Step, Steps as _};
use crate::context::{RankContext, Thread};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::point_to_point::{OperationIndex, RequestId};

/// State of the operations of a rank that does not follow from the trace.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedOperations {
    operations: Vec<Option<SavedOperation>>,
    counts: OperationCounts,
}

/// State of an operation in progress.
#[derive(Debug, Serialize, Deserialize)]
struct SavedOperation {
    origin: Origin,
    tag: u32,
    steps_taken: u64,
    answers: Vec<Answer>,
    answer: Answer,
    thread: Thread,
    requests: Vec<RequestId>,
    wait: Wait,
    failed_polls: u32,
    request: Option<RequestId>,
}

impl<'t> CollectiveRunner<'t> {
    pub(crate) fn save(&self) -> SavedOperations {
        let save = |operation: &Option<Box<_>>| operation.as_deref().map(SavedOperation::of);
        SavedOperations {
            operations: self.operations.iter().map(save).collect(),
            counts: self.counts.clone(),
        }
    }

    /// Restores a state; `None` where the trace has no such operation.
    pub(crate) fn restore<M: Machine, A: Analysis>(
        context: &RankContext<'t, M, A>,
        SavedOperations { operations, counts }: SavedOperations,
    ) -> Option<Self> {
        let restore = |(index, state): (usize, Option<SavedOperation>)| match state {
            Some(state) => Some(Some(Box::new(state.restore(context, OperationIndex(index as u32))?))),
            None => Some(None),
        };
        let operations = operations.into_iter().enumerate().map(restore).collect::<Option<Vec<_>>>()?;
        let polls = operations.iter().flatten().filter(|operation| operation.is_polling()).count() as u32;
        Some(Self { operations, polls, counts })
    }
}

impl SavedOperation {
    fn of(operation: &RunningOperation<'_>) -> Self {
        Self {
            origin: operation.origin,
            tag: operation.tag,
            steps_taken: operation.steps_taken,
            answers: operation.answers.clone(),
            answer: operation.answer,
            thread: operation.thread,
            requests: operation.requests.clone(),
            wait: operation.wait,
            failed_polls: operation.failed_polls,
            request: operation.request,
        }
    }

    fn restore<'t, M: Machine, A: Analysis>(
        self,
        context: &RankContext<'t, M, A>,
        index: OperationIndex,
    ) -> Option<RunningOperation<'t>> {
        let Self { origin, tag, steps_taken, answers, answer, thread, requests, wait, failed_polls, request } =
            self;
        let OperationPlan { kind, communicator, mut schedule, .. } = plan(context, origin)?;
        let (mut given, mut next) = (answers.iter(), Answer::Nothing);
        for step in 1..=steps_taken {
            let is_asking = matches!(
                schedule.next_step(next)?,
                Step::PollAnnouncement { .. } | Step::RecvOutOfBand { .. }
            );
            // The answer to the last step may be still to come.
            let is_answered = is_asking && step < steps_taken;
            next = if is_answered { *given.next()? } else { Answer::Nothing };
        }
        Some(RunningOperation {
            index,
            kind,
            tag,
            communicator,
            origin,
            schedule,
            steps_taken,
            answers,
            answer,
            thread,
            requests,
            wait,
            failed_polls,
            request,
        })
    }
}
