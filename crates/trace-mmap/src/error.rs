//! Errors of loading a trace.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use pdes_core::Rank;

use crate::archive::ArchiveError;
use crate::channel::Tag;
use crate::communicator::CommId;
use crate::foreign::Foreign;
use crate::link::{CommunicatorConflict, describe_source};
use crate::text::TextError;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The path of the file, as given.
    pub file: PathBuf,
    /// The line number, from 1.
    pub line: u64,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// A trace cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A file cannot be opened or read.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A compressed file, or a shard, is damaged or ends too early.
    #[error("{}: the {format} stream is damaged or cut short: {source}", file.display())]
    Compressed {
        /// The file.
        file: PathBuf,
        /// The format: `gzip`, `zstd` or `shard`.
        format: &'static str,
        /// The error of the decoder.
        source: io::Error,
    },
    /// A file has another format.
    #[error("{}: {found}", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
        /// The format.
        found: Foreign,
    },
    /// A line is invalid.
    #[error("{}:{line}: {kind}", file.display())]
    Text {
        /// The file.
        file: PathBuf,
        /// The line number, from 1.
        line: u64,
        /// The error in it.
        kind: TextError,
    },
    /// A file has neither actions nor names of trace files.
    #[error("{}: no line with an action or the name of a trace file", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
    },
    /// A list names a file that does not exist.
    #[error(
        "{list}: found no file {}; expected names of trace files, or actions, such as `0 init`",
        excerpt(file)
    )]
    ListedFileMissing {
        /// The line in the list.
        list: Location,
        /// The missing file, as a resolved path.
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
    DuplicateRankFile {
        /// The rank.
        rank: u32,
        /// One file.
        first: PathBuf,
        /// The other file.
        second: PathBuf,
    },
    /// The trace has more ranks than were requested.
    #[error("{}: the trace has {found} ranks, but a run of {asked} was asked for", path.display())]
    TooFewRanks {
        /// The trace.
        path: PathBuf,
        /// Number of ranks requested.
        asked: u32,
        /// Number of ranks found.
        found: u32,
    },
    /// More ranks than supported.
    #[error("{}: a trace may have {limit} ranks, found {found}", path.display())]
    TooManyRanks {
        /// The trace.
        path: PathBuf,
        /// Number of ranks found or requested.
        found: u64,
        /// Largest number of ranks supported.
        limit: u32,
    },
    /// A rank receives more messages from a channel than are sent on it.
    #[error(
        "{location}: rank {rank} receives {receives} messages {} but only {sends} are sent; \
         its action {action} is the first without a message",
        describe_source(*src, *tag, *communicator)
    )]
    ReceiveWithoutSend {
        /// The line of the first unmatched receive.
        location: Location,
        /// The receiver.
        rank: Rank,
        /// Index (from 0) of that receive among the receiver's actions.
        action: u64,
        /// The source; `None` for all sources together, if there are wildcard receives.
        src: Option<Rank>,
        /// The tag; `None` for any.
        tag: Option<Tag>,
        /// The communicator.
        communicator: CommId,
        /// Number of messages sent on the channel.
        sends: u64,
        /// Number of receives from the channel.
        receives: u64,
    },
    /// Ranks disagree about a communicator.
    #[error(transparent)]
    Communicators(#[from] CommunicatorConflict),
    /// An archive cannot be opened or is damaged.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// An archive has a number of ranks other than requested.
    #[error("{}: the archive has {found} ranks, but a run of {asked} was asked for", file.display())]
    ArchiveRanks {
        /// The archive.
        file: PathBuf,
        /// Number of ranks requested.
        asked: u32,
        /// Number of ranks found.
        found: u32,
    },
    /// A line number was requested from an archive.
    #[error("{}: an archive keeps no line numbers", file.display())]
    NoLines {
        /// The archive.
        file: PathBuf,
    },
    /// A requested action does not exist.
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
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Returns the start of a path, quoted: a line of any file may have become one.
fn excerpt(path: &Path) -> String {
    const LONGEST: usize = 120;
    let text = path.to_string_lossy();
    let cut = text.char_indices().nth(LONGEST).map(|(end, _)| format!("{:?} ...", &text[..end]));
    cut.unwrap_or_else(|| format!("{text:?}"))
}
