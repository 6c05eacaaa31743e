//! Errors in a trace of HDTrace.

use std::path::{Path, PathBuf};

use pdes_core::Rank;
use trace_mmap::{Location, TraceError};

/// An error in a project or in a call.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HdtraceError {
    /// The text is no XML, or ends too early.
    #[error("{0}")]
    Xml(String),
    /// A call lacks an argument.
    #[error("{call} has no attribute {attribute}")]
    Missing {
        /// The call.
        call: String,
        /// The argument.
        attribute: &'static str,
    },
    /// An argument is not what it should be.
    #[error("{attribute} of {call} is \"{found}\", expected {expected}")]
    Invalid {
        /// The call.
        call: String,
        /// The argument.
        attribute: &'static str,
        /// The text found.
        found: String,
        /// Description of the expected text.
        expected: &'static str,
    },
    /// A call is on a communicator that the project does not list.
    #[error("{call} is on communicator {number}, which the project does not list for this rank")]
    UnknownCommunicator {
        /// The call.
        call: String,
        /// The number of the communicator.
        number: u64,
    },
    /// A peer or root is no member of the communicator.
    #[error("{call} has rank {rank} as peer or root, which is no member of its communicator")]
    NotMember {
        /// The call.
        call: String,
        /// The rank of the world.
        rank: i64,
    },
    /// An access to a file that is not open.
    #[error("{call} is on file {number}, which is not open")]
    NotOpen {
        /// The call.
        call: String,
        /// The number of the file.
        number: u64,
    },
    /// Not all ranks make a collective call that has counts for each rank.
    #[error(
        "{call} is call {round} with counts on its communicator, but rank {rank} has another one, or none"
    )]
    Differ {
        /// The call.
        call: String,
        /// The number of the call, from 1.
        round: usize,
        /// A rank whose call differs.
        rank: Rank,
    },
    /// The project has no threads of a rank.
    #[error("{}: the project has no thread of rank {rank}, or no topology of hosts, ranks and threads", path.display())]
    NoThread {
        /// The project.
        path: PathBuf,
        /// The rank.
        rank: u64,
    },
    /// A communicator has a rank twice.
    #[error("{}: a communicator has rank {rank} twice", path.display())]
    Twice {
        /// The project.
        path: PathBuf,
        /// The rank.
        rank: Rank,
    },
}

impl HdtraceError {
    /// Adds the number of an element of a file.
    pub(super) fn locate(self, file: &Path, element: u64) -> TraceError {
        let location = Location { file: file.to_path_buf(), line: element };
        TraceError::Action { location, kind: Box::new(self) }
    }
}
