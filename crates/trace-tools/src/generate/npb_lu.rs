//! NPB LU: wavefront sweeps through a grid (SSOR), the classic fine-grained pipeline.

mod class;
mod exchange;
mod grid;
mod phases;
mod sweep;

pub use class::Class;

use pdes_core::Rank;

use self::grid::ProcessGrid;
use self::phases::PhaseWriter;
use super::error::{GenerateError, check_amount, check_positive};
use super::{Generator, count};
use trace_mmap::Item;

/// Selection of the short computations between the calls of a sweep that are recorded.
///
/// Per plane a rank receives, receives, computes, sends and sends. A computation between two receives or two sends takes about a
/// microsecond, and a tracer may omit it. The acquired traces have 0.2 to 98 % of those between receives and at most 3 % of those
/// between sends.
///
/// | | actions per plane of an inner rank | class E on 16,384 ranks |
/// |---|---|---|
/// | `Receives` | 6 | 59.9e9 |
/// | `ReceivesAndSends` | 7 | 69.8e9, the published size |
/// | `EveryGap` | 8 | 79.8e9 |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recording {
    /// The one between two receives, as in the acquired class A trace.
    Receives,
    /// Also the one between two sends.
    #[default]
    ReceivesAndSends,
    /// Also the one between the last send and the next receive. This reproduces the action counts published for classes B and C
    /// on 8 to 128 ranks within 0.3 %, except for class B on 8 ranks, which `ReceivesAndSends` reproduces.
    EveryGap,
}

/// Parameters of [`NpbLu`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NpbLuParameters {
    /// Problem class: the grid size.
    pub class: Class,
    /// Number of ranks. Legal are those with a process grid of r rows and c columns, c <= r <= 2 c, and at least 3 points per side
    /// and process.
    pub ranks: u32,
    /// Number of time steps, 1 or more; default: that of the class. A warm-up step always precedes them.
    pub steps: u32,
    /// Computation of a time step per inner point of the grid \[flop\]; default: such that all ranks together compute
    /// [`Class::flops_per_step`].
    pub flops_per_point: f64,
    /// Computation of copying a value into or out of a message \[flop\]; default: 8, which has the same ratio to a step as in the
    /// acquired class A trace. NPB does not count it.
    pub flops_per_value: f64,
    /// Selection of the short computations that are recorded.
    pub recording: Recording,
}

impl NpbLuParameters {
    /// Returns the defaults.
    pub fn new(class: Class, ranks: u32) -> Self {
        let inner = f64::from(class.points() - 2);
        Self {
            class,
            ranks,
            steps: class.steps(),
            flops_per_point: class.flops_per_step() / (inner * inner * inner),
            flops_per_value: 8.0,
            recording: Recording::default(),
        }
    }
}

/// The program of NPB 3.4 LU, MPI version.
///
/// The sequence of MPI calls of each rank is exactly that of the acquired traces, from the broadcasts of the parameters to the
/// surface integrals. Computation is a model: a cost per point and time step, distributed over the phases in the proportions of
/// the acquired class A trace (lower sweep 38 %, upper sweep 37 %, update 4 %, right-hand side 21 %) and evenly over the planes of
/// a sweep, plus the copying of messages.
///
/// A program is generated in O(1): the time steps and the planes are loops.
///
/// ```
/// use pdes_core::Rank;
/// use trace_mmap::Item;
/// use trace_tools::generate::{Class, Generator, NpbLu, NpbLuParameters};
/// let lu = NpbLu::new(NpbLuParameters::new(Class::E, 16_384))?;
/// assert_eq!(lu.actions(), 69_762_913_207);
/// let program = lu.rank(Rank::new(4000));
/// assert!(program.len() < 200);
/// assert!(Item::count_all(&program).is_some_and(|actions| actions > 4_000_000));
/// # Ok::<(), trace_tools::generate::GenerateError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct NpbLu {
    parameters: NpbLuParameters,
    grid: ProcessGrid,
}

impl NpbLu {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`GenerateError::RankCount`] with the nearest legal counts; [`GenerateError::Zero`] if there are no steps;
    /// [`GenerateError::Amount`] if a cost is negative or not finite.
    pub fn new(parameters: NpbLuParameters) -> Result<Self, GenerateError> {
        let NpbLuParameters { class, ranks, steps, .. } = parameters;
        check_positive("steps", steps.into())?;
        check_amount("flops_per_point", parameters.flops_per_point)?;
        check_amount("flops_per_value", parameters.flops_per_value)?;
        match ProcessGrid::new(class, ranks) {
            Some(grid) => Ok(Self { parameters, grid }),
            None => {
                let (below, above) = ProcessGrid::nearest(class, ranks);
                Err(GenerateError::RankCount { class, ranks, below, above })
            }
        }
    }
}

impl Generator for NpbLu {
    fn ranks(&self) -> u32 {
        self.parameters.ranks
    }

    fn rank(&self, rank: Rank) -> Vec<Item> {
        assert!(rank.get() < self.ranks(), "rank {rank} of {}", self.ranks());
        let domain = self.grid.subdomain(self.parameters.class, rank);
        PhaseWriter { parameters: &self.parameters, domain }.write()
    }

    /// Counts the actions of all ranks.
    ///
    /// The number of a rank depends only on which neighbours it has, so that nine ranks represent all. O(1).
    fn actions(&self) -> u64 {
        let ProcessGrid { rows, columns } = self.grid;
        let mut sum = 0_u64;
        for (row, alike_rows) in representatives(rows) {
            for (column, alike_columns) in representatives(columns) {
                let actions = count(&self.rank(Rank::new(row + column * rows)));
                let alike = u64::from(alike_rows) * u64::from(alike_columns);
                sum = sum.saturating_add(alike.saturating_mul(actions));
            }
        }
        sum
    }
}

/// Returns the first, an inner and the last position of a row or column, each with the number of positions that it represents.
fn representatives(length: u32) -> impl Iterator<Item = (u32, u32)> {
    let (inner, last) = (length.saturating_sub(2), u32::from(length > 1));
    [(0, 1), (1, inner), (length - 1, last)].into_iter().filter(|(_, alike)| *alike > 0)
}
