//! Recurrence with contention: the state of a rank at a cut, and repetition of the iterations since an earlier one.
//!
//! At a cut a rank stands anywhere in an iteration. It skips iterations when it comes to the next boundary, where its program and
//! its columns of amounts can continue later; its times move on at the cut itself.

use pdes_core::{SimDuration, SimTime, StateWriter};
use serde::{Deserialize, Serialize};
use trace_mmap::{IterationBoundary, IterationInProgress};

use super::file::FileAccessCounts;
use super::{RankProcess, Repetition};
use crate::collective::runner::OperationBases;
use crate::machine::Machine;
use crate::observer::{Analysis, LateMessage, WaitStates};
use crate::statistics::Statistics;

/// Action of a rank at an iteration boundary.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct BoundaryAction {
    /// Passes over it, instead of stopping.
    passes: bool,
    /// Number of iterations to skip there.
    iterations_to_skip: u64,
    /// Stops there again when it is resumed.
    stops_again: bool,
}

impl BoundaryAction {
    /// Returns whether the action is possible for a rank that is in the first of `upcoming` equal iterations.
    pub(super) fn is_possible_before(&self, upcoming: u64) -> bool {
        self.iterations_to_skip == 0 || self.iterations_to_skip < upcoming
    }

    /// Returns whether the rank stays at the boundary at which it has stopped, this once.
    #[inline]
    pub(super) fn takes_stop(&mut self) -> bool {
        std::mem::take(&mut self.stops_again)
    }
}

/// Progress and totals of a rank at a cut.
#[derive(Clone, Debug)]
pub struct RankAtCut {
    /// Iteration in progress; `None` at the end.
    iteration: Option<IterationInProgress>,
    clock: SimTime,
    statistics: Statistics,
    file_accesses: FileAccessCounts,
}

impl RankAtCut {
    /// Returns how often the last `iterations` can be repeated, as far as this rank alone tells; `None` at its end.
    pub fn repetitions_of(&self, iterations: u64) -> Option<u64> {
        self.iteration.map(|iteration| iteration.boundary.upcoming_equal.saturating_sub(1) / iterations)
    }

    /// Returns the interval since an earlier cut with the same [state](RankProcess::write_state); `None` where it cannot be repeated.
    pub fn repetition_since(&self, before: &Self) -> Option<Repetition> {
        let (Some(now), Some(earlier)) = (&self.iteration, &before.iteration) else {
            return (self.iteration.is_none() && before.iteration.is_none()).then_some(Repetition::Ended);
        };
        let (now, earlier) = (now.boundary, earlier.boundary);
        let count = now.completed_equal.checked_sub(earlier.completed_equal).filter(|&count| count > 0)?;
        // The iterations between are of those that are alike, and not of others before them.
        if now.loop_id != earlier.loop_id
            || earlier.upcoming_equal.checked_sub(count) != Some(now.upcoming_equal)
        {
            return None;
        }
        // The iteration in progress is one of the upcoming ones.
        let repeats = now.upcoming_equal.saturating_sub(1) / count;
        Some(Repetition::Iterations { count, repeats, time: self.clock.checked_since(before.clock)? })
    }

