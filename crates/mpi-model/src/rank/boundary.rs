//! Boundaries of iterations, where ranks stop, and skip iterations that repeat.

use pdes_core::StateVisitor;
use serde::{Deserialize, Serialize};
use trace_mmap::{IterationBoundary, IterationInProgress, LoopRun};

use super::RankProcess;
use crate::machine::Machine;
use crate::observer::Analysis;

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

/// Place of a rank in its program at a cut.
#[derive(Clone, Copy, Debug)]
pub struct RankAtCut {
    /// Iteration in progress; `None` at the end.
    iteration: Option<IterationInProgress>,
    /// It stands at the begin of the iteration.
    stands_at_boundary: bool,
}

/// Interval between two cuts of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// Empty: the rank has ended before.
    Ended,
    /// Some iterations of one loop.
    Iterations {
        /// Number of iterations.
        count: u64,
        /// Number of times that as many identical iterations follow.
        repeats: u64,
    },
}

impl RankAtCut {
    /// Returns the loop in which the rank is; `None` at the end.
    pub fn loop_run(&self) -> Option<LoopRun> {
        self.iteration.map(|iteration| iteration.boundary.loop_run)
    }

    /// Returns how often the last `iterations` can be repeated, as far as this rank alone tells; `None` at its end.
    pub fn repetitions_of(&self, iterations: u64) -> Option<u64> {
        self.iteration.map(|iteration| self.skippable(iteration.boundary) / iterations)
    }

    /// Returns how many of the upcoming iterations can be skipped: not the one in progress, if it has begun.
    fn skippable(&self, boundary: IterationBoundary) -> u64 {
        boundary.upcoming_equal.saturating_sub((!self.stands_at_boundary).into())
    }

    /// Returns the interval since an earlier cut with an equal state; `None` where it cannot be repeated.
    pub fn interval_since(&self, before: &Self) -> Option<Interval> {
        let (Some(now), Some(earlier)) = (&self.iteration, &before.iteration) else {
            return (self.iteration.is_none() && before.iteration.is_none()).then_some(Interval::Ended);
        };
        let (now, earlier) = (now.boundary, earlier.boundary);
        let count = now.completed_equal.checked_sub(earlier.completed_equal).filter(|&count| count > 0)?;
        // The iterations between are of those that are alike, and not of others before them.
        if now.loop_run != earlier.loop_run
            || earlier.upcoming_equal.checked_sub(count) != Some(now.upcoming_equal)
        {
            return None;
        }
        Some(Interval::Iterations { count, repeats: self.skippable(now) / count })
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
        self.boundary_action.stops_again = self.stands_at_boundary();
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

    /// Adds the counts of the observers of the rank to the [findings](crate::Replay::findings).
    pub(crate) fn publish(&mut self) {
        self.context.observers.publish();
    }

    /// Returns whether the rank has ended.
    pub fn has_ended(&self) -> bool {
        !self.pending.is_some()
            && self.cursor.position() == self.context.trace.len()
            && !self.has_running_program()
    }

    /// Returns whether the rank stands at the begin of an iteration.
    pub fn stands_at_boundary(&self) -> bool {
        !self.pending.is_some() && self.cursor.iteration_boundary().is_some()
    }

    /// Returns the place of the rank at a cut.
    pub fn at_cut(&self) -> RankAtCut {
        let stands_at_boundary = self.stands_at_boundary();
        RankAtCut { iteration: self.cursor.iteration_in_progress(), stands_at_boundary }
    }

    /// Visits what depends on the order of time or on the schedule, where ranks run ahead of each other: events that are decided make a
    /// difference, and a rank refuses while it keeps calls for messages that are to come.
    pub fn visit_decisions(&self, visitor: &mut StateVisitor<'_>) {
        visitor.compare(&(self.granted_events, self.context.observers.statistics.outcome_counts()));
        if self.point_to_point.keeps_calls() {
            visitor.refuse();
        }
    }

    /// Skips so many iterations at the boundary at which the rank stands, or at the next one; returns the number of their actions.
    pub fn skip_iterations(&mut self, iterations: u64) -> u64 {
        let Some(iteration) = self.cursor.iteration_in_progress() else { return 0 };
        self.cursor.pass_boundaries(0);
        if self.stands_at_boundary() {
            self.cursor.skip_iterations(iterations);
        } else {
            self.boundary_action.iterations_to_skip = iterations;
        }
        iterations * iteration.actions
    }
}
