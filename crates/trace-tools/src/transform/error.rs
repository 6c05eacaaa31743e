//! Errors of hypotheses and their transformations.

use std::fmt;
use std::io;
use std::path::PathBuf;

use pdes_core::Rank;
use trace_mmap::{TraceError, WriteError};

/// A hypothesis cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum TransformError {
    /// The file of hypotheses cannot be read.
    #[error("the hypotheses {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file is not one of hypotheses, or has an invalid one.
    #[error("{}{}: {message}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    Format {
        /// The file.
        path: PathBuf,
        /// The line, from 1, if it is not in the message.
        line: Option<usize>,
        /// The text found, and the one expected.
        message: String,
    },
    /// A transformation does not fit the program.
    #[error("the hypothesis {hypothesis:?}, transformation {number} ({kind}): {refusal}")]
    Refused {
        /// Name of the hypothesis.
        hypothesis: String,
        /// Number of the transformation, from 1.
        number: usize,
        /// Key of its kind.
        kind: &'static str,
        /// The reason.
        refusal: Box<Refusal>,
    },
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The transformed trace cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl TransformError {
    /// Returns whether the hypotheses are wrong, rather than a file that cannot be read or written.
    pub fn is_misuse(&self) -> bool {
        matches!(self, Self::Format { .. } | Self::Refused { .. })
    }
}

/// The reason why a transformation does not fit a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The selector matches nothing.
    NoMatch {
        /// The things that it selects, such as `computations`.
        subject: &'static str,
        /// The key that alone matches nothing, with its value; `None` if only all keys together do.
        key: Option<(&'static str, String)>,
        /// The nearest names in the program, or the range of its numbers.
        nearest: Vec<String>,
    },
    /// The program has nothing that the transformation changes.
    Nothing {
        /// The things that it changes, such as `computations`.
        subject: &'static str,
    },
    /// The transformation would break the program, or is not defined for it.
    Place {
        /// The rank.
        rank: Rank,
        /// Index of the action of the trace, from 0, if it is about a single one.
        action: Option<u64>,
        /// The reason, and the remedy.
        reason: String,
    },
}

impl Refusal {
    pub(super) fn at(rank: Rank, action: u64, reason: impl Into<String>) -> Self {
        Self::Place { rank, action: Some(action), reason: reason.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMatch { subject, key, nearest } => {
                match key {
                    Some((key, value)) => write!(f, "{key} = {value} matches no {subject}")?,
                    None => write!(f, "no {subject} match all keys of the selector")?,
                }
                match nearest.split_last() {
                    None => Ok(()),
                    Some((only, [])) => write!(f, "; the program has {only}"),
                    Some((last, others)) => write!(f, "; the program has {} and {last}", others.join(", ")),
                }
            }
            Self::Nothing { subject } => write!(f, "the program has no {subject}"),
            Self::Place { rank, action: Some(action), reason } => {
                write!(f, "rank {rank}, action {action}: {reason}")
            }
            Self::Place { rank, action: None, reason } => write!(f, "rank {rank}: {reason}"),
        }
    }
}
