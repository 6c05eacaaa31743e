//! MPI calls beyond standard sends, receives, waits and blocking collective operations on the world communicator.

mod error;

pub use error::CallError;

use pdes_core::{Bytes, Rank};
use serde::{Deserialize, Serialize};

use crate::action::CollectiveId;
use crate::channel::{InIdx, OutIdx, Slot, Tag, index};
use crate::communicator::CommIdx;
use crate::unmodelled::Unmodelled;

index! {
    /// A call of a rank: an argument of [`RankTrace::call`](crate::RankTrace::call).
    CallId
}

/// Mode of a send, which decides when it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

/// Source of a receive or a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Source {
    /// `MPI_PROC_NULL`: complete at once.
    ProcNull,
    /// A rank.
    Rank(InIdx),
    /// `MPI_ANY_SOURCE`: a wildcard receive, which belongs to no channel.
    Any {
        /// The tag; `None` for `MPI_ANY_TAG`.
        tag: Option<Tag>,
        /// The communicator.
        communicator: CommIdx,
        /// Sender of the message that it matched in the recorded run; `None` if not recorded.
        recorded: Option<Rank>,
    },
}

/// An MPI call with its arguments and, if its outcome depends on timing, with the outcome in the recorded run.
///
/// Requests are identified by their slots, as in [`Action`](crate::Action); lists are in the order of the call, without
/// `MPI_REQUEST_NULL`. The slot of a request is free again once the request has completed in the recorded run; the slot of a
/// persistent request once the request is freed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// `MPI_Send`, `MPI_Ssend`, `MPI_Bsend`, `MPI_Rsend`.
    Send {
        /// The mode.
        mode: SendMode,
        /// The channel; `None` for `MPI_PROC_NULL`.
        to: Option<OutIdx>,
        /// Size of the message.
        bytes: Bytes,
    },
    /// `MPI_Isend`, `MPI_Issend`, `MPI_Ibsend`, `MPI_Irsend`.
    Isend {
        /// The mode.
        mode: SendMode,
        /// The channel; `None` for `MPI_PROC_NULL`.
        to: Option<OutIdx>,
        /// Size of the message.
        bytes: Bytes,
        /// Slot of the request.
        slot: Slot,
    },
    /// `MPI_Recv`.
    Recv {
        /// The source.
        from: Source,
        /// Size of the buffer.
        bytes: Bytes,
    },
    /// `MPI_Irecv`.
    Irecv {
        /// The source.
        from: Source,
        /// Size of the buffer.
        bytes: Bytes,
        /// Slot of the request.
        slot: Slot,
    },
    /// `MPI_Sendrecv`, `MPI_Sendrecv_replace`.
    SendRecv {
        /// The channel of the send; `None` for `MPI_PROC_NULL`.
        to: Option<OutIdx>,
        /// Size of the message sent.
        send_bytes: Bytes,
        /// The source.
        from: Source,
        /// Size of the buffer.
        recv_bytes: Bytes,
    },
    /// `MPI_Send_init`, `MPI_Ssend_init`, ...: creates an inactive persistent request.
    SendInit {
        /// The mode.
        mode: SendMode,
        /// The channel; `None` for `MPI_PROC_NULL`.
        to: Option<OutIdx>,
        /// Size of each message.
        bytes: Bytes,
        /// Slot of the request.
        slot: Slot,
    },
    /// `MPI_Recv_init`: creates an inactive persistent request.
    RecvInit {
        /// The source.
        from: Source,
        /// Size of the buffer.
        bytes: Bytes,
        /// Slot of the request.
        slot: Slot,
    },
    /// `MPI_Start`, `MPI_Startall`: starts persistent requests, in this order.
    Start {
        /// The requests.
        slots: Box<[Slot]>,
    },
    /// `MPI_Request_free`: a pending request keeps its slot until it completes.
    Free {
        /// The request.
        slot: Slot,
    },
    /// `MPI_Waitall` on listed requests.
    Waitall {
        /// The requests.
        slots: Box<[Slot]>,
    },
    /// `MPI_Waitany`.
    Waitany {
        /// The requests.
        slots: Box<[Slot]>,
        /// The request that completed; `None` if none was active.
        done: Option<Slot>,
    },
    /// `MPI_Waitsome`.
    Waitsome {
        /// The requests.
        slots: Box<[Slot]>,
        /// The requests that completed; empty if none was active.
        done: Box<[Slot]>,
    },
    /// `MPI_Test` with its recorded outcome.
    Test {
        /// The request.
        slot: Slot,
        /// True if it completed.
        done: bool,
    },
    /// `MPI_Testall`.
    Testall {
        /// The requests.
        slots: Box<[Slot]>,
        /// True if all completed.
        done: bool,
    },
    /// `MPI_Testany`.
    Testany {
        /// The requests.
        slots: Box<[Slot]>,
        /// The request that completed, if any.
        done: Option<Slot>,
    },
    /// `MPI_Testsome`.
    Testsome {
        /// The requests.
        slots: Box<[Slot]>,
        /// The requests that completed.
        done: Box<[Slot]>,
    },
    /// `MPI_Probe`.
    Probe {
        /// The source.
        from: Source,
    },
    /// `MPI_Iprobe` with its recorded outcome.
    Iprobe {
        /// The source.
        from: Source,
        /// True if there was a message.
        found: bool,
    },
    /// `MPI_Cancel` of a receive. The request must still be waited for.
    Cancel {
        /// The request.
        slot: Slot,
        /// The source of the receive.
        from: Source,
        /// True if it was cancelled, as `MPI_Test_cancelled` reported later.
        cancelled: bool,
    },
    /// A blocking collective operation on a communicator other than the world, or a nonblocking one on any.
    Collective {
        /// The operation; its root and its vectors are in ranks of the communicator.
        operation: CollectiveId,
        /// The communicator.
        communicator: CommIdx,
        /// Slot of the request of a nonblocking operation.
        slot: Option<Slot>,
    },
    /// `MPI_Neighbor_alltoall(v)`, `MPI_Ineighbor_alltoall(v)`: one message to and one from each neighbour.
    NeighborAlltoall {
        /// The communicator.
        communicator: CommIdx,
        /// Destinations, as ranks of the communicator, and the size of the message to each.
        to: Box<[(u32, Bytes)]>,
        /// Sources, as ranks of the communicator, and the size of the buffer for each.
        from: Box<[(u32, Bytes)]>,
        /// Slot of the request of a nonblocking operation.
        slot: Option<Slot>,
    },
    /// `MPI_Comm_split`, `MPI_Comm_dup`, `MPI_Comm_create`: collective on the parent. `MPI_Comm_create_group`: collective on the
    /// new group.
    NewCommunicator {
        /// The call.
        kind: CommunicatorCall,
        /// The parent communicator.
        parent: CommIdx,
        /// The new communicator; `None` for `MPI_COMM_NULL`.
        new: Option<CommIdx>,
    },
    /// `MPI_Comm_free`: takes no time.
    FreeCommunicator {
        /// The communicator.
        communicator: CommIdx,
    },
    /// A call that the replay does not model: takes no time.
    Unmodelled(Unmodelled),
}

