//! Consistent cut of the traces of a program that was killed.
//!
//! Each rank has recorded a prefix of its actions, of arbitrary length. A rank may have received a message that its sender did not
//! record, or have left a collective operation that another rank never entered: a replay would wait there forever. The actions that
//! are kept are the longest prefixes of which none depends on an action that is not kept: a consistent cut (Chandy and Lamport,
//! "Distributed snapshots", 1985), of which there is always a longest one. It is computed as a fixpoint: as long as some rank
//! depends on a missing action, it is cut before the action that does.

mod channel;
mod cut_writer;
mod dependencies;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use pdes_core::Rank;
use rustc_hash::FxHashSet;
use trace_mmap::{LoadOptions, RankTrace, Slot, WriteError, read_unlinked};

use cut_writer::CutWriter;
use dependencies::Dependencies;

use crate::files;

/// Actions removed by a consistent cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedActions {
    /// Number of ranks that lost actions.
    pub ranks: u32,
    /// Number of actions that they lost.
    pub actions: u64,
}

/// Number of kept actions of each rank.
type KeptLengths = Vec<u64>;

/// An action and the slot of the request that it posts, if any.
type PostedAction = (u64, Option<Slot>);

/// The kept actions of a rank.
#[derive(Debug, Default)]
struct RankCut {
    /// Number of actions, from the first on.
    len: u64,
    /// Requests that nothing can complete: they are left out.
    dropped: FxHashSet<PostedAction>,
    /// Sends that nobody receives. Their sender continued without waiting for a receive, so they are written as buffered.
    unreceived: FxHashSet<u64>,
}

/// Cuts the traces of ranks, one file each, back to their longest consistent cut and writes them into a directory as `rank-0.txt`
/// and so on: a trace that loads, and replays without waiting for actions that were not recorded.
///
/// - Each completed receive or probe has a message that was sent; each completed collective operation has been entered by all
///   ranks of its communicator.
/// - Requests that had not completed are kept if their counterpart is, otherwise left out.
/// - Messages that nobody receives are kept as buffered sends, so that the sender does not wait for a receive; those of
///   persistent requests are treated like receives.
///
/// Memory holds the actions of all ranks, up to the budget of the options, and some 50 bytes for each message and collective
/// operation. A round of the fixpoint costs as much as the channels and communicators of the ranks that were cut in the round
/// before; the number of rounds is the length of the longest chain of ranks that are cut because of each other.
///
/// # Errors
/// Returns errors of the text; fails if a file cannot be written.
///
/// ```
/// use trace_mmap::LoadOptions;
/// use trace_tools::{load, write_consistent_cut};
/// let dir = tempfile::tempdir()?;
/// let files = [dir.path().join("a"), dir.path().join("b")];
/// // Rank 1 was killed before it recorded the message that rank 0 has received.
/// std::fs::write(&files[0], "0 init\n0 send 1 7 8\n0 recv 1 7 8\n0 compute 5\n")?;
/// std::fs::write(&files[1], "1 init\n1 recv 0 7 8\n1 compute 5\n")?;
/// let removed = write_consistent_cut(&files, dir.path(), &LoadOptions::default())?;
/// assert_eq!((removed.ranks, removed.actions), (1, 2));
/// assert_eq!(load(dir.path(), &LoadOptions::default())?.actions(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_consistent_cut(
    files: &[PathBuf],
    dir: &Path,
    options: &LoadOptions<'_>,
) -> Result<RemovedActions, WriteError> {
    let path = files.first().map_or(Path::new("."), PathBuf::as_path);
    let traces = read_unlinked(&*files::per_rank(path, files.to_vec()), options)?;
    let mut settled = RemovedActions::default();
    for (rank, (trace, rest)) in (0..).map(Rank::new).zip(traces.iter().zip(compute_cut(&traces))) {
        let path = dir.join(format!("rank-{rank}.txt"));
        let io = |source| WriteError::Io { file: path.clone(), source };
        let mut out = BufWriter::new(File::create(&path).map_err(io)?);
        let kept = CutWriter::new(rank, trace, &rest).write(&mut out).map_err(io)?;
        out.flush().map_err(io)?;
        let lost = trace.len().saturating_sub(kept);
        settled.actions += lost;
        settled.ranks += u32::from(lost > 0);
    }
    Ok(settled)
}

/// Computes the kept actions of each rank.
fn compute_cut(traces: &[RankTrace]) -> Vec<RankCut> {
    let mut events = Dependencies::default();
    for (rank, trace) in (0..).map(Rank::new).zip(traces) {
        events.add(rank, trace);
    }
    let mut ends: KeptLengths = traces.iter().map(RankTrace::len).collect();
    let mut is_changed = vec![true; ends.len()];
    while is_changed.contains(&true) {
        let mut next = ends.clone();
        events.lower_ends(&ends, &is_changed, &mut next);
        is_changed = next.iter().zip(&ends).map(|(next, end)| next < end).collect();
        ends = next;
    }
    let mut rests: Vec<RankCut> =
        ends.iter().map(|end| RankCut { len: *end, ..RankCut::default() }).collect();
    events.mark_unmatched(&ends, &mut rests);
    rests
}
