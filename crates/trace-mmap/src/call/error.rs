//! Errors in the use of requests and communicators.

use pdes_core::Rank;

use crate::communicator::CommId;
use crate::structure::RequestName;

/// A call uses a request or a communicator illegally.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The request does not exist or is complete already.
    #[error("there is no request {request}; {}", describe_known(known, *more))]
    UnknownRequest {
        /// The name.
        request: RequestName,
        /// Some of the existing requests, sorted.
        known: Vec<RequestName>,
        /// Number of further existing requests.
        more: usize,
    },
    /// A new request has the name of an incomplete one.
    #[error("request {request} is not complete: the name is free again once it is, or once it is freed")]
    RequestInUse {
        /// The name.
        request: RequestName,
    },
    /// A request occurs twice in a list.
    #[error("request {request} is in the list twice")]
    DuplicateRequest {
        /// The name.
        request: RequestName,
    },
    /// A completed request is not in the call's list of requests.
    #[error("request {request} is done, but not in the list of requests (req=)")]
    DoneNotListed {
        /// The name.
        request: RequestName,
    },
    /// An inactive persistent request is recorded as completed.
    #[error("request {request} is done, but it was not started")]
    DoneInactive {
        /// The name.
        request: RequestName,
    },
    /// A wait is recorded as having completed no request, although some are pending.
    #[error(
        "nothing is done (done=-), but request {request} is pending: the call returns when one completes"
    )]
    NoneCompleted {
        /// The first pending request.
        request: RequestName,
    },
    /// The request to be started is not persistent.
    #[error(
        "request {request} is not persistent: only those of send_init, recv_init and their kin are started"
    )]
    NotPersistent {
        /// The name.
        request: RequestName,
    },
    /// The request to be started is active already.
    #[error("request {request} is active: it must complete before it is started again")]
    AlreadyActive {
        /// The name.
        request: RequestName,
    },
    /// The request to be cancelled is not pending, or is cancelled already.
    #[error("request {request} is not pending, or cancelled already")]
    NotCancellable {
        /// The name.
        request: RequestName,
    },
    /// The request to be cancelled is not a receive.
    #[error(
        "request {request} is no receive: MPI cancels no collective operation, and a cancelled send cannot be replayed"
    )]
    NotReceive {
        /// The name.
        request: RequestName,
    },
    /// The communicator was never created on this rank, or was freed.
    #[error("this rank has no communicator {id}{}", if *is_freed { ": it was freed" } else { ": it was never made" })]
    UnknownCommunicator {
        /// The communicator.
        id: CommId,
        /// True if it was freed, false if it was never created.
        is_freed: bool,
    },
    /// The new communicator exists on this rank already, or is the world.
    #[error("communicator {id} exists already")]
    CommunicatorExists {
        /// The communicator.
        id: CommId,
    },
    /// The world communicator is freed.
    #[error("communicator 0 is the world, which is never freed")]
    WorldFreed,
    /// A communicator is created again with other members, or as a duplicate with other members than its parent.
    #[error("communicator {id} was made before with other members, or duplicates one with other members")]
    MembersDiffer {
        /// The communicator.
        id: CommId,
    },
    /// A rank is not in a communicator.
    #[error("rank {rank} is not in communicator {id}")]
    NotMember {
        /// The rank.
        rank: Rank,
        /// The communicator.
        id: CommId,
    },
    /// A call on a window names a communicator that is none.
    #[error("communicator {id} is no window: win_create makes one, win_free ends it")]
    NotWindow {
        /// The communicator.
        id: CommId,
    },
    /// A window is freed as a communicator.
    #[error("communicator {id} is a window: end it by win_free")]
    IsWindow {
        /// The communicator.
        id: CommId,
    },
    /// A call on a window ends what no earlier call has begun.
    #[error("window {id} has no epoch that this call ends: {begin} has to be called before")]
    NoEpoch {
        /// The window.
        id: CommId,
        /// Name of the call that begins the epoch.
        begin: &'static str,
    },
    /// A rank occurs twice in the list of members.
    #[error("rank {rank} is a member twice")]
    DuplicateMember {
        /// The rank.
        rank: Rank,
    },
}

fn describe_known(known: &[RequestName], more: usize) -> String {
    if known.is_empty() {
        return "there is none".to_owned();
    }
    let list: Vec<String> = known.iter().map(RequestName::to_string).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("there are {}{more}", list.join(", "))
}
