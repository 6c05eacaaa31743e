//! Calls on windows: one-sided communication.

use pdes_core::Bytes;

use super::visit::Number;

/// A call on a window, which is named by a communicator of its own. Targets are ranks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub enum WindowCall {
    /// Access to the memory of a rank, with a request or without.
    Access {
        /// Kind of access.
        kind: WindowAccess,
        /// Rank whose memory is accessed.
        target: u32,
        /// Size.
        bytes: Bytes,
    },
    /// Access that fetches the memory of a rank, and then writes it.
    Fetch {
        /// Kind of access.
        kind: WindowFetch,
        /// Rank whose memory is accessed.
        target: u32,
        /// Size.
        bytes: Bytes,
        /// False where the memory stays as it is: `MPI_NO_OP`, or a comparison that failed.
        writes: bool,
    },
    /// Synchronisation.
    Sync {
        /// Kind of synchronisation.
        kind: WindowSync,
        /// Rank, for those kinds that concern one.
        target: Option<u32>,
    },
}

/// Kind of an access to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub enum WindowAccess {
    /// `MPI_Put`, `MPI_Rput`.
    Put,
    /// `MPI_Get`, `MPI_Rget`.
    Get,
    /// `MPI_Accumulate`, `MPI_Raccumulate`.
    Accumulate,
}

/// Kind of an access that fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub enum WindowFetch {
    /// `MPI_Get_accumulate`, `MPI_Rget_accumulate`.
    GetAccumulate,
    /// `MPI_Fetch_and_op`.
    FetchAndOp,
    /// `MPI_Compare_and_swap`.
    CompareAndSwap,
}

/// Kind of a synchronisation on a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub enum WindowSync {
    /// `MPI_Win_fence`, collective.
    Fence,
    /// `MPI_Win_post`: exposes the memory to a group.
    Post,
    /// `MPI_Win_start`: begins accesses to a group.
    Start,
    /// `MPI_Win_complete`: ends them.
    Complete,
    /// `MPI_Win_lock` of a rank, shared.
    Lock,
    /// `MPI_Win_lock` of a rank, exclusive.
    LockExclusive,
    /// `MPI_Win_unlock` of a rank.
    Unlock,
    /// `MPI_Win_flush` of a rank.
    Flush,
    /// `MPI_Win_flush_local` of a rank.
    FlushLocal,
    /// `MPI_Win_lock_all`.
    LockAll,
    /// `MPI_Win_unlock_all`.
    UnlockAll,
    /// `MPI_Win_flush_all`.
    FlushAll,
    /// `MPI_Win_flush_local_all`.
    FlushLocalAll,
    /// `MPI_Win_free`, collective.
    Free,
    /// `MPI_Win_wait`: ends the exposure. With a request it does not wait, as `MPI_Win_test` needs.
    Wait,
}

impl WindowAccess {
    /// All kinds, in the order of the names of the row.
    pub const ALL: [Self; 3] = [Self::Put, Self::Get, Self::Accumulate];
}

impl WindowSync {
    /// All kinds, in the order of the names of the row, where the last one also has a name with a request.
    pub const ALL: [Self; 15] = [
        Self::Fence,
        Self::Post,
        Self::Start,
        Self::Complete,
        Self::Lock,
        Self::LockExclusive,
        Self::Unlock,
        Self::Flush,
        Self::FlushLocal,
        Self::LockAll,
        Self::UnlockAll,
        Self::FlushAll,
        Self::FlushLocalAll,
        Self::Free,
        Self::Wait,
    ];

    /// Returns whether the call names a rank.
    pub fn has_target(self) -> bool {
        matches!(self, Self::Lock | Self::LockExclusive | Self::Unlock | Self::Flush | Self::FlushLocal)
    }

    /// Returns whether the call locks ranks, or unlocks them.
    pub fn locks_or_unlocks(self) -> bool {
        matches!(self, Self::Lock | Self::LockExclusive | Self::Unlock | Self::LockAll | Self::UnlockAll)
    }

