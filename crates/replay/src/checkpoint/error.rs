//! Errors of checkpoints.

use std::io;
use std::path::{Path, PathBuf};

use pdes_core::Rank;
use timeline::TimelineError;

/// The reason why a checkpoint cannot be written, or resumed from.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A file or the directory cannot be read or written.
    #[error("the checkpoint {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file is not a checkpoint.
    #[error("{} is no checkpoint: found {found:02x?} at its start", path.display())]
    Magic {
        /// The file.
        path: PathBuf,
        /// Its first bytes, eight or fewer.
        found: Vec<u8>,
    },
    /// The file is of another version of the format.
    #[error(
        "the checkpoint {}: found version {found}, expected {expected}; continue with the program that wrote it, or start from the \
         beginning without --resume", path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Version of the file.
        found: u32,
        /// Version that this program reads and writes.
        expected: u32,
    },
    /// The file was changed, or is incomplete.
    #[error(
        "the checkpoint {} is damaged: {what}; remove it, or start from the beginning without --resume", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Description of the damage.
        what: &'static str,
    },
    /// The processes of a run do not see the same file.
    #[error("the checkpoint {}: not all processes find the same file; name a directory that all hosts share", path.display())]
    NotShared {
        /// The file.
        path: PathBuf,
    },
    /// The state of the network is not one of this platform.
    #[error(
        "the checkpoint {} has a state of the network that the platform cannot have; start from the beginning without --resume",
        path.display()
    )]
    ImpossibleNetwork {
        /// The file.
        path: PathBuf,
    },
    /// The events of the timeline, which lie beside the checkpoint, cannot be written, or are not those of the checkpoint.
    #[error("the checkpoint {}: {source}; start from the beginning without --resume", path.display())]
    Events {
        /// The file of the checkpoint.
        path: PathBuf,
        /// Error of the events.
        source: TimelineError,
    },
    /// The checkpoint belongs to another run.
    #[error(
        "the checkpoint {} is of another run: {part} was {found}, and is {expected}{}; continue the run that wrote it, or name \
         another directory", path.display(), if found == expected { " with other contents" } else { "" }
    )]
    OtherRun {
        /// The file.
        path: PathBuf,
        /// Name of the part of the identity that differs.
        part: String,
        /// Description of that part when the checkpoint was written.
        found: String,
        /// Description of that part now.
        expected: String,
    },
    /// The run that continued from the checkpoint has found a contradiction.
    #[error(
        "the run that continued from the checkpoint {} has found a contradiction ({what}): the file is forged, or the program is wrong; \
         start from the beginning without --resume", path.display()
    )]
    BrokenLaw {
        /// The file.
        path: PathBuf,
        /// Description of the contradiction.
        what: String,
    },
    /// A rank has an impossible state.
    #[error("the checkpoint {}: the state of rank {rank} after {actions} actions is impossible", path.display())]
    ImpossibleState {
        /// The file.
        path: PathBuf,
        /// The rank.
        rank: Rank,
        /// Number of actions replayed by the rank, according to the file.
        actions: u64,
    },
}

/// A replay cannot go on from the states of another run.
#[derive(Debug, thiserror::Error)]
#[error("the past is that of another run: {0} differs")]
pub struct ForeignPast(pub(super) String);

impl CheckpointError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}
