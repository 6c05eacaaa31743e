//! Why there is no timeline.

use std::io;
use std::path::{Path, PathBuf};

use crate::format::Format;

/// Why a timeline cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum TimelineError {
    /// Events cannot be kept in a temporary file.
    #[error("a temporary file of the timeline in {}: {source}", directory.display())]
    Spool {
        /// Where it is.
        directory: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file of the timeline cannot be written.
    #[error("the timeline {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The program was built without the format.
    #[error("this program was built without the format {format}; build it with `--features {format}`")]
    NotBuilt {
        /// The format.
        format: Format,
    },
    /// Another process has sent what are no events.
    #[error("found bytes that are no event of a timeline; run the same version of the program on all hosts")]
    Garbled,
}

impl TimelineError {
    pub(crate) fn write(path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Write { path: path.to_owned(), source: source.into() }
    }
}
