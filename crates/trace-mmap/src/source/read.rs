//! Reading of sources: ranks in parallel, then linking.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::{panic, thread};

use pdes_core::Rank;

use crate::builder::LinkableRank;
use crate::error::TraceError;
use crate::link::{LinkError, UnmatchedRank, UnmatchedReceive, link};
use crate::record::FINALIZE;
use crate::source::{LoadOptions, MAX_RANKS, RankBuilders, TraceSource};
use crate::store::Store;
use crate::trace::{ActionStorage, RankTrace, Trace};
use crate::warning::Warning;

impl Trace {
    /// Reads all ranks of a source. The result does not depend on the number of threads.
    ///
    /// # Errors
    /// Returns the first error of the lowest rank; fails if the ranks do not fit together, as when a rank receives more messages
    /// than are sent to it.
    pub fn read(source: Box<dyn TraceSource>, options: &LoadOptions<'_>) -> Result<Self, TraceError> {
        let store = options.store(options.memory_budget);
        let (ranks, warnings) = read_ranks(&*source, options, &store)?;
        assemble(ranks, warnings, store, source)
    }
}

/// Reads the ranks of a source without linking them: sends and receives need not match, as in the trace of a killed program. All
/// requests of the [operations](crate::Ops) have names, by which they can be left out.
///
/// # Errors
/// Returns the first error of the lowest rank.
pub fn read_unlinked(
    source: &dyn TraceSource,
    options: &LoadOptions<'_>,
) -> Result<Vec<RankTrace>, TraceError> {
    let store = options.store(options.memory_budget);
    let (mut ranks, _) = read_ranks(source, options, &store)?;
    store.finish(ranks.iter_mut().flat_map(|linkable| linkable.trace.records_mut()))?;
    let named = |LinkableRank { trace, .. }: LinkableRank| RankTrace { has_named_requests: true, ..trace };
    Ok(ranks.into_iter().map(named).collect())
}

/// Numbers of ranks.
pub(crate) struct RankCounts {
    /// Ranks to be read.
    pub(crate) source: u32,
    /// Ranks of the run; those beyond the source have no actions.
    pub(crate) run: u32,
}

/// Returns the number of ranks of the source and of the run: that of the source, or more if requested.
pub(crate) fn count_ranks(
    source: &dyn TraceSource,
    options: &LoadOptions<'_>,
) -> Result<RankCounts, TraceError> {
    let path = source.path();
    let check = |found: u64| {
        let ranks = u32::try_from(found).ok().filter(|ranks| *ranks <= MAX_RANKS);
        let path = || path.to_path_buf();
        ranks.ok_or_else(|| TraceError::TooManyRanks { path: path(), found, limit: MAX_RANKS })
    };
    let asked = options.ranks.map(|ranks| check(ranks.into())).transpose()?;
    match asked {
        // All are read at once, so that the source itself finds ranks beyond those of the run.
        Some(run) if source.is_interleaved() => Ok(RankCounts { source: run, run }),
        _ => {
            let found = check(source.ranks()?)?;
            match asked.unwrap_or(found) {
                asked if asked < found => {
                    Err(TraceError::TooFewRanks { path: path.to_path_buf(), asked, found })
                }
                run => Ok(RankCounts { source: found, run }),
            }
        }
    }
}

/// Reads all ranks, with the merged warnings.
pub(crate) fn read_ranks(
    source: &dyn TraceSource,
    options: &LoadOptions<'_>,
    store: &Store<'_>,
) -> Result<(Vec<LinkableRank>, Vec<Warning>), TraceError> {
    let ranks = count_ranks(source, options)?;
    if source.is_interleaved() {
        let mut builders = RankBuilders::new(0..ranks.run, ranks.run, store);
        source.read(&mut builders)?;
        return builders.finish();
    }
    let (mut linkables, mut warnings) = (Vec::new(), Vec::new());
    for (linkable, more) in read_separate(source, &ranks, options.threads, store)? {
        linkables.push(linkable);
        more.into_iter().for_each(|warning| warning.merge_into(&mut warnings));
    }
    linkables.extend((ranks.source..ranks.run).map(|rank| LinkableRank::empty(Rank::new(rank), ranks.run)));
    Ok((linkables, warnings))
}

