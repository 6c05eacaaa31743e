//! Recurrence with contention: the state of the operations of a rank at a cut.

use std::collections::BTreeMap;

use pdes_core::{SimDuration, SimTime, StateWriter};
use trace_mmap::CommId;

use super::operation::RunningOperation;
use super::{CollectiveRunner, OperationCounts};
use crate::observer::WaitStates;
use crate::point_to_point::{OperationIndex, relative_to, write_peer};

/// Numbers of operations on each communicator, of the first rank that has any: those of the others are relative to them.
#[derive(Clone, Debug, Default)]
pub struct OperationBases(BTreeMap<CommId, u32>);

impl OperationBases {
    /// Returns the base on a communicator, of whose operations a rank has begun `count`.
    fn get(&mut self, communicator: CommId, count: u32) -> u32 {
        *self.0.entry(communicator).or_insert(count)
    }
}

/// Tags of the messages of operations, relative to the bases of their numbers.
pub(crate) struct RelativeTags<'a> {
    bases: &'a mut OperationBases,
    counts: &'a OperationCounts,
}

impl RelativeTags<'_> {
    /// Returns the relative tag of an operation on a communicator.
    pub(crate) fn relative(&mut self, tag: u32, communicator: CommId) -> u32 {
        relative_to(tag, self.bases.get(communicator, self.counts.on(communicator)))
    }
}

impl CollectiveRunner<'_> {
    pub(crate) fn relative_tags<'a>(&'a self, bases: &'a mut OperationBases) -> RelativeTags<'a> {
        RelativeTags { bases, counts: &self.counts }
    }

    /// Returns the earliest clock of an operation in progress.
    pub(crate) fn earliest_clock(&self) -> Option<SimTime> {
        self.operations.iter().flatten().map(|operation| operation.thread.clock).min()
    }

    /// Shifts all operations in time.
    pub(crate) fn shift_time(&mut self, time: SimDuration) {
        self.operations.iter_mut().flatten().for_each(|operation| operation.thread.shift_time(time));
    }

    /// Writes everything on which the future depends. Times before `past` do not matter.
    pub(crate) fn write_state(
        &self,
        tags: &mut RelativeTags<'_>,
        (past, wait_states): (SimTime, Option<&WaitStates>),
        state: &mut StateWriter,
    ) {
        state.value(&(self.polls, self.counts.nonblocking()));
        for (id, count) in self.counts.by_communicator() {
            state.value(&(id, count.wrapping_sub(tags.bases.get(id, count))));
        }
        for (index, operation) in (0..).map(OperationIndex).zip(&self.operations) {
            state.value(&operation.is_some());
            let Some(operation) = operation else { continue };
            operation.write_state(tags.relative(operation.tag, operation.communicator.id), state);
            if let Some(wait_states) = wait_states {
                write_peer(wait_states.of_operation(index), past, state);
            }
        }
    }
}

impl RunningOperation<'_> {
    /// Writes an operation. Its schedule follows from the steps taken, and the answers to them.
    fn write_state(&self, tag: u32, state: &mut StateWriter) {
        state.value(&(self.origin, tag, self.steps_taken, &self.answers, self.answer, &self.requests));
        state.value(&(self.wait, self.failed_polls, self.request));
        self.thread.write_state(state);
    }
}