    /// Returns whether the call names a group of ranks.
    pub fn has_group(self) -> bool {
        matches!(self, Self::Post | Self::Start)
    }
}

impl WindowCall {
    /// The accesses that fetch, in the order of their names in the row; the second name is the first access with a request.
    const FETCHES: [WindowFetch; 4] = [
        WindowFetch::GetAccumulate,
        WindowFetch::GetAccumulate,
        WindowFetch::FetchAndOp,
        WindowFetch::CompareAndSwap,
    ];
    /// Number of the first name of an access that fetches: each of the others has two names, the second one with a request.
    const FIRST_FETCH: u8 = 2 * WindowAccess::ALL.len() as u8;
    /// Number of the first name of a synchronisation.
    const FIRST_SYNC: u8 = Self::FIRST_FETCH + Self::FETCHES.len() as u8;
    /// Number of the last name: the end of an exposure with a request.
    const TEST: u8 = Self::FIRST_SYNC + WindowSync::ALL.len() as u8;

    /// Returns the call with a number in the row, with those of a target, a size, and whether it writes that it has; `None` if there is
    /// none.
    pub fn from_number(number: u8, target: u32, bytes: Bytes, writes: bool) -> Option<Self> {
        if let Some(kind) = number.checked_sub(Self::FIRST_SYNC) {
            let kind = if number == Self::TEST {
                WindowSync::Wait
            } else {
                *WindowSync::ALL.get(usize::from(kind))?
            };
            return Some(Self::Sync { kind, target: kind.has_target().then_some(target) });
        }
        Some(match number.checked_sub(Self::FIRST_FETCH) {
            Some(kind) => Self::Fetch { kind: Self::FETCHES[usize::from(kind)], target, bytes, writes },
            None => Self::Access { kind: WindowAccess::ALL[usize::from(number / 2)], target, bytes },
        })
    }

    /// Returns whether the call with a number in the row has a request.
    pub fn needs_request(number: u8) -> bool {
        number % 2 == 1 && number <= Self::FIRST_FETCH + 1 || number == Self::TEST
    }

    /// Returns whether all ranks of the window make the call.
    pub fn is_collective(self) -> bool {
        matches!(self, Self::Sync { kind: WindowSync::Fence | WindowSync::Free, .. })
    }

    /// Returns whether the call locks memory for its caller alone.
    pub fn is_exclusive_lock(self) -> bool {
        matches!(self, Self::Sync { kind: WindowSync::LockExclusive, .. })
    }

    /// Returns whether the call is an access that fetches.
    pub fn fetches(self) -> bool {
        matches!(self, Self::Fetch { .. })
    }

    /// Returns whether there is a form of the call with a request.
    pub(crate) fn may_have_request(self) -> bool {
        matches!(
            self,
            Self::Access { .. }
                | Self::Fetch { kind: WindowFetch::GetAccumulate, .. }
                | Self::Sync { kind: WindowSync::Wait, .. }
        )
    }

    /// Returns the rank that the call names.
    pub fn target(self) -> Option<u32> {
        match self {
            Self::Access { target, .. } | Self::Fetch { target, .. } => Some(target),
            Self::Sync { target, .. } => target,
        }
    }

    /// Returns the size of an access.
    pub fn bytes(self) -> Option<Bytes> {
        match self {
            Self::Access { bytes, .. } | Self::Fetch { bytes, .. } => Some(bytes),
            Self::Sync { .. } => None,
        }
    }
}

impl Number for WindowCall {
    fn number(&self) -> usize {
        match *self {
            Self::Access { kind, .. } => 2 * kind as usize,
            Self::Fetch { kind, .. } => {
                let is_it = |of: &WindowFetch| *of == kind;
                usize::from(Self::FIRST_FETCH) + Self::FETCHES.iter().position(is_it).unwrap_or_default()
            }
            Self::Sync { kind, .. } => usize::from(Self::FIRST_SYNC) + kind as usize,
        }
    }
}
