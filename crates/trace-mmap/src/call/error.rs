//! What can be wrong with requests and communicators.

use pdes_core::Rank;

use crate::communicator::CommId;
use crate::structure::RequestName;

/// A call names a request or a communicator that it cannot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// A request that does not exist, or is complete.
    #[error("there is no request {request}; {}", describe(known, *more))]
    UnknownRequest {
        /// The name.
        request: RequestName,
        /// Some of the requests that there are, sorted.
        known: Vec<RequestName>,
        /// How many more there are.
        more: usize,
    },
    /// A new request has the name of one that is not complete.
    #[error("request {request} is not complete: the name is free again once it is, or once it is freed")]
    RequestInUse {
        /// The name.
        request: RequestName,
    },
    /// A list has the same request twice.
    #[error("request {request} is in the list twice")]
    RequestTwice {
        /// The name.
        request: RequestName,
    },
    /// A request that completed is not among those of the call.
    #[error("request {request} is done, but not in the list of requests (req=)")]
    DoneNotListed {
        /// The name.
        request: RequestName,
    },
    /// A request is said to complete that was not started.
    #[error("request {request} is done, but it was not started")]
    DoneInactive {
        /// The name.
        request: RequestName,
    },
    /// A call that waits is said to have completed none, though some requests are pending.
    #[error(
        "nothing is done (done=-), but request {request} is pending: the call returns when one completes"
    )]
    NothingDone {
        /// The first pending request.
        request: RequestName,
    },
    /// A request that is to be started is not persistent.
    #[error(
        "request {request} is not persistent: only those of send_init, recv_init and their kin are started"
    )]
    NotPersistent {
        /// The name.
        request: RequestName,
    },
    /// A request that is to be started was started before and is not complete.
    #[error("request {request} is active: it must complete before it is started again")]
    Active {
        /// The name.
        request: RequestName,
    },
    /// A request that is to be cancelled is not pending, or cancelled before.
    #[error("request {request} is not pending, or cancelled already")]
    NotCancellable {
        /// The name.
        request: RequestName,
    },
    /// A request that is to be cancelled is no receive.
    #[error(
        "request {request} is no receive: MPI cancels no collective operation, and a cancelled send cannot be replayed"
    )]
    CancelledSend {
        /// The name.
        request: RequestName,
    },
    /// A communicator that was not made on this rank, or was freed.
    #[error("this rank has no communicator {id}{}", if *is_freed { ": it was freed" } else { ": it was never made" })]
    UnknownCommunicator {
        /// The communicator.
        id: CommId,
        /// Whether it was freed.
        is_freed: bool,
    },
    /// A communicator is made that this rank has, or the world is made or freed.
    #[error("communicator {id} exists already")]
    CommunicatorExists {
        /// The communicator.
        id: CommId,
    },
    /// The world is freed.
    #[error("communicator 0 is the world, which is never freed")]
    WorldFreed,
    /// A communicator is made with other ranks than before, or than the one of which it is a duplicate.
    #[error("communicator {id} was made before with other members, or duplicates one with other members")]
    OtherMembers {
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
    /// A rank is in a communicator twice.
    #[error("rank {rank} is a member twice")]
    MemberTwice {
        /// The rank.
        rank: Rank,
    },
}

fn describe(known: &[RequestName], more: usize) -> String {
    if known.is_empty() {
        return "there is none".to_owned();
    }
    let list: Vec<String> = known.iter().map(RequestName::to_string).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("there are {}{more}", list.join(", "))
}
