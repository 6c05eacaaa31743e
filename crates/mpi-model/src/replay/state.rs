//! Checkpoint state of a rank between two turns, from which it continues in another process of the operating system.
//!
//! Most of it is plain data. The steps of an operation in progress are not: on restart its schedule is created anew and replayed
//! with the recorded answers; later steps depend on nothing else (the law of [`Steps`]).
//!
//! [`Steps`]: crate::collective::Steps

use std::collections::BTreeMap;
use std::convert::Infallible;

use pdes_core::{Rank, SimTime};
use serde::{Deserialize, Serialize};
use trace_mmap::{CommId, CursorPosition};

use super::mailbox::Mailbox;
use super::operation::OperationState;
use super::pending::Pending;
use super::persistent::Persistent;
use super::slot_map::SlotMap;
use super::thread::Thread;
use super::{ColdState, RankProcess};
use crate::error::ReplayError;
use crate::machine::Machine;
use crate::matching::QueuedItems;
use crate::observer::{Analysis, Observer, WaitStates};
use crate::request::{RequestId, Requests};
use crate::statistics::Statistics;

/// State of a rank between two turns, with no token in transit to it: everything that does not follow from the trace, the
/// machine and the parameters.
#[derive(Debug, Serialize, Deserialize)]
pub struct RankState<S = ()> {
    mark: CursorPosition,
    thread: Thread,
    action_begin: SimTime,
    pending: Pending,
    awaited: Option<RequestId>,
    requests: Requests,
    queued: QueuedItems,
    operations: Vec<Option<OperationState>>,
    conditional_waits: u32,
    operations_on_world: u32,
    compute_factor: f64,
    mailbox: Option<Box<Mailbox>>,
    slot_map: Option<Box<SlotMap>>,
    cold: Option<SavedColdState>,
    statistics: Statistics,
    wait_states: Option<Box<WaitStates>>,
    observer: S,
}

/// State that only some ranks have. Routes to other ranks are looked up again.
#[derive(Debug, Serialize, Deserialize)]
struct SavedColdState {
    operations_on: BTreeMap<CommId, u32>,
    nonblocking_operations: u32,
    granted_events: u64,
    persistent: BTreeMap<RequestId, Persistent>,
    ignored_announcements: Vec<(usize, u32)>,
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
pub(super) type SavedRank<'t, A> = RankState<<<A as Analysis>::Observer<'t> as Observer>::Saved>;

impl<S> RankState<S> {
    /// Returns the number of actions that the rank had begun.
    pub fn actions(&self) -> u64 {
        self.mark.position()
    }
}

impl<'t, M: Machine<WorkRequest = Infallible>, A: Analysis> RankProcess<'t, M, A> {
    /// Returns the state of the rank, to which no token may be in transit; `None` where its trace is damaged, where it stops at
    /// iteration boundaries, and where it is known to fail.
    pub fn save(&self) -> Option<SavedRank<'t, A>> {
        let cold = self.cold.as_deref();
        if cold.is_some_and(|cold| !cold.match_errors.is_empty()) {
            return None;
        }
        let operation = |operation: &Option<Box<_>>| operation.as_deref().map(OperationState::of);
        Some(RankState {
            mark: self.cursor.saved_position()?,
            thread: self.thread,
            action_begin: self.action_begin,
            pending: self.pending,
            awaited: self.awaited,
            requests: self.requests.clone(),
            queued: self.point_to_point.ports.save(self.trace.ports()),
            operations: self.operations.iter().map(operation).collect(),
            conditional_waits: self.conditional_waits,
            operations_on_world: self.operations_on_world,
            compute_factor: self.compute_factor,
            mailbox: self.mailbox.clone(),
            slot_map: self.slot_map.clone(),
            cold: cold.map(|cold| SavedColdState {
                operations_on: cold.operations_on.clone(),
                nonblocking_operations: cold.nonblocking_operations,
                granted_events: cold.granted_events,
                persistent: cold.persistent.clone(),
                ignored_announcements: cold.ignored_announcements.clone(),
            }),
            statistics: self.observers.statistics.clone(),
            wait_states: self.observers.wait_states.clone(),
            observer: self.observers.others.save(),
        })
    }

    /// Restores a state into a rank that has done nothing yet.
    pub(super) fn restore(&mut self, state: SavedRank<'t, A>) -> Result<(), RestoreError<M::Error>> {
        let foreign = RestoreError::Foreign { rank: self.me, actions: state.actions() };
        let is_own = state.requests.slots() == self.trace.slots()
            && state.mailbox.is_some() == self.mailbox.is_some()
            && state.wait_states.is_some() == self.observers.wait_states.is_some()
            && self
                .point_to_point
                .restore(&state.queued)
                .map_err(|kind| Box::new(ReplayError { rank: self.me, action: 0, kind }))?;
        let operation = |state: Option<_>| match state {
            Some(state) => self.restore_operation(state).map(|operation| Some(Box::new(operation))),
            None => Some(None),
        };
        let operations: Option<Vec<_>> = state.operations.into_iter().map(operation).collect();
        let (true, Some(operations)) = (is_own, operations) else { return Err(foreign) };
        self.cursor = self.trace.cursor_at(&state.mark);
        (self.thread, self.action_begin, self.pending, self.awaited) =
            (state.thread, state.action_begin, state.pending, state.awaited);
        (self.requests, self.operations) = (state.requests, operations);
        (self.conditional_waits, self.operations_on_world, self.compute_factor) =
            (state.conditional_waits, state.operations_on_world, state.compute_factor);
        (self.mailbox, self.slot_map) = (state.mailbox, state.slot_map);
        (self.observers.statistics, self.observers.wait_states) = (state.statistics, state.wait_states);
        self.observers.others.restore(state.observer);
        self.cold = state.cold.map(|cold| {
            Box::new(ColdState {
                operations_on: cold.operations_on,
                nonblocking_operations: cold.nonblocking_operations,
                granted_events: cold.granted_events,
                persistent: cold.persistent,
                ignored_announcements: cold.ignored_announcements,
                ..ColdState::default()
            })
        });
        Ok(())
    }
}
