//! What can be wrong with a trace.

use std::fmt;
use std::io;
use std::path::PathBuf;

use pdes_core::Rank;

use crate::archive::ArchiveError;
use crate::channel::Tag;
use crate::communicator::CommId;
use crate::link::{CommunicatorConflict, origin};
use crate::text::TextError;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file, as it was named.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: u64,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// Why a trace cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A file cannot be opened or read.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A compressed file, or a shard, is damaged or ends too early.
    #[error("{}: the {format} stream is damaged or cut short: {source}", file.display())]
    Compressed {
        /// The file.
        file: PathBuf,
        /// The form, `gzip`, `zstd` or `shard`.
        format: &'static str,
        /// What the decoder says.
        source: io::Error,
    },
    /// A file is not text.
    #[error("{}: this is a binary file, expected time-independent text (plain, gzip or zstd)", file.display())]
    Binary {
        /// The file.
        file: PathBuf,
    },
    /// A line is wrong.
    #[error("{}:{line}: {kind}", file.display())]
    Text {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        kind: TextError,
    },
    /// A file holds neither actions nor names of files.
    #[error("{}: no line with an action or the name of a trace file", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
    },
    /// A list names a file that does not exist.
    #[error("{list}: the trace file {} does not exist", file.display())]
    ListedFileMissing {
        /// The line of the list.
        list: Location,
        /// The file it names, resolved.
        file: PathBuf,
    },
    /// A directory has no rank files.
    #[error("{}: no rank files in this directory, expected rank-0.txt, rank-1.txt, ... (or .txt.gz, .txt.zst)", dir.display())]
    NoRankFiles {
        /// The directory.
        dir: PathBuf,
    },
    /// A directory lacks the file of a rank below the highest one.
    #[error("{}: the file rank-{missing}.txt of rank {missing} is missing; there is one for rank {highest}", dir.display())]
    RankFileMissing {
        /// The directory.
        dir: PathBuf,
        /// The lowest rank without a file.
        missing: u32,
        /// The highest rank with a file.
        highest: u32,
    },
    /// A directory has two files for a rank.
    #[error("{} and {} are both trace files of rank {rank}", first.display(), second.display())]
    RankFileTwice {
        /// The rank.
        rank: u32,
        /// One file.
        first: PathBuf,
        /// The other file.
        second: PathBuf,
    },
    /// The trace has more ranks than the run was asked to have.
    #[error("{}: the trace has {found} ranks, but a run of {asked} was asked for", path.display())]
    TooFewRanks {
        /// The trace.
        path: PathBuf,
        /// Ranks that the run should have.
        asked: u32,
        /// Ranks found.
        found: u32,
    },
    /// There are more ranks than this program numbers.
    #[error("{}: a trace may have {limit} ranks, found {found}", path.display())]
    TooManyRanks {
        /// The trace.
        path: PathBuf,
        /// Ranks found or asked for.
        found: u64,
        /// Ranks allowed.
        limit: u32,
    },
    /// A rank receives more messages from a channel than are sent to it.
    #[error(
        "{location}: rank {rank} receives {receives} messages {} but only {sends} are sent; \
         its action {action} is the first without a message",
        origin(*src, *tag, *communicator)
    )]
    ReceiveWithoutSend {
        /// The line of the first receive without a message.
        location: Location,
        /// The receiver.
        rank: Rank,
        /// Index (from 0) of that receive among the receiver's actions.
        action: u64,
        /// The source; `None` for all sources together, where some receive is from any.
        src: Option<Rank>,
        /// The tag; `None` for any.
        tag: Option<Tag>,
        /// The communicator.
        communicator: CommId,
        /// Messages sent to the channel.
        sends: u64,
        /// Receives from the channel.
        receives: u64,
    },
    /// Ranks do not agree on a communicator.
    #[error(transparent)]
    Communicators(#[from] CommunicatorConflict),
    /// An archive cannot be opened, or is damaged.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// An archive has another number of ranks than the run was asked to have.
    #[error("{}: the archive has {found} ranks, but a run of {asked} was asked for", file.display())]
    ArchiveRanks {
        /// The archive.
        file: PathBuf,
        /// Ranks that the run should have.
        asked: u32,
        /// Ranks found.
        found: u32,
    },
    /// A line is asked for in an archive.
    #[error("{}: an archive keeps no line numbers", file.display())]
    NoLines {
        /// The archive.
        file: PathBuf,
    },
    /// An action that is asked for does not exist.
    #[error("rank {rank} has no action {action}")]
    NoSuchAction {
        /// The rank.
        rank: Rank,
        /// Index (from 0) of the action.
        action: u64,
    },
    /// The temporary file for records beyond the memory budget cannot be created, written or mapped.
    #[error("cannot keep the trace in a temporary file in {}: {source}", dir.display())]
    Spill {
        /// The directory of the temporary file.
        dir: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}
