//! Loading traces from files.

mod merged;
mod origin;
mod rank_files;
mod shape;

pub(crate) use origin::Origin;
pub(crate) use rank_files::read_file;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use pdes_core::Rank;

use crate::archive;
use crate::draft::Linkable;
use crate::error::TraceError;
use crate::link::{Excess, LinkError, Shortage, link};
use crate::store::Store;
use crate::trace::Trace;
use crate::warning::{Tolerated, summarize};
use shape::Shape;

/// Ranks of the largest run.
pub(crate) const MAX_RANKS: u32 = 1 << 20;

/// How to load a trace.
#[derive(Clone, Debug)]
pub struct LoadOptions<'a> {
    /// Threads that read rank files, each one file at a time; 0 counts as 1. A merged file is read by one thread.
    pub threads: usize,
    /// Ranks that the run should have; by default those that the trace has. Further ones do nothing.
    pub ranks: Option<u32>,
    /// Bytes of actions (16 each) kept in memory; what exceeds them goes to a temporary file without a name, and is
    /// mapped. What is not counted: per rank being read one chunk of 64 KiB, and the tables of the ranks.
    pub memory_budget: u64,
    /// Directory of the temporary file, by default the system's.
    pub spill_dir: Option<PathBuf>,
    /// Counts the actions read so far, in steps of up to 4096, for a display.
    pub progress: Option<&'a AtomicU64>,
}

impl Default for LoadOptions<'_> {
    /// One thread, 2 GiB of actions in memory.
    fn default() -> Self {
        Self { threads: 1, ranks: None, memory_budget: 2 << 30, spill_dir: None, progress: None }
    }
}

/// A trace that is to be converted.
pub(crate) enum Input {
    /// The file of each rank, and the ranks of the run.
    Files(Vec<PathBuf>, u32),
    /// A trace whose ranks cannot be read one by one, or are in an archive already.
    Trace(Box<Trace>),
}

impl Input {
    /// Opens a trace of any shape, and reads it where its ranks cannot be read one by one.
    pub(crate) fn open(path: &Path, options: &LoadOptions<'_>) -> Result<Self, TraceError> {
        match Shape::detect(path)? {
            Shape::PerRank(files) => {
                let ranks = rank_files::count_ranks(path, &files, options)?;
                Ok(Self::Files(files, ranks))
            }
            _ => load(path, options).map(|trace| Self::Trace(Box::new(trace))),
        }
    }
}

/// Loads a trace of any shape.
pub(crate) fn load(path: &Path, options: &LoadOptions<'_>) -> Result<Trace, TraceError> {
    let mut trace = open(path, options)?;
    trace.hold((0..trace.ranks()).map(Rank::new))?;
    trace.check_actions(trace.held_actions())?;
    Ok(trace)
}

/// Loads a trace of any shape; of an archive no rank is read yet.
pub(crate) fn open(path: &Path, options: &LoadOptions<'_>) -> Result<Trace, TraceError> {
    match Shape::detect(path)? {
        Shape::Archive => archive(path, options),
        Shape::PerRank(files) => rank_files::load(path, files, options),
        Shape::Merged(file) => merged::load(Origin::Merged(file), options),
    }
}

fn archive(path: &Path, options: &LoadOptions<'_>) -> Result<Trace, TraceError> {
    let (directory, unreceived, provenance) = archive::open(path)?;
    let found = directory.ranks();
    match options.ranks {
        Some(asked) if asked != found => {
            Err(TraceError::ArchiveRanks { file: path.to_path_buf(), asked, found })
        }
        _ => {
            let origin = Origin::Archive(path.to_path_buf());
            Ok(Trace::of_archive(directory, unreceived, provenance, origin))
        }
    }
}

/// Reads the files of all ranks, each by itself: what they send to each other need not fit.
pub(crate) fn read_all(
    files: &[PathBuf],
    options: &LoadOptions<'_>,
    store: &Store<'_>,
) -> Result<Vec<Linkable>, TraceError> {
    let ranks = check_ranks(files.first().map_or(Path::new("."), PathBuf::as_path), files.len() as u64)?;
    let read = rank_files::read_files(files, ranks, options.threads, store)?;
    Ok(read.into_iter().map(|(linkable, _)| linkable).collect())
}

/// Loads a merged trace that is a string.
pub(crate) fn from_text(text: &str, options: &LoadOptions<'_>) -> Result<Trace, TraceError> {
    merged::load(Origin::Text(text.to_owned()), options)
}

fn store<'a>(options: &'a LoadOptions<'_>) -> Store<'a> {
    Store::new(options.memory_budget, options.spill_dir.as_deref(), options.progress)
}

/// Makes a trace of its ranks and of what was tolerated in each file.
fn assemble(
    mut ranks: Vec<Linkable>,
    tolerated: Vec<(PathBuf, Tolerated)>,
    store: Store<'_>,
    origin: Origin,
) -> Result<Trace, TraceError> {
    store.finish(ranks.iter_mut().flat_map(|linkable| linkable.trace.records_mut()))?;
    let warnings = summarize(tolerated.iter().map(|(file, tolerated)| (file.as_path(), *tolerated)));
    match link(&mut ranks) {
        Ok(unreceived) => {
            let ranks = ranks.into_iter().map(|linkable| linkable.trace).collect();
            Ok(Trace::new(ranks, warnings, unreceived, origin))
        }
        Err(LinkError::Communicators(conflict)) => Err(conflict.into()),
        Err(LinkError::Shortage(shortage)) => Err(locate(&shortage, &ranks[shortage.rank.index()], &origin)?),
    }
}

/// Finds the line of the first receive for which no message is sent.
#[cold]
fn locate(shortage: &Shortage, receiver: &Linkable, origin: &Origin) -> Result<TraceError, TraceError> {
    let rank = shortage.rank;
    let first = shortage.first_action(receiver);
    let (action, Excess { src, tag, communicator, sends, receives }) =
        first.unwrap_or_else(|| (receiver.trace.len(), shortage.channel(receiver)));
    let location = origin.locate(rank, action)?;
    Ok(TraceError::ReceiveWithoutSend { location, rank, action, src, tag, communicator, sends, receives })
}

/// Checks how many ranks a run may have.
fn check_ranks(path: &Path, found: u64) -> Result<u32, TraceError> {
    let limit = MAX_RANKS;
    let ranks = u32::try_from(found).ok().filter(|ranks| *ranks <= limit);
    ranks.ok_or_else(|| TraceError::TooManyRanks { path: path.to_path_buf(), found, limit })
}
