//! Checkpoint state of a rank between two turns, from which it continues in another process of the operating system.

use std::collections::BTreeMap;

use pdes_core::{Rank, SimTime};
use serde::{Deserialize, Serialize};
use trace_mmap::CursorPosition;

use super::RankProcess;
use super::file::Files;
use super::graph::GraphProgress;
use super::pending::Pending;
use super::recurrence::BoundaryAction;
use crate::collective::runner::{CollectiveRunner, SavedOperations};
use crate::context::Thread;
use crate::error::ReplayError;
use crate::machine::{DeviceHistory, Machine};
use crate::observer::{Analysis, Observer, WaitStates};
use crate::point_to_point::{RequestId, SavedMessages};
use crate::statistics::Statistics;

/// State of a rank between two turns, with no token in transit to it: everything that does not follow from the trace, the
/// machine and the parameters.
#[derive(Debug, Serialize, Deserialize)]
pub struct RankState<S = ()> {
    mark: CursorPosition,
    boundary_action: BoundaryAction,
    thread: Thread,
    action_begin: SimTime,
    pending: Pending,
    awaited: Option<RequestId>,
    compute_factor: f64,
    computations_ahead: u8,
    granted_events: u64,
    messages: SavedMessages,
    operations: SavedOperations,
    statistics: Statistics,
    wait_states: Option<Box<WaitStates>>,
    observer: S,
    files: Files,
    device_histories: BTreeMap<u32, DeviceHistory>,
    graph: Option<GraphProgress>,
}

/// Error of a rank that cannot continue from a state.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError<E: std::error::Error + 'static> {
    /// A rank has no route from another.
    #[error(transparent)]
    Replay(#[from] Box<ReplayError<E>>),
    /// The state is not one of this rank of this trace.
    #[error("rank {rank}: the state after {actions} actions does not fit the trace")]
    Foreign {
        /// Rank.
        rank: Rank,
        /// Number of actions done, according to the state.
        actions: u64,
    },
}

/// State of a rank with this analysis.
pub(crate) type SavedRank<'t, A> = RankState<<<A as Analysis>::Observer<'t> as Observer>::Saved>;

impl<S> RankState<S> {
    /// Returns the number of actions that the rank had begun.
    pub fn actions(&self) -> u64 {
        self.mark.position()
    }
}

impl<'t, M: Machine, A: Analysis> RankProcess<'t, M, A> {
    /// Returns the state of the rank, to which no token may be in transit; `None` where its trace is damaged, and where it is known to
    /// fail.
    pub fn save(&self) -> Option<SavedRank<'t, A>> {
        let observers = &self.context.observers;
        Some(RankState {
            mark: self.cursor.saved_position()?,
            boundary_action: self.boundary_action,
            thread: self.context.thread,
            action_begin: self.action_begin,
            pending: self.pending,
            awaited: self.awaited,
            compute_factor: self.compute_factor,
            computations_ahead: self.computations_ahead,
            granted_events: self.granted_events,
            messages: self.point_to_point.save(&self.context)?,
            operations: self.collectives.save(),
            statistics: observers.statistics.clone(),
            wait_states: observers.wait_states.clone(),
            observer: observers.others.save(),
            files: self.files.clone(),
            device_histories: self.context.device_histories.clone(),
            graph: self.graph.as_ref().map(|graph| graph.save()),
        })
    }

    /// Restores a state into a rank that has done nothing yet.
    pub(crate) fn restore(&mut self, state: SavedRank<'t, A>) -> Result<(), RestoreError<M::Error>> {
        let foreign = RestoreError::Foreign { rank: self.context.me, actions: state.actions() };
        let fail = |kind| Box::new(ReplayError { rank: self.context.me, action: 0, kind });
        let is_own = state.wait_states.is_some() == self.context.observers.wait_states.is_some()
            && self.point_to_point.restore(state.messages).map_err(fail)?;
        let collectives = CollectiveRunner::restore(&self.context, state.operations);
        let is_own = is_own
            && match (&mut self.graph, state.graph) {
                (Some(graph), Some(progress)) => graph.restore(progress),
                (graph, progress) => graph.is_none() && progress.is_none(),
            };
        let is_own = is_own && self.context.observers.others.restore(state.observer);
        let (true, Some(collectives)) = (is_own, collectives) else { return Err(foreign) };
        self.cursor.resume_at(&state.mark);
        let equal =
            self.cursor.iteration_in_progress().map_or(0, |iteration| iteration.boundary.upcoming_equal);
        if !state.boundary_action.is_possible_before(equal) {
            return Err(foreign);
        }
        self.boundary_action = state.boundary_action;
        (self.context.thread, self.collectives) = (state.thread, collectives);
        (self.action_begin, self.pending, self.awaited) = (state.action_begin, state.pending, state.awaited);
        (self.compute_factor, self.granted_events) = (state.compute_factor, state.granted_events);
        (self.computations_ahead, self.files) = (state.computations_ahead, state.files);
        self.context.device_histories = state.device_histories;
        let observers = &mut self.context.observers;
        (observers.statistics, observers.wait_states) = (state.statistics, state.wait_states);
        Ok(())
    }
}
