//! A program that saves its state again and again.

use std::iter;

use pdes_core::{Bytes, Rank};
use trace_mmap::table::MAX_OFFSET;
use trace_mmap::{FileDirection, Item};

use super::error::{GenerateError, check_amount, check_at_most, check_min_ranks, check_positive};
use super::file_pattern::FilePattern;
use super::program::ProgramBuilder;
use super::{Generator, count_uniform};

/// Parameters of [`CheckpointRestart`].
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointRestartParameters {
    /// Number of ranks, 1 or more; default: 16.
    pub ranks: u32,
    /// Number of checkpoints; default: 10.
    pub checkpoints: u64,
    /// Number of iterations before each checkpoint; default: 100.
    pub iterations: u64,
    /// Computation of a rank per iteration \[flop\]; default: 1e9.
    pub flops: f64,
    /// State of a rank \[B\]; default: 64 MiB.
    pub bytes: Bytes,
    /// The file and the accesses; default: 16 MiB of `/scratch/checkpoint`, which all ranks share.
    pub access: FilePattern,
    /// The program begins with reading the state; default: false.
    pub restart: bool,
}

impl Default for CheckpointRestartParameters {
    fn default() -> Self {
        Self {
            ranks: 16,
            checkpoints: 10,
            iterations: 100,
            flops: 1e9,
            bytes: Bytes::new(64 << 20),
            access: FilePattern::shared("/scratch/checkpoint", 16 << 20),
            restart: false,
        }
    }
}

/// A loop of iterations, each a computation and an allreduce of a double, with a checkpoint after every so many of them.
///
/// A checkpoint is `open`, the state of each rank behind that of the rank before, `sync` if asked for, and `close`.
///
/// ```
/// use trace_tools::generate::{CheckpointRestart, CheckpointRestartParameters, Generator};
/// let program = CheckpointRestart::new(CheckpointRestartParameters { ranks: 4, ..Default::default() })?;
/// // Per rank init, finalize, and ten times a hundred iterations, open, seek, four accesses, close.
/// assert_eq!(program.actions(), 4 * (2 + 10 * (100 * 2 + 7)));
/// # Ok::<(), trace_tools::generate::GenerateError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CheckpointRestart(CheckpointRestartParameters);

impl CheckpointRestart {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`GenerateError::TooFewRanks`], [`GenerateError::Zero`], [`GenerateError::Amount`], [`GenerateError::TooLarge`].
    pub fn new(parameters: CheckpointRestartParameters) -> Result<Self, GenerateError> {
        let CheckpointRestartParameters { ranks, flops, bytes, access: FilePattern { transfer, .. }, .. } =
            parameters;
        check_min_ranks("a program with checkpoints", ranks, 1)?;
        check_amount("flops", flops)?;
        check_positive("transfer", transfer.get())?;
        check_at_most("the size of the file", bytes.get().saturating_mul(ranks.into()), MAX_OFFSET)?;
        Ok(Self(parameters))
    }

    /// Writes or reads the state.
    fn access(&self, body: &mut ProgramBuilder, direction: FileDirection, rank: Rank) {
        let CheckpointRestartParameters { bytes, ref access, .. } = self.0;
        let begin = if access.file_per_rank { 0 } else { u64::from(rank.get()) * bytes.get() };
        access.access(body, (rank, rank), direction, (iter::once(begin), bytes));
    }
}

impl Generator for CheckpointRestart {
    fn ranks(&self) -> u32 {
        self.0.ranks
    }

    fn rank(&self, rank: Rank) -> Vec<Item> {
        let CheckpointRestartParameters { ranks, checkpoints, iterations, flops, restart, .. } = self.0;
        assert!(rank.get() < ranks, "rank {rank} of {ranks}");
        ProgramBuilder::build(|program| {
            self.0.access.begin(program, rank);
            if restart {
                self.access(program, FileDirection::Read, rank);
            }
            program.repeat(checkpoints, |body| {
                body.repeat(iterations, |body| {
                    body.compute(flops);
                    body.allreduce(1, 0.0);
                });
                self.access(body, FileDirection::Write, rank);
            });
        })
    }

    fn actions(&self) -> u64 {
        count_uniform(self)
    }
}
