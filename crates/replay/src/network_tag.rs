//! Tags of the work of a network.

use mpi_model::Completion;
use netmodel::storage::Packet;
use pdes_core::{LpId, State};
use serde::{Deserialize, Serialize};

/// What a network gives back at the end of some work: it says for whom it was.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
pub enum NetworkTag {
    /// For ranks.
    Ranks(Completion),
    /// For a client of a file system, on whose behalf the packet was sent, or for one of its servers.
    Packet(#[state(plain)] LpId, #[state(plain)] Packet),
    /// For an access at a shared pointer, by its number.
    SharedAccess(#[state(plain)] u32),
    /// For the storage, which may have an event.
    StorageTimer,
}

const _: () = assert!(size_of::<NetworkTag>() <= 48, "networks have one for each message");

impl NetworkTag {
    /// Returns the process on whose behalf the work is done; that of an access at a shared pointer is known to the storage.
    pub(crate) fn owner(self) -> Option<LpId> {
        match self {
            Self::Ranks(completion) => Some(completion.owner()),
            Self::Packet(client, _) => Some(client),
            Self::SharedAccess(_) | Self::StorageTimer => None,
        }
    }
}
