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
use std::sync::atomic::Ordering;

use pdes_core::Rank;
use rustc_hash::FxHashSet;
use trace_mmap::{
    Action, CallOp, CommId, LoadOptions, Op, Ops, Peer, RankTrace, Slot, Tag, TraceError, WriteError,
    read_unlinked,
};

use cut_writer::CutWriter;
use dependencies::Dependencies;

use crate::files;
use crate::shard::Shard;

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
    /// True if the last action waits for the receive of a message.
    is_stuck: bool,
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
    Ok(recover(files, dir, options)?.removed)
}

/// A trace of a program that was killed, cut back to its longest consistent cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Actions that the cut has removed.
    pub removed: RemovedActions,
    /// The ranks that were in a call when their recording ended, and the call.
    pub calls: Vec<(Rank, String)>,
    /// True if no rank could proceed any more: each has finished, or was in a call that needs an action which was not recorded. A
    /// standard send needs its receive from 64 KiB on, the default of `mpi.detached_below_bytes`; whether a call that waits for any
    /// one of its requests can proceed is not known, so that it counts as if it could.
    pub is_deadlocked: bool,
}

/// Does the same as [`write_consistent_cut`], and finds out in which calls the ranks were, if the files are shards.
///
/// # Errors
/// As of [`write_consistent_cut`].
pub fn recover(files: &[PathBuf], dir: &Path, options: &LoadOptions<'_>) -> Result<Recovered, WriteError> {
    let path = files.first().map_or(Path::new("."), PathBuf::as_path);
    let functions = files.iter().map(|file| Ok(Shard::open(file)?.and_then(|shard| shard.call())));
    let functions: Vec<Option<String>> = functions.collect::<Result<_, TraceError>>()?;
    let (source, begun) = files::per_rank_with_begun(path, files.to_vec());
    let traces = read_unlinked(&*source, options)?;
    let begun = begun.iter().map(|flag| flag.load(Ordering::Relaxed));
    let lens: KeptLengths = traces.iter().map(RankTrace::len).collect();
    let completed: KeptLengths = lens.iter().zip(begun).map(|(len, begun)| len - u64::from(begun)).collect();
    let events = |with_begun: bool| {
        let mut events = Dependencies::default();
        for (rank, (trace, completed)) in (0..).map(Rank::new).zip(traces.iter().zip(&completed)) {
            events.add(rank, trace, with_begun.then_some(*completed));
        }
        events
    };
    let is_deadlocked = functions.iter().any(Option::is_some) && {
        let cuts = compute_cut(&events(true), lens.clone());
        let is_stuck =
            |rank: usize| functions[rank].is_some() && (cuts[rank].len < lens[rank] || cuts[rank].is_stuck);
        (0..traces.len()).all(|rank| is_finished(&traces[rank]) || is_stuck(rank))
    };
    let mut recovered = Recovered { is_deadlocked, ..Recovered::default() };
    let cuts = compute_cut(&events(false), completed.clone());
    for (index, (rank, cut)) in (0..).map(Rank::new).zip(cuts).enumerate() {
        let (trace, path) = (&traces[index], dir.join(format!("rank-{rank}.txt")));
        let io = |source| WriteError::Io { file: path.clone(), source };
        let mut out = BufWriter::new(File::create(&path).map_err(io)?);
        let kept = CutWriter::new(rank, trace, &cut).write(&mut out).map_err(io)?;
        out.flush().map_err(io)?;
        let lost = completed[index].saturating_sub(kept);
        recovered.removed.actions += lost;
        recovered.removed.ranks += u32::from(lost > 0);
        if let Some(function) = &functions[index] {
            recovered.calls.push((rank, describe_call(function, trace)));
        }
    }
    Ok(recovered)
}

fn is_finished(trace: &RankTrace) -> bool {
    matches!(trace.cursor().last(), Some(Action::Finalize))
}

/// Returns a function and, if the last action is a message or a probe of it, whose peer and tag.
fn describe_call(function: &str, trace: &RankTrace) -> String {
    let of_message =
        ["Send", "Ssend", "Bsend", "Rsend", "Recv", "Probe", "Mprobe", "Sendrecv", "Sendrecv_replace"];
    let is_of_message = function.strip_prefix("MPI_").is_some_and(|name| of_message.contains(&name));
    let last = Ops::new(trace).last().filter(|_| is_of_message);
    let sent = |to: Option<Rank>, tag: Tag| {
        let to = to.map_or("MPI_PROC_NULL".to_owned(), |rank| rank.to_string());
        format!("destination {to}, tag {tag}")
    };
    let received = |from: Peer, tag: Option<Tag>| {
        let from = match from {
            Peer::ProcNull => "MPI_PROC_NULL".to_owned(),
            Peer::Any { .. } => "any".to_owned(),
            Peer::Rank(rank) => rank.to_string(),
        };
        format!("source {from}, tag {}", tag.map_or("any".to_owned(), |tag| tag.to_string()))
    };
    let on = |communicator: CommId| match communicator {
        CommId::WORLD => String::new(),
        other => format!(", communicator {other}"),
    };
    let arguments = match last {
        Some(Op::Send { peer, tag, .. }) => sent(peer, tag),
        Some(Op::Recv { peer, tag, .. }) => received(peer.map_or(Peer::ProcNull, Peer::Rank), tag),
        Some(Op::Call(CallOp::Send { to, .. })) => sent(to.peer, to.tag) + &on(to.communicator),
        Some(Op::Call(CallOp::Recv { from, .. } | CallOp::Probe { from })) => {
            received(from.peer, from.tag) + &on(from.communicator)
        }
        Some(Op::Call(CallOp::SendRecv { to, from, .. })) => {
            sent(to.peer, to.tag) + "; " + &received(from.peer, from.tag) + &on(to.communicator)
        }
        _ => return function.to_owned(),
    };
    format!("{function}({arguments})")
}

/// Computes the kept actions of each rank, of which there are so many at most.
fn compute_cut(events: &Dependencies, mut ends: KeptLengths) -> Vec<RankCut> {
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
