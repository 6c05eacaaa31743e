//! What is known of an action only after it was written.

use crate::unit::{UNIT, of_two_words, two_words};

/// The unit behind a record: written as zeros, and filled in.
///
/// | word | what |
/// |---|---|
/// | 0 | how long the action took \[ns\], plus 1; 0 where that is not known |
/// | 1 | of a receive, bits 0-31: the rank of the world whose message came, plus 1; bits 32-63: its tag, plus 1. Of a cancellation: 1 where the request was cancelled |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Later {
    /// How long it took \[ns\].
    pub nanos: Option<u64>,
    /// The second word.
    pub outcome: u64,
}

impl Later {
    /// Where the outcome stands in the unit \[B\]; the time stands first.
    pub const OUTCOME: u64 = 8;

    /// The outcome of a cancellation that succeeded.
    pub const CANCELLED: u64 = 1;

    /// Returns the outcome of a receive: of its message, the source where any was asked for, and the tag.
    pub fn received(source: Option<u32>, tag: Option<u32>) -> u64 {
        let plus_one = |number: Option<u32>| number.map_or(0, |number| u64::from(number) + 1);
        plus_one(source) & 0xffff_ffff | plus_one(tag) << 32
    }

    /// Returns the word of a time.
    pub fn time(nanos: u64) -> u64 {
        nanos.saturating_add(1)
    }

    /// Returns the bytes of a unit of which only the time is known, or nothing.
    pub fn to_bytes(self) -> [u8; UNIT] {
        of_two_words([self.nanos.map_or(0, Self::time), self.outcome])
    }

    pub(crate) fn from_bytes(bytes: [u8; UNIT]) -> Self {
        let [time, outcome] = two_words(bytes);
        Self { nanos: time.checked_sub(1), outcome }
    }

    pub(crate) fn source(self) -> Option<u64> {
        (self.outcome & 0xffff_ffff).checked_sub(1)
    }

    pub(crate) fn tag(self) -> Option<u64> {
        (self.outcome >> 32).checked_sub(1)
    }
}
