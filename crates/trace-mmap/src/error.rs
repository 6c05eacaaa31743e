//! Errors of loading a trace.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use pdes_core::Rank;

use crate::archive::ArchiveError;
use crate::channel::Tag;
use crate::communicator::CommId;
use crate::link::{CommunicatorConflict, describe_shortage};

/// Place of an action in a file: a line of text, or a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The path of the file, as given.
    pub file: PathBuf,
    /// The number of the line or record, from 1.
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
    /// The source cannot be read; its format has the type of the error.
    #[error(transparent)]
    Source(Box<dyn Error + Send + Sync>),
    /// An action is invalid; its format has the type of the error.
    #[error("{location}: {kind}")]
    Action {
        /// The line of the action.
        location: Location,
        /// The error in it.
        kind: Box<dyn Error + Send + Sync>,
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
        "{location}: rank {rank} {}; its action {action} is the first without a message",
        describe_shortage([*receives, *sends], *src, *tag, *communicator)
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
    /// An archive cannot be opened, is damaged, or does not have as many ranks as requested.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A line number was requested from an archive.
    #[error("{}: an archive keeps no line numbers", file.display())]
    NoLines {
        /// The archive.
        file: PathBuf,
    },
    /// The contents of a trace were requested that are not stored.
    #[error("{}: the actions of a program in code are not stored", name.display())]
    NotStored {
        /// Name of the program.
        name: PathBuf,
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

impl TraceError {
    /// Returns the error of the format, if it has this type.
    pub fn kind<E: Error + 'static>(&self) -> Option<&E> {
        match self {
            Self::Source(kind) | Self::Action { kind, .. } => kind.downcast_ref(),
            _ => None,
        }
    }
}
