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
use trace_mmap::{CommId, Mark};

use super::mailbox::Mailbox;
use super::operation::OperationState;
use super::partners::Partners;
use super::pending::Pending;
use super::persistent::Persistent;
use super::places::Places;
use super::strand::Strand;
use super::{RankProcess, Rare, path};
use crate::error::ReplayError;
use crate::machine::Machine;
use crate::matching::Queued;
use crate::request::{RequestId, Requests};
use crate::statistics::Statistics;

/// State of a rank between two turns, with no token in transit to it: everything that does not follow from the trace, the
/// machine and the parameters.
#[derive(Debug, Serialize, Deserialize)]
pub struct RankState {
    mark: Mark,
    strand: Strand,
    began: SimTime,
    pending: Pending,
    awaited: Option<RequestId>,
    requests: Requests,
    queued: Queued,
    operations: Vec<Option<OperationState>>,
    bound: u32,
    on_world: u32,
    pace: f64,
    mailbox: Option<Box<Mailbox>>,
    places: Option<Box<Places>>,
    rare: Option<RareState>,
    statistics: Statistics,
    partners: Option<Box<Partners>>,
}

/// State that only some ranks have. Routes to other ranks are looked up again.
#[derive(Debug, Serialize, Deserialize)]
struct RareState {
    operations_on: BTreeMap<CommId, u32>,
    branches: u32,
    granted: u64,
    persistent: BTreeMap<RequestId, Persistent>,
    ignored: Vec<(usize, u32)>,
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

impl RankState {
    /// Returns the number of actions that the rank had begun.
    pub fn actions(&self) -> u64 {
        self.mark.position()
    }
}

impl<'t, M: Machine<Order = Infallible>> RankProcess<'t, M> {
    /// Returns the state of the rank, to which no token may be in transit; `None` where its trace is damaged, where it stops at
    /// iteration boundaries, and where it is known to fail.
    pub fn save(&self) -> Option<RankState> {
        let rare = self.rare.as_deref();
        if rare.is_some_and(|rare| !rare.clashes.is_empty()) {
            return None;
        }
        let operation = |operation: &Option<Box<_>>| operation.as_deref().map(OperationState::of);
        Some(RankState {
            mark: self.cursor.mark()?,
            strand: self.strand,
            began: self.began,
            pending: self.pending,
            awaited: self.awaited,
            requests: self.requests.clone(),
            queued: self.ports.queued(self.trace.ports()),
            operations: self.operations.iter().map(operation).collect(),
            bound: self.bound,
            on_world: self.on_world,
            pace: self.pace,
            mailbox: self.mailbox.clone(),
            places: self.places.clone(),
            rare: rare.map(|rare| RareState {
                operations_on: rare.operations_on.clone(),
                branches: rare.branches,
                granted: rare.granted,
                persistent: rare.persistent.clone(),
                ignored: rare.ignored.clone(),
            }),
            statistics: self.statistics.clone(),
            partners: self.partners.clone(),
        })
    }

    /// Restores a state into a rank that has done nothing yet.
    pub(super) fn take_up(&mut self, state: RankState) -> Result<(), RestoreError<M::Error>> {
        let foreign = RestoreError::Foreign { rank: self.me, actions: state.actions() };
        let (world, me) = (self.world, self.me);
        let way =
            |peer| path(world, peer, me).map_err(|kind| Box::new(ReplayError { rank: me, action: 0, kind }));
        let is_own = state.requests.slots() == self.trace.slots()
            && state.mailbox.is_some() == self.mailbox.is_some()
            && state.partners.is_some() == self.partners.is_some()
            && self.ports.take_up(&state.queued, way)?;
        let operation = |state: Option<_>| match state {
            Some(state) => self.take_up_operation(state).map(|operation| Some(Box::new(operation))),
            None => Some(None),
        };
        let operations: Option<Vec<_>> = state.operations.into_iter().map(operation).collect();
        let (true, Some(operations)) = (is_own, operations) else { return Err(foreign) };
        self.cursor = self.trace.cursor_at(&state.mark);
        (self.strand, self.began, self.pending, self.awaited) =
            (state.strand, state.began, state.pending, state.awaited);
        (self.requests, self.operations) = (state.requests, operations);
        (self.bound, self.on_world, self.pace) = (state.bound, state.on_world, state.pace);
        (self.mailbox, self.places, self.statistics) = (state.mailbox, state.places, state.statistics);
        self.partners = state.partners;
        self.rare = state.rare.map(|rare| {
            Box::new(Rare {
                operations_on: rare.operations_on,
                branches: rare.branches,
                granted: rare.granted,
                persistent: rare.persistent,
                ignored: rare.ignored,
                ..Rare::default()
            })
        });
        Ok(())
    }
}