impl Call {
    /// Returns the name of the action in a trace, such as `waitany`; `collective` for blocking and `icollective` for nonblocking
    /// collective operations.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Send { mode, .. } => mode.send_name(),
            Self::Isend { mode, .. } => mode.isend_name(),
            Self::Recv { .. } => "recv",
            Self::Irecv { .. } => "irecv",
            Self::SendRecv { .. } => "sendRecv",
            Self::SendInit { mode, .. } => mode.send_init_name(),
            Self::RecvInit { .. } => "recv_init",
            Self::Start { .. } => "startall",
            Self::Free { .. } => "request_free",
            Self::Waitall { .. } => "waitall",
            Self::Waitany { .. } => "waitany",
            Self::Waitsome { .. } => "waitsome",
            Self::Test { .. } => "test",
            Self::Testall { .. } => "testall",
            Self::Testany { .. } => "testany",
            Self::Testsome { .. } => "testsome",
            Self::Probe { .. } => "probe",
            Self::Iprobe { .. } => "iprobe",
            Self::Cancel { .. } => "cancel",
            Self::Collective { slot: None, .. } => "collective",
            Self::Collective { .. } => "icollective",
            Self::NeighborAlltoall { slot: None, .. } => "neighbor_alltoallv",
            Self::NeighborAlltoall { .. } => "ineighbor_alltoallv",
            Self::NewCommunicator { kind, .. } => kind.name(),
            Self::FreeCommunicator { .. } => "comm_free",
            Self::Unmodelled(_) => Unmodelled::ACTION,
        }
    }
}

impl Call {
    /// Calls `visit` for the slot of each request in the call.
    pub(crate) fn visit_slots(&mut self, mut visit: impl FnMut(&mut Slot)) {
        match self {
            Self::Isend { slot, .. }
            | Self::Irecv { slot, .. }
            | Self::SendInit { slot, .. }
            | Self::RecvInit { slot, .. }
            | Self::Free { slot }
            | Self::Test { slot, .. }
            | Self::Cancel { slot, .. } => visit(slot),
            Self::Start { slots } | Self::Waitall { slots } | Self::Testall { slots, .. } => {
                slots.iter_mut().for_each(visit);
            }
            Self::Waitany { slots, done } | Self::Testany { slots, done } => {
                slots.iter_mut().chain(done).for_each(visit);
            }
            Self::Waitsome { slots, done } | Self::Testsome { slots, done } => {
                slots.iter_mut().chain(done).for_each(visit);
            }
            Self::Collective { slot, .. } | Self::NeighborAlltoall { slot, .. } => {
                slot.iter_mut().for_each(visit);
            }
            Self::Send { .. }
            | Self::Recv { .. }
            | Self::SendRecv { .. }
            | Self::Probe { .. }
            | Self::Iprobe { .. }
            | Self::NewCommunicator { .. }
            | Self::FreeCommunicator { .. }
            | Self::Unmodelled(_) => {}
        }
    }
}

impl SendMode {
    pub(crate) fn send_name(self) -> &'static str {
        ["send", "ssend", "bsend", "rsend"][self as usize]
    }

    pub(crate) fn isend_name(self) -> &'static str {
        ["isend", "issend", "ibsend", "irsend"][self as usize]
    }

    pub(crate) fn send_init_name(self) -> &'static str {
        ["send_init", "ssend_init", "bsend_init", "rsend_init"][self as usize]
    }
}

impl CommunicatorCall {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Split => "comm_split",
            Self::Dup => "comm_dup",
            Self::Create => "comm_create",
            Self::CreateGroup => "comm_create_group",
        }
    }

    /// Returns the communicator on which the call is collective.
    pub fn collective_on(self, parent: CommIdx, new: Option<CommIdx>) -> CommIdx {
        if self == Self::CreateGroup { new.unwrap_or(parent) } else { parent }
    }
}

/// The call that created a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommunicatorCall {
    /// `MPI_Comm_split`.
    Split,
    /// `MPI_Comm_dup`.
    Dup,
    /// `MPI_Comm_create`.
    Create,
    /// `MPI_Comm_create_group`: called by the members of the new communicator only.
    CreateGroup,
}
