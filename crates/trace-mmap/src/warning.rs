//! What loading tolerates and tells.

use std::path::Path;

use pdes_core::Rank;

use crate::channel::Tag;
use crate::error::Location;

/// Something in a trace that is tolerated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// Lines with more fields than their action has; the rest of the line is ignored.
    #[error("{first}: fields beyond those of the action are ignored ({lines} such lines)")]
    ExtraFields {
        /// How many lines.
        lines: u64,
        /// The first of them.
        first: Location,
    },
    /// Lines that make a communicator.
    #[error("{first}: collectives are replayed on the world communicator ({lines} lines make other ones)")]
    Communicators {
        /// How many lines.
        lines: u64,
        /// The first of them.
        first: Location,
    },
}

/// Messages that are sent and never received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{messages} messages are never received, the first from rank {rank} to rank {peer} with tag {tag}")]
pub struct Unreceived {
    /// How many messages.
    pub messages: u64,
    /// The sender of the first channel with such a message, by rank and first use.
    pub rank: Rank,
    /// Its destination.
    pub peer: Rank,
    /// Its tag.
    pub tag: Tag,
}

/// Lines of one sort: how many, and the first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    lines: u64,
    first: u64,
}

impl Tally {
    /// Counts a line.
    pub(crate) fn count(&mut self, line: u64) {
        if self.lines == 0 {
            self.first = line;
        }
        self.lines += 1;
    }

    fn locate(self, file: &Path) -> Option<(u64, Location)> {
        (self.lines > 0).then(|| (self.lines, Location { file: file.to_path_buf(), line: self.first }))
    }
}

/// What is tolerated in one file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tolerated {
    pub(crate) extra_fields: Tally,
    pub(crate) communicators: Tally,
}

/// Sums up what is tolerated in several files, in their order.
pub(crate) fn summarize<'a>(files: impl Iterator<Item = (&'a Path, Tolerated)>) -> Vec<Warning> {
    let mut extra_fields = None;
    let mut communicators = None;
    for (file, tolerated) in files {
        add(&mut extra_fields, tolerated.extra_fields.locate(file));
        add(&mut communicators, tolerated.communicators.locate(file));
    }
    let extra_fields = extra_fields.map(|(lines, first)| Warning::ExtraFields { lines, first });
    let communicators = communicators.map(|(lines, first)| Warning::Communicators { lines, first });
    extra_fields.into_iter().chain(communicators).collect()
}

fn add(sum: &mut Option<(u64, Location)>, more: Option<(u64, Location)>) {
    match (sum, more) {
        (Some((lines, _)), Some((more, _))) => *lines += more,
        (empty @ None, more) => *empty = more,
        (Some(_), None) => {}
    }
}
