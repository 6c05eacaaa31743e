//! Cutter: writes a part of a trace, some of its ranks or some iterations of its main loop.
//!
//! Folded ranks are cut in their folded form: programs lose records, loops lose iterations, columns lose values. Ranks
//! without loops, or with inserted computations, are read action by action and folded as in a conversion.

mod calls;
mod kept_actions;
mod kept_program;
mod main_loop;
mod renumbering;
mod roots;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pdes_core::Rank;

use crate::archive::convert::{Encoding, Folding, encode, encode_error, in_order, write_archive};
use crate::archive::encode::Encoded;
use crate::archive::{
    ArchiveError, ArchiveWriter, ArchivedRank, ConvertOptions, Converted, Damage, WriteError,
};
use crate::builder::LinkableRank;
use crate::error::TraceError;
use crate::source::LoadOptions;
use crate::trace::{ActionStorage, RankTrace, Trace};
use kept_actions::KeptActions;
use kept_program::{KeptProgram, LoopRemoval};
pub(super) use kept_program::{check_columns, copy_values, encode_records, filter_records};
use main_loop::IterationRemoval;
pub(super) use renumbering::RemovedRequests;
use renumbering::Renumbering;
use roots::RootCounts;

/// The part of a trace to keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Ranks to keep, which are renumbered from 0; all by default. Messages to and from removed ranks are removed with their
    /// requests. Collective operations take place among the kept ranks; a removed root is replaced by the first kept rank, which gets
    /// its counts.
    pub ranks: Option<Range<u32>>,
    /// Number of iterations of the main loop to keep, from the first on; all by default.
    ///
    /// The main loop of a rank is the outermost loop with most actions; of equals the first. Folding may begin the same
    /// loop at different places of its body in different ranks, so that some ranks have an iteration or two before or after
    /// the loop. So the number of iterations to remove is computed for the longest main loop and removed from each.
    pub iterations: Option<u64>,
}

/// Writes a part of a trace to an archive.
///
/// A folded archive is cut in its folded form: the cost is linear in the length of its programs and the number of its amounts,
/// not in the number of actions, and the output is folded whatever the options say. Other traces, and acquired ones with
/// inserted computations, are read action by action, folded and written rank by rank; for cutting iterations they are folded
/// first, into a temporary archive. The counter of the options counts the actions of the ranks that were cut.
///
/// Removed ranks are removed from all communicators. A rank with calls that name several requests, or that start, cancel or
/// free them, must have no messages to or from removed ranks. All receives from any source are kept, even if their messages
/// come from removed ranks: there are then more receives than messages, which is an error. A probe goes with the message that it found;
/// where that is unknown, it is an error.
///
/// # Errors
/// Fails if the ranks are not a part of the trace; if a rank has no loop, or one with fewer iterations than are to be removed;
/// if the removed iterations are not the same part of the run in all ranks, which shows in their collective operations and
/// messages; else as [`convert`](crate::convert).
pub fn cut(
    trace: &Trace,
    output: &Path,
    what: &Cut,
    options: &ConvertOptions<'_>,
) -> Result<Converted, WriteError> {
    let all = 0..trace.ranks();
    let ranks = what.ranks.clone().unwrap_or(all.clone());
    if ranks.is_empty() || ranks.end > all.end {
        return Err(WriteError::CutRanks { first: ranks.start, end: ranks.end, ranks: all.end });
    }
    let is_flat = |rank: &RankTrace| !rank.is_empty() && folded_rank(rank).is_none();
    match what.iterations {
        Some(kept) if ranks.clone().any(|rank| is_flat(trace.rank(Rank::new(rank)))) => {
            let dir = temporary_dir(options)?;
            let (whole, part) = (dir.path().join("whole.pdt"), dir.path().join("part.pdt"));
            let load = LoadOptions { progress: None, ..options.load.clone() };
            let folding = match options.folding {
                Folding::Never => Folding::default(),
                folding => folding,
            };
            let options = ConvertOptions { load, folding, ..options.clone() };
            let single = ConvertOptions { shards: 1, ..options.clone() };
            let plan = CutPlan { ranks: all, removal: None, encoding: Encoding::ForCutting };
            cut_parts(trace, &whole, &plan, &single)?;
            let whole = Trace::load(&whole).map_err(TraceError::from)?;
            let Converted { warnings, .. } = cut_iterations(&whole, &part, ranks, kept, &single)?;
            let part = Trace::load(&part).map_err(TraceError::from)?;
            Ok(Converted { summary: write_archive(&part, output, &options)?, warnings })
        }
        Some(kept) => cut_iterations(trace, output, ranks, kept, options),
        None => cut_parts(
            trace,
            output,
            &CutPlan { ranks, removal: None, encoding: Encoding::of(options) },
            options,
        ),
    }
}

fn temporary_dir(options: &ConvertOptions<'_>) -> Result<tempfile::TempDir, WriteError> {
    let dir = options.load.spill_dir.clone().unwrap_or_else(std::env::temp_dir);
    tempfile::tempdir_in(&dir).map_err(|source| TraceError::Spill { dir, source }.into())
}

