//! Names of actions.

use crate::text::TextError;

macro_rules! verbs {
    ($($variant:ident = $name:literal $(| $also:literal)?,)*) => {
        /// The action that a line names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Verb {
            $($variant,)*
        }

        impl Verb {
            const ALL: &[Self] = &[$(Self::$variant,)*];

            fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name $(| $also)? => Some(Self::$variant),)*
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

// SimGrid's actions, frequent ones first; then the blocking collectives, the nonblocking ones in the same order, and all other
// calls: `Verb::is_collective`, `Verb::blocking` and `Verb::is_call` rely on this order.
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
    CommCreate = "comm_create",
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
    Ibarrier = "ibarrier",
    Ibcast = "ibcast",
    Ireduce = "ireduce",
    Iallreduce = "iallreduce",
    Ialltoall = "ialltoall",
    Ialltoallv = "ialltoallv",
    Igather = "igather",
    Iscatter = "iscatter",
    Iallgather = "iallgather",
    Igatherv = "igatherv",
    Iscatterv = "iscatterv",
    Iallgatherv = "iallgatherv",
    IreduceScatter = "ireducescatter",
    Iscan = "iscan",
    Iexscan = "iexscan",
    Ssend = "ssend" | "Ssend",
    Bsend = "bsend",
    Rsend = "rsend",
    Issend = "issend" | "ISsend",
    Ibsend = "ibsend",
    Irsend = "irsend",
    SendRecvReplace = "sendRecv_replace",
    SendInit = "send_init",
    SsendInit = "ssend_init",
    BsendInit = "bsend_init",
    RsendInit = "rsend_init",
    RecvInit = "recv_init",
    Start = "start" | "Start",
    StartAll = "startall" | "Startall",
    RequestFree = "request_free",
    Cancel = "cancel",
    WaitAny = "waitany" | "waitAny",
    WaitSome = "waitsome",
    TestAll = "testall",
    TestAny = "testany",
    TestSome = "testsome",
    Probe = "probe",
    Iprobe = "iprobe",
    CommCreateGroup = "comm_create_group",
    CommFree = "comm_free",
    NeighborAlltoall = "neighbor_alltoall",
    NeighborAlltoallv = "neighbor_alltoallv",
    IneighborAlltoall = "ineighbor_alltoall",
    IneighborAlltoallv = "ineighbor_alltoallv",
    Unmodelled = "unmodelled",
}

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
const ONE_SIDED: &str =
    "one-sided communication cannot be replayed; replace it by messages, or by a sleep of its length";

impl Verb {
    /// Finds the action with this name.
    #[inline]
    pub(super) fn find(name: &[u8]) -> Result<Self, TextError> {
        match std::str::from_utf8(name).ok().and_then(Self::from_name) {
            Some(verb) => Ok(verb),
            None => Err(unknown_action(&String::from_utf8_lossy(name))),
        }
    }

    /// Returns whether the rest of the line is ignored without a warning.
    pub(super) fn ignores_extra_fields(self) -> bool {
        self.makes_communicator() || matches!(self, Self::Init | Self::CommSize | Self::WaitAll)
    }

    /// Returns whether the action creates a communicator in SimGrid's format.
    pub(super) fn makes_communicator(self) -> bool {
        matches!(self, Self::CommSplit | Self::CommDup | Self::CommCreate)
    }

    /// Returns whether this is a blocking collective operation.
    pub(super) fn is_collective(self) -> bool {
        (Self::Barrier as u8..=Self::Exscan as u8).contains(&(self as u8))
    }

    /// Returns the blocking counterpart of a nonblocking collective operation; `None` for other actions.
    pub(super) fn blocking(self) -> Option<Self> {
        let number = (self as usize).checked_sub(Self::Ibarrier as usize)?;
        let blocking = *Self::ALL.get(Self::Barrier as usize + number)?;
        blocking.is_collective().then_some(blocking)
    }

    /// Returns whether this action is not in SimGrid's format.
    #[inline]
    pub(super) fn is_call(self) -> bool {
        self as u8 >= Self::Ibarrier as u8
    }

    /// Returns whether this action takes named fields.
    pub(super) fn takes_keys(self) -> bool {
        !matches!(
            self,
            Self::Compute | Self::Sleep | Self::Location | Self::Init | Self::Finalize | Self::CommSize
        )
    }
}

#[cold]
fn unknown_action(name: &str) -> TextError {
    let found = name.to_owned();
    let refused = UNSUPPORTED.iter().find(|(refused, _)| *refused == name).map(|(_, advice)| *advice);
    match refused.or(name.starts_with("Win_").then_some(ONE_SIDED)) {
        Some(advice) => TextError::NotReplayable { found, advice },
        None => TextError::UnknownAction {
            found,
            nearest: nearest(name, Verb::ALL.iter().map(|verb| verb.name())),
        },
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
    fn operations_that_do_not_block_are_named_after_those_that_do() {
        for verb in Verb::ALL {
            let found = verb.blocking().map(|blocking| format!("i{}", blocking.name()));
            let is_one = (Verb::Ibarrier as u8..=Verb::Iexscan as u8).contains(&(*verb as u8));
            assert_eq!(found, is_one.then(|| verb.name().to_owned()));
        }
        assert_eq!(Verb::find(b"ISsend"), Ok(Verb::Issend));
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
