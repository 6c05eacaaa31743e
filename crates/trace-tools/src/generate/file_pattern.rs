//! Accesses to files that several programs have in common.

use pdes_core::{Bytes, Rank};
use trace_mmap::{FileCall, FileDirection, FileHints, FileName};

use super::program::{File, ProgramBuilder};

/// Accesses of all ranks to a file, or of each rank to one of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePattern {
    /// The file; that of a rank has its number behind the name.
    pub file: FileName,
    /// Each rank has a file of its own; otherwise all share one.
    pub file_per_rank: bool,
    /// Accesses are collective; otherwise each rank accesses the file for itself.
    pub collective: bool,
    /// Amount of an access \[B\]; the last one of a block may be smaller.
    pub transfer: Bytes,
    /// Written data are on the devices before the file is closed.
    pub sync: bool,
}

impl FilePattern {
    /// Returns independent accesses to a file that all ranks share.
    pub(super) fn shared(file: &str, transfer: u64) -> Self {
        let file = FileName::new(file).expect("names of defaults are names");
        Self { file, file_per_rank: false, collective: false, transfer: Bytes::new(transfer), sync: false }
    }

    /// Adds the communicator of the rank alone, if it opens a file of its own.
    pub(super) fn begin(&self, program: &mut ProgramBuilder, rank: Rank) {
        if self.file_per_rank {
            program.own_communicator(rank);
        }
    }

    /// Adds `open`, accesses to blocks of one size from these positions on, for writes `sync` if asked for, and `close`; `by` is the
    /// rank of the program, `of` the one whose file it accesses.
    pub(super) fn access(
        &self,
        body: &mut ProgramBuilder,
        (by, of): (Rank, Rank),
        direction: FileDirection,
        (blocks, size): (impl Iterator<Item = u64>, Bytes),
    ) {
        let file =
            if self.file_per_rank { File::of_rank(&self.file, of, by) } else { File::shared(&self.file) };
        let access = |bytes| FileCall::Access {
            is_collective: self.collective,
            direction,
            offset: None,
            bytes: Bytes::new(bytes),
        };
        let (size, transfer) = (size.get(), self.transfer.get());
        body.file(&file, FileCall::Open { mode: 0, hints: FileHints::default() });
        for offset in blocks {
            body.file(&file, FileCall::Seek { offset });
            body.repeat(size / transfer, |body| body.file(&file, access(transfer)));
            if !size.is_multiple_of(transfer) {
                body.file(&file, access(size % transfer));
            }
        }
        if self.sync && direction == FileDirection::Write {
            body.file(&file, FileCall::Sync);
        }
        body.file(&file, FileCall::Close);
    }
}
