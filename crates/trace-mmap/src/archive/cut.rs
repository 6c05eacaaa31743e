//! Cutter: writes a part of a trace, some of its ranks or some iterations of its main loop.
//!
//! Folded ranks are cut in their folded form: programs lose records, loops lose iterations, columns lose values. Ranks
//! without loops, or with inserted computations, are read action by action and folded as in a conversion.

mod calls;
mod main_loop;
mod names;
mod program;
mod stream;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pdes_core::Rank;

use crate::archive::convert::{Encoding, Folding, encode, encode_error, in_order, write_trace};
use crate::archive::encode::Encoded;
use crate::archive::{
    ArchiveError, ArchiveWriter, ArchivedRank, ConvertOptions, Converted, Damage, WriteError,
};
use crate::draft::Linkable;
use crate::error::TraceError;
use crate::load::LoadOptions;
use crate::trace::{Body, RankTrace, Trace};
use main_loop::Removal;
use names::Names;
use program::{KeptProgram, Less};
use stream::Kept;

/// The part of a trace to keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Ranks to keep, which are renumbered from 0; all by default. Messages to and from removed ranks are removed with their
    /// requests. Collective operations take place among the kept ranks; a removed root is replaced by the first kept rank.
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
/// come from removed ranks: there are then more receives than messages, which is an error.
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
    let is_flat = |rank: &RankTrace| !rank.is_empty() && structured(rank).is_none();
    match what.iterations {
        Some(kept) if ranks.clone().any(|rank| is_flat(trace.rank(Rank::new(rank)))) => {
            let dir = temporary(options)?;
            let (whole, part) = (dir.path().join("whole.pdt"), dir.path().join("part.pdt"));
            let load = LoadOptions { progress: None, ..options.load.clone() };
            let folding = match options.folding {
                Folding::Never => Folding::default(),
                folding => folding,
            };
            let options = ConvertOptions { load, folding, ..options.clone() };
            let single = ConvertOptions { shards: 1, ..options.clone() };
            let plan = Plan { ranks: all, removal: None, encoding: Encoding::ForCutting };
            cut_parts(trace, &whole, &plan, &single)?;
            let whole = Trace::load(&whole, &LoadOptions::default())?;
            let Converted { warnings, .. } = cut_iterations(&whole, &part, ranks, kept, &single)?;
            let part = Trace::load(&part, &LoadOptions::default())?;
            Ok(Converted { summary: write_trace(&part, output, &options)?, warnings })
        }
        Some(kept) => cut_iterations(trace, output, ranks, kept, options),
        None => {
            cut_parts(trace, output, &Plan { ranks, removal: None, encoding: Encoding::of(options) }, options)
        }
    }
}

fn temporary(options: &ConvertOptions<'_>) -> Result<tempfile::TempDir, WriteError> {
    let dir = options.load.spill_dir.clone().unwrap_or_else(std::env::temp_dir);
    tempfile::tempdir_in(&dir).map_err(|source| TraceError::Spill { dir, source }.into())
}

/// The ranks to keep and the iterations to remove.
struct Plan {
    ranks: Range<u32>,
    removal: Option<Removal>,
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
    let removal = Some(Removal::new(trace, &ranks, kept)?);
    cut_parts(trace, output, &Plan { ranks, removal, encoding: Encoding::of(options) }, options)
}

/// Cuts each rank by itself, in parallel.
fn cut_parts(
    trace: &Trace,
    output: &Path,
    plan: &Plan,
    options: &ConvertOptions<'_>,
) -> Result<Converted, WriteError> {
    let number = plan.ranks.end - plan.ranks.start;
    let mut writer = ArchiveWriter::converting(output, number, trace.provenance(), options)?;
    let prepare = |rank: Rank| cut_rank(trace, rank, plan);
    in_order(options.load.threads, number, prepare, |rank, part| {
        part.write(rank, &mut writer)?;
        if let Some(progress) = options.load.progress {
            // A display elsewhere reads this counter; nothing depends on its order.
            progress.fetch_add(trace.rank(plan.old(rank)).len(), Ordering::Relaxed);
        }
        Ok(())
    })?;
    trace.integrity().map_err(TraceError::from)?;
    Ok(Converted { summary: writer.finish()?, warnings: trace.warnings().to_vec() })
}

impl Plan {
    /// Returns the original number of a rank.
    fn old(&self, rank: Rank) -> Rank {
        Rank::new(rank.get() + self.ranks.start)
    }

    /// Returns the main loop of a rank and the number of iterations to remove from it.
    fn less(&self, rank: Rank) -> Less<'_> {
        let removal = self.removal.as_ref()?;
        Some((removal.loops[rank.index()].as_ref()?, removal.iterations))
    }
}

/// The kept part of a rank, encoded.
enum Part<'a> {
    Structured(Box<Encoded>, Linkable),
    Streamed(Option<Box<Encoded>>, Kept<'a>, Linkable),
}

impl Part<'_> {
    fn write(self, rank: Rank, writer: &mut ArchiveWriter) -> Result<(), WriteError> {
        match self {
            Self::Structured(encoded, linkable) => writer.write_structured(rank, *encoded, linkable),
            Self::Streamed(encoded, kept, linkable) => {
                writer.write_encoded(rank, encoded.map(|encoded| *encoded), kept, linkable)
            }
        }
    }
}

/// Returns the body of a rank that can be cut in its folded form: one with loops or columns and without inserted computations.
fn structured(rank: &RankTrace) -> Option<&ArchivedRank> {
    match &rank.body {
        Body::Archive(body) if !body.form.program.is_flat() && body.form.changes.inserted == 0 => Some(body),
        _ => None,
    }
}

fn cut_rank<'a>(trace: &'a Trace, rank: Rank, plan: &Plan) -> Result<Part<'a>, WriteError> {
    let (old, less) = (plan.old(rank), plan.less(rank));
    let trace = trace.rank(old);
    let (names, mut tables) = Names::new(old, trace, &plan.ranks)?;
    let Some(body) = structured(trace) else {
        let kept = Kept::new(trace, Arc::new(names), &plan.ranks, &mut tables);
        let encoded = encode(old, kept.clone(), &tables.side, plan.encoding)?.map(Box::new);
        let linkable = Linkable { trace: tables, ..Linkable::default() };
        return Ok(match encoded {
            Some(encoded) if plan.encoding == Encoding::ForCutting => Part::Structured(encoded, linkable),
            encoded => Part::Streamed(encoded, kept, linkable),
        });
    };
    let kept = KeptProgram::new(trace, body, &names, less);
    let kept = kept.map_err(|damage| damaged(old, trace, damage))?;
    names.add_side(&mut tables, &trace.side, &plan.ranks, &kept.used);
    tables.pending_at_end = kept.used.pending(&trace.pending_at_end, &kept.gone).into();
    let encoded = kept.encode(body, &tables.side, less).map_err(|error| encode_error(old, error))?;
    Ok(Part::Structured(Box::new(encoded), Linkable { trace: tables, ..Linkable::default() }))
}

/// Returns the error for a damaged rank.
fn damaged(rank: Rank, trace: &RankTrace, damage: Damage) -> WriteError {
    match &trace.body {
        Body::Memory(_) => WriteError::Damaged { rank, damage },
        Body::Archive(body) => {
            let file = body.form.archive.path().to_path_buf();
            TraceError::from(ArchiveError::Damaged { file, rank, damage }).into()
        }
    }
}
