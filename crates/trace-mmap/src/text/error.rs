//! What can be wrong with a line.

use std::fmt;

use crate::call::CallError;

/// A field of a line, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name, such as `receive count`.
    pub name: &'static str,
    /// The place (from 0) in a vector of such fields.
    pub element: Option<u32>,
}

impl Field {
    /// Names a field that is no vector.
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, element: None }
    }

    /// Names an element of a vector.
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

/// What is wrong with a line of a trace.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TextError {
    /// The action has a name that no replay knows.
    #[error("unknown action \"{found}\"{}", nearest.map(|name| format!("; did you mean \"{name}\"?")).unwrap_or_default())]
    UnknownAction {
        /// The name found.
        found: String,
        /// A known name that resembles it.
        nearest: Option<&'static str>,
    },
    /// The action is one that programs and tracers know and the trace format cannot replay.
    #[error("action \"{found}\" is no part of this trace format: {advice}")]
    NotReplayable {
        /// The name found.
        found: String,
        /// What to do.
        advice: &'static str,
    },
    /// A named field has a name that the action does not know.
    #[error("{action}: unknown field \"{found}=\"{}", nearest.map(|name| format!("; did you mean \"{name}=\"?")).unwrap_or_default())]
    UnknownKey {
        /// The action.
        action: &'static str,
        /// The name found.
        found: String,
        /// A name of a field that resembles it.
        nearest: Option<&'static str>,
    },
    /// A named field is there twice.
    #[error("{action}: the field \"{key}=\" is there twice")]
    RepeatedKey {
        /// The action.
        action: &'static str,
        /// The name.
        key: &'static str,
    },
    /// An action has a named field that it does not take here.
    #[error("{action}: there is no place for the field \"{key}=\" here")]
    UnusedKey {
        /// The action.
        action: &'static str,
        /// The name.
        key: &'static str,
    },
    /// Two lists of a line do not have the same length.
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
    /// A call names a request or a communicator that it cannot.
    #[error("{action}: {kind}")]
    Call {
        /// The action.
        action: &'static str,
        /// What is wrong.
        kind: CallError,
    },
    /// The line has a rank and nothing else.
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
    /// A field is not the number that is expected there.
    #[error("the {field} is \"{found}\", expected {expected}")]
    InvalidNumber {
        /// The field.
        field: Field,
        /// What was found.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The line is of a rank that the run does not have.
    #[error("the line is of rank {found}, expected a rank below {ranks}")]
    RankOutOfRange {
        /// The rank found.
        found: u64,
        /// Number of ranks.
        ranks: u32,
    },
    /// The line is of another rank than the file.
    #[error("the line is of rank {found} in the file of rank {expected}")]
    WrongRank {
        /// The rank found.
        found: u64,
        /// The rank whose file this is.
        expected: u32,
    },
    /// A peer or root is no rank of the run.
    #[error("the {field} is {found}, expected a rank below {ranks}")]
    PeerOutOfRange {
        /// The field.
        field: Field,
        /// The number found.
        found: i64,
        /// Number of ranks.
        ranks: u32,
    },
    /// A datatype has an identifier that is not in the table.
    #[error("the {field} is {found}, which is no datatype (-1 to 59)")]
    UnknownDatatype {
        /// The field.
        field: Field,
        /// The identifier found.
        found: i64,
    },
    /// The line names no datatype and the rank has no default yet.
    #[error("{action}: no {field} is given, and before init there is no default one")]
    NoDefaultDatatype {
        /// The action.
        action: &'static str,
        /// The field.
        field: Field,
    },
    /// A count of elements makes too many bytes.
    #[error("the {field} is {count} elements of {size} bytes, more than 2^48 bytes")]
    TooManyBytes {
        /// The field.
        field: Field,
        /// The count found.
        count: u64,
        /// Bytes per element.
        size: u64,
    },
    /// A `wait` or `test` names a request that is not pending.
    #[error("{action}: no request (source {src}, destination {dst}, tag {tag}) is pending; {}", describe(pending, *more))]
    NoPendingRequest {
        /// The action.
        action: &'static str,
        /// Source asked for.
        src: i32,
        /// Destination asked for.
        dst: i32,
        /// Tag asked for.
        tag: i32,
        /// Some of the requests that are pending: source, destination, tag; sorted.
        pending: Vec<(i32, i32, i32)>,
        /// How many more (source, destination, tag) are pending.
        more: usize,
    },
    /// A rank has too many requests pending at once.
    #[error("more than {limit} requests of the rank are pending at once")]
    TooManyRequests {
        /// How many are allowed.
        limit: u32,
    },
    /// A line is too long.
    #[error("the line is longer than {limit} bytes")]
    LineTooLong {
        /// How many bytes are allowed.
        limit: usize,
    },
    /// The line is legal, but its meaning is not implemented.
    #[error("{action}: {feature}")]
    Unsupported {
        /// The action.
        action: &'static str,
        /// What is not implemented.
        feature: Unsupported,
    },
}

/// What is legal in a trace but cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Unsupported {
    /// A receive of unknown size (a negative count).
    #[error("a receive of unknown size (count {count}) is not supported: it probes for the message")]
    UnknownSize {
        /// The count found.
        count: f64,
    },
}

/// Lists pending requests.
fn describe(pending: &[(i32, i32, i32)], more: usize) -> String {
    if pending.is_empty() {
        return "none is".to_owned();
    }
    let list: Vec<String> = pending.iter().map(|(src, dst, tag)| format!("({src}, {dst}, {tag})")).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("pending are {}{more}", list.join(", "))
}
