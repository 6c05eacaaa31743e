//! What a rank does: one action per line of its trace.

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
/// Channels, requests and side tables are resolved: the indices refer to the rank's own
/// [`RankTrace`](crate::RankTrace).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// `init`: the program enters MPI.
    Init,
    /// `finalize`: the program leaves MPI.
    Finalize,
    /// `comm_size`, or a call that makes a communicator without saying which: takes no time.
    Communicator,
    /// `location`: the actions that follow stem from this call site.
    Location(LocationId),
    /// `compute`.
    Compute {
        /// Amount of computation in flop, finite and not negative.
        flops: f64,
    },
    /// `sleep`.
    Sleep {
        /// Length in seconds, finite and not negative.
        seconds: f64,
    },
    /// `send`: blocks as `MPI_Send` does.
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
        /// Place of the request.
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
        /// Place of the request.
        slot: Slot,
    },
    /// A send or receive whose peer is `MPI_PROC_NULL`: takes no time.
    Null {
        /// Place of the request, complete at once, of `isend` and `irecv`; `None` for `send` and `recv`.
        slot: Option<Slot>,
    },
    /// `sendRecv`.
    SendRecv(SendRecvId),
    /// `wait`: completes the request and frees its place, or makes it inactive where it is persistent; an inactive one is
    /// complete already.
    Wait {
        /// Place of the request.
        slot: Slot,
    },
    /// `test`: the request keeps its place, whether complete or not.
    Test {
        /// Place of the request.
        slot: Slot,
    },
    /// `waitall`: completes all pending requests of the rank and frees their places; those of persistent ones stay.
    WaitAll,
    /// A collective operation on the world communicator that blocks.
    Collective(CollectiveId),
    /// Any other call.
    Call(CallId),
}

/// A combined send and receive, both with tag 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SendRecv {
    /// The channel of the send; `None` where the destination is `MPI_PROC_NULL`.
    pub to: Option<OutIdx>,
    /// Size of the message sent.
    pub send_bytes: Bytes,
    /// The channel of the receive; `None` where the source is `MPI_PROC_NULL`.
    pub from: Option<InIdx>,
    /// Size of the buffer.
    pub recv_bytes: Bytes,
}
