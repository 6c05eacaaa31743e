//! Calls by the names of the program.

use std::fmt;
use std::sync::Arc;

use pdes_core::{Bytes, Rank};

use crate::call::{CommunicatorCall, SendMode};
use crate::channel::Tag;
use crate::collective::Collective;
use crate::communicator::{CommId, Group};
use crate::unmodelled::Unmodelled;

/// Names a request of a rank, as its tracer chose; free again once the request is complete, or freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestName(u32);

impl RequestName {
    /// Makes the name with this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for RequestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendTo {
    /// The destination, by its number in the world; `None` is `MPI_PROC_NULL`.
    pub peer: Option<Rank>,
    /// The tag.
    pub tag: Tag,
    /// The communicator.
    pub communicator: CommId,
}

/// Where a receive or a probe takes messages from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvFrom {
    /// The source.
    pub peer: Peer,
    /// The tag asked for; `None` takes any.
    pub tag: Option<Tag>,
    /// The communicator.
    pub communicator: CommId,
}

impl RecvFrom {
    /// Receives on the world communicator.
    pub const fn on_world(peer: Peer, tag: Option<Tag>) -> Self {
        Self { peer, tag, communicator: CommId::WORLD }
    }
}

/// The source of a receive or a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `MPI_PROC_NULL`.
    Nobody,
    /// A rank, by its number in the world.
    Rank(Rank),
    /// `MPI_ANY_SOURCE`.
    Any {
        /// Whose message it took in the recorded run; `None` where that was not recorded.
        recorded: Option<Rank>,
    },
}

/// A call that [`Op`](crate::Op) has no shorter form for: with named requests, on communicators, persistent, and so on. Where a
/// call is a plain one nevertheless, such as a standard send on the world communicator, it is the same action.
///
/// Lists of requests leave out `MPI_REQUEST_NULL`. What depends on time is as in the recorded run.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of `Call` by the names of the program")]
pub enum CallOp {
    /// `MPI_Send`, `MPI_Ssend`, `MPI_Bsend`, `MPI_Rsend`.
    Send { mode: SendMode, to: SendTo, bytes: Bytes },
    /// `MPI_Isend` and its kin. A request without a name is waited for by [`Op::Wait`](crate::Op::Wait).
    Isend { mode: SendMode, to: SendTo, bytes: Bytes, request: Option<RequestName> },
    /// `MPI_Recv`.
    Recv { from: RecvFrom, bytes: Bytes },
    /// `MPI_Irecv`. A request without a name is waited for by [`Op::Wait`](crate::Op::Wait).
    Irecv { from: RecvFrom, bytes: Bytes, request: Option<RequestName> },
    /// `MPI_Sendrecv`, `MPI_Sendrecv_replace`.
    SendRecv { to: SendTo, send_bytes: Bytes, from: RecvFrom, recv_bytes: Bytes },
    /// `MPI_Send_init` and its kin.
    SendInit { mode: SendMode, to: SendTo, bytes: Bytes, request: RequestName },
    /// `MPI_Recv_init`.
    RecvInit { from: RecvFrom, bytes: Bytes, request: RequestName },
    /// `MPI_Start`, `MPI_Startall`.
    Start { requests: Vec<RequestName> },
    /// `MPI_Request_free`.
    Free { request: RequestName },
    /// `MPI_Wait`.
    Wait { request: RequestName },
    /// `MPI_Waitall`.
    Waitall { requests: Vec<RequestName> },
    /// `MPI_Waitany`.
    Waitany { requests: Vec<RequestName>, done: Option<RequestName> },
    /// `MPI_Waitsome`.
    Waitsome { requests: Vec<RequestName>, done: Vec<RequestName> },
    /// `MPI_Test`; without an outcome the request is there afterwards, whether complete or not.
    Test { request: RequestName, done: Option<bool> },
    /// `MPI_Testall`.
    Testall { requests: Vec<RequestName>, done: bool },
    /// `MPI_Testany`.
    Testany { requests: Vec<RequestName>, done: Option<RequestName> },
    /// `MPI_Testsome`.
    Testsome { requests: Vec<RequestName>, done: Vec<RequestName> },
    /// `MPI_Probe`.
    Probe { from: RecvFrom },
    /// `MPI_Iprobe`.
    Iprobe { from: RecvFrom, found: bool },
    /// `MPI_Cancel`.
    Cancel { request: RequestName, cancelled: bool },
    /// A collective operation; its root and its vectors count by the ranks of the communicator. It does not block where it has
    /// a request.
    Collective { operation: Collective, communicator: CommId, request: Option<RequestName> },
    /// `MPI_Neighbor_alltoall(v)`; it does not block where it has a request. Ranks are those of the communicator.
    NeighborAlltoall {
        communicator: CommId,
        to: Vec<(u32, Bytes)>,
        from: Vec<(u32, Bytes)>,
        request: Option<RequestName>,
    },
    /// `MPI_Comm_split`, `MPI_Comm_dup`, `MPI_Comm_create`; of `MPI_Comm_dup` the group is that of the parent.
    NewCommunicator { kind: CommunicatorCall, parent: CommId, new: Option<(CommId, Arc<Group>)> },
    /// `MPI_Comm_free`.
    FreeCommunicator { communicator: CommId },
    /// A call that no replay models.
    Unmodelled(Unmodelled),
}

impl CallOp {
    /// Returns the name of the action in a trace, such as `waitany`.
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
            Self::Wait { .. } => "wait",
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
            Self::Collective { operation, request: None, .. } => operation.name(),
            Self::Collective { operation, .. } => operation.non_blocking_name(),
            Self::NeighborAlltoall { request: None, .. } => "neighbor_alltoallv",
            Self::NeighborAlltoall { .. } => "ineighbor_alltoallv",
            Self::NewCommunicator { kind, .. } => kind.name(),
            Self::FreeCommunicator { .. } => "comm_free",
            Self::Unmodelled(_) => Unmodelled::ACTION,
        }
    }
}
