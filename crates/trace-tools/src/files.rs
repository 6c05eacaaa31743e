//! Traces in files: one for each rank, or one that has the actions of all ranks; each is text or a shard.

mod layout;

pub use layout::trace_files;
pub(crate) use layout::{detect, rank_family, rank_of, same_family};

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdes_core::Rank;
use trace_mmap::{Location, MAX_RANKS, RankBuilders, TraceError, TraceSource};
use xxhash_rust::xxh3::Xxh3;

use crate::error::InputError;
use crate::shard::Shard;
use crate::text::{self, Lines, Stream};

/// Displayed name of a text that is not in a file.
const TEXT_NAME: &str = "<text>";

/// The files of a trace.
#[derive(Debug)]
struct Files {
    /// The directory, list or file.
    path: PathBuf,
    contents: Contents,
    /// If actions are read that processes had begun and not completed: whether the last action of each rank is one.
    begun: Option<Arc<[AtomicBool]>>,
}

#[derive(Debug)]
enum Contents {
    /// A file per rank.
    PerRank(Vec<PathBuf>),
    /// A file with the actions of all ranks.
    Merged(PathBuf),
    /// A merged text in memory.
    Text(String),
}

/// An opened file.
enum Opened<'a> {
    Text(Lines<'a>),
    Shard(Shard),
}

/// Makes the source of a file with the actions of all ranks.
pub(crate) fn merged(path: &Path) -> Result<Box<dyn TraceSource>, TraceError> {
    let contents = Contents::Merged(path.to_path_buf());
    Ok(Box::new(Files { path: path.to_path_buf(), contents, begun: None }))
}

/// Makes the source of the files of ranks, in the order of ranks.
pub(crate) fn per_rank(path: &Path, files: Vec<PathBuf>) -> Box<dyn TraceSource> {
    Box::new(Files { path: path.to_path_buf(), contents: Contents::PerRank(files), begun: None })
}

/// Makes the same source with the actions that processes had begun and not completed. Also returns whether the last action of each
/// rank is one, which is known once the source was read.
pub(crate) fn per_rank_with_begun(
    path: &Path,
    files: Vec<PathBuf>,
) -> (Box<dyn TraceSource>, Arc<[AtomicBool]>) {
    let begun: Arc<[AtomicBool]> = files.iter().map(|_| AtomicBool::new(false)).collect();
    let contents = Contents::PerRank(files);
    (Box::new(Files { path: path.to_path_buf(), contents, begun: Some(Arc::clone(&begun)) }), begun)
}

/// Makes the source of a merged text.
pub(crate) fn text(text: &str) -> Box<dyn TraceSource> {
    Box::new(Files { path: TEXT_NAME.into(), contents: Contents::Text(text.to_owned()), begun: None })
}

impl Files {
    /// Opens the file with the actions of a rank.
    ///
    /// # Panics
    /// Panics if there is a file per rank, but none for this one.
    fn open(&self, rank: Rank) -> Result<Opened<'_>, TraceError> {
        let file = match &self.contents {
            Contents::PerRank(files) => &files[rank.index()],
            Contents::Merged(file) => file,
            Contents::Text(text) => {
                return Ok(Opened::Text(Lines::new(Stream::from_text(&self.path, text))?));
            }
        };
        Ok(match Shard::open(file)? {
            Some(shard) => Opened::Shard(shard),
            None => Opened::Text(Lines::open(file)?),
        })
    }
}

impl TraceSource for Files {
    fn path(&self) -> &Path {
        &self.path
    }

    fn ranks(&self) -> Result<u64, TraceError> {
        if let Contents::PerRank(files) = &self.contents {
            return Ok(files.len() as u64);
        }
        match self.open(Rank::new(0))? {
            Opened::Text(mut lines) => text::count_ranks(&mut lines, MAX_RANKS),
            Opened::Shard(shard) => shard.count_ranks(),
        }
    }

    fn is_interleaved(&self) -> bool {
        !matches!(self.contents, Contents::PerRank(_))
    }

    fn read(&self, ranks: &mut RankBuilders<'_>) -> Result<(), TraceError> {
        let first = Rank::new(ranks.wanted().start);
        let owner = (!self.is_interleaved()).then_some(first);
        match self.open(first)? {
            Opened::Text(lines) => text::read(lines, owner, ranks),
            Opened::Shard(shard) => {
                shard.read(owner, ranks, self.begun.as_ref().map(|begun| &begun[first.index()]))
            }
        }
    }

    fn locate(&self, rank: Rank, index: u64) -> Result<Location, TraceError> {
        if matches!(&self.contents, Contents::PerRank(files) if rank.index() >= files.len()) {
            return Err(TraceError::NoSuchAction { rank, action: index });
        }
        match self.open(rank)? {
            Opened::Text(mut lines) => text::locate(&mut lines, rank, index),
            Opened::Shard(shard) => shard.locate(rank, index),
        }
    }

    fn fingerprint(&self) -> Result<u64, TraceError> {
        let mut hash = Xxh3::new();
        match &self.contents {
            Contents::PerRank(files) => files.iter().try_for_each(|file| hash_file(file, &mut hash))?,
            Contents::Merged(file) => hash_file(file, &mut hash)?,
            Contents::Text(text) => hash.update(text.as_bytes()),
        }
        Ok(hash.digest())
    }
}

/// Returns a hash of the contents of files: the fingerprint of a source that consists of them.
pub(crate) fn fingerprint(files: &[&Path]) -> Result<u64, TraceError> {
    let mut hash = Xxh3::new();
    files.iter().try_for_each(|file| hash_file(file, &mut hash))?;
    Ok(hash.digest())
}

/// Adds the contents of a file to a hash.
fn hash_file(path: &Path, hash: &mut Xxh3) -> Result<(), InputError> {
    let mut file = File::open(path).map_err(InputError::io(path))?;
    let mut bytes = vec![0; 1 << 16];
    loop {
        match file.read(&mut bytes).map_err(InputError::io(path))? {
            0 => return Ok(()),
            len => hash.update(&bytes[..len]),
        }
    }
}
