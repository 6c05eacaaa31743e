//! MPI calls beyond plain sends, receives, waits and collective operations on the world communicator.

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

/// How a send completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SendMode {
    /// `MPI_Send`: the library decides by the size.
    Standard,
    /// `MPI_Ssend`: never before the receive has begun.
    Synchronous,
    /// `MPI_Bsend`: at once, whatever the size.
    Buffered,
    /// `MPI_Rsend`: the receive is known to be posted; otherwise as standard.
    Ready,
}

/// Where a receive or a probe takes messages from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Source {
    /// `MPI_PROC_NULL`: complete at once.
    Nobody,
    /// A rank.
    Rank(InIdx),
    /// `MPI_ANY_SOURCE`: belongs to no channel.
    Any {
        /// The tag asked for; `None` takes any.
        tag: Option<Tag>,
        /// The communicator.
        communicator: CommIdx,
        /// Whose message it took in the recorded run; `None` where that was not recorded.
        recorded: Option<Rank>,
    },
}

/// An MPI call with its arguments, and with its outcome in the recorded run where that depends on time.
///
/// Requests are named by their places, as in [`Action`](crate::Action); lists have them in the order of the call, without
/// `MPI_REQUEST_NULL`. A request's place is free again once it has completed in the recorded run, that of a persistent
/// request when it is freed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// `MPI_Send`, `MPI_Ssend`, `MPI_Bsend`, `MPI_Rsend`.
    Send {
        /// How it completes.
        mode: SendMode,
        /// The channel; `None` for `MPI_PROC_NULL`.
        to: Option<OutIdx>,
        /// Size of the message.
        bytes: Bytes,
    },
    /// `MPI_Isend`, `MPI_Issend`, `MPI_Ibsend`, `MPI_Irsend`.
    Isend {
        /// How it completes.
        mode: SendMode,
        /// The channel; `None` for `MPI_PROC_NULL`.
        to: Option<OutIdx>,
        /// Size of the message.
        bytes: Bytes,
        /// Place of the request.
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
        /// Place of the request.
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
    /// `MPI_Send_init` and its kin: makes a persistent request, inactive.
    SendInit {
        /// How it completes.
        mode: SendMode,
        /// The channel; `None` for `MPI_PROC_NULL`.
        to: Option<OutIdx>,
        /// Size of each message.
        bytes: Bytes,
        /// Place of the request.
        slot: Slot,
    },
    /// `MPI_Recv_init`: makes a persistent request, inactive.
    RecvInit {
        /// The source.
        from: Source,
        /// Size of the buffer.
        bytes: Bytes,
        /// Place of the request.
        slot: Slot,
    },
    /// `MPI_Start`, `MPI_Startall`: activates persistent requests, in this order.
    Start {
        /// The requests.
        slots: Box<[Slot]>,
    },
    /// `MPI_Request_free`: of a request that is pending, the place stays taken until it completes.
    Free {
        /// The request.
        slot: Slot,
    },
    /// `MPI_Waitall` on some requests of the rank.
    Waitall {
        /// The requests.
        slots: Box<[Slot]>,
    },
    /// `MPI_Waitany`.
    Waitany {
        /// The requests.
        slots: Box<[Slot]>,
        /// The one that completed; `None` where none was active.
        done: Option<Slot>,
    },
    /// `MPI_Waitsome`.
    Waitsome {
        /// The requests.
        slots: Box<[Slot]>,
        /// Those that completed; empty where none was active.
        done: Box<[Slot]>,
    },
    /// `MPI_Test` with its recorded outcome.
    Test {
        /// The request.
        slot: Slot,
        /// Whether it completed.
        done: bool,
    },
    /// `MPI_Testall`.
    Testall {
        /// The requests.
        slots: Box<[Slot]>,
        /// Whether all completed.
        done: bool,
    },
    /// `MPI_Testany`.
    Testany {
        /// The requests.
        slots: Box<[Slot]>,
        /// The one that completed.
        done: Option<Slot>,
    },
    /// `MPI_Testsome`.
    Testsome {
        /// The requests.
        slots: Box<[Slot]>,
        /// Those that completed.
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
        /// Whether there was a message.
        found: bool,
    },
    /// `MPI_Cancel` of a receive. The request stays to be waited for.
    Cancel {
        /// The request.
        slot: Slot,
        /// Where it was posted to receive from.
        from: Source,
        /// Whether it was cancelled, as `MPI_Test_cancelled` said later.
        cancelled: bool,
    },
    /// A collective operation that blocks, on a communicator that is not the world; or one that does not block.
    Collective {
        /// The operation; its root and its vectors count by the ranks of the communicator.
        operation: CollectiveId,
        /// The communicator.
        communicator: CommIdx,
        /// Place of the request of an operation that does not block.
        slot: Option<Slot>,
    },
    /// `MPI_Neighbor_alltoall(v)`, `MPI_Ineighbor_alltoall(v)`: a message to and from each neighbour.
    NeighborAlltoall {
        /// The communicator.
        communicator: CommIdx,
        /// Destinations by their ranks in the communicator, with the bytes to each.
        to: Box<[(u32, Bytes)]>,
        /// Sources by their ranks in the communicator, with the room for each.
        from: Box<[(u32, Bytes)]>,
        /// Place of the request of an operation that does not block.
        slot: Option<Slot>,
    },
    /// `MPI_Comm_split`, `MPI_Comm_dup`, `MPI_Comm_create`: collective on the parent; `MPI_Comm_create_group`: among the members.
    NewCommunicator {
        /// Which call.
        kind: CommunicatorCall,
        /// The communicator on which it is called.
        parent: CommIdx,
        /// What the rank got; `None` for `MPI_COMM_NULL`.
        new: Option<CommIdx>,
    },
    /// `MPI_Comm_free`: takes no time.
    FreeCommunicator {
        /// Which one.
        communicator: CommIdx,
    },
    /// A call that no replay models: takes no time.
    Unmodelled(Unmodelled),
}

impl Call {
    /// Returns the name of the action in a trace, such as `waitany`; of collective operations it is `collective` where they
    /// block, else `icollective`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Send { mode, .. } => mode.send(),
            Self::Isend { mode, .. } => mode.isend(),
            Self::Recv { .. } => "recv",
            Self::Irecv { .. } => "irecv",
            Self::SendRecv { .. } => "sendRecv",
            Self::SendInit { mode, .. } => mode.send_init(),
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
    /// Visits the places of all requests that the call names.
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
    pub(crate) fn send(self) -> &'static str {
        ["send", "ssend", "bsend", "rsend"][self as usize]
    }

    pub(crate) fn isend(self) -> &'static str {
        ["isend", "issend", "ibsend", "irsend"][self as usize]
    }

    pub(crate) fn send_init(self) -> &'static str {
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

    /// Returns the communicator whose ranks make the call together.
    pub fn among(self, parent: CommIdx, new: Option<CommIdx>) -> CommIdx {
        if self == Self::CreateGroup { new.unwrap_or(parent) } else { parent }
    }
}

/// How a communicator came into being.
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
