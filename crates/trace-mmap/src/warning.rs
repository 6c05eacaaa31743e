//! Warnings: irregularities of a trace that loading accepts and reports.

use std::mem::discriminant;
use std::path::PathBuf;

use pdes_core::Rank;

use crate::channel::Tag;
use crate::error::Location;

/// An irregularity that loading accepts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// Lines with more fields than their action has; the rest of the line is ignored.
    #[error("{first}: fields beyond those of the action are ignored ({lines} such lines)")]
    ExtraFields {
        /// Number of lines.
        lines: u64,
        /// The first such line.
        first: Location,
    },
    /// Lines that create a communicator without identifying it: collectives are replayed on the world.
    #[error("{first}: collectives are replayed on the world communicator ({lines} lines make other ones)")]
    Communicators {
        /// Number of lines.
        lines: u64,
        /// The first such line.
        first: Location,
    },
    /// Text whose last line has no newline and is no `finalize`: it may be cut in the middle.
    #[error(
        "{first}: the last line has no newline: it may have lost its end, and the program what follows ({lines} such lines)"
    )]
    NoNewline {
        /// Number of lines.
        lines: u64,
        /// The first such line.
        first: Location,
    },
    /// The recording of accesses to files is incomplete.
    #[error(
        "{}: Darshan had no memory for all records of {modules}: the log is incomplete, and the trace is the part that was kept",
        file.display()
    )]
    Incomplete {
        /// The file.
        file: PathBuf,
        /// Names of the modules.
        modules: String,
    },
    /// Calls or arguments that a trace of another format has, or should have, and that its actions have not.
    #[error("{first}: {what} ({records} such record(s))")]
    LeftOut {
        /// What is left out, and what the replay does without it.
        what: String,
        /// Number of lines or records.
        records: u64,
        /// The first of them.
        first: Location,
    },
    /// Ranks that do not leave MPI, as others do.
    #[error(
        "rank {first} has no finalize, which other ranks have: its trace may have lost its end ({ranks} such rank(s))"
    )]
    NoFinalize {
        /// Number of ranks.
        ranks: u32,
        /// The first such rank.
        first: Rank,
    },
}

impl Warning {
    /// Adds this warning to the one of its kind, or appends it; kinds are in the order of the variants.
    pub(crate) fn merge_into(self, warnings: &mut Vec<Self>) {
        let known = warnings.iter_mut().find(|known| known.is_alike(&self));
        let lines = known.map(|known| (known.lines_mut(), { self.clone() }.lines_mut().copied()));
        match lines {
            Some((Some(lines), Some(more))) => *lines += more,
            // Each rank of a log has the same warning.
            Some(_) => {}
            None => {
                warnings.push(self);
                warnings.sort_by_key(Self::place);
            }
        }
    }

    fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::LeftOut { what, .. }, Self::LeftOut { what: of_other, .. }) => what == of_other,
            _ => discriminant(self) == discriminant(other),
        }
    }

    fn lines_mut(&mut self) -> Option<&mut u64> {
        match self {
            Self::ExtraFields { lines, .. }
            | Self::Communicators { lines, .. }
            | Self::NoNewline { lines, .. }
            | Self::LeftOut { records: lines, .. } => Some(lines),
            Self::Incomplete { .. } | Self::NoFinalize { .. } => None,
        }
    }

    /// Returns the place of the kind.
    fn place(&self) -> u8 {
        match self {
            Self::ExtraFields { .. } => 0,
            Self::Communicators { .. } => 1,
            Self::NoNewline { .. } => 2,
            Self::Incomplete { .. } => 3,
            Self::LeftOut { .. } => 4,
            Self::NoFinalize { .. } => 5,
        }
    }

    /// Makes the warning about ranks that do not leave MPI, of the numbers of their `finalize`; `None` for a rank without actions.
    pub(crate) fn of_ends(ends: impl Iterator<Item = Option<bool>>) -> Option<Self> {
        let (mut leaves, mut missing) = (false, None);
        for (rank, end) in (0..).map(Rank::new).zip(ends) {
            match end {
                Some(true) => leaves = true,
                Some(false) => missing.get_or_insert((0, rank)).0 += 1,
                None => {}
            }
        }
        let (ranks, first) = missing.filter(|_| leaves)?;
        Some(Self::NoFinalize { ranks, first })
    }
}

/// Messages that are sent and never received.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize,
)]
#[error(
    "{messages} {} never received, the first from rank {rank} to rank {peer} with tag {tag}",
    if *messages == 1 { "message is" } else { "messages are" }
)]
pub struct Unreceived {
    /// Number of messages.
    pub messages: u64,
    /// The sender of the first channel with such a message, in the order of ranks and first use.
    pub rank: Rank,
    /// The destination of that channel.
    pub peer: Rank,
    /// The tag of that channel.
    pub tag: Tag,
}
