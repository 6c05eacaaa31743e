//! Accesses at pointers that ranks share: one after the other, in the order in which they come, as in SMPI.

use std::collections::{BTreeMap, VecDeque};

use mpi_model::{Completion, FileAccess};
use serde::{Deserialize, Serialize};

/// File, and number of the pointer.
type Key = (u32, u32);

/// An access at a shared pointer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct SharedAccess {
    pub(super) access: FileAccess,
    pub(super) tag: Completion,
    /// Number among all such accesses.
    pub(super) number: u32,
}

/// The pointers that ranks share.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SharedPointers {
    pointers: BTreeMap<Key, Pointer>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Pointer {
    position: u64,
    /// The access that holds the pointer, and behind it those that wait.
    queue: VecDeque<SharedAccess>,
}

fn key(access: &FileAccess) -> Key {
    (access.file, access.shared_pointer.map_or(0, |number| number.get()))
}

impl SharedPointers {
    /// Adds an access; returns it with its position if it is the first.
    pub(super) fn submit(&mut self, shared: SharedAccess) -> Option<SharedAccess> {
        let begin = shared.access.offset;
        let pointer = self
            .pointers
            .entry(key(&shared.access))
            .or_insert(Pointer { position: begin, queue: VecDeque::new() });
        pointer.queue.push_back(shared);
        if pointer.queue.len() == 1 { pointer.begin_first() } else { None }
    }

    /// Ends the access that holds a pointer; returns the next one with its position.
    pub(super) fn end(&mut self, access: &FileAccess) -> Option<SharedAccess> {
        let pointer = self.pointers.get_mut(&key(access))?;
        pointer.queue.pop_front();
        pointer.begin_first()
    }
}

impl Pointer {
    /// Moves the pointer by the first access; returns the access with its position.
    fn begin_first(&mut self) -> Option<SharedAccess> {
        let first = self.queue.front()?;
        let begin = self.position;
        self.position = begin.saturating_add(first.access.bytes);
        Some(SharedAccess { access: FileAccess { offset: begin, ..first.access }, ..*first })
    }
}
