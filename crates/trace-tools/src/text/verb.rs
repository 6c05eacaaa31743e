//! Names of actions.

use trace_mmap::table::{CallKind, CollectiveKind};

use crate::text::TextError;

/// The action that a line names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Compute,
    Sleep,
    Location,
    Init,
    Finalize,
    CommSize,
    /// A call, and which of the names of its row in the table of calls stands there.
    Call(CallKind, u8),
    /// A collective operation, and whether it is nonblocking.
    Collective(CollectiveKind, bool),
}

/// The actions that are neither calls nor collective operations.
const OTHERS: [Verb; 6] =
    [Verb::Compute, Verb::Sleep, Verb::Location, Verb::Init, Verb::Finalize, Verb::CommSize];

/// Names of calls that are not part of the format, each with advice. Calls on windows of one-sided communication (`Win_...`) are
/// recognized by their prefix.
const UNSUPPORTED: [(&str, &str); 9] = [
    ("intercomm_create", INTERCOMMUNICATOR),
    ("intercomm_merge", INTERCOMMUNICATOR),
    ("Get", ONE_SIDED),
    ("Put", ONE_SIDED),
    ("Accumulate", ONE_SIDED),
    ("Get_accumulate", ONE_SIDED),
    ("Fetch_and_op", ONE_SIDED),
    ("Compare_and_swap", ONE_SIDED),
    ("IO", "trace the program without MPI-IO, or replace the line by a sleep"),
];
const INTERCOMMUNICATOR: &str = "intercommunicators cannot be replayed; trace the program with the ranks of both groups in one communicator";
const ONE_SIDED: &str = "SMPI's tracer writes less than a replay of one-sided communication needs; write win_create, put, get, win_fence and so on";

impl Verb {
    /// Finds the action with this name.
    #[inline]
    pub(super) fn find(name: &[u8]) -> Result<Self, TextError> {
        match Self::from_name(name) {
            Some(verb) => Ok(verb),
            None => Err(unknown_action(&String::from_utf8_lossy(name))),
        }
    }

    #[inline]
    fn from_name(name: &[u8]) -> Option<Self> {
        match name {
            b"compute" => Some(Self::Compute),
            b"sleep" => Some(Self::Sleep),
            b"location" => Some(Self::Location),
            b"init" => Some(Self::Init),
            b"finalize" => Some(Self::Finalize),
            b"comm_size" => Some(Self::CommSize),
            _ => match CallKind::find(name) {
                Some((kind, number)) => kind.is_read().then_some(Self::Call(kind, number)),
                None => CollectiveKind::find(name)
                    .map(|(kind, is_nonblocking)| Self::Collective(kind, is_nonblocking)),
            },
        }
    }

    /// Returns the name in a trace.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Call(kind, number) => kind.names()[usize::from(number)],
            Self::Collective(kind, is_nonblocking) => kind.names()[usize::from(is_nonblocking)],
            Self::Compute => "compute",
            Self::Sleep => "sleep",
            Self::Location => "location",
            Self::Init => "init",
            Self::Finalize => "finalize",
            Self::CommSize => "comm_size",
        }
    }

    /// Returns the names of all actions.
    fn names() -> impl Iterator<Item = &'static str> {
        let calls = CallKind::ALL.iter().filter(|kind| kind.is_read()).flat_map(|kind| kind.names());
        let collectives = CollectiveKind::ALL.iter().flat_map(|kind| kind.names());
        OTHERS.iter().map(|verb| verb.name()).chain(calls.copied()).chain(collectives)
    }

    /// Returns whether the rest of the line is ignored without a warning.
    pub(super) fn ignores_extra_fields(self) -> bool {
        self.makes_communicator()
            || matches!(self, Self::Init | Self::CommSize | Self::Call(CallKind::Waitall, _))
    }

    /// Returns whether the action creates a communicator in SimGrid's format.
    pub(super) fn makes_communicator(self) -> bool {
        matches!(self, Self::Call(CallKind::NewCommunicator, 0..=2))
    }

    /// Returns whether this action is not in SimGrid's format.
    #[inline]
    pub(super) fn is_call(self) -> bool {
        use CallKind::{Irecv, Isend, NewCommunicator, Recv, Send, SendRecv, Test, Wait, Waitall};
        match self {
            Self::Call(Send | Recv | Isend | Irecv | Wait | Waitall | Test | SendRecv, 0) => false,
            Self::Call(NewCommunicator, 0..=2) => false,
            Self::Call(..) | Self::Collective(_, true) => true,
            _ => false,
        }
    }

    /// Returns whether this action takes named fields.
    pub(super) fn takes_keys(self) -> bool {
        matches!(self, Self::Call(..) | Self::Collective(..))
    }
}

#[cold]
fn unknown_action(name: &str) -> TextError {
    let found = name.to_owned();
    let refused = UNSUPPORTED.iter().find(|(refused, _)| *refused == name).map(|(_, advice)| *advice);
    match refused.or(name.starts_with("Win_").then_some(ONE_SIDED)) {
        Some(advice) => TextError::NotReplayable { found, advice },
        None => TextError::UnknownAction { found, nearest: nearest(name, Verb::names()) },
    }
}

/// Finds the known name at the least edit distance (Levenshtein), which is at most two and less than half of its length.
pub(super) fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    // The distance is quadratic, and a hostile file may have names of any length; no known name is that long.
    if name.len() > 32 {
        return None;
    }
    let distance = |known: &str| strsim::levenshtein(&known.to_lowercase(), &name.to_lowercase());
    known
        .map(|known| (distance(known), known))
        .filter(|(distance, known)| *distance <= 2 && 2 * distance < known.len())
        .min()
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_proposed() {
        let values = [
            ("Compute", Some("compute")),
            ("sendrecv", Some("sendRecv")),
            ("alltoalv", Some("alltoall")),
            ("commsize", Some("comm_size")),
            ("rcev", None),
            ("malloc", None),
            ("x", None),
        ];
        for (name, expected) in values {
            let found = name.to_owned();
            assert_eq!(unknown_action(name), TextError::UnknownAction { found, nearest: expected }, "{name}");
        }
    }

    #[test]
    fn every_name_is_found() {
        assert_eq!(Verb::names().count(), 135);
        for name in Verb::names() {
            assert_eq!(Verb::find(name.as_bytes()).map(Verb::name), Ok(name));
        }
        for kind in CollectiveKind::ALL {
            let [blocking, nonblocking] = kind.names();
            assert_eq!(nonblocking, format!("i{blocking}"));
        }
        assert_eq!(Verb::find(b"ISsend"), Ok(Verb::Call(CallKind::Isend, 1)));
        assert!(Verb::find(b"icollective").is_err());
    }

    #[test]
    fn names_that_only_tracers_know_get_advice() {
        for name in ["Win_fence", "intercomm_create", "Put", "IO"] {
            assert!(matches!(unknown_action(name), TextError::NotReplayable { found, .. } if found == name));
        }
        assert!(matches!(
            unknown_action("icompute"),
            TextError::UnknownAction { nearest: Some("compute"), .. }
        ));
    }
}
