//! Envelopes and names of requests in terms of the program.

use std::fmt;

use pdes_core::Rank;

use crate::channel::Tag;
use crate::communicator::CommId;

/// Name of a request of a rank, chosen by the tracer; may be reused once the request is complete or freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestName(u32);

impl RequestName {
    /// Makes the name with this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for RequestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The envelope of a sent message: destination, tag and communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendTo {
    /// The destination, as a world rank; `None` is `MPI_PROC_NULL`.
    pub peer: Option<Rank>,
    /// The tag.
    pub tag: Tag,
    /// The communicator.
    pub communicator: CommId,
}

/// The envelope that a receive or a probe matches: source, tag and communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvFrom {
    /// The source.
    pub peer: Peer,
    /// The tag; `None` for `MPI_ANY_TAG`.
    pub tag: Option<Tag>,
    /// The communicator.
    pub communicator: CommId,
}

impl RecvFrom {
    /// Makes the envelope of a receive on the world communicator.
    pub const fn on_world(peer: Peer, tag: Option<Tag>) -> Self {
        Self { peer, tag, communicator: CommId::WORLD }
    }
}

/// The source of a receive or a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `MPI_PROC_NULL`.
    ProcNull,
    /// A world rank.
    Rank(Rank),
    /// `MPI_ANY_SOURCE`.
    Any {
        /// Sender of the message that it matched in the recorded run; `None` if not recorded.
        recorded: Option<Rank>,
    },
}