type RankResult = Result<(LinkableRank, Vec<Warning>), TraceError>;

/// Reads one rank.
pub(crate) fn read_rank(source: &dyn TraceSource, rank: Rank, ranks: u32, store: &Store<'_>) -> RankResult {
    let mut builders = RankBuilders::new(rank.get()..rank.get() + 1, ranks, store);
    source.read(&mut builders)?;
    let (mut read, warnings) = builders.finish()?;
    Ok((read.remove(0), warnings))
}

/// Reads ranks in parallel. If several fail, the error of the lowest rank is returned, for any number of threads.
fn read_separate(
    source: &dyn TraceSource,
    ranks: &RankCounts,
    threads: usize,
    store: &Store<'_>,
) -> Result<Vec<(LinkableRank, Vec<Warning>)>, TraceError> {
    let next = AtomicU32::new(0);
    let has_failed = AtomicBool::new(false);
    // Relaxed: the counter hands out each rank once and in ascending order, so that all ranks below a failed one are
    // being read when it fails; the results pass through `join`.
    let work = || {
        let mut results: Vec<(u32, RankResult)> = Vec::new();
        while !has_failed.load(Ordering::Relaxed) {
            let rank = next.fetch_add(1, Ordering::Relaxed);
            if rank >= ranks.source {
                break;
            }
            let result = read_rank(source, Rank::new(rank), ranks.run, store);
            has_failed.fetch_or(result.is_err(), Ordering::Relaxed);
            results.push((rank, result));
        }
        results
    };
    let mut results: Vec<(u32, RankResult)> = thread::scope(|scope| {
        let threads = threads.min(ranks.source as usize).max(1);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|cause| panic::resume_unwind(cause))
        };
        threads.into_iter().flat_map(join).collect()
    });
    results.sort_unstable_by_key(|(rank, _)| *rank);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Links ranks into a trace.
fn assemble(
    mut ranks: Vec<LinkableRank>,
    mut warnings: Vec<Warning>,
    store: Store<'_>,
    source: Box<dyn TraceSource>,
) -> Result<Trace, TraceError> {
    store.finish(ranks.iter_mut().flat_map(|linkable| linkable.trace.records_mut()))?;
    match link(&mut ranks) {
        Ok(unreceived) => {
            warnings.extend(warn_of_ends(&ranks));
            let mut ranks: Vec<RankTrace> = ranks.into_iter().map(|linkable| linkable.trace).collect();
            if source.grows() {
                ranks.iter_mut().for_each(RankTrace::grow);
            }
            Ok(Trace::new(ranks, warnings, unreceived, source))
        }
        Err(LinkError::Communicators(conflict)) => Err(conflict.into()),
        Err(LinkError::Unmatched(unmatched)) => {
            Err(locate(&unmatched, &ranks[unmatched.rank.index()], &*source)?)
        }
    }
}

/// Returns the warning about ranks that do not leave MPI, as others do.
fn warn_of_ends(ranks: &[LinkableRank]) -> Option<Warning> {
    Warning::of_ends(ranks.iter().map(|linkable| match &linkable.trace.storage {
        ActionStorage::Memory(records) if records.len() > 0 => Some(records.has_kind(FINALIZE)),
        _ => None,
    }))
}

/// Makes the error for an unmatched receive, with the place of the first one.
#[cold]
fn locate(
    unmatched: &UnmatchedRank,
    receiver: &LinkableRank,
    source: &dyn TraceSource,
) -> Result<TraceError, TraceError> {
    let rank = unmatched.rank;
    let first = unmatched.first_action(receiver);
    let (action, UnmatchedReceive { src, tag, communicator, sends, receives }) =
        first.unwrap_or_else(|| (receiver.trace.len(), unmatched.first_channel(receiver)));
    let location = source.locate(rank, action)?;
    Ok(TraceError::ReceiveWithoutSend { location, rank, action, src, tag, communicator, sends, receives })
}
