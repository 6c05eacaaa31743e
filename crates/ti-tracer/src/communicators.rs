//! Communicators of a process: their handles, their numbers in the trace, and their world ranks.

use rustc_hash::FxHashMap;

/// A registered communicator.
#[derive(Clone, Debug)]
struct RegisteredCommunicator {
    number: u32,
    /// World ranks of its members in order; `None` for the world.
    members: Option<Box<[u32]>>,
}

/// Communicators of a process by handle.
#[derive(Debug, Default)]
pub(crate) struct Communicators {
    by_handle: FxHashMap<i64, RegisteredCommunicator>,
    /// Number of communicators that this process has numbered.
    numbered: u32,
}

impl Communicators {
    /// Adds a communicator; without members it is the world.
    pub(crate) fn add(&mut self, handle: i64, number: u32, members: Option<Box<[u32]>>) {
        self.by_handle.insert(handle, RegisteredCommunicator { number, members });
    }

    /// Removes a communicator and returns its number.
    pub(crate) fn remove(&mut self, handle: i64) -> Option<u32> {
        self.by_handle.remove(&handle).map(|known| known.number)
    }

    /// Returns the number of a communicator.
    pub(crate) fn number(&self, handle: i64) -> Option<u32> {
        self.by_handle.get(&handle).map(|known| known.number)
    }

    /// Returns the world ranks of the members of a communicator in order; `None` for the world, and if the communicator is unknown.
    pub(crate) fn members(&self, handle: i64) -> Option<Box<[u32]>> {
        self.by_handle.get(&handle)?.members.clone()
    }

    /// Returns the world rank of a rank of a communicator; `None` if the communicator is unknown or has no such rank. Ranks of
    /// the world are not checked.
    pub(crate) fn world_rank(&self, handle: i64, rank: u32) -> Option<u32> {
        match &self.by_handle.get(&handle)?.members {
            None => Some(rank),
            Some(members) => members.get(rank as usize).copied(),
        }
    }

    /// Returns a new communicator number; `rank` keeps it unique among the `world` processes.
    pub(crate) fn next_number(&mut self, rank: u32, world: u32) -> u32 {
        self.numbered += 1;
        (self.numbered - 1) * world + rank + 1
    }
}
