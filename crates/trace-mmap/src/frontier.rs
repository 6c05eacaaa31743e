//! Cutting the traces of a program that was ended before its time back to where all ranks could go on.
//!
//! Each rank has recorded the begin of what it did, up to another place. A rank may have received what its sender had no time to
//! record, or have left an operation that another rank never entered: a replay would wait there for ever. The actions that are
//! kept are the longest begins of all ranks of which none relies on what is not kept (a consistent cut, of which there is always a
//! longest one: Chandy and Lamport, "Distributed snapshots", 1985). It is found as a fixpoint: as long as some rank relies on something
//! that is not there, it ends before the action that does.

mod channel;
mod events;
mod rewrite;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use pdes_core::Rank;
use rustc_hash::FxHashSet;

use crate::archive::WriteError;
use crate::channel::Slot;
use crate::draft::Linkable;
use crate::load::{LoadOptions, read_all};
use crate::store::Store;
use crate::trace::RankTrace;
use events::Events;
use rewrite::Rewrite;

/// What was cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Ranks that lost actions.
    pub ranks: u32,
    /// Actions that they lost.
    pub actions: u64,
}

/// Where each rank ends.
type Ends = Vec<u64>;

/// An action and, where it posts a request, its place.
type Posted = (u64, Option<Slot>);

/// What is left of a rank.
#[derive(Debug, Default)]
struct Rest {
    /// Actions from the first on.
    len: u64,
    /// Requests that never complete, and for which there is nothing to complete them: they are left out.
    dropped: FxHashSet<Posted>,
    /// Sends that nobody receives. Whoever went on after them did not wait for their receives: they are buffered.
    unreceived: FxHashSet<u64>,
}

/// Cuts traces of ranks, one file each, which need not fit each other, back to where all ranks could go on, and writes them into a
/// directory, as `rank-0.txt` and so on: a trace that loads, and replays without waiting for what was not recorded.
///
/// - Receives and probes that have completed have a message that was sent; collective operations that have completed have
///   been entered by all ranks of their communicator.
/// - Requests that had not completed are kept where the other side is there, otherwise left out.
/// - Messages that nobody receives are kept as buffered sends, so that the rank does not wait for their receives, except those of
///   persistent requests, which are treated as receives.
///
/// The actions of all ranks are in memory, up to the budget of the options, and some 50 bytes for each message and collective operation. Each round
/// costs as much as the channels and communicators of the ranks that the round before has cut; there are as many rounds as the
/// longest chain of ranks that lose actions because another one has.
///
/// # Errors
/// What is wrong with the text; files that cannot be written.
///
/// ```
/// use trace_mmap::{LoadOptions, Trace, settle};
/// let dir = tempfile::tempdir()?;
/// let files = [dir.path().join("a"), dir.path().join("b")];
/// // Rank 1 was ended before it had recorded the message that rank 0 has received.
/// std::fs::write(&files[0], "0 init\n0 send 1 7 8\n0 recv 1 7 8\n0 compute 5\n")?;
/// std::fs::write(&files[1], "1 init\n1 recv 0 7 8\n1 compute 5\n")?;
/// let settled = settle(&files, dir.path(), &LoadOptions::default())?;
/// assert_eq!((settled.ranks, settled.actions), (1, 2));
/// assert_eq!(Trace::load(dir.path(), &LoadOptions::default())?.actions(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn settle(files: &[PathBuf], dir: &Path, options: &LoadOptions<'_>) -> Result<Settled, WriteError> {
    let store = Store::new(options.memory_budget, options.spill_dir.as_deref(), options.progress);
    let mut ranks = read_all(files, options, &store)?;
    store.finish(ranks.iter_mut().flat_map(|linkable| linkable.trace.records_mut()))?;
    // Requests are left out by their names: all of them get one.
    let named = |Linkable { trace, .. }: Linkable| RankTrace { names_requests: true, ..trace };
    let traces: Vec<RankTrace> = ranks.into_iter().map(named).collect();
    let mut settled = Settled::default();
    for (rank, (trace, rest)) in (0..).map(Rank::new).zip(traces.iter().zip(rests(&traces))) {
        let path = dir.join(format!("rank-{rank}.txt"));
        let io = |source| WriteError::Io { file: path.clone(), source };
        let mut out = BufWriter::new(File::create(&path).map_err(io)?);
        let kept = Rewrite::new(rank, trace, &rest).write(&mut out).map_err(io)?;
        out.flush().map_err(io)?;
        let lost = trace.len().saturating_sub(kept);
        settled.actions += lost;
        settled.ranks += u32::from(lost > 0);
    }
    Ok(settled)
}

/// Finds what is left of each rank.
fn rests(traces: &[RankTrace]) -> Vec<Rest> {
    let mut events = Events::default();
    for (rank, trace) in (0..).map(Rank::new).zip(traces) {
        events.add(rank, trace);
    }
    let mut ends: Ends = traces.iter().map(RankTrace::len).collect();
    let mut is_changed = vec![true; ends.len()];
    while is_changed.contains(&true) {
        let mut next = ends.clone();
        events.limit(&ends, &is_changed, &mut next);
        is_changed = next.iter().zip(&ends).map(|(next, end)| next < end).collect();
        ends = next;
    }
    let mut rests: Vec<Rest> = ends.iter().map(|end| Rest { len: *end, ..Rest::default() }).collect();
    events.mark(&ends, &mut rests);
    rests
}
