//! The table of MPI calls: a row for each, from which both of its forms and all that only depends on its fields follow.
//!
//! A row has the documentation of the call; its names in text, numbered from 0, with other spellings after a bar; the fields
//! whose numbers add up to that of the name of a call, in either form (`by`); and its fields in groups:
//! - `names`: fields that differ between the indexed form, [`Call`], and that of the program, [`CallOp`], with their role;
//! - `requests`: requests, in both forms, with what the call does to them, a [`RequestUse`];
//! - `values`: fields that are the same in both forms, with their role;
//! - `derived`: fields of the indexed form only, which follow from earlier calls.
//!
//! A role is the name of a method: of [`Visit`] and [`VisitMut`], by which the writer of text, the checks, the requirements on tables
//! and the cuts see a field; of [`ReadCall`], which reads it; and of [`RankBuilder`], which finds its indices.
//! A row may end with methods of its own for the last two: `read by` where the fields in text are not those of the row in their
//! order, `resolved by` where the call has more effects than those of the roles, or a shorter form as an [`Action`].
//!
//! # To add a call
//! 1. Add a row here, as the last one: the others keep their numbers in archives, and the format its version. If its fields have
//!    roles that exist, then it is read, written, resolved, checked, cut and renumbered. For instance `MPI_Mprobe` is
//!    ```text
//!    /// `MPI_Mprobe`.
//!    Mprobe [0: b"mprobe"] { names { from: Source => from: RecvFrom = source } };
//!    ```
//!    A call that sends or receives messages in another way than the
//!    existing ones also changes `transfer.rs`, which counts them, and `consistent_cut/dependencies.rs` of `trace-tools`.
//! 2. Add its model to the crate `mpi-model`: a branch in `rank/calls.rs`, and its kind in the statistics there; the compiler
//!    reports both.
//! 3. Add a test with a line of text: `tests/all/calls.rs` of `trace-tools` for its arguments, and one of `mpi-model` for its time.

use std::sync::Arc;

use pdes_core::Bytes;

use super::derive::{calls, own_or, text};
use super::read::{ReadCall, RequestField};
use super::visit::{List, Number, RequestUse, Visit, VisitMut};
use super::{CommunicatorCall, FileCall, FileName, FileView, Indexed, Named, SendMode, Source, WindowCall};
use crate::action::{Action, CollectiveId};
use crate::builder::{RankBuilder, ResolveError};
use crate::channel::{OutIdx, Slot};
use crate::collective::Collective;
use crate::communicator::{CommId, CommIdx, Group};
use crate::structure::{RecvFrom, RequestName, SendTo};
use crate::trace::{RankTrace, ToNamed};
use crate::unmodelled::Unmodelled;

