//! The digest of a result.

use std::fmt;

use mpi_model::{ActionKind, Statistics};
use pdes_core::SimTime;

/// Name of the hash scheme; any change of the hashed data or of their order changes the number.
const SCHEME: &[u8] = b"pdes-replay digest 2";

/// Number of kinds of actions that are hashed for every rank. The kinds after them came later.
const KINDS: usize = ActionKind::Finalize as usize + 1;

/// A hash over the results of all ranks: equal digests mean equal results.
///
/// It is BLAKE3 over the name of the scheme and, for each rank in order, these integers of 64 bits in little-endian
/// order: the end \[ps\]; for each kind of action up to [`ActionKind::Finalize`], in the order of [`ActionKind::ALL`], the time spent
/// \[ps\] and the number of actions; the messages sent; their payload \[B\]; the outcomes that depended on time, and those of them
/// that differ from the recorded run; and for each later kind of which there were actions, its number, time and number of actions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest(blake3::Hash);

impl Digest {
    /// Hashes the results of all ranks, in their order.
    pub fn of<'a>(ranks: impl Iterator<Item = (SimTime, &'a Statistics)>) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(SCHEME);
        for (end, statistics) in ranks {
            hasher.update(&end.as_picos().to_le_bytes());
            for kind in ActionKind::ALL.into_iter().take(KINDS) {
                hasher.update(&statistics.time(kind).as_picos().to_le_bytes());
                hasher.update(&statistics.count(kind).to_le_bytes());
            }
            hasher.update(&statistics.messages.to_le_bytes());
            hasher.update(&statistics.bytes.get().to_le_bytes());
            hasher.update(&statistics.outcomes().decided.to_le_bytes());
            hasher.update(&statistics.outcomes().different.to_le_bytes());
            for kind in statistics.kinds().filter(|&kind| kind > ActionKind::Finalize) {
                hasher.update(&(kind as u64).to_le_bytes());
                hasher.update(&statistics.time(kind).as_picos().to_le_bytes());
                hasher.update(&statistics.count(kind).to_le_bytes());
            }
        }
        Self(hasher.finalize())
    }
}

/// Prints 64 hexadecimal digits.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
