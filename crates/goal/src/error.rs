//! What can be wrong with a schedule.

use std::io;
use std::path::PathBuf;

/// Why operations are not a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The number of ranks is not the announced one.
    #[error("found {found} rank(s), expected {expected}")]
    Ranks {
        /// Ranks that there are.
        found: u64,
        /// Ranks that were announced.
        expected: u32,
    },
    /// An operation names a rank that does not exist, or none where it must.
    #[error("rank {rank}, operation {operation}: found peer {peer:?}, expected a rank from 0 to {}", ranks.saturating_sub(1))]
    Peer {
        /// The rank.
        rank: u32,
        /// The number of the operation, from 0.
        operation: u32,
        /// The peer that it names.
        peer: Option<u32>,
        /// Ranks of the schedule.
        ranks: u32,
    },
    /// Operations wait for each other in a circle.
    #[error(
        "rank {rank}: {waiting} operation(s) never start, the first one is number {operation}: they wait for each other"
    )]
    Circle {
        /// The rank.
        rank: u32,
        /// The first operation that never starts, from 0.
        operation: u32,
        /// Operations that never start.
        waiting: u64,
    },
    /// An index of a table leads nowhere: only files can have that.
    #[error("the table of {table} is inconsistent: the file is damaged")]
    Table {
        /// The table.
        table: &'static str,
    },
    /// A table would have more entries than an index of 32 bits can tell apart.
    #[error("found {entries} {table}, expected fewer than 4294967295")]
    TooLarge {
        /// The table.
        table: &'static str,
        /// Entries that it would have.
        entries: u64,
    },
}

/// Why text is not GOAL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct TextError {
    /// The line, from 1.
    pub line: u64,
    /// The byte in the line, from 1.
    pub column: u64,
    /// What is wrong there.
    pub problem: TextProblem,
}

/// What is wrong with a place in a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextProblem {
    /// Something else was expected.
    #[error("found {found}, expected {expected}")]
    Unexpected {
        /// What stands there.
        found: String,
        /// What may stand there.
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
    /// A dependency names a label that no operation above it in the rank has.
    #[error("found the label {0:?}, expected one that is defined above in the same rank")]
    UnknownLabel(String),
    /// Two operations of a rank have one label.
    #[error("found the label {0:?} a second time, expected different labels in a rank")]
    LabelTwice(String),
    /// Ranks do not come in their order.
    #[error("found rank {found}, expected rank {expected}: ranks come in their order, each one once")]
    RankOrder {
        /// The rank that stands there.
        found: u64,
        /// The rank whose turn it is.
        expected: u32,
    },
    /// What was read up to here is not a schedule.
    #[error("{0}")]
    Schedule(ScheduleError),
}

/// Why bytes are not LogGOPSim's binary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BinaryError {
    /// The file starts with another number.
    #[error("found the number {found} at its start, expected 4223 (or 2342) of a binary GOAL file")]
    Magic {
        /// The number.
        found: u64,
    },
    /// The file ends before something that it announces.
    #[error("byte {at}: found the end of the {of}, expected {what}")]
    Truncated {
        /// Where the file ends.
        at: u64,
        /// What ends there.
        of: &'static str,
        /// What should stand there.
        what: &'static str,
    },
    /// A rank fits none of the layouts.
    #[error(
        "rank {rank}: its {bytes} bytes hold {nodes} operations in neither layout (39 or 104 bytes per operation)"
    )]
    Layout {
        /// The rank.
        rank: u32,
        /// Bytes that the file gives to the rank.
        bytes: u64,
        /// Operations that the rank announces.
        nodes: u32,
    },
    /// A field of an operation is wrong.
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
        /// What it may be.
        expected: String,
    },
    /// The operations are not a schedule.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

/// Why a file is not an archive of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// The file has another form.
    #[error("this is not an archive of a GOAL schedule")]
    Magic,
    /// The version is another one.
    #[error("found version {found} of the archive, expected {expected}: convert the schedule again")]
    Version {
        /// The version of the file.
        found: u32,
        /// The version that this program reads.
        expected: u32,
    },
    /// The file was written on a machine with another order of bytes, or the header is damaged.
    #[error("the header is damaged: its checksum does not match")]
    Header,
    /// The length of the file is not the one in its header.
    #[error("found {found} bytes, expected {expected}: the file is cut short or was appended to")]
    Length {
        /// Bytes of the file.
        found: u64,
        /// Bytes that it should have.
        expected: u64,
    },
    /// The data changed since it was written.
    #[error("the data is damaged: its checksum does not match")]
    Data,
    /// The data is not a schedule.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

/// Why a file cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", file.display())]
pub struct FileError {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub problem: FileProblem,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// The system refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is text, with a mistake.
    #[error("{0}")]
    Text(#[from] TextError),
    /// It is LogGOPSim's binary, with a mistake.
    #[error("{0}")]
    Binary(#[from] BinaryError),
    /// It is an archive, with a mistake.
    #[error("{0}")]
    Archive(#[from] ArchiveError),
}
