//! The names of actions.

use crate::text::TextError;

macro_rules! verbs {
    ($($variant:ident = $name:literal,)*) => {
        /// What a line tells its rank to do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Verb {
            $($variant,)*
        }

        impl Verb {
            const ALL: &[Self] = &[$(Self::$variant,)*];

            fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// Returns the name in a trace.
            pub(super) fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

// The frequent ones first, the collectives last: `Verb::is_collective` relies on it.
verbs! {
    Compute = "compute",
    Send = "send",
    Recv = "recv",
    Isend = "isend",
    Irecv = "irecv",
    Wait = "wait",
    WaitAll = "waitall",
    Test = "test",
    Init = "init",
    Finalize = "finalize",
    CommSize = "comm_size",
    CommSplit = "comm_split",
    CommDup = "comm_dup",
    SendRecv = "sendRecv",
    Sleep = "sleep",
    Location = "location",
    Barrier = "barrier",
    Bcast = "bcast",
    Reduce = "reduce",
    Allreduce = "allreduce",
    Alltoall = "alltoall",
    Alltoallv = "alltoallv",
    Gather = "gather",
    Scatter = "scatter",
    Allgather = "allgather",
    Gatherv = "gatherv",
    Scatterv = "scatterv",
    Allgatherv = "allgatherv",
    ReduceScatter = "reducescatter",
    Scan = "scan",
    Exscan = "exscan",
}

/// Names that SMPI's tracer writes for calls which the trace format has no replay for, beyond those of one-sided
/// communication on windows (`Win_...`) and of non-blocking collectives (`i` before the name of the collective).
const TRACED_ONLY: [&str; 17] = [
    "waitAny",
    "testany",
    "testall",
    "testsome",
    "bsend",
    "ibsend",
    "Ssend",
    "ISsend",
    "Start",
    "Startall",
    "Get",
    "Put",
    "Accumulate",
    "Get_accumulate",
    "Fetch_and_op",
    "Compare_and_swap",
    "IO",
];

impl Verb {
    /// Finds the action with this name.
    #[inline]
    pub(super) fn find(name: &[u8]) -> Result<Self, TextError> {
        match std::str::from_utf8(name).ok().and_then(Self::from_name) {
            Some(verb) => Ok(verb),
            None => Err(unknown(&String::from_utf8_lossy(name))),
        }
    }

    /// Returns whether the rest of the line is free.
    pub(super) fn takes_anything(self) -> bool {
        matches!(self, Self::Init | Self::CommSize | Self::CommSplit | Self::CommDup | Self::WaitAll)
    }

    /// Returns whether all ranks take part.
    pub(super) fn is_collective(self) -> bool {
        self as u8 >= Self::Barrier as u8
    }
}

#[cold]
fn unknown(name: &str) -> TextError {
    let found = name.to_owned();
    if is_traced_only(name) {
        TextError::NotReplayable { found }
    } else {
        TextError::UnknownAction { found, nearest: nearest(name) }
    }
}

fn is_traced_only(name: &str) -> bool {
    let non_blocking = name.strip_prefix('i').and_then(Verb::from_name);
    TRACED_ONLY.contains(&name) || name.starts_with("Win_") || non_blocking.is_some_and(Verb::is_collective)
}

/// Finds the known name that needs the fewest changes, at most two and less than half the letters.
fn nearest(name: &str) -> Option<&'static str> {
    // A name of any length may stand in a hostile file; none that long resembles a known one.
    if name.len() > 32 {
        return None;
    }
    let distance = |known: &str| distance(known.to_lowercase().as_bytes(), name.to_lowercase().as_bytes());
    let names = Verb::ALL.iter().map(|verb| (distance(verb.name()), verb.name()));
    names
        .filter(|(distance, known)| *distance <= 2 && 2 * distance < known.len())
        .min()
        .map(|(_, known)| known)
}

/// Counts the insertions, deletions and substitutions between two words (Levenshtein).
fn distance(from: &[u8], to: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.iter().enumerate() {
            let substituted = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
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
            assert_eq!(unknown(name), TextError::UnknownAction { found, nearest: expected }, "{name}");
        }
    }

    #[test]
    fn names_that_only_tracers_know_are_told_apart() {
        for name in ["waitAny", "Win_fence", "ibcast", "ireducescatter", "Ssend", "IO"] {
            assert_eq!(unknown(name), TextError::NotReplayable { found: name.to_owned() });
        }
        assert!(matches!(unknown("icompute"), TextError::UnknownAction { nearest: Some("compute"), .. }));
    }
}
