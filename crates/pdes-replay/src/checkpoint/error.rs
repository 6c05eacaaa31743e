//! What can go wrong with checkpoints.

use std::io;
use std::path::{Path, PathBuf};

use pdes_core::Rank;

/// Why a checkpoint cannot be written, or gone on from.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A file or the directory cannot be read or written.
    #[error("the checkpoint {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{} is no checkpoint: found {found:02x?} at its start", path.display())]
    Magic {
        /// The file.
        path: PathBuf,
        /// Its first bytes, eight or fewer.
        found: Vec<u8>,
    },
    /// The file is of another version of the format.
    #[error(
        "the checkpoint {}: found version {found}, expected {expected}; go on with the program that wrote it, or start from the \
         beginning without --resume", path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// That of this program.
        expected: u32,
    },
    /// The file was changed, or is not whole.
    #[error(
        "the checkpoint {} is damaged: {what}; remove it, or start from the beginning without --resume", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// The checkpoint is of a run of something else.
    #[error(
        "the checkpoint {} is of another run: {part} was {found}, and is {expected}{}; go on with the run that wrote it, or name \
         another directory", path.display(), if found == expected { " with other contents" } else { "" }
    )]
    Other {
        /// The file.
        path: PathBuf,
        /// What differs.
        part: String,
        /// What it was when the checkpoint was written.
        found: String,
        /// What it is now.
        expected: String,
    },
    /// A rank has a state that it cannot have.
    #[error("the checkpoint {}: rank {rank} cannot have been after {actions} actions what the file says", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The rank.
        rank: Rank,
        /// The actions that it had done, as the file says.
        actions: u64,
    },
}

impl CheckpointError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}
