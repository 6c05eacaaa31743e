//! Conversion of traces to archives: ranks are read and folded in parallel and written in their order.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::{mem, panic, thread};

use pdes_core::Rank;

use crate::archive::encode::{EncodeError, Encoded, Encoder};
use crate::archive::encode_times::EncodedTimes;
use crate::archive::sporadic::SporadicComputations;
use crate::archive::{ArchiveWriter, Summary, WriteError};
use crate::builder::LinkableRank;
use crate::error::TraceError;
use crate::measured::TimedActions;
use crate::provenance::Provenance;
use crate::record::Record;
use crate::side_tables::SideTables;
use crate::source::{LoadOptions, TraceSource, count_ranks, read_rank};
use crate::trace::{ActionStorage, RankTrace, Trace};
use crate::warning::Warning;

/// Options of a conversion.
#[derive(Clone, Debug)]
pub struct ConvertOptions<'a> {
    /// Options for reading the input. The memory budget is shared by the threads. With one file per rank at most one rank per
    /// thread is in memory, with a merged file the whole trace. The counter counts actions read.
    pub load: LoadOptions<'a>,
    /// Ranks to fold, which also share programs.
    pub folding: Folding,
    /// Number of data files; with 1 everything is in one file.
    pub shards: u32,
    /// Provenance of the trace; by default that of the input.
    pub provenance: Option<Provenance>,
}

impl Default for ConvertOptions<'_> {
    /// Returns options for one thread, folding where it pays, and one file.
    fn default() -> Self {
        Self { load: LoadOptions::default(), folding: Folding::WhereFaster, shards: 1, provenance: None }
    }
}

/// Choice of the ranks to fold. A rank that would be longer folded than flat is never folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Folding {
    /// No rank: every action is a record of 16 bytes.
    Never,
    /// Ranks that shrink to half, and others for which reading fewer bytes saves more time than unfolding costs.
    #[default]
    WhereFaster,
    /// All ranks that shrink.
    Always,
}

/// Result of a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// Summary of the written archive.
    pub summary: Summary,
    /// Warnings about the input.
    pub warnings: Vec<Warning>,
}

/// Writes an archive of a source: rank by rank, or of the whole trace if the ranks are interleaved.
///
/// The archive does not depend on the number of threads. It gets its name only when it is complete, so that a failed conversion
/// leaves no file. Memory is bounded by the budget and the tables.
///
/// # Errors
/// Returns errors of the source; fails if the archive cannot be written, as when the drive is full, or if a rank receives more
/// messages than are sent to it.
pub fn convert(
    source: Box<dyn TraceSource>,
    output: &Path,
    options: &ConvertOptions<'_>,
) -> Result<Converted, WriteError> {
    if source.is_interleaved() {
        let trace = Trace::read(source, &options.load)?;
        let summary = write_archive(&trace, output, options)?;
        return Ok(Converted { summary, warnings: trace.warnings().to_vec() });
    }
    let ranks = count_ranks(&*source, &options.load)?;
    let threads = options.load.threads.clamp(1, ranks.source.max(1) as usize);
    let budget = options.load.memory_budget / threads as u64;
    let prepare = |rank: Rank| {
        let store = options.load.store(budget);
        let (mut linkable, warnings) = read_rank(&*source, rank, ranks.run, &store)?;
        store.finish(linkable.trace.records_mut())?;
        prepare(rank, linkable, warnings, Encoding::of(options))
    };
    let mut warnings = Vec::new();
    let mut writer = ArchiveWriter::for_conversion(output, ranks.run, source.provenance(), options)?;
    in_order(
        threads,
        ranks.source,
        prepare,
        |rank, Prepared { body, linkable, encoded, times, warnings: more }| {
            more.into_iter().for_each(|warning| warning.merge_into(&mut warnings));
            writer.write_encoded(rank, encoded, body.cursor().map(Record::encode), linkable)?;
            times.map_or(Ok(()), |times| writer.write_times(rank, times))
        },
    )?;
    let summary = writer.finish()?;
    warnings.extend(Trace::open(output).map_err(TraceError::from)?.warnings().iter().cloned());
    Ok(Converted { summary, warnings })
}

