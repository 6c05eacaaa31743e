//! Errors in a line of text.

use std::fmt;

use trace_mmap::{OpError, UnmodelledError, explain_peer};

/// Name of a field of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name, such as `receive count`.
    pub name: &'static str,
    /// Index (from 0) in a vector of such fields.
    pub element: Option<u32>,
}

impl Field {
    /// Makes the name of a scalar field.
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, element: None }
    }

    /// Makes the name of an element of a vector.
    pub(crate) const fn element(name: &'static str, element: u32) -> Self {
        Self { name, element: Some(element) }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.element {
            None => f.write_str(self.name),
            Some(element) => write!(f, "{} of rank {element}", self.name),
        }
    }
}

/// An error in a line of a trace.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TextError {
    /// The name of the action is unknown.
    #[error("unknown action \"{found}\"{}", nearest.map(|name| format!("; did you mean \"{name}\"?")).unwrap_or_default())]
    UnknownAction {
        /// The name found.
        found: String,
        /// A similar known name.
        nearest: Option<&'static str>,
    },
    /// The action is known to MPI or to tracers, but is not part of the trace format.
    #[error("action \"{found}\" is no part of this trace format: {advice}")]
    NotReplayable {
        /// The name found.
        found: String,
        /// Advice on how to avoid it.
        advice: &'static str,
    },
    /// The name of a named field is unknown.
    #[error("{action}: unknown field \"{found}=\"{}", nearest.map(|name| format!("; did you mean \"{name}=\"?")).unwrap_or_default())]
    UnknownKey {
        /// The action.
        action: &'static str,
        /// The name found.
        found: String,
        /// A similar known name.
        nearest: Option<&'static str>,
    },
    /// A named field occurs twice.
    #[error("{action}: the field \"{key}=\" is there twice")]
    RepeatedKey {
        /// The action.
        action: &'static str,
        /// The name.
        key: &'static str,
    },
    /// The action does not take this named field.
    #[error("{action}: there is no place for the field \"{key}=\" here")]
    UnusedKey {
        /// The action.
        action: &'static str,
        /// The name.
        key: &'static str,
    },
    /// Two lists of a line differ in length.
    #[error("{action}: \"{key}=\" has {found} entries, expected {expected}, one for each neighbour")]
    ListLength {
        /// The action.
        action: &'static str,
        /// The list.
        key: &'static str,
        /// Its length.
        found: usize,
        /// The length of the other one.
        expected: usize,
    },
    /// The operation is invalid, or does not fit the state of its rank.
    #[error(transparent)]
    Op(#[from] OpError),
    /// The text of an unmodelled call is wrong.
    #[error(transparent)]
    Unmodelled(#[from] UnmodelledError),
    /// The line has only a rank.
    #[error("the line ends after the rank, expected the name of an action")]
    MissingAction,
    /// The line ends too early.
    #[error("{action}: the line ends before the {field}")]
    MissingField {
        /// The action.
        action: &'static str,
        /// The first field that is missing.
        field: Field,
    },
    /// A field is not a number of the expected kind.
    #[error("the {field} is \"{found}\", expected {expected}")]
    InvalidNumber {
        /// The field.
        field: Field,
        /// The text found.
        found: String,
        /// Description of the expected number.
        expected: &'static str,
    },
    /// The rank of the line is not below the number of ranks of the run.
    #[error("the line is of rank {found}, expected a rank below {ranks}")]
    RankOutOfRange {
        /// The rank found.
        found: u64,
        /// Number of ranks.
        ranks: u32,
    },
    /// The line belongs to another rank than the file.
    #[error("the line is of rank {found} in the file of rank {expected}")]
    WrongRank {
        /// The rank found.
        found: u64,
        /// The rank of the file.
        expected: u32,
    },
    /// A peer or root is not a rank of the run.
    #[error("the {field} is {found}, expected a rank below {ranks}{}", explain_peer(*found))]
    PeerOutOfRange {
        /// The field.
        field: Field,
        /// The number found.
        found: i64,
        /// Number of ranks.
        ranks: u32,
    },
    /// The identifier of a datatype is unknown.
    #[error("the {field} is {found}, which is no datatype (-1 to 59)")]
    UnknownDatatype {
        /// The field.
        field: Field,
        /// The identifier found.
        found: i64,
    },
    /// The line has no datatype and the rank has no default yet.
    #[error("{action}: no {field} is given, and before init there is no default one")]
    NoDefaultDatatype {
        /// The action.
        action: &'static str,
        /// The field.
        field: Field,
    },
    /// A count of elements exceeds 2^48 bytes.
    #[error("the {field} is {count} elements of {size} bytes, more than 2^48 bytes")]
    TooManyBytes {
        /// The field.
        field: Field,
        /// The count found.
        count: u64,
        /// Bytes per element.
        size: u64,
    },
    /// A line is too long.
    #[error("the line is longer than {limit} bytes")]
    LineTooLong {
        /// Largest length \[B\].
        limit: usize,
    },
    /// The line is legal, but not supported.
    #[error("{action}: {feature}")]
    Unsupported {
        /// The action.
        action: &'static str,
        /// The unsupported feature.
        feature: Unsupported,
    },
}

/// A feature that is legal in a trace but cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Unsupported {
    /// A receive of unknown size (a negative count).
    #[error("a receive of unknown size (count {count}) is not supported: it probes for the message")]
    UnknownSize {
        /// The count found.
        count: f64,
    },
}
