//! The communicators of a process: handles, numbers in the trace, and the ranks of the world.

use rustc_hash::FxHashMap;

/// A communicator that is known.
#[derive(Clone, Debug)]
struct Known {
    number: u32,
    /// Its ranks of the world in their order; `None` where it is the world.
    members: Option<Box<[u32]>>,
}

/// The communicators of a process by their handles.
#[derive(Debug, Default)]
pub(crate) struct Communicators {
    by_handle: FxHashMap<i64, Known>,
    /// How many this process has numbered.
    numbered: u32,
}

impl Communicators {
    /// Adds a communicator; without members it is the world.
    pub(crate) fn add(&mut self, handle: i64, number: u32, members: Option<Box<[u32]>>) {
        self.by_handle.insert(handle, Known { number, members });
    }

    /// Forgets a communicator and returns its number.
    pub(crate) fn remove(&mut self, handle: i64) -> Option<u32> {
        self.by_handle.remove(&handle).map(|known| known.number)
    }

    /// Returns the number of a communicator.
    pub(crate) fn number(&self, handle: i64) -> Option<u32> {
        self.by_handle.get(&handle).map(|known| known.number)
    }

    /// Returns the rank in the world of a rank of a communicator, both of which must be known.
    pub(crate) fn world_rank(&self, handle: i64, rank: u32) -> Option<u32> {
        match &self.by_handle.get(&handle)?.members {
            None => Some(rank),
            Some(members) => members.get(rank as usize).copied(),
        }
    }

    /// Returns a number that no process of this many returns a second time.
    pub(crate) fn next_number(&mut self, rank: u32, world: u32) -> u32 {
        self.numbered += 1;
        (self.numbered - 1) * world + rank + 1
    }
}
