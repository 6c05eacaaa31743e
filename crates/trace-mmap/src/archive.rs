//! The archive: a trace in a form that is mapped and read without parsing.

mod body;
mod check;
mod compile;
mod convert;
mod cut;
mod damage;
mod dump;
mod encode;
mod error;
mod finish;
mod gaps;
mod info;
mod layout;
mod map;
mod open;
mod output;
mod shard;
mod tables;
mod tally;
mod unroll;
mod walk;
mod writer;

pub(crate) use body::ArchivedRank;
pub use check::{CheckReport, Finding, check};
pub use compile::StructureError;
pub use convert::{ConvertOptions, Converted, convert};
pub use cut::{Cut, cut};
pub use damage::Damage;
pub use dump::{dump, write_text};
pub use error::{ArchiveError, WriteError};
pub use info::{Info, Pair, Storage};
pub(crate) use layout::{MAGIC, MAX_DEPTH};
pub(crate) use open::open;
pub(crate) use shard::Shard;
pub(crate) use walk::Walk;
pub use writer::{ArchiveWriter, Summary};

use std::path::Path;
use std::sync::Arc;

use layout::{Header, Section};
use map::MappedFile;
use tables::Tables;

/// An open archive: its files.
#[derive(Debug)]
pub(crate) struct Archive {
    file: Arc<MappedFile>,
    header: Header,
    shards: Vec<Shard>,
}

impl Archive {
    /// Returns the name of its main file.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns entries that were within their section when the archive was opened.
    fn rows<const WORDS: usize>(
        &self,
        section: Section,
        (first, count): (u64, u64),
    ) -> impl Iterator<Item = [u64; WORDS]> + '_ {
        let tables = Tables::opened(&self.file, &self.header);
        tables.rows(section, first, count, (section, first)).expect("the entries were there at the open")
    }

    /// Checks that no file that was opened was written to since.
    pub(crate) fn check_unchanged(&self) -> Result<(), ArchiveError> {
        let mut files = std::iter::once(&*self.file).chain(self.shards.iter().filter_map(Shard::mapped));
        match files.find(|file| !file.is_unchanged()) {
            Some(file) => Err(ArchiveError::Changed { file: file.path().to_path_buf() }),
            None => Ok(()),
        }
    }

    /// Returns the data.
    pub(crate) fn shards(&self) -> &[Shard] {
        &self.shards
    }
}
