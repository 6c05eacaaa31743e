//! Errors of schedules and their files.

use std::io;
use std::path::PathBuf;

/// Error in the operations of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The number of ranks differs from the announced one.
    #[error("found {found} rank(s), expected {expected}")]
    Ranks {
        /// Number of ranks found.
        found: u64,
        /// Number of ranks announced.
        expected: u32,
    },
    /// An operation names a rank that does not exist, or none where it must.
    #[error("rank {rank}, operation {operation}: found {}, expected a rank from 0 to {}", peer.map_or("no peer".to_owned(), |peer| format!("peer {peer}")), ranks.saturating_sub(1))]
    Peer {
        /// The rank.
        rank: u32,
        /// The number of the operation, from 0.
        operation: u32,
        /// Peer that it names.
        peer: Option<u32>,
        /// Number of ranks of the schedule.
        ranks: u32,
    },
    /// The dependencies of a rank form a cycle.
    #[error(
        "rank {rank}: {waiting} operation(s) never start, the first one is number {operation}: their dependencies form a cycle"
    )]
    Cycle {
        /// The rank.
        rank: u32,
        /// Lowest operation that never starts, from 0.
        operation: u32,
        /// Number of operations that never start.
        waiting: u64,
    },
    /// An index in a table is out of range; only damaged files cause this.
    #[error("the table of {table} is inconsistent: the file is damaged")]
    Table {
        /// The table.
        table: &'static str,
    },
    /// A table would have more entries than 32-bit indices address.
    #[error("found {entries} {table}, expected fewer than 4294967295")]
    TooLarge {
        /// The table.
        table: &'static str,
        /// Number of entries it would have.
        entries: u64,
    },
}

/// Syntax error in GOAL text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct TextError {
    /// Line, from 1.
    pub line: u64,
    /// Column in bytes, from 1.
    pub column: u64,
    /// The mistake.
    pub problem: TextProblem,
}

/// Kind of mistake in GOAL text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextProblem {
    /// The text continues with something unexpected.
    #[error("found {found}, expected {expected}")]
    Unexpected {
        /// Text found.
        found: String,
        /// Text expected.
        expected: &'static str,
    },
    /// A number does not fit.
    #[error("found {found}, expected a number up to {most}")]
    Number {
        /// The digits.
        found: String,
        /// The largest number that fits.
        most: u64,
    },
    /// A dependency names a label that no earlier operation of the rank has.
    #[error("found the label {0:?}, expected one that is defined above in the same rank")]
    UnknownLabel(String),
    /// Two operations of a rank have the same label.
    #[error("found the label {0:?} a second time, expected different labels in a rank")]
    DuplicateLabel(String),
    /// Ranks are out of order.
    #[error("found rank {found}, expected rank {expected}: ranks come in order, each exactly once")]
    RankOrder {
        /// Rank found.
        found: u64,
        /// Rank expected next.
        expected: u32,
    },
    /// The operations read so far are not a valid schedule.
    #[error("{0}")]
    Schedule(ScheduleError),
}

/// Error in LogGOPSim's binary format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BinaryError {
    /// The file starts with a wrong magic number.
    #[error("found the number {found} at its start, expected 4223 (or 2342) of a binary GOAL file")]
    Magic {
        /// The number.
        found: u64,
    },
    /// The file ends before data that it announces.
    #[error("byte {at}: found the end of the {of}, expected {what}")]
    Truncated {
        /// Offset of the end \[B\].
        at: u64,
        /// Part that ends there.
        of: &'static str,
        /// Missing data.
        what: &'static str,
    },
    /// The data of a rank fits neither layout.
    #[error(
        "rank {rank}: its {bytes} bytes hold {nodes} operations in neither layout (39 or 104 bytes per operation)"
    )]
    Layout {
        /// The rank.
        rank: u32,
        /// Size of the rank's data \[B\].
        bytes: u64,
        /// Number of operations that the rank announces.
        nodes: u32,
    },
    /// A field of an operation has an invalid value.
    #[error("rank {rank}, operation {operation}: found {field} {found}, expected {expected}")]
    Field {
        /// The rank.
        rank: u32,
        /// The number of the operation, from 0.
        operation: u32,
        /// The field.
        field: &'static str,
        /// Its value.
        found: u64,
        /// Valid values.
        expected: String,
    },
    /// The operations are not a valid schedule.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

/// Error in a schedule archive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// The file is not an archive.
    #[error("this is not an archive of a GOAL schedule")]
    Magic,
    /// The archive has an unsupported version.
    #[error("found version {found} of the archive, expected {expected}: convert the schedule again")]
    Version {
        /// Version of the file.
        found: u32,
        /// Version that this program reads.
        expected: u32,
    },
    /// The header is damaged, or was written on a machine with another byte order.
    #[error("the header is damaged: its checksum does not match")]
    Header,
    /// The length of the file differs from the length in its header.
    #[error("found {found} bytes, expected {expected}: the file is cut short or was appended to")]
    Length {
        /// Length of the file \[B\].
        found: u64,
        /// Length according to the header \[B\].
        expected: u64,
    },
    /// The checksum of the data does not match.
    #[error("the data is damaged: its checksum does not match")]
    Data,
    /// The tables are not a valid schedule.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

/// Error of reading or writing a schedule file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", file.display())]
pub struct FileError {
    /// The file.
    pub file: PathBuf,
    /// The problem.
    pub problem: FileProblem,
}

/// Kind of problem with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// An input or output error of the system.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A mistake in GOAL text.
    #[error("{0}")]
    Text(#[from] TextError),
    /// A mistake in LogGOPSim's binary format.
    #[error("{0}")]
    Binary(#[from] BinaryError),
    /// A damaged or unsupported archive.
    #[error("{0}")]
    Archive(#[from] ArchiveError),
}