    /// Returns the statistics after `times` more repetitions of the interval since an earlier cut; `None` where they overflow.
    pub fn statistics_after(&self, before: &Self, times: u64) -> Option<Statistics> {
        self.statistics.extrapolate(&before.statistics, times)
    }
}

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    /// Returns the number of actions that the rank skips at the next boundary.
    pub(super) fn actions_to_skip(&self) -> u64 {
        match self.boundary_action.iterations_to_skip {
            0 => 0,
            iterations => {
                let actions = self.cursor.iteration_in_progress().map_or(0, |iteration| iteration.actions);
                iterations.saturating_mul(actions)
            }
        }
    }

    /// Returns the number of actions of the program.
    pub fn program_actions(&self) -> u64 {
        self.context.trace.len()
    }

    /// Returns the boundary at which the iteration in progress began; `None` outside of equal iterations.
    pub fn last_boundary(&self) -> Option<IterationBoundary> {
        self.cursor.iteration_in_progress().map(|iteration| iteration.boundary)
    }

    /// Makes the rank pass over iteration boundaries, at which it [stops](crate::Replay::stopping_at_iterations) otherwise.
    pub fn pass_all_boundaries(&mut self) {
        self.boundary_action.passes = true;
        // A restored rank may have to skip iterations first.
        if self.boundary_action.iterations_to_skip == 0 {
            self.cursor.pass_boundaries(u64::MAX);
        }
    }

    /// Makes the rank stop again, when it is resumed, at the boundary at which it stands, if it stands at one.
    pub fn stop_again_at_boundary(&mut self) {
        self.boundary_action.stops_again =
            self.cursor.iteration_boundary().is_some() && !self.pending.is_some();
    }

    /// Skips stops at the next `heads` boundaries of the loop.
    pub fn skip_boundaries(&mut self, heads: u64) {
        self.cursor.pass_boundaries(heads);
    }

    /// Skips iterations at the boundary that the rank has reached, if it has to; returns whether it stops there.
    pub(super) fn stops_at_boundary(&mut self) -> bool {
        let iterations = std::mem::take(&mut self.boundary_action.iterations_to_skip);
        if iterations > 0 {
            self.cursor.skip_iterations(iterations);
        }
        if self.boundary_action.passes {
            self.cursor.pass_boundaries(u64::MAX);
        }
        iterations == 0 && !self.boundary_action.passes
    }

    /// Returns the number of eager messages to this rank so far, on which their numbers count.
    pub fn eager_messages(&self) -> u32 {
        self.point_to_point.eager_messages_started()
    }

    /// Adds the counts of the observers of the rank to the [findings](crate::Replay::findings).
    pub(crate) fn publish(&mut self) {
        self.context.observers.publish();
    }

    /// Returns progress and totals of the rank at a cut.
    pub fn at_cut(&self) -> RankAtCut {
        RankAtCut {
            iteration: self.cursor.iteration_in_progress(),
            clock: self.context.thread.clock,
            statistics: self.context.observers.statistics.clone(),
            file_accesses: self.files.counts(),
        }
    }

    /// Writes everything on which the future of the rank depends at a cut, but for the number of iterations to come; returns false
    /// where that is impossible: outside of equal iterations, and before a failure. A rank that has ended has no future.
    pub fn write_state(&self, bases: &mut OperationBases, state: &mut StateWriter) -> bool {
        let Some(iteration) = self.cursor.iteration_in_progress() else {
            let has_ended = !self.pending.is_some() && self.cursor.position() == self.context.trace.len();
            state.value(&has_ended);
            return has_ended;
        };
        // Equal iterations have the same actions, so that their number tells the position.
        state.value(&(false, iteration.boundary.loop_id, iteration.actions_read));
        self.context.thread.write_state(state);
        state.time(self.action_begin);
        state.value(&(self.pending, self.awaited, self.computations_ahead));
        state.float(self.compute_factor);
        let files = self.files.recurrent_state(self.context.replay.machine.has_file_positions());
        state.value(&(self.context.observers.statistics.current_region(), files));
        // Nothing that is to come depends on when something was before the earliest clock, because waits begin at a clock.
        let past = self
            .collectives
            .earliest_clock()
            .map_or(self.context.thread.clock, |clock| clock.min(self.context.thread.clock));
        let wait_states = self.context.observers.wait_states.as_deref();
        state.value(&wait_states.and_then(WaitStates::activity));
        let late = wait_states.map_or(&[][..], WaitStates::late);
        state.value(&late.len());
        for &LateMessage { from, begin, sent, kind, region, age } in late {
            state.value(&(from, kind, region, age));
            state.time(begin);
            state.time(sent);
        }
        let mut tags = self.collectives.relative_tags(bases);
        self.collectives.write_state(&mut tags, (past, wait_states), state);
        self.point_to_point.write_state(&mut tags, (past, &self.context.observers), state)
    }

    /// Repeats the interval between two cuts with the same state, of which `now` is the present one, `times` more times: shifts all
    /// times by `time`, and skips the iterations at the next boundary. Returns the number of actions skipped.
    ///
    /// # Panics
    /// The interval [cannot be repeated](RankAtCut::repetition_since), or a total overflows.
    pub fn repeat_iterations(
        &mut self,
        now: &RankAtCut,
        before: &RankAtCut,
        times: u64,
        time: SimDuration,
    ) -> u64 {
        let count = match now.repetition_since(before) {
            Some(Repetition::Iterations { count, .. }) => count,
            Some(Repetition::Ended) => return 0,
            None => panic!("rank {}: the states differ in more than time", self.context.me),
        };
        let statistics = now.statistics_after(before, times);
        self.context.observers.statistics = statistics.expect("the totals do not overflow");
        self.context.observers.iterations_skipped(time);
        // Actions are counted from the start, also after the skip.
        self.point_to_point.shift_time(time, 0);
        self.context.thread.shift_time(time);
        self.action_begin += time;
        self.collectives.shift_time(time);
        self.files.repeat_accesses(&before.file_accesses, times);
        self.boundary_action.iterations_to_skip = count * times;
        self.cursor.pass_boundaries(0);
        let actions = now.iteration.map_or(0, |iteration| iteration.actions);
        count * times * actions
    }
}
