//! Counts of operations whose root is removed: the first kept rank of the communicator takes its place.
//!
//! Recorded traces have the counts of gatherings and scatterings with vectors at their root, and zeros at the other ranks.

use std::collections::BTreeMap;
use std::ops::Range;

use pdes_core::Rank;

use crate::action::CollectiveId;
use crate::archive::WriteError;
use crate::archive::operations::{Operation, operations};
use crate::call::Call;
use crate::collective::Collective;
use crate::communicator::{CommIdx, Communicator};
use crate::side_tables::SideTables;
use crate::trace::{RankTrace, Trace};

/// The operations that a rank makes in place of a removed root, with the counts of that root.
#[derive(Clone, Debug, Default)]
pub(super) struct RootCounts(BTreeMap<(CommIdx, CollectiveId), Collective>);

impl RootCounts {
    /// Finds the operations of a rank that takes the place of a removed root. The cost is that of its actions and those of the removed
    /// roots, if there are such operations.
    ///
    /// # Errors
    /// Fails if the root has other counts in calls that are equal on this rank.
    pub(super) fn new(trace: &Trace, rank: Rank, ranks: &Range<u32>) -> Result<Self, WriteError> {
        let (mut counts, own) = (Self::default(), trace.rank(rank));
        for (on, communicator) in (0..).map(CommIdx::new).zip(own.communicators()) {
            let first = communicator.group.members().find(|member| ranks.contains(&member.get()));
            if first == Some(rank) && has_removed_root(own, on, communicator, ranks) {
                counts.add(trace, (rank, on), communicator, ranks)?;
            }
        }
        Ok(counts)
    }

    fn add(
        &mut self,
        trace: &Trace,
        (rank, on): (Rank, CommIdx),
        communicator: &Communicator,
        ranks: &Range<u32>,
    ) -> Result<(), WriteError> {
        let of_root = |root: Rank| {
            let others = trace.rank(root);
            let on = others.communicators().iter().position(|other| other.id == communicator.id)?;
            Some(operations(others, CommIdx::new(on as u32)))
        };
        let mut of_roots = BTreeMap::new();
        for (number, (action, operation)) in (0_usize..).zip(operations(trace.rank(rank), on)) {
            let Some((id, own)) = operation.collective() else { continue };
            let Some(root) = removed_root(own, communicator, ranks) else { continue };
            let refused = || WriteError::CutRoot { rank, action, root, call: own.name() };
            let (next, of_root) = of_roots.entry(root).or_insert_with(|| (0, of_root(root)));
            let of_root = of_root.as_mut().and_then(|of_root| of_root.nth(number - *next));
            *next = number + 1;
            let of_root = of_root.and_then(|(_, operation): (u64, Operation<'_>)| operation.collective());
            let (_, of_root) = of_root.ok_or_else(refused)?;
            let full = with_counts_of(own, of_root).ok_or_else(refused)?;
            if self.0.insert((on, id), full.clone()).is_some_and(|before| before != full) {
                return Err(refused());
            }
        }
        Ok(())
    }

    /// Returns an operation with the counts of its root, if the rank takes the place of that one.
    pub(super) fn of(&self, on: CommIdx, operation: CollectiveId) -> Option<&Collective> {
        self.0.get(&(on, operation))
    }
}

fn has_removed_root(own: &RankTrace, on: CommIdx, communicator: &Communicator, ranks: &Range<u32>) -> bool {
    let side: &SideTables = &own.side_tables;
    let is_removed = |operation: &Collective| removed_root(operation, communicator, ranks).is_some();
    let is_call = |call: &Call| match call {
        Call::Collective { operation, communicator, .. } if *communicator == on => {
            side.collective(*operation).is_some_and(is_removed)
        }
        _ => false,
    };
    (on == CommIdx::WORLD && side.collectives.iter().any(is_removed)) || side.calls.iter().any(is_call)
}

/// Returns the root of an operation with counts at its root only, if it is removed.
fn removed_root(operation: &Collective, communicator: &Communicator, ranks: &Range<u32>) -> Option<Rank> {
    let (Collective::Gatherv { root, .. } | Collective::Scatterv { root, .. }) = operation else {
        return None;
    };
    Some(communicator.group.member(root.get())).filter(|root| !ranks.contains(&root.get()))
}

/// Returns an operation with the counts of its root; `None` if that one makes another one.
fn with_counts_of(own: &Collective, of_root: &Collective) -> Option<Collective> {
    match (own, of_root) {
        (
            Collective::Gatherv { send_count, send_type, root, .. },
            Collective::Gatherv { recv_counts, recv_type, .. },
        ) => Some(Collective::Gatherv {
            send_count: *send_count,
            recv_counts: recv_counts.clone(),
            root: *root,
            send_type: *send_type,
            recv_type: *recv_type,
        }),
        (
            Collective::Scatterv { recv_count, recv_type, root, .. },
            Collective::Scatterv { send_counts, send_type, .. },
        ) => Some(Collective::Scatterv {
            send_counts: send_counts.clone(),
            recv_count: *recv_count,
            root: *root,
            send_type: *send_type,
            recv_type: *recv_type,
        }),
        _ => None,
    }
}
