//! Errors in traces of Paraver and Dimemas.

use std::path::Path;

use pdes_core::Rank;
use trace_mmap::{Location, TraceError, UnmodelledError};

/// An error in a line of a trace of Paraver or Dimemas, or of a `.pcf`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParaverError {
    /// The first line is no header.
    #[error(
        "the {field} of the header is \"{found}\", expected {expected}; a header is \
         #Paraver (date):duration_ns:nodes:applications:tasks(threads:node,...),communicators"
    )]
    Header {
        /// The part of the header.
        field: &'static str,
        /// The text found.
        found: String,
        /// Description of the expected text.
        expected: &'static str,
    },
    /// A line ends too early.
    #[error("the line ends before the {field}")]
    MissingField {
        /// The first field that is missing.
        field: &'static str,
    },
    /// A line has more fields than its record.
    #[error("\"{found}\" follows the last field of the record")]
    ExtraField {
        /// The text found.
        found: String,
    },
    /// A field is not a number of the expected kind.
    #[error("the {field} is \"{found}\", expected {expected}")]
    InvalidNumber {
        /// The field.
        field: &'static str,
        /// The text found.
        found: String,
        /// Description of the expected number.
        expected: &'static str,
    },
    /// A line is no record.
    #[error("a record of kind \"{found}\", expected 1 (state), 2 (events), 3 (message) or c (communicator)")]
    UnknownRecord {
        /// The first field.
        found: String,
    },
    /// The first line is no header of Dimemas.
    #[error("the header is \"{found}\", expected #DIMEMAS:\"name\":0:tasks(threads,...),communicators")]
    DimemasHeader {
        /// The text found.
        found: String,
    },
    /// A line is no record of Dimemas.
    #[error(
        "a record of kind \"{found}\", expected 0 (nothing), 1 (computation), 2 (send), 3 (receive), 10 (collective operation), \
         11 (computation of a GPU), 20 (event), d (definition) or s (offsets)"
    )]
    UnknownDimemasRecord {
        /// The first field.
        found: String,
    },
    /// A wait completes nothing that is pending.
    #[error("a wait for {what}, of which none is pending")]
    NothingPending {
        /// The receive or collective operation.
        what: String,
    },
    /// A task or an application does not exist.
    #[error("the {field} is {found}, expected 1 to {limit}")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// The number found.
        found: u64,
        /// The largest number.
        limit: u64,
    },
    /// A thread other than the first one of its task communicates.
    #[error("thread {thread} of rank {rank} communicates, expected MPI in the first thread only")]
    Thread {
        /// The rank.
        rank: Rank,
        /// The thread, from 1.
        thread: u64,
    },
    /// Two communicators have one number, or one has a rank twice.
    #[error("the {field} {found} is there twice")]
    Twice {
        /// The field.
        field: &'static str,
        /// The number found.
        found: u64,
    },
    /// The records of a rank are not in the order of time.
    #[error("rank {rank}: {what} begins at {time} ns, before the end of the one before at {before} ns")]
    Order {
        /// The rank.
        rank: Rank,
        /// The kind of the record.
        what: &'static str,
        /// Its time \[ns\].
        time: u64,
        /// The time of the record before \[ns\].
        before: u64,
    },
    /// A state or a message ends before it begins.
    #[error("the {what} begins at {begin} ns and ends at {end} ns")]
    Backwards {
        /// The kind of the record.
        what: &'static str,
        /// Its begin \[ns\].
        begin: u64,
        /// Its end \[ns\].
        end: u64,
    },
    /// A call begins within another one.
    #[error("rank {rank} calls {name} within {outer}, which began in line {line}")]
    NestedCall {
        /// The rank.
        rank: Rank,
        /// The call.
        name: String,
        /// The call that has not ended.
        outer: String,
        /// The line of its begin.
        line: u64,
    },
    /// The `.pcf` does not name a call.
    #[error("event {event} has the value {value}, for which the .pcf has no name")]
    UnnamedCall {
        /// The type of the event.
        event: u64,
        /// The value.
        value: u64,
    },
    /// A message is sent or received outside of calls that do that.
    #[error("rank {rank} {verb} a message at {time} ns, when it is in no call that {verb} one")]
    MessageOutsideCall {
        /// The rank.
        rank: Rank,
        /// `sends` or `receives`.
        verb: &'static str,
        /// The logical time \[ns\].
        time: u64,
    },
    /// A call sends or receives several messages.
    #[error("{name} {verb} {found} messages, expected one")]
    SeveralMessages {
        /// The call.
        name: String,
        /// `sends` or `receives`.
        verb: &'static str,
        /// Number of messages.
        found: usize,
    },
    /// A collective call does not tell its communicator.
    #[error("{name} has no event 50100004, which tells its communicator")]
    NoCommunicator {
        /// The call.
        name: String,
    },
    /// A collective call is on a communicator without members in the trace, such as an intercommunicator.
    #[error("{name} is on communicator {id}, whose members no line tells")]
    UnknownCommunicator {
        /// The call.
        name: String,
        /// The number of the communicator.
        id: u64,
    },
    /// A rank calls a collective operation on a communicator to which it does not belong.
    #[error("rank {rank} calls {name} on communicator {id}, of which it is no member")]
    NotMember {
        /// The rank.
        rank: Rank,
        /// The call.
        name: String,
        /// The number of the communicator.
        id: u64,
    },
    /// Ranks call different collective operations.
    #[error(
        "collective call {round} on communicator {id} is {found} on rank {rank} and {expected} on rank {other}"
    )]
    CollectivesDiffer {
        /// The number of the communicator.
        id: u64,
        /// The number of the call on this communicator, from 1.
        round: usize,
        /// A rank.
        rank: Rank,
        /// Its call.
        found: String,
        /// Another rank.
        other: Rank,
        /// Its call.
        expected: String,
    },
    /// A rank makes fewer collective calls than another one.
    #[error("{name} is collective call {round} on communicator {id}, but rank {rank} makes only {calls}")]
    CollectiveMissing {
        /// The call.
        name: String,
        /// The number of the communicator.
        id: u64,
        /// The number of the call on this communicator, from 1.
        round: usize,
        /// The rank that does not make it.
        rank: Rank,
        /// Number of its calls on this communicator.
        calls: usize,
    },
    /// Not exactly one rank is the root of a collective operation.
    #[error("{name} has {found} roots, expected one")]
    Roots {
        /// The call.
        name: String,
        /// Number of roots.
        found: usize,
    },
    /// A call that no replay models has a name that cannot be written.
    #[error(transparent)]
    Unmodelled(#[from] UnmodelledError),
}

/// An error and its line.
#[derive(Debug)]
pub(super) struct LineError {
    /// Number of the line, from 1.
    pub(super) line: u64,
    /// The error.
    pub(super) kind: ParaverError,
}

impl LineError {
    /// Adds the file.
    pub(super) fn locate(self, file: &Path) -> TraceError {
        let location = Location { file: file.to_path_buf(), line: self.line };
        TraceError::Action { location, kind: Box::new(self.kind) }
    }
}

impl ParaverError {
    /// Adds the line.
    pub(super) fn at(self, line: u64) -> LineError {
        LineError { line, kind: self }
    }
}
