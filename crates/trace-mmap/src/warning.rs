//! Warnings: irregularities of a trace that loading accepts and reports.

use std::mem::discriminant;

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

impl Warning {
    /// Adds this warning to the one of its kind, or appends it; kinds are in the order of the variants.
    pub(crate) fn merge_into(self, warnings: &mut Vec<Self>) {
        let kind = discriminant(&self);
        let is_communicators = |warning: &Self| matches!(warning, Self::Communicators { .. });
        match warnings.iter_mut().find(|known| discriminant(*known) == kind) {
            Some(Self::ExtraFields { lines, .. } | Self::Communicators { lines, .. }) => {
                let (Self::ExtraFields { lines: more, .. } | Self::Communicators { lines: more, .. }) = self;
                *lines += more;
            }
            None => {
                warnings.push(self);
                warnings.sort_by_key(is_communicators);
            }
        }
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
