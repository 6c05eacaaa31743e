//! A three-dimensional FFT with slab decomposition: every transform transposes the grid by an alltoall.

use pdes_core::Rank;

use super::error::{GenerateError, check_amount, check_at_most, check_min_ranks, check_positive};
use super::program::ProgramBuilder;
use super::{Generator, count_uniform};
use trace_mmap::{Collective, Datatype, Item, Op};

/// Doubles in a complex number.
const DOUBLES: u64 = 2;
/// Largest number of grid points per dimension: keeps the size of a block within 2^48 bytes.
const MAX_POINTS: u64 = 1 << 20;

/// Parameters of [`AlltoallFft`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AlltoallFftParameters {
    /// Number of ranks; divides the first and the last extent of the grid. Default: 16.
    pub ranks: u32,
    /// Grid points, of 16 B each, along each dimension, at most 2^20. The last dimension is distributed before the transposition, the
    /// first one after it. Default: 256 x 256 x 128.
    pub grid: [u64; 3],
    /// Number of transforms; default: 20.
    pub steps: u64,
    /// Computation per point and level of a transform along one dimension \[flop\]; default: 5, the usual count. A transform has
    /// log2(extent) levels, rounded up.
    pub flops_per_level: f64,
    /// Computation per point and step outside the transform \[flop\]; default: 6, a complex product.
    pub flops_per_point: f64,
}

impl Default for AlltoallFftParameters {
    fn default() -> Self {
        Self { ranks: 16, grid: [256, 256, 128], steps: 20, flops_per_level: 5.0, flops_per_point: 6.0 }
    }
}

/// In each step a rank transforms its slab along two dimensions, transposes with all others, and transforms along the third.
///
/// ```
/// use trace_tools::generate::{AlltoallFft, AlltoallFftParameters, GenerateError};
/// let on = |ranks| AlltoallFft::new(AlltoallFftParameters { ranks, ..AlltoallFftParameters::default() });
/// assert!(on(64).is_ok());
/// let nearest = GenerateError::UnequalSlabs { ranks: 48, extent: 128, below: Some(32), above: Some(64) };
/// assert_eq!(on(48).err(), Some(nearest));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AlltoallFft(AlltoallFftParameters);

impl AlltoallFft {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`GenerateError::TooFewRanks`], [`GenerateError::Zero`], [`GenerateError::TooLarge`], [`GenerateError::Amount`], and
    /// [`GenerateError::UnequalSlabs`] with the nearest legal counts.
    pub fn new(parameters: AlltoallFftParameters) -> Result<Self, GenerateError> {
        let AlltoallFftParameters { ranks, grid: grid @ [first, _, last], .. } = parameters;
        check_min_ranks("a transposition", ranks, 1)?;
        for extent in grid {
            check_positive("grid", extent)?;
            check_at_most("grid", extent, MAX_POINTS)?;
        }
        check_amount("flops_per_level", parameters.flops_per_level)?;
        check_amount("flops_per_point", parameters.flops_per_point)?;
        if first.is_multiple_of(ranks.into()) && last.is_multiple_of(ranks.into()) {
            return Ok(Self(parameters));
        }
        let extent = common_divisor(first, last);
        let divides = |count: &u32| extent.is_multiple_of((*count).into());
        let below = (1..=ranks.min(extent as u32)).rev().find(divides);
        let above = (ranks..=extent as u32).find(divides);
        Err(GenerateError::UnequalSlabs { ranks, extent, below, above })
    }

    /// Returns the computation of one rank for the transform along a dimension \[flop\].
    fn transform(&self, dimension: usize) -> f64 {
        let extent = self.0.grid[dimension];
        self.0.flops_per_level * f64::from(extent.next_power_of_two().ilog2()) * self.points()
    }

    /// Returns the number of points of one rank.
    fn points(&self) -> f64 {
        self.0.grid.iter().map(|extent| *extent as f64).product::<f64>() / f64::from(self.0.ranks)
    }

    /// Returns the number of doubles that a rank sends to each other rank.
    fn block(&self) -> u64 {
        let ([first, middle, last], ranks) = (self.0.grid, u64::from(self.0.ranks));
        DOUBLES * (first / ranks) * middle * (last / ranks)
    }
}

/// Returns the greatest common divisor (Euclid).
fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

impl Generator for AlltoallFft {
    fn ranks(&self) -> u32 {
        self.0.ranks
    }

    fn rank(&self, rank: Rank) -> Vec<Item> {
        assert!(rank.get() < self.0.ranks, "rank {rank} of {}", self.0.ranks);
        let (count, datatype) = (self.block(), Datatype::DOUBLE);
        let transpose = Collective::Alltoall {
            send_count: count,
            recv_count: count,
            send_type: datatype,
            recv_type: datatype,
        };
        ProgramBuilder::build(|program| {
            program.repeat(self.0.steps, |body| {
                body.compute(self.0.flops_per_point * self.points() + self.transform(0) + self.transform(1));
                body.op(Op::Collective(transpose));
                body.compute(self.transform(2));
            });
        })
    }

    fn actions(&self) -> u64 {
        count_uniform(self)
    }
}
