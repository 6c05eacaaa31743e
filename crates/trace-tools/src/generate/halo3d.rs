//! Halo exchange of a seven-point stencil on a three-dimensional grid.

use pdes_core::{Bytes, Rank};

use super::Generator;
use super::error::{GenerateError, check_amount, check_at_most, check_positive};
use super::program::ProgramBuilder;
use trace_mmap::{Item, Op, Tag};

/// Largest number of cells per dimension: keeps a face within 2^48 bytes.
const MAX_CELLS: u64 = 1 << 20;
/// Largest size of a cell of a face \[B\].
const MAX_CELL_BYTES: u64 = 1 << 8;

/// Parameters of [`Halo3d`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Halo3dParameters {
    /// Cells of the whole grid along each dimension, at most 2^20; default: 256 x 256 x 256.
    pub cells: [u64; 3],
    /// Processes along each dimension, no more than cells; the first dimension varies fastest with the rank. If they do not
    /// divide the cells evenly, the first processes have one cell more. Default: 2 x 2 x 2.
    pub processes: [u32; 3],
    /// Periodic boundaries: the last process of a dimension is a neighbour of the first one; default: no. A dimension of one
    /// process wraps around without messages.
    pub periodic: bool,
    /// Number of iterations; default: 1000.
    pub iterations: u64,
    /// Size of a message per cell of the face \[B\], at most 256; default: 8.
    pub cell_bytes: Bytes,
    /// Computation per cell and iteration \[flop\]; default: 8.
    pub flops_per_cell: f64,
}

impl Default for Halo3dParameters {
    fn default() -> Self {
        Self {
            cells: [256; 3],
            processes: [2; 3],
            periodic: false,
            iterations: 1000,
            cell_bytes: Bytes::new(8),
            flops_per_cell: 8.0,
        }
    }
}

/// In each iteration a rank exchanges its faces with up to six neighbours (irecv, isend, waitall) and computes its cells.
///
/// ```
/// use pdes_core::Rank;
/// use trace_mmap::Item;
/// use trace_tools::generate::{Generator, Halo3d, Halo3dParameters};
/// let halo = Halo3d::new(Halo3dParameters { processes: [3; 3], iterations: 10, ..Halo3dParameters::default() })?;
/// let centre = halo.rank(Rank::new(13));
/// assert_eq!(Item::count_all(&centre), Some(1 + 10 * (6 + 6 + 2) + 1));
/// # Ok::<(), trace_tools::generate::GenerateError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Halo3d {
    parameters: Halo3dParameters,
    ranks: u32,
}

impl Halo3d {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`GenerateError::Zero`], [`GenerateError::TooLarge`], [`GenerateError::EmptySubdomain`],
    /// [`GenerateError::TooManyRanks`], [`GenerateError::Amount`].
    pub fn new(parameters: Halo3dParameters) -> Result<Self, GenerateError> {
        let Halo3dParameters { cells, processes, .. } = parameters;
        for (dimension, (cells, processes)) in cells.into_iter().zip(processes).enumerate() {
            check_positive("processes", processes.into())?;
            check_at_most("cells", cells, MAX_CELLS)?;
            if cells < u64::from(processes) {
                return Err(GenerateError::EmptySubdomain { dimension, cells, processes });
            }
        }
        check_at_most("cell_bytes", parameters.cell_bytes.get(), MAX_CELL_BYTES)?;
        check_amount("flops_per_cell", parameters.flops_per_cell)?;
        let ranks = processes.into_iter().try_fold(1_u32, u32::checked_mul);
        ranks.map(|ranks| Self { parameters, ranks }).ok_or(GenerateError::TooManyRanks { grid: processes })
    }

    /// Returns the position of a rank in the process grid.
    fn position(&self, rank: Rank) -> [u32; 3] {
        let [first, second, _] = self.parameters.processes;
        [rank.get() % first, rank.get() / first % second, rank.get() / first / second]
    }

    /// Returns the rank at a position.
    fn rank_at(&self, [x, y, z]: [u32; 3]) -> Rank {
        let [first, second, _] = self.parameters.processes;
        Rank::new((z * second + y) * first + x)
    }

    /// Returns the number of cells of a process along each dimension.
    fn extents(&self, position: [u32; 3]) -> [u64; 3] {
        std::array::from_fn(|dimension| {
            let cells = self.parameters.cells[dimension];
            let processes = u64::from(self.parameters.processes[dimension]);
            cells / processes + u64::from(u64::from(position[dimension]) < cells % processes)
        })
    }

    /// Returns the neighbours along a dimension: the one before and the one after.
    fn neighbours(&self, position: [u32; 3], dimension: usize) -> [Option<Rank>; 2] {
        let (here, processes) = (position[dimension], self.parameters.processes[dimension]);
        let wrap = self.parameters.periodic && processes > 1;
        let before = here.checked_sub(1).or(wrap.then_some(processes - 1));
        let after = Some(here + 1).filter(|after| *after < processes).or(wrap.then_some(0));
        [before, after].map(|there| {
            let mut position = position;
            position[dimension] = there?;
            Some(self.rank_at(position))
        })
    }

    /// Returns the faces of a process that have a neighbour.
    fn faces(&self, position: [u32; 3]) -> Vec<Face> {
        let extents = self.extents(position);
        let mut faces = Vec::with_capacity(6);
        for dimension in 0..3 {
            let area = extents[(dimension + 1) % 3] * extents[(dimension + 2) % 3];
            let bytes = Bytes::new(area * self.parameters.cell_bytes.get());
            let [before, after] = self.neighbours(position, dimension);
            let [down, up] = [0, 1].map(|side| Tag::new(2 * dimension as i32 + side));
            faces.extend(before.map(|peer| Face { peer, bytes, send: down, receive: up }));
            faces.extend(after.map(|peer| Face { peer, bytes, send: up, receive: down }));
        }
        faces
    }
}

/// A face between a process and a neighbour. The tag of a message is its direction.
#[derive(Clone, Copy, Debug)]
struct Face {
    peer: Rank,
    bytes: Bytes,
    send: Tag,
    receive: Tag,
}

impl Generator for Halo3d {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn rank(&self, rank: Rank) -> Vec<Item> {
        assert!(rank.get() < self.ranks, "rank {rank} of {}", self.ranks);
        let position = self.position(rank);
        let faces = self.faces(position);
        let cells: f64 = self.extents(position).iter().map(|extent| *extent as f64).product();
        ProgramBuilder::build(|program| {
            program.repeat(self.parameters.iterations, |body| {
                faces.iter().for_each(|face| body.irecv(face.peer, face.receive, face.bytes));
                faces.iter().for_each(|face| body.isend(face.peer, face.send, face.bytes));
                if !faces.is_empty() {
                    body.op(Op::WaitAll);
                }
                body.compute(cells * self.parameters.flops_per_cell);
            });
        })
    }
}
