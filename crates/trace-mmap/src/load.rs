//! Loading of traces from files of any layout.

mod file_layout;
mod merged;
mod origin;
mod rank_files;

pub(crate) use origin::Origin;
pub(crate) use rank_files::read_file;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use pdes_core::Rank;

use crate::archive;
use crate::builder::LinkableRank;
use crate::error::TraceError;
use crate::link::{LinkError, UnmatchedRank, UnmatchedReceive, link};
use crate::store::Store;
use crate::trace::Trace;
use crate::warning::{FileWarnings, summarize};
use file_layout::FileLayout;

/// Largest number of ranks of a run.
pub(crate) const MAX_RANKS: u32 = 1 << 20;

/// Options of loading a trace.
#[derive(Clone, Debug)]
pub struct LoadOptions<'a> {
    /// Number of threads that read rank files, one file each at a time; 0 means 1. A merged file is read by one thread.
    pub threads: usize,
    /// Number of ranks of the run, by default that of the trace. Ranks beyond the trace have no actions.
    pub ranks: Option<u32>,
    /// Memory for actions, of 16 B each \[B\]. Actions beyond it go to an unnamed temporary file, which is mapped. Not counted are a
    /// chunk of 64 KiB per rank being read, and the tables of the ranks.
    pub memory_budget: u64,
    /// Directory of the temporary file, by default that of the system.
    pub spill_dir: Option<PathBuf>,
    /// Number of actions read so far, updated in steps of up to 4096, for a progress display.
    pub progress: Option<&'a AtomicU64>,
}

impl Default for LoadOptions<'_> {
    /// One thread, 2 GiB of actions in memory.
    fn default() -> Self {
        Self { threads: 1, ranks: None, memory_budget: 2 << 30, spill_dir: None, progress: None }
    }
}

/// A trace to be converted.
pub(crate) enum ConversionInput {
    /// The file of each rank, and the number of ranks of the run.
    Files(Vec<PathBuf>, u32),
    /// A loaded trace, because its ranks cannot be read one by one or are in an archive already.
    Trace(Box<Trace>),
}

impl ConversionInput {
    /// Opens a trace of any layout; loads it if its ranks cannot be read one by one.
    pub(crate) fn open(path: &Path, options: &LoadOptions<'_>) -> Result<Self, TraceError> {
        match FileLayout::detect(path)? {
            FileLayout::PerRank(files) => {
                let ranks = rank_files::count_ranks(path, &files, options)?;
                Ok(Self::Files(files, ranks))
            }
            _ => load(path, options).map(|trace| Self::Trace(Box::new(trace))),
        }
    }
}

/// Loads a trace of any layout.
pub(crate) fn load(path: &Path, options: &LoadOptions<'_>) -> Result<Trace, TraceError> {
    let mut trace = open(path, options)?;
    trace.load_ranks((0..trace.ranks()).map(Rank::new))?;
    trace.check_actions(trace.loaded_actions())?;
    Ok(trace)
}

/// Opens a trace of any layout: text is loaded, but no rank of an archive is read yet.
pub(crate) fn open(path: &Path, options: &LoadOptions<'_>) -> Result<Trace, TraceError> {
    match FileLayout::detect(path)? {
        FileLayout::Archive => open_archive(path, options),
        FileLayout::PerRank(files) => rank_files::load(path, files, options),
        FileLayout::Merged(file) => merged::load(Origin::Merged(file), options),
    }
}

fn open_archive(path: &Path, options: &LoadOptions<'_>) -> Result<Trace, TraceError> {
    let (directory, unreceived, provenance) = archive::open(path)?;
    let found = directory.ranks();
    match options.ranks {
        Some(asked) if asked != found => {
            Err(TraceError::ArchiveRanks { file: path.to_path_buf(), asked, found })
        }
        _ => {
            let origin = Origin::Archive(path.to_path_buf());
            Ok(Trace::from_archive(directory, unreceived, provenance, origin))
        }
    }
}

/// Reads the files of all ranks without linking them: sends and receives need not match.
pub(crate) fn read_all(
    files: &[PathBuf],
    options: &LoadOptions<'_>,
    store: &Store<'_>,
) -> Result<Vec<LinkableRank>, TraceError> {
    let ranks = check_ranks(files.first().map_or(Path::new("."), PathBuf::as_path), files.len() as u64)?;
    let read = rank_files::read_files(files, ranks, options.threads, store)?;
    Ok(read.into_iter().map(|(linkable, _)| linkable).collect())
}

/// Loads a merged trace from a string.
pub(crate) fn from_text(text: &str, options: &LoadOptions<'_>) -> Result<Trace, TraceError> {
    merged::load(Origin::Text(text.to_owned()), options)
}

fn store<'a>(options: &'a LoadOptions<'_>) -> Store<'a> {
    Store::new(options.memory_budget, options.spill_dir.as_deref(), options.progress)
}

/// Links the ranks into a trace, with the warnings of all files.
fn assemble(
    mut ranks: Vec<LinkableRank>,
    file_warnings: Vec<(PathBuf, FileWarnings)>,
    store: Store<'_>,
    origin: Origin,
) -> Result<Trace, TraceError> {
    store.finish(ranks.iter_mut().flat_map(|linkable| linkable.trace.records_mut()))?;
    let warnings =
        summarize(file_warnings.iter().map(|(file, file_warnings)| (file.as_path(), *file_warnings)));
    match link(&mut ranks) {
        Ok(unreceived) => {
            let ranks = ranks.into_iter().map(|linkable| linkable.trace).collect();
            Ok(Trace::new(ranks, warnings, unreceived, origin))
        }
        Err(LinkError::Communicators(conflict)) => Err(conflict.into()),
        Err(LinkError::Unmatched(unmatched)) => {
            Err(locate(&unmatched, &ranks[unmatched.rank.index()], &origin)?)
        }
    }
}

/// Makes the error for an unmatched receive, with the line of the first one.
#[cold]
fn locate(
    unmatched: &UnmatchedRank,
    receiver: &LinkableRank,
    origin: &Origin,
) -> Result<TraceError, TraceError> {
    let rank = unmatched.rank;
    let first = unmatched.first_action(receiver);
    let (action, UnmatchedReceive { src, tag, communicator, sends, receives }) =
        first.unwrap_or_else(|| (receiver.trace.len(), unmatched.first_channel(receiver)));
    let location = origin.locate(rank, action)?;
    Ok(TraceError::ReceiveWithoutSend { location, rank, action, src, tag, communicator, sends, receives })
}

/// Checks the number of ranks against [`MAX_RANKS`].
fn check_ranks(path: &Path, found: u64) -> Result<u32, TraceError> {
    let limit = MAX_RANKS;
    let ranks = u32::try_from(found).ok().filter(|ranks| *ranks <= limit);
    ranks.ok_or_else(|| TraceError::TooManyRanks { path: path.to_path_buf(), found, limit })
}
