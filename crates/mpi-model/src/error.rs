//! How the replay of a rank can fail.

use pdes_core::{Bytes, Rank};

use crate::ActionKind;

/// The program is wrong, or asks for what the machine does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank}, action {action}: {kind}")]
pub struct ReplayError<E: std::error::Error + 'static> {
    /// The rank whose replay failed.
    pub rank: Rank,
    /// The index of its action, from 0, at which that showed.
    pub action: u64,
    /// What is wrong.
    pub kind: ReplayErrorKind<E>,
}

/// What can be wrong with a rank.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayErrorKind<E: std::error::Error + 'static> {
    /// A message is longer than the receive that it matches.
    #[error(
        "the message from rank {peer} has {sent}, but the receive that matches it has room for {room}; make the receive as large as the send"
    )]
    Truncated {
        /// The sender.
        peer: Rank,
        /// Size of the message.
        sent: Bytes,
        /// Size of the receive.
        room: Bytes,
    },
    /// Two ranks meet in different collective operations.
    #[error(
        "this rank expects a message of {expected} from rank {peer}, which is in {found}; all ranks must call the same collectives in the same order",
        expected = expected.name(),
        found = found.name()
    )]
    CollectiveMismatch {
        /// The other rank.
        peer: Rank,
        /// The operation of this rank.
        expected: ActionKind,
        /// The operation of the other one.
        found: ActionKind,
    },
    /// An operation in which a rank looks for others looks for one that does not come.
    #[error(
        "this rank looks for rank {peer} in {operation} until the end of simulated time (213 days); all ranks must call the same collectives in the same order",
        operation = operation.name()
    )]
    NobodyCame {
        /// The other rank.
        peer: Rank,
        /// The operation of this rank.
        operation: ActionKind,
    },
    /// A clock would leave the range of simulated time.
    #[error(
        "{what} of {amount} takes longer than simulated time can hold (about 106 days at once, 213 in all)"
    )]
    TooLong {
        /// What takes so long.
        what: &'static str,
        /// How much of it, with its unit.
        amount: String,
    },
    /// There is no way between two ranks.
    #[error("no way from rank {from} to rank {to}")]
    NoPath {
        /// The sender.
        from: Rank,
        /// The receiver.
        to: Rank,
        /// What the machine says.
        #[source]
        source: E,
    },
}