/// Writes an archive of a trace that is in memory or in another archive, with other shards or folded otherwise.
///
/// # Errors
/// Fails if the trace is damaged or the archive cannot be written.
pub fn write_archive(
    trace: &Trace,
    output: &Path,
    options: &ConvertOptions<'_>,
) -> Result<Summary, WriteError> {
    let mut writer = ArchiveWriter::for_conversion(output, trace.ranks(), trace.provenance(), options)?;
    let prepare = |rank| {
        let from = trace.rank(rank);
        let encoded =
            encode(rank, from.cursor().map(Record::encode), &from.side_tables, Encoding::of(options))?;
        Ok((from, encoded, encode_times(from.measured())?))
    };
    in_order(
        options.load.threads,
        trace.ranks(),
        prepare,
        |rank, (from, encoded, times): (&RankTrace, _, _)| {
            let linkable = LinkableRank { trace: from.tables(), ..LinkableRank::default() };
            writer.write_encoded(rank, encoded, from.cursor().map(Record::encode), linkable)?;
            times.map_or(Ok(()), |times| writer.write_times(rank, times))
        },
    )?;
    trace.integrity().map_err(TraceError::from)?;
    writer.finish()
}

/// An encoded rank, ready to be written.
struct Prepared {
    body: ActionStorage,
    linkable: LinkableRank,
    encoded: Option<Encoded>,
    times: Option<EncodedTimes>,
    warnings: Vec<Warning>,
}

fn prepare(
    rank: Rank,
    mut linkable: LinkableRank,
    warnings: Vec<Warning>,
    encoding: Encoding,
) -> Result<Prepared, WriteError> {
    let body = mem::take(&mut linkable.trace.storage);
    let times = linkable.trace.measured_times.take();
    let times = encode_times(times.as_ref().and_then(|times| body.measured(times)))?;
    let encoded = encode(rank, body.cursor().map(Record::encode), &linkable.trace.side_tables, encoding)?;
    Ok(Prepared { body, linkable, encoded, times, warnings })
}

/// Encodes the measured times of a rank, if it has any.
fn encode_times(measured: Option<TimedActions<'_>>) -> Result<Option<EncodedTimes>, WriteError> {
    let spill = |source| TraceError::Spill { dir: std::env::temp_dir(), source }.into();
    measured.map(EncodedTimes::new).transpose().map_err(spill)
}

/// Treatment of loops in an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Every action is a record.
    Flat,
    /// Loops are folded.
    Loops,
    /// Loops are folded and no computation is inserted between records, so that programs can be cut.
    ForCutting,
}

impl Encoding {
    pub(crate) fn of(options: &ConvertOptions<'_>) -> Self {
        if options.folding == Folding::Never { Self::Flat } else { Self::Loops }
    }
}

/// Folds the records of a rank; returns `None` if it is to be written flat.
pub(crate) fn encode(
    rank: Rank,
    actions: impl Iterator<Item = Record> + Clone,
    side: &SideTables,
    encoding: Encoding,
) -> Result<Option<Encoded>, WriteError> {
    if encoding == Encoding::Flat {
        return Ok(None);
    }
    match encode_shortest(actions, side, encoding) {
        Ok(encoded) => Ok(Some(encoded)),
        // Sums over a loop are not defined if its iterations start different persistent requests: such a rank stays flat.
        Err(EncodeError::Tally(_)) => Ok(None),
        Err(error) => Err(encode_error(rank, error)),
    }
}

/// Converts an error of encoding a rank.
pub(crate) fn encode_error(rank: Rank, error: EncodeError) -> WriteError {
    match error {
        EncodeError::Io(source) => TraceError::Spill { dir: std::env::temp_dir(), source }.into(),
        EncodeError::Tally(_) => WriteError::TooMany { rank },
        EncodeError::Damaged(damage) => WriteError::Damaged { rank, damage },
    }
}

