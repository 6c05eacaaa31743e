//! Errors of the replay of a rank.

use pdes_core::{Bytes, Rank};
use trace_mmap::FileMisuse;

use crate::ActionKind;
use crate::collective::UnmeasuredError;

/// Failure of a rank: its program is wrong, or asks for something that the machine lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank}, action {action}: {kind}")]
pub struct ReplayError<E: std::error::Error + 'static> {
    /// Rank whose replay failed.
    pub rank: Rank,
    /// Index of the action at which the failure showed, from 0.
    pub action: u64,
    /// Kind of failure, with its operands.
    pub kind: ReplayErrorKind<E>,
}

/// Error of a rank that cannot continue from a state.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError<E: std::error::Error + 'static> {
    /// A rank has no route from another.
    #[error(transparent)]
    Replay(#[from] Box<ReplayError<E>>),
    /// The state is not one of this rank of this trace.
    #[error("rank {rank}: the state after {actions} actions does not fit the trace")]
    Foreign {
        /// Rank.
        rank: Rank,
        /// Number of actions done, according to the state.
        actions: u64,
    },
}

/// Kind of failure of a rank.
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
    /// Two ranks call different collective operations at the same point of their communicator.
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
    /// A collective operation that polls for the arrival of other ranks polls for one that never arrives.
    #[error(
        "this rank polls for rank {peer} in {operation} until the end of simulated time (213 days); all ranks must call the same collectives in the same order",
        operation = operation.name()
    )]
    PeerNeverArrived {
        /// The other rank.
        peer: Rank,
        /// The operation of this rank.
        operation: ActionKind,
    },
    /// A program that runs misuses its calls.
    #[error("{message}")]
    Program {
        /// The mistake, and what to do.
        message: Box<str>,
    },
    /// Nobody measured the time of a collective operation.
    #[error(transparent)]
    Unmeasured(UnmeasuredError),
    /// A clock would leave the range of simulated time.
    #[error(
        "{what} of {amount} takes longer than simulated time can hold (about 106 days at once, 213 in all)"
    )]
    TimeOverflow {
        /// Activity that takes too long.
        what: &'static str,
        /// Amount of it, with its unit.
        amount: String,
    },
    /// The machine has no place for a file.
    #[error("a call on a file")]
    NoStorage {
        /// Error of the machine.
        #[source]
        source: E,
    },
    /// A file is used while it is not open.
    #[error("{call}: the file {file:?} {misuse}")]
    FileMisuse {
        /// Name of the call.
        call: &'static str,
        /// The file.
        file: Box<str>,
        /// The mistake.
        misuse: FileMisuse,
    },
    /// Two ranks access different files in one collective access.
    #[error(
        "this collective access is to the file {file:?}, that of rank {peer} to {other:?}; all ranks of the communicator must access the same file"
    )]
    DifferentFiles {
        /// The other rank.
        peer: Rank,
        /// The file of this rank.
        file: Box<str>,
        /// The file of the other one.
        other: Box<str>,
    },
    /// A read goes beyond the end of its file.
    #[error(
        "this call reads beyond the end of the file, which has {size} B at that time; write them before, or give the file with its size in `files` of its file system"
    )]
    ReadBeyondEnd {
        /// Size of the file \[B\].
        size: u64,
    },
    /// The machine has no route between two ranks.
    #[error("no route from rank {from} to rank {to}")]
    NoRoute {
        /// The sender.
        from: Rank,
        /// The receiver.
        to: Rank,
        /// Error of the machine.
        #[source]
        source: E,
    },
}
