//! Parallel loading of traces with a file per rank.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{panic, thread};

use pdes_core::Rank;

use crate::action::Action;
use crate::builder::{LinkableRank, RankTraceBuilder};
use crate::error::TraceError;
use crate::load::{LoadOptions, Origin, assemble, check_ranks};
use crate::store::Store;
use crate::text::{Fields, Line, Lines, TextError, read_action, read_rank};
use crate::trace::Trace;
use crate::warning::FileWarnings;

/// Loads a trace from `files`, one per rank, in rank order.
pub(super) fn load(path: &Path, files: Vec<PathBuf>, options: &LoadOptions<'_>) -> Result<Trace, TraceError> {
    let ranks = count_ranks(path, &files, options)?;
    let store = super::store(options);
    let (mut linkables, mut warnings) = (Vec::new(), Vec::new());
    for (file, rank) in files.iter().zip(read_files(&files, ranks, options.threads, &store)?) {
        linkables.push(rank.0);
        warnings.push((file.clone(), rank.1));
    }
    let idle = linkables.len() as u32..ranks;
    linkables.extend(idle.map(|rank| LinkableRank::empty(Rank::new(rank), ranks)));
    assemble(linkables, warnings, store, Origin::PerRank(files))
}

/// Returns the number of ranks of the run: that of the files, or more if requested.
pub(crate) fn count_ranks(
    path: &Path,
    files: &[PathBuf],
    options: &LoadOptions<'_>,
) -> Result<u32, TraceError> {
    let found = check_ranks(path, files.len() as u64)?;
    let ranks = check_ranks(path, u64::from(options.ranks.unwrap_or(found)))?;
    if ranks < found {
        return Err(TraceError::TooFewRanks { path: path.to_path_buf(), asked: ranks, found });
    }
    Ok(ranks)
}

type RankResult = Result<(LinkableRank, FileWarnings), TraceError>;

/// Reads the files in parallel. If several fail, the error of the lowest rank is returned, for any number of threads.
pub(super) fn read_files(
    files: &[PathBuf],
    ranks: u32,
    threads: usize,
    store: &Store<'_>,
) -> Result<Vec<(LinkableRank, FileWarnings)>, TraceError> {
    let next = AtomicUsize::new(0);
    let has_failed = AtomicBool::new(false);
    // Relaxed: the counter hands out each rank once and in ascending order, so that all ranks below a failed one are
    // being read when it fails; the results pass through `join`.
    let work = || {
        let mut results: Vec<(usize, RankResult)> = Vec::new();
        while !has_failed.load(Ordering::Relaxed) {
            let rank = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(rank) else { break };
            let result = read_file(file, Rank::new(rank as u32), ranks, store);
            has_failed.fetch_or(result.is_err(), Ordering::Relaxed);
            results.push((rank, result));
        }
        results
    };
    let mut results: Vec<(usize, RankResult)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.min(files.len()).max(1)).map(|_| scope.spawn(work)).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|cause| panic::resume_unwind(cause))
        };
        threads.into_iter().flat_map(join).collect()
    });
    results.sort_unstable_by_key(|(rank, _)| *rank);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Reads the file of one rank.
pub(crate) fn read_file(
    file: &Path,
    rank: Rank,
    ranks: u32,
    store: &Store<'_>,
) -> Result<(LinkableRank, FileWarnings), TraceError> {
    let mut lines = Lines::open(file)?;
    let mut builder = RankTraceBuilder::new(rank, ranks);
    let mut warnings = FileWarnings::default();
    while let Some(line) = lines.next()? {
        let number = line.number;
        match read_own_line(line, &mut builder, &mut warnings) {
            Ok((action, nanos)) => builder.push_timed(action, nanos, store)?,
            Err(kind) => return Err(lines.error(number, kind)),
        }
    }
    Ok((builder.finish(store)?, warnings))
}

fn read_own_line(
    line: Line<'_>,
    builder: &mut RankTraceBuilder,
    warnings: &mut FileWarnings,
) -> Result<(Action, Option<u64>), TextError> {
    let (line, nanos) = line.split_time()?;
    let mut fields = Fields::new(line.text);
    let (found, expected) = (read_rank(&mut fields)?, builder.rank().get());
    if found != u64::from(expected) {
        return Err(TextError::WrongRank { found, expected });
    }
    Ok((read_action(fields, line, builder, warnings)?, nanos))
}
