//! A loop of reductions: computation that ends in an allreduce, as in iterative solvers.

use pdes_core::Rank;

use super::error::{GenerateError, check_amount, check_at_most, check_min_ranks};
use super::program::ProgramBuilder;
use super::{Generator, count_uniform};
use trace_mmap::Item;

/// Parameters of [`AllreduceLoop`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AllreduceLoopParameters {
    /// Number of ranks, 1 or more; default: 16.
    pub ranks: u32,
    /// Number of iterations; default: 1000.
    pub iterations: u64,
    /// Number of doubles in the reduction, at most 2^45; default: 1.
    pub count: u64,
    /// Computation of a rank per iteration \[flop\]; default: 1e6.
    pub flops: f64,
    /// Computation of a reduction on each rank \[flop\]; default: 0.
    pub reduction_flops: f64,
}

impl Default for AllreduceLoopParameters {
    fn default() -> Self {
        Self { ranks: 16, iterations: 1000, count: 1, flops: 1e6, reduction_flops: 0.0 }
    }
}

/// In each iteration a rank computes and takes part in an allreduce.
#[derive(Clone, Copy, Debug)]
pub struct AllreduceLoop(AllreduceLoopParameters);

impl AllreduceLoop {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`GenerateError::TooFewRanks`], [`GenerateError::Amount`], [`GenerateError::TooLarge`].
    pub fn new(parameters: AllreduceLoopParameters) -> Result<Self, GenerateError> {
        check_min_ranks("a loop of reductions", parameters.ranks, 1)?;
        check_at_most("count", parameters.count, 1 << 45)?;
        check_amount("flops", parameters.flops)?;
        check_amount("reduction_flops", parameters.reduction_flops)?;
        Ok(Self(parameters))
    }
}

impl Generator for AllreduceLoop {
    fn ranks(&self) -> u32 {
        self.0.ranks
    }

    fn rank(&self, rank: Rank) -> Vec<Item> {
        let AllreduceLoopParameters { ranks, iterations, count, flops, reduction_flops } = self.0;
        assert!(rank.get() < ranks, "rank {rank} of {ranks}");
        ProgramBuilder::build(|program| {
            program.repeat(iterations, |body| {
                body.compute(flops);
                body.allreduce(count, reduction_flops);
            });
        })
    }

    fn actions(&self) -> u64 {
        count_uniform(self)
    }
}
