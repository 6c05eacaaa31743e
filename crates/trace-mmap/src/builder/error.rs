//! Errors in operations.

use pdes_core::Rank;

use crate::call::CallError;

/// An operation is invalid, or does not fit the state of its rank.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OpError {
    /// An amount of computation or a time to sleep is not finite, or negative.
    #[error("an amount is {found}, expected a finite number that is not negative")]
    Amount {
        /// The amount.
        found: f64,
    },
    /// A message or its buffer is too large.
    #[error("a message has {found} bytes, expected at most {limit}")]
    Size {
        /// Size found \[B\].
        found: u64,
        /// Largest size allowed \[B\].
        limit: u64,
    },
    /// A position in a file is too large.
    #[error("a position in a file is {found}, expected at most {limit}")]
    Offset {
        /// Position found \[B\].
        found: u64,
        /// Largest position allowed \[B\].
        limit: u64,
    },
    /// A peer, root, member or neighbour is not a rank of the run or of the communicator.
    #[error("a peer, root, member or neighbour is rank {found}, expected one below {ranks}")]
    Peer {
        /// The rank found.
        found: Rank,
        /// Number of ranks of the run or of the communicator.
        ranks: u32,
    },
    /// A vector of a collective does not have one count per rank, or a count amounts to more than 2^48 bytes.
    #[error("a {name} needs one count per rank ({ranks}) in each vector, and at most 2^48 bytes per count")]
    Collective {
        /// The name of the operation.
        name: &'static str,
        /// Number of ranks of the communicator.
        ranks: u32,
    },
    /// The name of a source file is empty or contains white space.
    #[error("the source file is called {found:?}, expected a name without white space")]
    Location {
        /// The name found.
        found: String,
    },
    /// A call uses a request or a communicator illegally.
    #[error("{action}: {kind}")]
    Call {
        /// The action.
        action: &'static str,
        /// The error.
        kind: CallError,
    },
    /// A `wait` or `test` refers to a request that is not pending.
    #[error("{action}: no request (source {src}, destination {dst}, tag {tag}) is pending; {}{}", describe_pending(pending, *more), explain_peer((*src).min(*dst).into()))]
    NoPendingRequest {
        /// The action.
        action: &'static str,
        /// Source of the request.
        src: i32,
        /// Destination of the request.
        dst: i32,
        /// Tag of the request.
        tag: i32,
        /// Some of the pending requests: source, destination, tag; sorted.
        pending: Vec<(i32, i32, i32)>,
        /// Number of further pending (source, destination, tag).
        more: usize,
    },
    /// A rank has too many requests pending at once.
    #[error("more than {limit} requests of the rank are pending at once")]
    TooManyRequests {
        /// Largest number allowed.
        limit: u32,
    },
}

/// Lists pending requests.
fn describe_pending(pending: &[(i32, i32, i32)], more: usize) -> String {
    if pending.is_empty() {
        return "none is".to_owned();
    }
    let list: Vec<String> = pending.iter().map(|(src, dst, tag)| format!("({src}, {dst}, {tag})")).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("pending are {}{more}", list.join(", "))
}

/// Explains the number of a peer that SimGrid's SMPI writes and that no rank has; empty for other numbers.
pub fn explain_peer(peer: i64) -> &'static str {
    /// `MPI_UNDEFINED`.
    const UNDEFINED: i64 = -333;
    if peer == UNDEFINED {
        "; SMPI 3.32 writes both MPI_PROC_NULL and MPI_ANY_SOURCE so, and does not replay it: put -666 where the program has MPI_PROC_NULL, -555 where it has MPI_ANY_SOURCE"
    } else {
        ""
    }
}
