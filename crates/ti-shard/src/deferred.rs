//! Deferred unit: the results of an action that are known only after its record was written.

use crate::unit::{UNIT, unit_from_words, words_of_unit};

/// A deferred unit: follows a record, written as zeros, and filled in once the results are known.
///
/// | word | meaning |
/// |---|---|
/// | 0 | duration of the action \[ns\], plus 1; 0 if unknown |
/// | 1 | of a receive, bits 0-31: world rank of the source, plus 1; bits 32-63: tag of the message, plus 1. Of a cancellation: 1 if the request was cancelled |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deferred {
    /// Duration of the action \[ns\].
    pub nanos: Option<u64>,
    /// Second word: the outcome of the action.
    pub outcome: u64,
}

impl Deferred {
    /// Offset of the outcome in the unit \[B\]; the duration is at 0.
    pub const OUTCOME: u64 = 8;

    /// Outcome of a cancellation that succeeded.
    pub const CANCELLED: u64 = 1;

    /// Returns the outcome of a receive: source, if it was a wildcard, and tag of its message, if known.
    pub fn receive_outcome(source: Option<u32>, tag: Option<u32>) -> u64 {
        let plus_one = |number: Option<u32>| number.map_or(0, |number| u64::from(number) + 1);
        plus_one(source) & 0xffff_ffff | plus_one(tag) << 32
    }

    /// Returns the encoded duration.
    pub fn encode_duration(nanos: u64) -> u64 {
        nanos.saturating_add(1)
    }

    /// Returns the bytes of the unit.
    pub fn to_bytes(self) -> [u8; UNIT] {
        unit_from_words([self.nanos.map_or(0, Self::encode_duration), self.outcome])
    }

    pub(crate) fn from_bytes(bytes: [u8; UNIT]) -> Self {
        let [time, outcome] = words_of_unit(bytes);
        Self { nanos: time.checked_sub(1), outcome }
    }

    pub(crate) fn source(self) -> Option<u32> {
        (self.outcome as u32).checked_sub(1)
    }

    pub(crate) fn tag(self) -> Option<u32> {
        ((self.outcome >> 32) as u32).checked_sub(1)
    }
}
