//! MPI calls beyond standard sends, receives, waits and blocking collective operations on the world communicator.

mod derive;
mod error;
mod file;
mod file_hints;
mod file_view;
mod read;
mod table;
mod visit;
mod window;

pub(crate) use derive::text;
pub use error::CallError;
pub use file::{FileCall, FileDirection, FileName, MAX_OFFSET};
pub use file_hints::{FileHints, NumberHint, Switch, SwitchHint};
pub use file_view::{BlockRun, FileView};
pub use read::ReadCall;
pub use table::{Call, CallKind, CallOp};
pub(crate) use visit::VisitMut;
pub use visit::{Completion, Form, Indexed, Named, RequestUse, Visit};
pub use window::{WindowAccess, WindowCall, WindowFetch, WindowSync};

use pdes_core::Rank;
use serde::{Deserialize, Serialize};

use crate::channel::{self, InIdx, index};
use crate::communicator::CommIdx;

index! {
    /// A call of a rank: an argument of [`RankTrace::call`](crate::RankTrace::call).
    CallId
}

/// Mode of a send, which decides when it completes.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub enum SendMode {
    /// `MPI_Send`: the library chooses between eager and rendezvous by the size.
    Standard,
    /// `MPI_Ssend`: not before the matching receive has begun.
    Synchronous,
    /// `MPI_Bsend`: at once, for any size.
    Buffered,
    /// `MPI_Rsend`: like standard; the program guarantees that the receive is posted.
    Ready,
}

impl SendMode {
    /// All modes, in the order of the names of a send.
    pub const ALL: [Self; 4] = [Self::Standard, Self::Synchronous, Self::Buffered, Self::Ready];
}

/// Source of a receive or a probe.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub enum Source {
    /// `MPI_PROC_NULL`: complete at once.
    ProcNull,
    /// A rank.
    Rank(InIdx),
    /// `MPI_ANY_SOURCE`: a wildcard receive, which belongs to no channel.
    Any {
        /// The tag; `None` for `MPI_ANY_TAG`.
        // The derived check of archived enums has a `Tag` of its own.
        tag: Option<channel::Tag>,
        /// The communicator.
        communicator: CommIdx,
        /// Sender of the message that it matched in the recorded run; `None` if not recorded.
        recorded: Option<Rank>,
    },
}

impl CommunicatorCall {
    /// All calls, in the order of the names of the row.
    pub const ALL: [Self; 6] =
        [Self::Split, Self::Dup, Self::Create, Self::CreateGroup, Self::Define, Self::Window];

    /// Returns whether the group of what is created is that of the parent.
    pub fn keeps_group(self) -> bool {
        matches!(self, Self::Dup | Self::Window)
    }

    /// Returns the communicator on which the call is collective; `None` if it concerns this rank only.
    pub fn collective_on(self, parent: CommIdx, new: Option<CommIdx>) -> Option<CommIdx> {
        match self {
            Self::Split | Self::Dup | Self::Create | Self::Window => Some(parent),
            Self::CreateGroup => Some(new.unwrap_or(parent)),
            Self::Define => None,
        }
    }
}

/// The call that created a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub enum CommunicatorCall {
    /// `MPI_Comm_split`.
    Split,
    /// `MPI_Comm_dup`.
    Dup,
    /// `MPI_Comm_create`.
    Create,
    /// `MPI_Comm_create_group`: called by the members of the new communicator only.
    CreateGroup,
    /// None: the members know each other, and the messages by which they have agreed, if there were any, are actions of their own. Takes
    /// no time.
    Define,
    /// `MPI_Win_create` and `MPI_Win_allocate`: the calls on the window are made on a communicator of its own.
    Window,
}