/// Encodes with sporadic computations apart; if that does not fold well, also without, and returns the shorter encoding.
fn encode_shortest(
    actions: impl Iterator<Item = Record> + Clone,
    side: &SideTables,
    encoding: Encoding,
) -> Result<Encoded, EncodeError> {
    let gaps = SporadicComputations::find(actions.clone());
    let gaps = if encoding == Encoding::ForCutting { gaps.all_optional() } else { gaps };
    if gaps.is_empty() {
        return encode_with(actions, side, &gaps);
    }
    let optional = encode_with(actions.clone(), side, &gaps)?;
    let size = |encoded: &Encoded| encoded.sizes().0;
    // Only traces that hardly fold are encoded twice.
    if size(&optional) < optional.actions().saturating_mul(4) {
        return Ok(optional);
    }
    let plain = encode_with(actions, side, &SporadicComputations::default())?;
    Ok(if size(&optional) < size(&plain) { optional } else { plain })
}

fn encode_with(
    mut actions: impl Iterator<Item = Record>,
    side: &SideTables,
    gaps: &SporadicComputations,
) -> Result<Encoded, EncodeError> {
    let mut encoder = Encoder::new(side, gaps);
    actions.try_for_each(|record| encoder.push(record))?;
    encoder.finish()
}

/// The next rank to commit, and the first error.
struct CommitState<C> {
    rank: u32,
    failed: Option<WriteError>,
    /// True if a thread panicked, so that its rank is never committed.
    has_panicked: bool,
    commit: C,
}

/// Guard that wakes the other threads if this one panics.
struct WakeOnPanic<'a, C> {
    state: &'a Mutex<CommitState<C>>,
    is_next: &'a Condvar,
}

impl<C> Drop for WakeOnPanic<'_, C> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).has_panicked = true;
            self.is_next.notify_all();
        }
    }
}

/// Prepares ranks in parallel and commits them one by one in ascending order. Of several errors that of the lowest rank is
/// returned.
///
/// A thread holds one prepared rank until that rank is next. Ranks are handed out in ascending order, so that the thread
/// with the lowest one never waits: there is no deadlock, and at most one rank per thread is in memory.
pub(crate) fn in_order<P: Send>(
    threads: usize,
    ranks: u32,
    prepare: impl Fn(Rank) -> Result<P, WriteError> + Sync,
    commit: impl FnMut(Rank, P) -> Result<(), WriteError> + Send,
) -> Result<(), WriteError> {
    let next = AtomicU32::new(0);
    let turn = Mutex::new(CommitState { rank: 0, failed: None, has_panicked: false, commit });
    let is_next = Condvar::new();
    // Relaxed: the counter only hands out numbers; prepared ranks are passed through the mutex.
    let work = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= ranks {
            return;
        }
        // Declared before the lock guard and so dropped after it: its `drop` takes the lock.
        let _abandon = WakeOnPanic { state: &turn, is_next: &is_next };
        let prepared = prepare(Rank::new(number));
        let locked = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting =
            |turn: &mut CommitState<_>| turn.rank != number && turn.failed.is_none() && !turn.has_panicked;
        let mut turn = is_next.wait_while(locked, waiting).unwrap_or_else(PoisonError::into_inner);
        if turn.failed.is_some() || turn.has_panicked {
            return;
        }
        let result = prepared.and_then(|prepared| (turn.commit)(Rank::new(number), prepared));
        turn.failed = result.err();
        turn.rank += 1;
        is_next.notify_all();
    };
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..threads.clamp(1, ranks.max(1) as usize)).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap_or_else(|cause| panic::resume_unwind(cause)));
    });
    turn.into_inner().unwrap_or_else(PoisonError::into_inner).failed.map_or(Ok(()), Err)
}
