//! Numbers of the operations that a rank has begun.

use std::collections::BTreeMap;

use pdes_core::{BaseName, StateVisitor};
use serde::{Deserialize, Serialize};
use trace_mmap::CommId;

/// Numbers of operations that a rank has begun. All ranks of a communicator call its operations in the same order, so that the
/// number assigns messages to operations. Counts wrap around.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct OperationCounts {
    on_world: u32,
    /// Since there was none in progress.
    nonblocking: u32,
    /// On each other communicator.
    #[expect(
        clippy::box_collection,
        reason = "a map is larger than a pointer, and there may be millions of ranks"
    )]
    on_others: Option<Box<BTreeMap<CommId, u32>>>,
}

impl OperationCounts {
    /// Counts an operation on a communicator; returns its number there, from 1.
    pub(super) fn next_on(&mut self, communicator: CommId) -> u32 {
        next(match communicator {
            CommId::WORLD => &mut self.on_world,
            id => self.on_others.get_or_insert_default().entry(id).or_insert(0),
        })
    }

    /// Counts a non-blocking operation; returns its number, from 1. Only operations that are in progress together have an order, so
    /// that the numbers begin anew with one that is alone.
    pub(super) fn next_nonblocking(&mut self, is_alone: bool) -> u32 {
        if is_alone {
            self.nonblocking = 0;
        }
        next(&mut self.nonblocking)
    }

    /// Returns the number of operations begun on a communicator.
    pub(crate) fn on(&self, communicator: CommId) -> u32 {
        match communicator {
            CommId::WORLD => self.on_world,
            id => self.on_others.as_ref().and_then(|counts| counts.get(&id)).copied().unwrap_or_default(),
        }
    }

    /// Visits the counts: of those on a communicator only differences between ranks matter, and the number of non-blocking operations
    /// does while some are in progress.
    pub(super) fn visit(&mut self, is_idle: bool, visitor: &mut StateVisitor<'_>) {
        if visitor.saves_whole(self) {
            return;
        }
        let Self { on_world, nonblocking, on_others } = self;
        visitor.compare(&if is_idle { 0 } else { *nonblocking });
        visitor.number_on(operations_on(CommId::WORLD), on_world);
        for (id, count) in on_others.iter_mut().flat_map(|counts| counts.iter_mut()) {
            visitor.compare(id);
            visitor.number_on(operations_on(*id), count);
        }
    }
}

/// Returns the base of the numbers of operations on a communicator.
pub(crate) fn operations_on(communicator: CommId) -> BaseName {
    (1, communicator.get())
}

fn next(count: &mut u32) -> u32 {
    *count = count.wrapping_add(1);
    *count
}
