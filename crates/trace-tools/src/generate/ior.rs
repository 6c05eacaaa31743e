//! IOR: accesses to files of one pattern, as the benchmark makes them.

use pdes_core::{Bytes, Rank};
use trace_mmap::table::MAX_OFFSET;
use trace_mmap::{FileDirection, Item};

use super::error::{GenerateError, check_at_most, check_min_ranks, check_positive};
use super::file_pattern::FilePattern;
use super::program::ProgramBuilder;
use super::{Generator, count_uniform};

/// Parameters of [`Ior`], with the benchmark's letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IorParameters {
    /// Number of ranks, 1 or more; default: 16.
    pub ranks: u32,
    /// Number of segments, `-s`; default: 1.
    pub segments: u64,
    /// Contiguous amount of a rank in a segment, `-b` \[B\]; default: 1 MiB.
    pub block: Bytes,
    /// The file and the accesses, `-o`, `-t` (a divisor of the block), `-F`, `-c`, `-e`; default: 256 KiB of `/scratch/ior`, which
    /// all ranks share.
    pub access: FilePattern,
    /// The file is written, `-w`; default: true.
    pub write: bool,
    /// The file is read, `-r`; default: true.
    pub read: bool,
    /// Distance of the rank whose data a rank reads, as with `-C -Q`; default: 0, its own.
    pub reorder: u32,
    /// Number of repetitions, `-i`; default: 1.
    pub repetitions: u64,
}

impl Default for IorParameters {
    fn default() -> Self {
        Self {
            ranks: 16,
            segments: 1,
            block: Bytes::new(1 << 20),
            access: FilePattern::shared("/scratch/ior", 1 << 18),
            write: true,
            read: true,
            reorder: 0,
            repetitions: 1,
        }
    }
}

/// All ranks write a file in segments, each with a block of each rank, and read it.
///
/// Each phase is a barrier, `open`, the accesses, for writes `sync` if asked for, and `close`. A rank moves its pointer to the begin
/// of each block.
///
/// ```
/// use trace_tools::generate::{Generator, Ior, IorParameters};
/// let ior = Ior::new(IorParameters { ranks: 4, segments: 2, ..IorParameters::default() })?;
/// // Per rank init, finalize, and twice barrier, open, two segments of a seek and four accesses, close.
/// assert_eq!(ior.actions(), 4 * (2 + 2 * (3 + 2 * 5)));
/// # Ok::<(), trace_tools::generate::GenerateError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ior(IorParameters);

impl Ior {
    /// Checks the parameters.
    ///
    /// # Errors
    /// [`GenerateError::TooFewRanks`], [`GenerateError::Zero`], [`GenerateError::Indivisible`], [`GenerateError::TooLarge`].
    pub fn new(parameters: IorParameters) -> Result<Self, GenerateError> {
        let IorParameters { ranks, segments, block, access: FilePattern { transfer, .. }, .. } = parameters;
        check_min_ranks("IOR", ranks, 1)?;
        check_positive("segments", segments)?;
        check_positive("transfer", transfer.get())?;
        check_positive("block", block.get())?;
        if !block.get().is_multiple_of(transfer.get()) {
            let (whole, part) = (block.get(), transfer.get());
            return Err(GenerateError::Indivisible { parameter: "block", whole, part });
        }
        let size = block.get().saturating_mul(segments).saturating_mul(ranks.into());
        check_at_most("the size of the file", size, MAX_OFFSET)?;
        Ok(Self(parameters))
    }

    /// Writes one phase: all accesses of a rank in a direction, to the data of a rank.
    fn phase(&self, body: &mut ProgramBuilder, direction: FileDirection, (by, of): (Rank, Rank)) {
        let IorParameters { ranks, segments, block, ref access, .. } = self.0;
        let begin = |segment| match access.file_per_rank {
            true => segment * block.get(),
            false => (segment * u64::from(ranks) + u64::from(of.get())) * block.get(),
        };
        body.barrier();
        access.access(body, (by, of), direction, ((0..segments).map(begin), block));
    }
}

impl Generator for Ior {
    fn ranks(&self) -> u32 {
        self.0.ranks
    }

    fn rank(&self, rank: Rank) -> Vec<Item> {
        let IorParameters { ranks, ref access, write, read, reorder, repetitions, .. } = self.0;
        assert!(rank.get() < ranks, "rank {rank} of {ranks}");
        let of = Rank::new(((u64::from(rank.get()) + u64::from(reorder)) % u64::from(ranks)) as u32);
        ProgramBuilder::build(|program| {
            access.begin(program, rank);
            program.repeat(repetitions, |body| {
                if write {
                    self.phase(body, FileDirection::Write, (rank, rank));
                }
                if read {
                    self.phase(body, FileDirection::Read, (rank, of));
                }
            });
        })
    }

    fn actions(&self) -> u64 {
        count_uniform(self)
    }
}
