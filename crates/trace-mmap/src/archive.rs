//! Archive format: a trace in a binary form that is memory-mapped and read without parsing.

mod amounts;
mod archived_rank;
mod check;
mod compile;
mod convert;
mod cut;
mod damage;
mod directory;
mod encode;
mod encode_times;
mod error;
mod finish;
mod folded_actions;
mod folding_cost;
mod info;
mod insert_cursor;
mod iteration_boundaries;
mod layout;
mod map;
mod measured_times;
mod messages;
mod open;
mod operations;
mod output;
mod program_walk;
mod programs;
mod rows;
mod shard;
mod sporadic;
mod tables;
mod tally;
mod unmodelled;
mod unroll;
mod walk_position;
mod writer;

pub use amounts::{AmountChange, AmountSum, sum_amounts, write_with_amounts};
pub(crate) use archived_rank::{ArchivedRank, RankClass};
pub use check::{CheckReport, Finding, check, check_collectives};
pub use compile::StructureError;
pub use convert::{ConvertOptions, Converted, Folding, convert, write_archive};
pub use cut::{Cut, cut};
pub use damage::Damage;
pub(crate) use directory::Directory;
pub use error::{ArchiveError, WriteError};
pub use info::{Info, PairTraffic, Storage};
pub(crate) use insert_cursor::InsertCursor;
pub(crate) use iteration_boundaries::{
    IterationBoundaries, MIN_SHARE_INVERSE, ReadPosition, SkippedIterations,
};
pub use iteration_boundaries::{IterationBoundary, IterationInProgress, LoopRun};
pub use layout::MAGIC;
pub(crate) use layout::MAX_DEPTH;
pub use measured_times::write_with_measured_times;
pub use messages::{MessageChange, SentMessage, write_with_messages};
pub(crate) use open::open;
pub(crate) use program_walk::ProgramWalk;
pub use programs::write_programs;
pub(crate) use shard::Shard;
pub use unmodelled::UnmodelledCalls;
pub(crate) use walk_position::WalkPosition;
pub use writer::{ArchiveWriter, Summary};

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pdes_core::Rank;
use xxhash_rust::xxh3::xxh3_64;

use layout::Header;
use map::MappedFile;
use rows::Overview;
use tables::Tables;

/// The files of an open archive.
#[derive(Debug)]
pub(crate) struct Archive {
    file: Arc<MappedFile>,
    header: Header,
    tables: Tables,
    overview: Overview,
    shards: Vec<Shard>,
    /// First damage that a cursor found in each rank.
    damage: Mutex<BTreeMap<Rank, Damage>>,
}

impl Archive {
    /// Returns the path of the main file.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns a hash that identifies the archive: that of the header, which holds the checksums of all tables, one of which
    /// holds those of all data.
    pub(crate) fn fingerprint(&self) -> u64 {
        xxh3_64(bytemuck::bytes_of(&self.header))
    }

    /// Records the first damage of a rank. If several cursors find damage, any of them may be first.
    pub(crate) fn report_damage(&self, rank: Rank, damage: Damage) {
        let mut found = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        found.entry(rank).or_insert(damage);
    }

    /// Checks that no cursor has found damage and that no opened file has been written to since.
    pub(crate) fn integrity(&self) -> Result<(), ArchiveError> {
        let found = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        match found.first_key_value() {
            Some((&rank, &damage)) => {
                Err(ArchiveError::Damaged { file: self.path().to_path_buf(), rank, damage })
            }
            None => self.check_unchanged(),
        }
    }

    /// Checks that no opened file has been written to since.
    fn check_unchanged(&self) -> Result<(), ArchiveError> {
        let mut files = std::iter::once(&*self.file).chain(self.shards.iter().filter_map(Shard::mapped));
        match files.find(|file| !file.is_unchanged()) {
            Some(file) => Err(ArchiveError::Changed { file: file.path().to_path_buf() }),
            None => Ok(()),
        }
    }

    /// Returns the shards, which hold the data.
    pub(crate) fn shards(&self) -> &[Shard] {
        &self.shards
    }
}
