//! Warnings: irregularities of a trace that loading accepts and reports.

use std::path::Path;

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

/// Number of lines of one kind, and the number of the first one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineCount {
    lines: u64,
    first: u64,
}

impl LineCount {
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

/// The irregular lines of one file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FileWarnings {
    pub(crate) extra_fields: LineCount,
    pub(crate) communicators: LineCount,
}

/// Merges the irregular lines of several files, in order, into at most one warning of each kind.
pub(crate) fn summarize<'a>(files: impl Iterator<Item = (&'a Path, FileWarnings)>) -> Vec<Warning> {
    let mut extra_fields = None;
    let mut communicators = None;
    for (file, warnings) in files {
        add(&mut extra_fields, warnings.extra_fields.locate(file));
        add(&mut communicators, warnings.communicators.locate(file));
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
