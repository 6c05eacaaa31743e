//! Calls with ranks, tags and request names instead of indices.

use std::fmt;
use std::sync::Arc;

use pdes_core::{Bytes, Rank};

use crate::call::{CommunicatorCall, SendMode};
use crate::channel::Tag;
use crate::collective::Collective;
use crate::communicator::{CommId, Group};
use crate::unmodelled::Unmodelled;

/// Name of a request of a rank, chosen by the tracer; may be reused once the request is complete or freed.
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

/// The envelope of a sent message: destination, tag and communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendTo {
    /// The destination, as a world rank; `None` is `MPI_PROC_NULL`.
    pub peer: Option<Rank>,
    /// The tag.
    pub tag: Tag,
    /// The communicator.
    pub communicator: CommId,
}

/// The envelope that a receive or a probe matches: source, tag and communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvFrom {
    /// The source.
    pub peer: Peer,
    /// The tag; `None` for `MPI_ANY_TAG`.
    pub tag: Option<Tag>,
    /// The communicator.
    pub communicator: CommId,
}

impl RecvFrom {
    /// Makes the envelope of a receive on the world communicator.
    pub const fn on_world(peer: Peer, tag: Option<Tag>) -> Self {
        Self { peer, tag, communicator: CommId::WORLD }
    }
}

/// The source of a receive or a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `MPI_PROC_NULL`.
    ProcNull,
    /// A world rank.
    Rank(Rank),
    /// `MPI_ANY_SOURCE`.
    Any {
        /// Sender of the message that it matched in the recorded run; `None` if not recorded.
        recorded: Option<Rank>,
    },
}

/// A call for which [`Op`](crate::Op) has no shorter form: with named requests, on communicators, persistent, and so on. A call
/// that has a shorter form nevertheless, such as a standard send on the world communicator, becomes the same action.
///
/// Lists of requests omit `MPI_REQUEST_NULL`. Outcomes that depend on timing are those of the recorded run.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of `Call` by the names of the program")]
pub enum CallOp {
    /// `MPI_Send`, `MPI_Ssend`, `MPI_Bsend`, `MPI_Rsend`.
    Send { mode: SendMode, to: SendTo, bytes: Bytes },
    /// `MPI_Isend`, `MPI_Issend`, ... A request without a name is completed by [`Op::Wait`](crate::Op::Wait).
    Isend { mode: SendMode, to: SendTo, bytes: Bytes, request: Option<RequestName> },
    /// `MPI_Recv`.
    Recv { from: RecvFrom, bytes: Bytes },
    /// `MPI_Irecv`. A request without a name is completed by [`Op::Wait`](crate::Op::Wait).
    Irecv { from: RecvFrom, bytes: Bytes, request: Option<RequestName> },
    /// `MPI_Sendrecv`, `MPI_Sendrecv_replace`.
    SendRecv { to: SendTo, send_bytes: Bytes, from: RecvFrom, recv_bytes: Bytes },
    /// `MPI_Send_init`, `MPI_Ssend_init`, ...
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
    /// `MPI_Test`; without a recorded outcome the request keeps its name, whether complete or not.
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
    /// A collective operation; its root and its vectors are in ranks of the communicator. It is nonblocking if it has a request.
    Collective { operation: Collective, communicator: CommId, request: Option<RequestName> },
    /// `MPI_Neighbor_alltoall(v)`, nonblocking if it has a request. Ranks are those of the communicator.
    NeighborAlltoall {
        communicator: CommId,
        to: Vec<(u32, Bytes)>,
        from: Vec<(u32, Bytes)>,
        request: Option<RequestName>,
    },
    /// `MPI_Comm_split`, `MPI_Comm_dup`, `MPI_Comm_create`, `MPI_Comm_create_group`; the group of a duplicate is that of the parent.
    NewCommunicator { kind: CommunicatorCall, parent: CommId, new: Option<(CommId, Arc<Group>)> },
    /// `MPI_Comm_free`.
    FreeCommunicator { communicator: CommId },
    /// A call that the replay does not model.
    Unmodelled(Unmodelled),
}

impl CallOp {
    /// Returns the name of the action in a trace, such as `waitany`.
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
            Self::Collective { operation, .. } => operation.nonblocking_name(),
            Self::NeighborAlltoall { request: None, .. } => "neighbor_alltoallv",
            Self::NeighborAlltoall { .. } => "ineighbor_alltoallv",
            Self::NewCommunicator { kind, .. } => kind.name(),
            Self::FreeCommunicator { .. } => "comm_free",
            Self::Unmodelled(_) => Unmodelled::ACTION,
        }
    }
}
