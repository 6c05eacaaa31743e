//! Channels: streams of messages with one source, destination, tag and communicator, resolved to dense indices.
//!
//! Messages of a channel do not overtake each other (MPI's ordering rule), so that a channel is matched as a queue.

use std::fmt;
use std::num::NonZeroU32;

use pdes_core::Rank;
use serde::{Deserialize, Serialize};

use crate::communicator::CommIdx;

/// Defines a dense index with its conversions.
macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
        pub struct $name(u32);

        impl $name {
            /// Makes the index with this number.
            pub const fn new(number: u32) -> Self {
                Self(number)
            }

            /// Returns the number.
            pub const fn get(self) -> u32 {
                self.0
            }

            /// Returns the number as an index into an array.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}
pub(crate) use index;

/// The tag of a message, never negative: "any tag" is the absence of a tag.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct Tag(
    /// One more than the number, so that `Option<Tag>` is no larger than `Tag`.
    NonZeroU32,
);

impl Tag {
    /// Makes the tag with this number.
    ///
    /// # Panics
    /// If the number is negative.
    pub const fn new(number: i32) -> Self {
        assert!(number >= 0, "a tag is never negative");
        Self(NonZeroU32::MIN.saturating_add(number as u32))
    }

    /// Returns the number.
    pub const fn get(self) -> i32 {
        (self.0.get() - 1) as i32
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tag").field(&self.get()).finish()
    }
}

index! {
    /// An outgoing channel of a rank: an index into [`RankTrace::outgoing`](crate::RankTrace::outgoing).
    OutIdx
}
index! {
    /// An incoming channel of a rank: an index into [`RankTrace::incoming`](crate::RankTrace::incoming).
    InIdx
}
index! {
    /// A matching queue of a receiver, below [`RankTrace::ports`](crate::RankTrace::ports).
    PortId
}
index! {
    /// The slot of a request of a rank, below [`RankTrace::slots`](crate::RankTrace::slots); free again once the request is
    /// complete, or, if it is persistent, once it is freed.
    Slot
}

/// The matching queue at which the messages of a channel arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A port of the receiver: messages and receives match in order.
    Port(PortId),
    /// The one queue of a receiver that has wildcard (`MPI_ANY_SOURCE`) or cancelled receives: matching depends on time.
    AnySource,
    /// No queue: no receive ever matches the channel.
    Unmatched,
}

/// The messages that a rank sends to one destination with one tag on one communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The destination; may be the rank itself.
    pub peer: Rank,
    /// The tag of every message of the channel.
    pub tag: Tag,
    /// The communicator.
    pub communicator: CommIdx,
    /// The encoded [`Arrival`], as in archives: 0 is `Unmatched`, 1 `AnySource`, else the port plus 2.
    arrival: u32,
}

impl Outgoing {
    pub(crate) fn new(peer: Rank, tag: Tag, communicator: CommIdx, arrival: Arrival) -> Self {
        let mut channel = Self { peer, tag, communicator, arrival: 0 };
        channel.set_arrival(arrival);
        channel
    }

    /// Returns the queue at which the messages arrive.
    #[inline]
    pub fn arrival(&self) -> Arrival {
        match self.arrival {
            0 => Arrival::Unmatched,
            1 => Arrival::AnySource,
            port => Arrival::Port(PortId::new(port - 2)),
        }
    }

    pub(crate) fn set_arrival(&mut self, arrival: Arrival) {
        self.arrival = match arrival {
            Arrival::Unmatched => 0,
            Arrival::AnySource => 1,
            Arrival::Port(port) => port.get() + 2,
        };
    }
}

/// The messages that a rank receives from one source with one tag, or any tag, on one communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The source; may be the rank itself.
    pub peer: Rank,
    /// The tag; `None` for `MPI_ANY_TAG`.
    pub tag: Option<Tag>,
    /// The communicator.
    pub communicator: CommIdx,
    /// The port at which the messages arrive. If one channel of a source takes any tag, all channels of the source share a port:
    /// messages then match by their tag, in the order in which they were sent.
    pub port: PortId,
}

const _: () = assert!(size_of::<Outgoing>() == 16 && size_of::<Incoming>() == 16);
