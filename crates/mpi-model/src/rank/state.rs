//! State of a rank between two turns, with no token in transit to it: everything that does not follow from the trace, the machine
//! and the parameters.
//!
//! At a cut a rank stands anywhere in an iteration. It skips iterations at the boundary at which it stands, or comes next, where its program
//! and its columns of amounts can continue later; its times move on at the cut itself.

use pdes_core::{SimTime, State, StateVisitor};

use super::RankProcess;
use crate::context::RankContext;
use crate::machine::Machine;
use crate::observer::{Analysis, Observer, RankObservers};

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    /// Visits the place in the program, but for the number of iterations to come; returns whether more of the rank is to be visited:
    /// one that has ended has no future. Outside of equal iterations no state recurs.
    fn visit_place(&mut self, visitor: &mut StateVisitor<'_>) -> bool {
        let has_ended = self.has_ended();
        let Self { cursor, boundary_action, .. } = self;
        if visitor.is_saving() || visitor.is_loading() {
            let Some(mut place) = cursor.saved_position() else {
                visitor.refuse();
                return false;
            };
            visitor.saved(&mut place);
            visitor.saved(boundary_action);
            if visitor.is_loading() && !visitor.is_refused() {
                cursor.resume_at(&place);
                let equal =
                    cursor.iteration_in_progress().map_or(0, |iteration| iteration.boundary.upcoming_equal);
                if !boundary_action.is_possible_before(equal) {
                    visitor.refuse();
                }
            }
            return !visitor.is_refused();
        }
        let Some(iteration) = cursor.iteration_in_progress() else {
            visitor.compare(&has_ended);
            if !has_ended {
                visitor.refuse();
            }
            return false;
        };
        // Equal iterations have the same actions, so that their number tells the position.
        visitor.compare(&(false, iteration.boundary.loop_run, iteration.actions_read));
        true
    }
}

/// A rank refuses that is known to fail, or whose trace is damaged.
impl<M: Machine, A: Analysis> State for RankProcess<'_, M, A> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        if !self.visit_place(visitor) {
            return;
        }
        let Self {
            context,
            point_to_point,
            collectives,
            // Visited with the place.
            cursor: _,
            boundary_action: _,
            action_begin,
            pending,
            awaited,
            computations_ahead,
            compute_factor,
            offload,
            granted_events,
            files,
            graph,
            program,
            launched,
            locks,
        } = self;
        // Nobody can tell what a program that runs does next, and the decisions of a launcher are not saved.
        if program.is_some() || launched.is_some() {
            visitor.refuse();
        }
        visitor.plain(locks);
        collectives.visit(context, visitor);
        visitor.context(offload.is_some());
        offload.iter_mut().for_each(|offload| offload.visit(context, visitor));
        let RankContext {
            replay,
            me: _,
            trace: _,
            thread,
            pace: _,
            quiet: _,
            charges_calls: _,
            prepares_actions: _,
            observers,
            device_histories,
        } = context;
        // Nothing that is to come depends on when something was before the earliest clock, because waits begin at a clock.
        let past: SimTime =
            collectives.earliest_clock().map_or(thread.clock, |clock| clock.min(thread.clock));
        thread.visit(visitor);
        visitor.time(action_begin);
        visitor.plain(pending);
        visitor.saved(awaited);
        // Whether a wait that has ended was one for something to come depends on the schedule.
        visitor.compare(&awaited.filter(|_| pending.is_some()));
        visitor.plain(computations_ahead);
        compute_factor.visit(visitor);
        visitor.saved(granted_events);
        let has_positions = replay.machine.has_file_positions();
        files.visit(has_positions, visitor);
        visitor.saved(device_histories);
        for (device, history) in device_histories {
            visitor.compare(device);
            history.visit(has_positions, past, visitor);
        }
        let RankObservers { others, .. } = observers;
        let matter = point_to_point.visit(past, &collectives.counts, others.counts_messages(), visitor);
        observers.visit(past, &matter, collectives.in_progress(), visitor);
        visitor.context(graph.is_some());
        graph.iter_mut().for_each(|graph| graph.visit(visitor));
    }
}
