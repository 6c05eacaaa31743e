//! Numbers of the operations that a rank has begun.

use std::collections::BTreeMap;

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

    pub(super) fn nonblocking(&self) -> u32 {
        self.nonblocking
    }

    /// Returns the number of operations begun on a communicator.
    pub(super) fn on(&self, communicator: CommId) -> u32 {
        match communicator {
            CommId::WORLD => self.on_world,
            id => self.on_others.as_ref().and_then(|counts| counts.get(&id)).copied().unwrap_or_default(),
        }
    }

    /// Returns the number of operations begun on each communicator.
    pub(super) fn by_communicator(&self) -> impl Iterator<Item = (CommId, u32)> + '_ {
        let on_others =
            self.on_others.iter().flat_map(|counts| counts.iter().map(|(&id, &count)| (id, count)));
        std::iter::once((CommId::WORLD, self.on_world)).chain(on_others)
    }

    /// Repeats the growth since earlier counts `times` more times.
    pub(crate) fn extrapolate(&mut self, before: &Self, times: u64) {
        let more = |now: &mut u32, before: u32| {
            *now = now.wrapping_add(now.wrapping_sub(before).wrapping_mul(times as u32));
        };
        more(&mut self.on_world, before.on_world);
        more(&mut self.nonblocking, before.nonblocking);
        for (id, count) in self.on_others.iter_mut().flat_map(|counts| counts.iter_mut()) {
            let known = before.on_others.as_ref().and_then(|counts| counts.get(id));
            more(count, known.copied().unwrap_or_default());
        }
    }
}

fn next(count: &mut u32) -> u32 {
    *count = count.wrapping_add(1);
    *count
}
