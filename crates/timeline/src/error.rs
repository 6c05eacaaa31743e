//! Errors of timelines.

use std::io;
use std::path::{Path, PathBuf};

use crate::format::Format;

/// Error of writing a timeline.
#[derive(Debug, thiserror::Error)]
pub enum TimelineError {
    /// The temporary file of a [`Spool`](crate::Spool) cannot be written or read.
    #[error("temporary file of the timeline in {}: {source}", directory.display())]
    Spool {
        /// Directory of the file.
        directory: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The file of the events before a checkpoint is not the one that was saved.
    #[error("the events before the checkpoint, in {}, are damaged or incomplete", path.display())]
    ForeignEvents {
        /// The file.
        path: PathBuf,
    },
    /// A file of the timeline cannot be written.
    #[error("the timeline {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The program was built without support for the format.
    #[error("this program was built without the format {format}; build it with `--features {format}`")]
    NotBuilt {
        /// The format.
        format: Format,
    },
    /// Another process has sent bytes that are not a valid record.
    #[error("found bytes that are not a timeline event; run the same version of the program on all hosts")]
    InvalidRecord,
}

impl TimelineError {
    pub(crate) fn write(path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Write { path: path.to_owned(), source: source.into() }
    }
}
