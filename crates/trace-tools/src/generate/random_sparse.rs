//! Sparse communication with random peers.

use pdes_core::{Bytes, Rank};

use super::Generator;
use super::error::{
    GenerateError, check_amount, check_at_most, check_message_size, check_min_ranks, check_positive,
};
use super::program::ProgramBuilder;
use super::random::{Permutation, below, hash};
use trace_mmap::{Item, Op, Tag};

/// Largest number of partners per step: each has its own tag.
const MAX_PARTNERS: u64 = 1 << 16;
/// Purpose of a random number, the first word of its position.
const PARTNER: u64 = 0;
const SIZE: u64 = 1;

/// Parameters of [`RandomSparse`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomSparseParameters {
    /// Seed of partners and sizes; default: 1.
    pub seed: u64,
    /// Number of ranks, 2 or more; default: 16.
    pub ranks: u32,
    /// Number of different steps in the body of the loop; default: 16.
    pub steps: u32,
    /// Number of iterations of the loop over the steps; default: 100.
    pub rounds: u64,
    /// Number of messages that a rank sends and receives per step, at most 65,536; default: 4. Messages to the rank itself are
    /// omitted.
    pub partners: u32,
    /// Smallest message \[B\]; default: 8.
    pub min_bytes: Bytes,
    /// Largest message \[B\], at most 2^48; default: 65,536. Sizes are uniform between the two.
    pub max_bytes: Bytes,
    /// Computation of a rank per step \[flop\]; default: 1e6.
    pub flops: f64,
}

impl Default for RandomSparseParameters {
    fn default() -> Self {
        Self {
            seed: 1,
            ranks: 16,
            steps: 16,
            rounds: 100,
            partners: 4,
            min_bytes: Bytes::new(8),
            max_bytes: Bytes::new(65_536),
            flops: 1e6,
        }
    }
}

/// In each step a rank posts its receives, posts its sends, waits for all and computes.
///
/// The partners of a step are random permutations of the ranks, invertible point by point, so that a rank finds its senders without
/// scanning all ranks: its program costs O(steps x partners) on any number of ranks. No step can deadlock, because nothing blocks
/// before all requests are posted.
#[derive(Clone, Copy, Debug)]
pub struct RandomSparse(RandomSparseParameters);

impl RandomSparse {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`GenerateError::TooFewRanks`], [`GenerateError::Zero`], [`GenerateError::TooLarge`],
    /// [`GenerateError::EmptyRange`], [`GenerateError::Amount`].
    pub fn new(parameters: RandomSparseParameters) -> Result<Self, GenerateError> {
        check_min_ranks("random partners", parameters.ranks, 2)?;
        check_positive("partners", parameters.partners.into())?;
        check_at_most("partners", parameters.partners.into(), MAX_PARTNERS)?;
        check_amount("flops", parameters.flops)?;
        check_message_size("max_bytes", parameters.max_bytes)?;
        let (min, max) = (parameters.min_bytes.get(), parameters.max_bytes.get());
        if min > max { Err(GenerateError::EmptyRange { min, max }) } else { Ok(Self(parameters)) }
    }

    /// Returns the permutation from senders to receivers for one message per rank in a step.
    fn receivers(&self, step: u32, partner: u32) -> Permutation {
        Permutation::new(self.0.ranks, hash(self.0.seed, &[PARTNER, step.into(), partner.into()]))
    }

    /// Returns the size of a message.
    fn bytes(&self, step: u32, partner: u32, sender: u32) -> Bytes {
        let (min, max) = (self.0.min_bytes.get(), self.0.max_bytes.get());
        Bytes::new(
            min + below(max - min + 1, self.0.seed, &[SIZE, step.into(), partner.into(), sender.into()]),
        )
    }

    fn write_step(&self, program: &mut ProgramBuilder, rank: u32, step: u32) {
        for partner in 0..self.0.partners {
            let sender = self.receivers(step, partner).preimage(rank);
            if sender != rank {
                program.irecv(Rank::new(sender), Tag::new(partner as i32), self.bytes(step, partner, sender));
            }
        }
        for partner in 0..self.0.partners {
            let receiver = self.receivers(step, partner).image(rank);
            if receiver != rank {
                program.isend(Rank::new(receiver), Tag::new(partner as i32), self.bytes(step, partner, rank));
            }
        }
        program.op(Op::WaitAll);
        program.compute(self.0.flops);
    }
}

impl Generator for RandomSparse {
    fn ranks(&self) -> u32 {
        self.0.ranks
    }

    fn rank(&self, rank: Rank) -> Vec<Item> {
        assert!(rank.get() < self.0.ranks, "rank {rank} of {}", self.0.ranks);
        ProgramBuilder::build(|program| {
            program.repeat(self.0.rounds, |body| {
                (0..self.0.steps).for_each(|step| self.write_step(body, rank.get(), step));
            });
        })
    }
}
