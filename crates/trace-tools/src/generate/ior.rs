//! IOR: accesses to files of one pattern, as the benchmark makes them.

use pdes_core::{Bytes, Rank};
use trace_mmap::table::MAX_OFFSET;
use trace_mmap::{FileCall, FileDirection, FileName, Item};

use super::error::{GenerateError, check_at_most, check_min_ranks, check_positive};
use super::program::{File, ProgramBuilder};
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
    /// Amount of an access, `-t` \[B\]; divides the block; default: 256 KiB.
    pub transfer: Bytes,
    /// The file, `-o`; default: `/scratch/ior`.
    pub file: FileName,
    /// Each rank has a file of its own, `-F`; default: all share one.
    pub file_per_rank: bool,
    /// Accesses are collective, `-c`; default: each rank for itself.
    pub collective: bool,
    /// The file is written, `-w`; default: true.
    pub write: bool,
    /// The file is read, `-r`; default: true.
    pub read: bool,
    /// Distance of the rank whose data a rank reads, as with `-C -Q`; default: 0, its own.
    pub reorder: u32,
    /// Written data are on the devices before the file is closed, `-e`; default: false.
    pub sync: bool,
    /// Number of repetitions, `-i`; default: 1.
    pub repetitions: u64,
}

impl Default for IorParameters {
    fn default() -> Self {
        Self {
            ranks: 16,
            segments: 1,
            block: Bytes::new(1 << 20),
            transfer: Bytes::new(1 << 18),
            file: FileName::new("/scratch/ior").expect("this is a name"),
            file_per_rank: false,
            collective: false,
            write: true,
            read: true,
            reorder: 0,
            sync: false,
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
        let IorParameters { ranks, segments, block, transfer, .. } = parameters;
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

    /// Writes one phase: all accesses in a direction, to the data of a rank.
    fn phase(&self, body: &mut ProgramBuilder, file: &File, direction: FileDirection, of: Rank) {
        let IorParameters { ranks, segments, block, transfer, file_per_rank, collective, sync, .. } = self.0;
        body.barrier();
        body.file(file, FileCall::Open { mode: 0 });
        for segment in 0..segments {
            let blocks =
                if file_per_rank { segment } else { segment * u64::from(ranks) + u64::from(of.get()) };
            body.file(file, FileCall::Seek { offset: blocks * block.get() });
            body.repeat(block.get() / transfer.get(), |body| {
                let (is_collective, offset, bytes) = (collective, None, transfer);
                body.file(file, FileCall::Access { is_collective, direction, offset, bytes });
            });
        }
        if sync && direction == FileDirection::Write {
            body.file(file, FileCall::Sync);
        }
        body.file(file, FileCall::Close);
    }
}

impl Generator for Ior {
    fn ranks(&self) -> u32 {
        self.0.ranks
    }

    fn rank(&self, rank: Rank) -> Vec<Item> {
        let IorParameters { ranks, ref file, file_per_rank, write, read, reorder, repetitions, .. } = self.0;
        assert!(rank.get() < ranks, "rank {rank} of {ranks}");
        let of = ((u64::from(rank.get()) + u64::from(reorder)) % u64::from(ranks)) as u32;
        ProgramBuilder::build(|program| {
            let file_of =
                |of: u32| if file_per_rank { File::of_rank(file, Rank::new(of)) } else { File::shared(file) };
            let (written, source) = (file_of(rank.get()), file_of(of));
            if file_per_rank {
                program.own_communicator(rank);
            }
            program.repeat(repetitions, |body| {
                if write {
                    self.phase(body, &written, FileDirection::Write, rank);
                }
                if read {
                    self.phase(body, &source, FileDirection::Read, Rank::new(of));
                }
            });
        })
    }

    fn actions(&self) -> u64 {
        count_uniform(self)
    }
}
