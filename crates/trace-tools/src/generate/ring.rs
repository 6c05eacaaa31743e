//! A ring: every rank sends a message to the next one, round after round.

use pdes_core::{Bytes, Rank};

use super::error::{GenerateError, check_amount, check_message_size, check_min_ranks};
use super::program::ProgramBuilder;
use super::{Generator, count_uniform};
use trace_mmap::{Item, Tag};

/// Parameters of [`Ring`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RingParameters {
    /// Number of ranks, 2 or more; default: 16.
    pub ranks: u32,
    /// Number of rounds; default: 1000.
    pub rounds: u64,
    /// Size of a message \[B\], at most 2^48; default: 1024.
    pub bytes: Bytes,
    /// Computation of a rank per round \[flop\]; default: 1e6.
    pub flops: f64,
}

impl Default for RingParameters {
    fn default() -> Self {
        Self { ranks: 16, rounds: 1000, bytes: Bytes::new(1024), flops: 1e6 }
    }
}

/// In each round a rank posts a receive from the rank before, sends to the rank after, waits and computes.
///
/// All messages of a round are in flight at the same time; the last rank precedes the first one.
///
/// ```
/// use pdes_core::Rank;
/// use trace_tools::generate::{Generator, Ring, RingParameters};
/// let ring = Ring::new(RingParameters { ranks: 4, rounds: 10, ..RingParameters::default() })?;
/// assert_eq!(ring.rank(Rank::new(3)).len(), 3); // init, a loop, finalize
/// assert_eq!(ring.actions(), 4 * (10 * 4 + 2));
/// # Ok::<(), trace_tools::generate::GenerateError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ring(RingParameters);

impl Ring {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`GenerateError::TooFewRanks`], [`GenerateError::Amount`], [`GenerateError::TooLarge`].
    pub fn new(parameters: RingParameters) -> Result<Self, GenerateError> {
        check_min_ranks("a ring", parameters.ranks, 2)?;
        check_amount("flops", parameters.flops)?;
        check_message_size("bytes", parameters.bytes)?;
        Ok(Self(parameters))
    }
}

impl Generator for Ring {
    fn ranks(&self) -> u32 {
        self.0.ranks
    }

    fn rank(&self, rank: Rank) -> Vec<Item> {
        let RingParameters { ranks, rounds, bytes, flops } = self.0;
        assert!(rank.get() < ranks, "rank {rank} of {ranks}");
        let before = Rank::new(rank.get().checked_sub(1).unwrap_or(ranks - 1));
        let after = Rank::new(if rank.get() == ranks - 1 { 0 } else { rank.get() + 1 });
        let tag = Tag::new(0);
        ProgramBuilder::build(|program| {
            program.repeat(rounds, |body| {
                body.irecv(before, tag, bytes);
                body.send(after, tag, bytes);
                body.wait(before, tag);
                body.compute(flops);
            });
        })
    }

    fn actions(&self) -> u64 {
        count_uniform(self)
    }
}
