//! State of the collective operations of a rank.
//!
//! The steps of an operation in progress are not saved: on restart its schedule is created anew and replayed with the recorded
//! answers; later steps depend on nothing else (the law of [`Steps`]).
//!
//! [`Steps`]: crate::collective::Steps

use pdes_core::{SimTime, State as _, StateVisitor};

use super::operation::RunningOperation;
use super::plan::{Origin, plan};
use super::{CollectiveRunner, operations_on};
use crate::collective::{Answer, Step, Steps as _};
use crate::context::{RankContext, Thread};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::point_to_point::{OperationIndex, relative_to};

impl<'t> CollectiveRunner<'t> {
    /// Returns the earliest clock of an operation in progress.
    pub(crate) fn earliest_clock(&self) -> Option<SimTime> {
        self.operations.iter().flatten().map(|operation| operation.thread.clock).min()
    }

    /// Returns the operations in progress.
    pub(crate) fn in_progress(&self) -> impl Iterator<Item = OperationIndex> {
        self.operations.iter().flatten().map(|operation| operation.index)
    }

    /// Visits the operations of a rank.
    pub(crate) fn visit<M: Machine, A: Analysis>(
        &mut self,
        context: &RankContext<'t, M, A>,
        visitor: &mut StateVisitor<'_>,
    ) {
        let is_idle = self.is_idle();
        let Self { operations, polls, counts } = self;
        counts.visit(is_idle, visitor);
        let mut origins: Vec<Option<Origin>> =
            operations.iter().map(|operation| operation.as_ref().map(|operation| operation.origin)).collect();
        visitor.plain(&mut origins);
        if visitor.is_loading() {
            operations.clear();
            for (index, origin) in (0..).map(OperationIndex).zip(origins) {
                let plan = origin.map(|origin| Some((origin, plan(context, origin)?)));
                let Some(plan) = plan.map_or(Some(None), |plan| plan.map(Some)) else {
                    return visitor.refuse();
                };
                operations.push(plan.map(|(origin, plan)| {
                    Box::new(RunningOperation::new(index, origin, plan, 0, Thread::main(SimTime::ZERO), None))
                }));
            }
        }
        for operation in operations.iter_mut().flatten() {
            let id = operation.communicator.id;
            let base = visitor.first_on(operations_on(id), counts.on(id));
            operation.visit(base, visitor);
        }
        *polls = operations.iter().flatten().filter(|operation| operation.is_polling()).count() as u32;
        visitor.compare(polls);
    }
}

impl RunningOperation<'_> {
    /// Visits an operation, whose number counts on a base. Its schedule follows from the steps taken, and the answers to them.
    fn visit(&mut self, base: u32, visitor: &mut StateVisitor<'_>) {
        let Self {
            index: _,
            kind: _,
            tag,
            communicator: _,
            origin: _,
            schedule: _,
            steps_taken,
            answers,
            answer,
            thread,
            requests,
            wait,
            failed_polls,
            request,
        } = self;
        visitor.saved(tag);
        visitor.compare(&relative_to(*tag, base));
        visitor.plain(steps_taken);
        visitor.plain(answers);
        visitor.plain(answer);
        visitor.plain(requests);
        visitor.plain(wait);
        visitor.plain(failed_polls);
        visitor.plain(request);
        thread.visit(visitor);
        if visitor.is_loading() && self.repeat_steps().is_none() {
            visitor.refuse();
        }
    }

    /// Takes those steps again that have been taken; `None` where the schedule has no such steps.
    fn repeat_steps(&mut self) -> Option<()> {
        let (mut given, mut next) = (self.answers.iter(), Answer::Nothing);
        for step in 1..=self.steps_taken {
            let is_asking = matches!(
                self.schedule.next_step(next)?,
                Step::PollAnnouncement { .. } | Step::RecvOutOfBand { .. }
            );
            // The answer to the last step may be still to come.
            let is_answered = is_asking && step < self.steps_taken;
            next = if is_answered { *given.next()? } else { Answer::Nothing };
        }
        Some(())
    }
}
