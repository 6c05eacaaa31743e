//! The actions of a rank, one per line of its trace.

use pdes_core::Bytes;

use crate::call::CallId;
use crate::channel::{InIdx, OutIdx, Slot, index};

index! {
    /// A collective operation of a rank: an argument of [`RankTrace::collective`](crate::RankTrace::collective).
    CollectiveId
}
index! {
    /// A combined send and receive of a rank: an argument of [`RankTrace::send_recv`](crate::RankTrace::send_recv).
    SendRecvId
}
index! {
    /// A call site in the program: an argument of [`RankTrace::location`](crate::RankTrace::location).
    LocationId
}

/// One action of a rank, as a [`Cursor`](crate::Cursor) yields it.
///
/// Names are resolved: the indices refer to the channels, request slots and side tables of the rank's own
/// [`RankTrace`](crate::RankTrace).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// `init`: the program enters MPI.
    Init,
    /// `finalize`: the program leaves MPI.
    Finalize,
    /// `comm_size`, or the creation of a communicator that the trace does not identify: takes no time.
    Communicator,
    /// `location`: call site of the actions that follow.
    Location(LocationId),
    /// `compute`.
    Compute {
        /// Amount of computation \[flop\], finite and not negative.
        flops: f64,
    },
    /// `sleep`.
    Sleep {
        /// Duration \[s\], finite and not negative.
        seconds: f64,
    },
    /// `send`: a blocking standard-mode send, `MPI_Send`.
    Send {
        /// The channel.
        to: OutIdx,
        /// Size of the message.
        bytes: Bytes,
    },
    /// `isend`.
    Isend {
        /// The channel.
        to: OutIdx,
        /// Size of the message.
        bytes: Bytes,
        /// Slot of the request.
        slot: Slot,
    },
    /// `recv`.
    Recv {
        /// The channel.
        from: InIdx,
        /// Size of the buffer.
        bytes: Bytes,
    },
    /// `irecv`.
    Irecv {
        /// The channel.
        from: InIdx,
        /// Size of the buffer.
        bytes: Bytes,
        /// Slot of the request.
        slot: Slot,
    },
    /// A send or receive whose peer is `MPI_PROC_NULL`: takes no time.
    ProcNull {
        /// Slot of the request of an `isend` or `irecv`, complete at once; `None` for `send` and `recv`.
        slot: Option<Slot>,
    },
    /// `sendRecv`.
    SendRecv(SendRecvId),
    /// `wait`: completes the request and frees its slot; a persistent request becomes inactive and keeps its slot. An inactive
    /// request is complete already.
    Wait {
        /// Slot of the request.
        slot: Slot,
    },
    /// `test`: the request keeps its slot, whether complete or not.
    Test {
        /// Slot of the request.
        slot: Slot,
    },
    /// `waitall`: completes all pending requests of the rank and frees their slots; persistent requests keep theirs.
    WaitAll,
    /// A blocking collective operation on the world communicator.
    Collective(CollectiveId),
    /// Any other call.
    Call(CallId),
}

/// A combined send and receive, both with tag 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct SendRecv {
    /// The channel of the send; `None` for `MPI_PROC_NULL`.
    pub to: Option<OutIdx>,
    /// Size of the message sent.
    pub send_bytes: Bytes,
    /// The channel of the receive; `None` for `MPI_PROC_NULL`.
    pub from: Option<InIdx>,
    /// Size of the buffer.
    pub recv_bytes: Bytes,
}
