//! The backends that move messages between members.

use std::collections::VecDeque;

use super::memory::MemoryBackend;
#[cfg(feature = "mpi")]
use super::mpi::MpiBackend;

/// A member's end of the connections to all others. Messages from one member to another keep their order.
pub(super) enum Backend {
    /// Channels between threads of this process.
    Memory(MemoryBackend),
    /// MPI between processes.
    #[cfg(feature = "mpi")]
    Mpi(MpiBackend),
}

/// Messages, each with its destination or source member.
pub(super) type Messages = VecDeque<(usize, Vec<u8>)>;

impl Backend {
    pub(super) fn me(&self) -> usize {
        match self {
            Self::Memory(link) => link.me(),
            #[cfg(feature = "mpi")]
            Self::Mpi(link) => link.me(),
        }
    }

    pub(super) fn members(&self) -> usize {
        match self {
            Self::Memory(link) => link.members(),
            #[cfg(feature = "mpi")]
            Self::Mpi(link) => link.members(),
        }
    }

    /// Begins to send messages and appends those that have arrived. It never blocks.
    pub(super) fn exchange(&mut self, outgoing: &mut Messages, incoming: &mut Messages) {
        match self {
            Self::Memory(link) => link.exchange(outgoing, incoming),
            #[cfg(feature = "mpi")]
            Self::Mpi(link) => link.exchange(outgoing, incoming),
        }
    }

    /// Returns true if sends are pending. They complete if this or `exchange` is called repeatedly.
    pub(super) fn is_sending(&mut self) -> bool {
        match self {
            Self::Memory(_) => false,
            #[cfg(feature = "mpi")]
            Self::Mpi(link) => link.is_sending(),
        }
    }
}
