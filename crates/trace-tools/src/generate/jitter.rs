//! Random noise on the computation of a generated program.

use pdes_core::Rank;

use super::error::GenerateError;
use super::random::fraction;
use trace_mmap::{Item, Op, flatten};

/// Largest number of actions of a rank whose loops are unrolled.
const MAX_UNROLLED: u64 = 1 << 23;

/// Scope of a random factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterScope {
    /// One factor per rank: load imbalance. Loops are kept.
    Rank,
    /// One factor per computation: noise. Loops are unrolled, because iterations differ; at most 2^23 actions per rank.
    Action,
}

/// Multiplies amounts of computation by random factors, uniform between `1 - spread` and `1 + spread`.
///
/// The factor depends only on the seed, the rank and, with [`JitterScope::Action`], the index of the computation within the rank, so
/// that ranks can be generated in any order. Amounts are rounded to whole flops.
///
/// ```
/// use pdes_core::Rank;
/// use trace_tools::generate::{Generator, Jitter, JitterScope, Ring, RingParameters};
/// let ring = Ring::new(RingParameters { rounds: 10, ..RingParameters::default() })?;
/// let jitter = Jitter::new(42, 0.1, JitterScope::Action)?;
/// let noisy = jitter.apply(Rank::new(0), ring.rank(Rank::new(0)))?;
/// assert_eq!(noisy, jitter.apply(Rank::new(0), ring.rank(Rank::new(0)))?);
/// assert_ne!(noisy, jitter.apply(Rank::new(1), ring.rank(Rank::new(0)))?);
/// # Ok::<(), trace_tools::generate::GenerateError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    seed: u64,
    spread: f64,
    scope: JitterScope,
}

impl Jitter {
    /// Makes a jitter.
    ///
    /// # Errors
    /// [`GenerateError::Spread`] if the spread is not between 0 and 1.
    pub fn new(seed: u64, spread: f64, scope: JitterScope) -> Result<Self, GenerateError> {
        if (0.0..=1.0).contains(&spread) {
            Ok(Self { seed, spread, scope })
        } else {
            Err(GenerateError::Spread { spread })
        }
    }

    /// Returns the program with its amounts of computation multiplied.
    ///
    /// # Errors
    /// [`GenerateError::TooManyToUnroll`] if the scope is [`JitterScope::Action`] and the program has more than 2^23 actions.
    pub fn apply(&self, rank: Rank, mut program: Vec<Item>) -> Result<Vec<Item>, GenerateError> {
        match self.scope {
            JitterScope::Rank => scale(&mut program, self.factor(&[rank.get().into()])),
            JitterScope::Action => program = self.unroll(rank, &program)?,
        }
        Ok(program)
    }

    fn factor(&self, position: &[u64]) -> f64 {
        1.0 + self.spread * (2.0 * fraction(self.seed, position) - 1.0)
    }

    fn unroll(&self, rank: Rank, program: &[Item]) -> Result<Vec<Item>, GenerateError> {
        let actions = Item::count_all(program).unwrap_or(u64::MAX);
        if actions > MAX_UNROLLED {
            return Err(GenerateError::TooManyToUnroll { rank: rank.get(), actions, most: MAX_UNROLLED });
        }
        let mut computations = 0;
        let noisy = flatten(program).map(|op| match op {
            Op::Compute { flops } => {
                let factor = self.factor(&[rank.get().into(), computations]);
                computations += 1;
                Item::Op(Op::Compute { flops: (flops * factor).round() })
            }
            other => Item::Op(other.clone()),
        });
        Ok(noisy.collect())
    }
}

/// Multiplies every amount of computation.
fn scale(items: &mut [Item], factor: f64) {
    for item in items {
        match item {
            Item::Op(Op::Compute { flops }) => *flops = (*flops * factor).round(),
            Item::Op(_) => {}
            Item::Loop { body, .. } => scale(body, factor),
        }
    }
}