/// The ranks to keep and the iterations to remove.
struct CutPlan {
    ranks: Range<u32>,
    removal: Option<IterationRemoval>,
    /// Encoding of ranks that are read action by action. Those that are cut further stay folded even if they are shorter flat.
    encoding: Encoding,
}

fn cut_iterations(
    trace: &Trace,
    output: &Path,
    ranks: Range<u32>,
    kept: u64,
    options: &ConvertOptions<'_>,
) -> Result<Converted, WriteError> {
    let removal = Some(IterationRemoval::new(trace, &ranks, kept)?);
    cut_parts(trace, output, &CutPlan { ranks, removal, encoding: Encoding::of(options) }, options)
}

/// Cuts each rank by itself, in parallel.
fn cut_parts(
    trace: &Trace,
    output: &Path,
    plan: &CutPlan,
    options: &ConvertOptions<'_>,
) -> Result<Converted, WriteError> {
    let number = plan.ranks.end - plan.ranks.start;
    let mut writer = ArchiveWriter::for_conversion(output, number, trace.provenance().of_part(), options)?;
    let prepare = |rank: Rank| cut_rank(trace, rank, plan);
    in_order(options.load.threads, number, prepare, |rank, part| {
        part.write(rank, &mut writer)?;
        if let Some(progress) = options.load.progress {
            // A display elsewhere reads this counter; nothing depends on its order.
            progress.fetch_add(trace.rank(plan.original_rank(rank)).len(), Ordering::Relaxed);
        }
        Ok(())
    })?;
    trace.integrity().map_err(TraceError::from)?;
    Ok(Converted { summary: writer.finish()?, warnings: trace.warnings().to_vec() })
}

impl CutPlan {
    /// Returns the original number of a rank.
    fn original_rank(&self, rank: Rank) -> Rank {
        Rank::new(rank.get() + self.ranks.start)
    }

    /// Returns the main loop of a rank and the number of iterations to remove from it.
    fn loop_removal(&self, rank: Rank) -> LoopRemoval<'_> {
        let removal = self.removal.as_ref()?;
        Some((removal.loops[rank.index()].as_ref()?, removal.iterations))
    }
}

/// The kept part of a rank, encoded.
enum CutRank<'a> {
    Structured(Box<Encoded>, LinkableRank),
    Streamed(Option<Box<Encoded>>, KeptActions<'a>, LinkableRank),
}

impl CutRank<'_> {
    fn write(self, rank: Rank, writer: &mut ArchiveWriter) -> Result<(), WriteError> {
        match self {
            Self::Structured(encoded, linkable) => writer.write_as_encoded(rank, *encoded, linkable),
            Self::Streamed(encoded, kept, linkable) => {
                writer.write_encoded(rank, encoded.map(|encoded| *encoded), kept, linkable)
            }
        }
    }
}

/// Returns the body of a rank that can be cut in its folded form: one with loops or columns and without inserted computations.
pub(super) fn folded_rank(rank: &RankTrace) -> Option<&ArchivedRank> {
    match &rank.storage {
        ActionStorage::Archive(body) if !body.class.program.is_flat() && body.class.changes.inserted == 0 => {
            Some(body)
        }
        _ => None,
    }
}

fn cut_rank<'a>(trace: &'a Trace, rank: Rank, plan: &CutPlan) -> Result<CutRank<'a>, WriteError> {
    let (old, less) = (plan.original_rank(rank), plan.loop_removal(rank));
    let roots = RootCounts::new(trace, old, &plan.ranks)?;
    let trace = trace.rank(old);
    let (names, mut tables) = Renumbering::new(old, trace, &plan.ranks, roots)?;
    let Some(body) = folded_rank(trace) else {
        let kept = KeptActions::new(trace, Arc::new(names), &plan.ranks, &mut tables);
        let encoded = encode(old, kept.clone(), &tables.side_tables, plan.encoding)?.map(Box::new);
        let linkable = LinkableRank { trace: tables, ..LinkableRank::default() };
        return Ok(match encoded {
            Some(encoded) if plan.encoding == Encoding::ForCutting => CutRank::Structured(encoded, linkable),
            encoded => CutRank::Streamed(encoded, kept, linkable),
        });
    };
    let kept = KeptProgram::new(trace, body, &names, less);
    let kept = kept.map_err(|damage| damaged(old, trace, damage))?;
    names.add_side_tables(&mut tables, &trace.side_tables, &plan.ranks, &kept.used);
    tables.pending_at_end = kept.used.renumber_pending(&trace.pending_at_end, &kept.removed).into();
    let encoded = kept.encode(body, &tables.side_tables, less).map_err(|error| encode_error(old, error))?;
    Ok(CutRank::Structured(Box::new(encoded), LinkableRank { trace: tables, ..LinkableRank::default() }))
}

/// Returns the error for a damaged rank.
pub(super) fn damaged(rank: Rank, trace: &RankTrace, damage: Damage) -> WriteError {
    match &trace.storage {
        ActionStorage::Memory(_) => WriteError::Damaged { rank, damage },
        ActionStorage::Archive(body) => {
            let file = body.class.archive.path().to_path_buf();
            TraceError::from(ArchiveError::Damaged { file, rank, damage }).into()
        }
    }
}
