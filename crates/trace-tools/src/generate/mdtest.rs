//! Many files that are opened and closed, as mdtest does: a load of the metadata server.

use pdes_core::Rank;
use trace_mmap::{FileCall, FileHints, FileName, Item};

use super::error::{GenerateError, check_min_ranks};
use super::program::{File, ProgramBuilder};
use super::{Generator, count_uniform};

/// Parameters of [`Mdtest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MdtestParameters {
    /// Number of ranks, 1 or more; default: 16.
    pub ranks: u32,
    /// Number of files of a rank; default: 100.
    pub files: u32,
    /// Begin of the names of files; default: `/scratch/mdtest`.
    pub file: FileName,
    /// Number of times that all files are opened and closed; default: 1.
    pub repetitions: u64,
}

impl Default for MdtestParameters {
    fn default() -> Self {
        let file = FileName::new("/scratch/mdtest").expect("this is a name");
        Self { ranks: 16, files: 100, file, repetitions: 1 }
    }
}

/// Each rank opens and closes files of its own, one after the other; a barrier begins each repetition.
///
/// ```
/// use trace_tools::generate::{Generator, Mdtest, MdtestParameters};
/// let program = Mdtest::new(MdtestParameters { ranks: 4, ..MdtestParameters::default() })?;
/// assert_eq!(program.actions(), 4 * (3 + 1 + 100 * 2));
/// # Ok::<(), trace_tools::generate::GenerateError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Mdtest(MdtestParameters);

impl Mdtest {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`GenerateError::TooFewRanks`].
    pub fn new(parameters: MdtestParameters) -> Result<Self, GenerateError> {
        check_min_ranks("mdtest", parameters.ranks, 1)?;
        Ok(Self(parameters))
    }
}

impl Generator for Mdtest {
    fn ranks(&self) -> u32 {
        self.0.ranks
    }

    fn rank(&self, rank: Rank) -> Vec<Item> {
        let MdtestParameters { ranks, files, ref file, repetitions } = self.0;
        assert!(rank.get() < ranks, "rank {rank} of {ranks}");
        ProgramBuilder::build(|program| {
            program.own_communicator(rank);
            program.repeat(repetitions, |body| {
                body.barrier();
                for number in 0..files {
                    let file = File::numbered(file, rank, number);
                    body.file(&file, FileCall::Open { mode: 0, hints: FileHints::default() });
                    body.file(&file, FileCall::Close);
                }
            });
        })
    }

    fn actions(&self) -> u64 {
        count_uniform(self)
    }
}
