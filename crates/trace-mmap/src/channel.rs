//! Channels: who sends to whom with which tag, resolved to dense indices.

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
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tag(
    /// One more than the number, so that a tag that may be absent takes no room for that.
    NonZeroU32,
);

impl Tag {
    /// Makes the tag with this number.
    ///
    /// # Panics
    /// Where the number is negative.
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
    /// A queue of messages at a receiver: its number among the receiver's, below
    /// [`RankTrace::ports`](crate::RankTrace::ports).
    PortId
}
index! {
    /// The place of a request of a rank, below [`RankTrace::slots`](crate::RankTrace::slots); free again once the request is
    /// complete, that of a persistent one once it is freed.
    Slot
}

/// Where the messages of a channel arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// In a port of the receiver, by its numbers.
    Port(PortId),
    /// Among all messages to a receiver some of whose receives are from any source or cancelled: which of them gets it
    /// depends on time.
    Mailbox,
    /// Nowhere: the receiver never names this channel.
    Nowhere,
}

/// What a rank sends under one destination, tag and communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The destination; may be the rank itself.
    pub peer: Rank,
    /// The tag of every message of the channel.
    pub tag: Tag,
    /// The communicator.
    pub communicator: CommIdx,
    /// Where the messages arrive, as in archives: 0 nowhere, 1 the mailbox, else the port plus 2.
    arrival: u32,
}

impl Outgoing {
    pub(crate) fn new(peer: Rank, tag: Tag, communicator: CommIdx, arrival: Arrival) -> Self {
        let mut channel = Self { peer, tag, communicator, arrival: 0 };
        channel.set_arrival(arrival);
        channel
    }

    /// Returns where the messages arrive.
    #[inline]
    pub fn arrival(&self) -> Arrival {
        match self.arrival {
            0 => Arrival::Nowhere,
            1 => Arrival::Mailbox,
            port => Arrival::Port(PortId::new(port - 2)),
        }
    }

    pub(crate) fn set_arrival(&mut self, arrival: Arrival) {
        self.arrival = match arrival {
            Arrival::Nowhere => 0,
            Arrival::Mailbox => 1,
            Arrival::Port(port) => port.get() + 2,
        };
    }
}

/// What a rank receives under one source, tag and communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The source; may be the rank itself.
    pub peer: Rank,
    /// The tag asked for; `None` takes any.
    pub tag: Option<Tag>,
    /// The communicator.
    pub communicator: CommIdx,
    /// Where the messages arrive. Channels of one source share a port where one of them takes any tag: messages then
    /// match by their tag, in the order in which they were sent.
    pub port: PortId,
}

const _: () = assert!(size_of::<Outgoing>() == 16 && size_of::<Incoming>() == 16);