calls! {
    /// An MPI call with its arguments and, if its outcome depends on timing, with the outcome in the recorded run.
    ///
    /// Requests are identified by their slots, as in [`Action`]; lists are in the order of the call, without `MPI_REQUEST_NULL`. The
    /// slot of a request is free again once the request has completed in the recorded run; the slot of a persistent request once the
    /// request is freed.
    ///
    /// `to` is the channel of a send, `None` for `MPI_PROC_NULL`; `bytes` is the size of the message of a send, and that of the buffer
    /// of a receive; neighbours are ranks of the communicator with the size of the message to each, or of the buffer for each.
    /// Outcomes are those of the recorded run: `done` has the requests that completed, or is true if all did; `found` is true if
    /// there was a message; `cancelled` is true if the receive was cancelled, as `MPI_Test_cancelled` reported later.
    #[derive(Clone, Debug, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
    #[expect(missing_docs, reason = "the fields have the same meaning in all calls")]
    pub enum Call;

    /// A call for which [`Op`](crate::Op) has no shorter form: with named requests, on communicators, persistent, and so on. A call
    /// that has a shorter form nevertheless, such as a standard send on the world communicator, becomes the same action.
    ///
    /// Lists of requests omit `MPI_REQUEST_NULL`. Outcomes that depend on timing are those of the recorded run.
    #[derive(Clone, Debug, PartialEq)]
    #[expect(missing_docs, reason = "the fields are those of `Call` by the names of the program")]
    pub enum CallOp;

    /// `MPI_Send`, `MPI_Ssend`, `MPI_Bsend`, `MPI_Rsend`.
    Send [0: b"send", 1: b"ssend" | b"Ssend", 2: b"bsend", 3: b"rsend"] by mode | mode {
        names { to: Option<OutIdx> => to: SendTo = destination }
        values { mode: SendMode = mode, bytes: Bytes = bytes }
    } resolved by send_call;

    /// `MPI_Recv`.
    Recv [0: b"recv"] {
        names { from: Source => from: RecvFrom = source }
        values { bytes: Bytes = buffer }
    } resolved by recv_call;

    /// `MPI_Isend`, `MPI_Issend`, `MPI_Ibsend`, `MPI_Irsend`. A request without a name is completed by
    /// [`Op::Wait`](crate::Op::Wait).
    Isend [0: b"isend", 1: b"issend" | b"ISsend", 2: b"ibsend", 3: b"irsend"] by mode | mode {
        names { to: Option<OutIdx> => to: SendTo = destination }
        requests { slot: Slot => request: Option<RequestName> = Posted }
        values { mode: SendMode = mode, bytes: Bytes = bytes }
    } resolved by isend_call;

    /// `MPI_Irecv`. A request without a name is completed by [`Op::Wait`](crate::Op::Wait).
    Irecv [0: b"irecv"] {
        names { from: Source => from: RecvFrom = source }
        requests { slot: Slot => request: Option<RequestName> = Posted }
        values { bytes: Bytes = buffer }
    } resolved by irecv_call;

    /// `MPI_Waitall` on listed requests.
    Waitall [0: b"waitall"] {
        requests { slots: Box<[Slot]> => requests: Vec<RequestName> = Waited }
    };

    /// `MPI_Test` with its recorded outcome; without one it becomes [`Action::Test`] and the request keeps its name.
    Test [0: b"test"] {
        names { done: bool => done: Option<bool> = has_completed }
        requests { slot: Slot => request: RequestName = Tested }
    } read by test resolved by test;

    /// `MPI_Sendrecv`, `MPI_Sendrecv_replace`.
    SendRecv [0: b"sendRecv", 1: b"sendRecv_replace"] {
        names { to: Option<OutIdx> => to: SendTo = destination, from: Source => from: RecvFrom = source }
        values { send_bytes: Bytes = bytes, recv_bytes: Bytes = buffer }
    } read by send_recv resolved by send_recv_call;

    /// `MPI_Send_init`, `MPI_Ssend_init`, ...: creates an inactive persistent request.
    SendInit [0: b"send_init", 1: b"ssend_init", 2: b"bsend_init", 3: b"rsend_init"] by mode | mode {
        names { to: Option<OutIdx> => to: SendTo = destination }
        requests { slot: Slot => request: RequestName = Created }
        values { mode: SendMode = mode, bytes: Bytes = bytes }
    } resolved by send_init;

    /// `MPI_Recv_init`: creates an inactive persistent request.
    RecvInit [0: b"recv_init"] {
        names { from: Source => from: RecvFrom = source }
        requests { slot: Slot => request: RequestName = Created }
        values { bytes: Bytes = buffer }
    } resolved by recv_init;

    /// `MPI_Start`, `MPI_Startall`: starts persistent requests, in this order.
    Start [0: b"startall" | b"Startall", 1: b"start" | b"Start"] {
        requests { slots: Box<[Slot]> => requests: Vec<RequestName> = Started }
    } read by start resolved by start;

    /// `MPI_Request_free`: a pending request keeps its slot until it completes.
    Free [0: b"request_free"] {
        requests { slot: Slot => request: RequestName = Freed }
    };

    /// `MPI_Waitany`.
    Waitany [0: b"waitany" | b"waitAny"] {
        requests {
            slots: Box<[Slot]> => requests: Vec<RequestName> = Waited,
            done: Option<Slot> => done: Option<RequestName> = Done,
        }
    };

    /// `MPI_Waitsome`.
    Waitsome [0: b"waitsome"] {
        requests {
            slots: Box<[Slot]> => requests: Vec<RequestName> = Waited,
            done: Box<[Slot]> => done: Vec<RequestName> = Done,
        }
    };

    /// `MPI_Testall`.
    Testall [0: b"testall"] {
        requests { slots: Box<[Slot]> => requests: Vec<RequestName> = Tested }
        values { done: bool = have_completed }
    };

    /// `MPI_Testany`.
    Testany [0: b"testany"] {
        requests {
            slots: Box<[Slot]> => requests: Vec<RequestName> = Tested,
            done: Option<Slot> => done: Option<RequestName> = Done,
        }
    };

    /// `MPI_Testsome`.
    Testsome [0: b"testsome"] {
        requests {
            slots: Box<[Slot]> => requests: Vec<RequestName> = Tested,
            done: Box<[Slot]> => done: Vec<RequestName> = Done,
        }
    };

    /// `MPI_Probe`.
    Probe [0: b"probe"] {
        names { from: Source => from: RecvFrom = source }
    };

    /// `MPI_Iprobe` with its recorded outcome.
    Iprobe [0: b"iprobe"] {
        names { from: Source => from: RecvFrom = source }
        values { found: bool = outcome }
    };

    /// `MPI_Cancel` of a receive. The request must still be waited for.
    Cancel [0: b"cancel"] {
        requests { slot: Slot => request: RequestName = Cancelled }
        values { cancelled: bool = outcome }
        derived { from: Source = source }
    } resolved by cancel;

    /// A blocking collective operation on a communicator other than the world, or a nonblocking one on any: one with a request. Its
    /// root and its vectors are in ranks of the communicator.
    Collective [0: b"collective", 1: b"icollective"] by slot | request {
        names {
            communicator: CommIdx => communicator: CommId = communicator,
            operation: CollectiveId => operation: Collective = operation,
        }
        requests { slot: Option<Slot> => request: Option<RequestName> = Posted }
    } read by elsewhere resolved by elsewhere;

    /// `MPI_Neighbor_alltoall(v)`, or `MPI_Ineighbor_alltoall(v)` with a request: one message to and one from each neighbour.
    NeighborAlltoall [
        0: b"neighbor_alltoallv", 1: b"ineighbor_alltoallv", 2: b"neighbor_alltoall", 3: b"ineighbor_alltoall"
    ] by slot | request {
        names {
            communicator: CommIdx => communicator: CommId = communicator,
            to: Box<[(u32, Bytes)]> => to: Vec<(u32, Bytes)> = neighbors,
            from: Box<[(u32, Bytes)]> => from: Vec<(u32, Bytes)> = neighbors,
        }
        requests { slot: Option<Slot> => request: Option<RequestName> = Posted }
    } read by neighbor_alltoall;

    /// `MPI_Comm_split`, `MPI_Comm_dup`, `MPI_Comm_create`: collective on the parent. `MPI_Comm_create_group`: collective on the
    /// new group. The group of a duplicate is that of the parent. `comm_define` is no call: the members know each other.
    /// `MPI_Win_create`: collective on the parent, with its group.
    NewCommunicator [
        0: b"comm_split", 1: b"comm_dup", 2: b"comm_create", 3: b"comm_create_group", 4: b"comm_define",
        5: b"win_create"
    ] by kind | kind {
        names {
            parent: CommIdx => parent: CommId = communicator,
            new: Option<CommIdx> => new: Option<(CommId, Arc<Group>)> = new_communicator,
        }
        values { kind: CommunicatorCall = kind }
    } read by new_communicator resolved by new_communicator;

    /// `MPI_Comm_free`: takes no time.
    FreeCommunicator [0: b"comm_free"] {
        names { communicator: CommIdx => communicator: CommId = freed_communicator }
    };

    /// `MPI_Request_get_status`: whether the request is complete. The call leaves it as it is.
    GetStatus [0: b"request_get_status"] {
        requests { slot: Slot => request: RequestName = Tested }
        values { done: bool = outcome }
    };

    /// MPI-IO: a call on a file of a communicator. An access with a request is nonblocking, or the begin of a split collective one.
    File [
        0: b"io-read", 1: b"io-iread", 2: b"io-write", 3: b"io-iwrite",
        4: b"io-read_at", 5: b"io-iread_at", 6: b"io-write_at", 7: b"io-iwrite_at",
        8: b"io-read_all", 9: b"io-iread_all", 10: b"io-write_all", 11: b"io-iwrite_all",
        12: b"io-read_at_all", 13: b"io-iread_at_all", 14: b"io-write_at_all", 15: b"io-iwrite_at_all",
        16: b"io-read_shared", 17: b"io-iread_shared", 18: b"io-write_shared", 19: b"io-iwrite_shared",
        20: b"io-read_ordered", 21: b"io-iread_ordered", 22: b"io-write_ordered", 23: b"io-iwrite_ordered",
        24: b"io-open", 25: b"io-close", 26: b"io-sync", 27: b"io-seek"
    ] by call slot | call request {
        names {
            communicator: CommIdx => communicator: CommId = communicator,
            file: FileName => file: FileName = file,
        }
        requests { slot: Option<Slot> => request: Option<RequestName> = Posted }
        values { call: FileCall = file_call }
    } read by file_call;

    /// `MPI_File_set_view`, collective.
    SetView [0: b"io-set_view"] {
        names {
            communicator: CommIdx => communicator: CommId = communicator,
            file: FileName => file: FileName = file,
            view: FileView => view: FileView = file_view,
        }
    };

    /// A call on a window. `group` has the ranks of the window to which it is exposed, or that are accessed, with no bytes; that of
    /// `MPI_Win_complete` and `MPI_Win_wait` is that of the begin of the epoch.
    ///
    /// `access` is the request by which later calls complete an access that has no request of its own, `completed` has those that this
    /// call completes; `puts` are those that it ends at other ranks: since the last fence, or the begin of the epoch, to unlocked ranks.
    Window [
        0: b"put", 1: b"rput", 2: b"get", 3: b"rget", 4: b"accumulate", 5: b"raccumulate",
        6: b"get_accumulate", 7: b"rget_accumulate", 8: b"fetch_and_op", 9: b"compare_and_swap",
        10: b"win_fence", 11: b"win_post", 12: b"win_start", 13: b"win_complete",
        14: b"win_lock", 15: b"win_lock_exclusive", 16: b"win_unlock", 17: b"win_flush", 18: b"win_flush_local",
        19: b"win_lock_all", 20: b"win_unlock_all", 21: b"win_flush_all", 22: b"win_flush_local_all",
        23: b"win_free", 24: b"win_wait", 25: b"win_iwait"
    ] by call slot | call request {
        names {
            communicator: CommIdx => communicator: CommId = communicator,
            group: Box<[(u32, Bytes)]> => group: Vec<(u32, Bytes)> = neighbors,
        }
        requests { slot: Option<Slot> => request: Option<RequestName> = Posted }
        values { call: WindowCall = window_call }
        derived {
            access: Option<Slot> = access,
            completed: Box<[Slot]> = completed,
            puts: Box<[(u32, Bytes)]> = neighbors,
        }
    } read by window_call resolved by window_call;
}

impl CallKind {
    /// Returns whether the call has a line of its own; collective operations have one by their own names.
    pub fn is_read(self) -> bool {
        self != Self::Collective
    }
}
