//! Cutting a trace: some of its ranks, or some iterations of its main loop.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use pdes_core::Rank;

use crate::archive::tally::Tally;
use crate::archive::{ArchivedRank, ConvertOptions, Converted, WriteError, convert};
use crate::collective::Collective;
use crate::error::TraceError;
use crate::record::{LOOP_BEGIN, LOOP_END};
use crate::structure::{Op, Request, TextLine};
use crate::trace::{Body, Trace};

/// What to keep of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Ranks, which are numbered from 0 again; all by default. Messages to and from others are left out with the requests
    /// for them; collective operations take place among those that stay, a root that goes being replaced by the first rank.
    pub ranks: Option<Range<u32>>,
    /// Iterations of the main loop of each rank, from the first on; all by default. The main loop is that with most actions
    /// which is in no other one. A rank without loops keeps everything.
    pub iterations: Option<u64>,
}

/// Writes a part of a trace to an archive.
///
/// Receives from any source all stay, also where their messages come from ranks that go: that makes more receives than
/// messages, which is an error. The loops are those that the archive has. Where they begin at different places of the iteration in different ranks, as
/// folding may find them, cutting iterations can leave receives without sends, which is an error. The part is
/// written as text into a temporary directory on the way: this costs as much as it has actions, and reads all actions.
///
/// # Errors
/// Where the ranks are not a part of the trace; else as [`convert`].
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
    let error = |source| TraceError::Spill { dir: std::env::temp_dir(), source };
    let dir = match &options.load.spill_dir {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    };
    let dir = dir.map_err(error)?;
    for rank in ranks.clone() {
        let file = dir.path().join(format!("rank-{}.txt", rank - ranks.start));
        write_part(trace, Rank::new(rank), &file, &ranks, what.iterations).map_err(error)?;
    }
    trace.integrity().map_err(TraceError::from)?;
    convert(dir.path(), output, options)
}

fn write_part(
    trace: &Trace,
    rank: Rank,
    file: &Path,
    ranks: &Range<u32>,
    iterations: Option<u64>,
) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    let main = match (&trace.rank(rank).body, iterations) {
        (Body::Archive(body), Some(_)) => main_loop(body),
        _ => None,
    };
    let number = Rank::new(rank.get() - ranks.start);
    let mut ops = trace.ops(rank);
    while let Some(op) = ops.next() {
        let iteration = main.and_then(|main| main.iteration(ops.outermost_loop()?));
        let is_cut = iteration.zip(iterations).is_some_and(|(iteration, kept)| iteration >= kept);
        if let Some(op) = (!is_cut).then(|| keep(&op, ranks)).flatten() {
            writeln!(out, "{}", TextLine { rank: number, op: &op })?;
        }
    }
    out.flush()
}

/// A loop that is in no other one.
#[derive(Clone, Copy, Debug)]
struct MainLoop {
    /// The first record of its body.
    body: u64,
    count: u64,
}

impl MainLoop {
    /// Returns the iteration in which a cursor is that is in an outermost loop with this body and so many iterations left.
    fn iteration(self, (body, left): (u64, u64)) -> Option<u64> {
        (body == self.body).then(|| self.count.saturating_sub(left + 1))
    }
}

/// Finds the loop with most actions.
fn main_loop(rank: &ArchivedRank) -> Option<MainLoop> {
    let side = Default::default();
    let (mut depth, mut best) = (0_u64, None);
    let mut tally = Tally::new();
    let (mut begin, mut before) = (MainLoop { body: 0, count: 0 }, 0);
    for (index, record) in (0..).zip(rank.records().map_while(Result::ok)) {
        if record.kind() == LOOP_BEGIN {
            if depth == 0 {
                (begin, before) = (MainLoop { body: index + 1, count: record.amount() }, tally.actions);
            }
            depth += 1;
        }
        // What a malformed program adds up to does not matter: reading it ends with an error.
        let _ = tally.push(record, &side);
        if record.kind() == LOOP_END {
            depth = depth.saturating_sub(1);
            let actions = tally.actions - before;
            if depth == 0 && best.is_none_or(|(most, _)| actions > most) {
                best = Some((actions, begin));
            }
        }
    }
    best.map(|(_, main)| main)
}

/// Returns what is left of an operation among some ranks.
fn keep(op: &Op, ranks: &Range<u32>) -> Option<Op> {
    let number = |rank: Rank| ranks.contains(&rank.get()).then(|| Rank::new(rank.get() - ranks.start));
    // Nobody stays nobody; somebody who goes takes the operation along.
    let peer = |peer: Option<Rank>| match peer {
        None => Some(None),
        Some(rank) => number(rank).map(Some),
    };
    let request = |request: &Request| Some(Request { peer: peer(request.peer)?, ..*request });
    Some(match op {
        Op::Send { peer: to, tag, bytes } => Op::Send { peer: peer(*to)?, tag: *tag, bytes: *bytes },
        Op::Isend { peer: to, tag, bytes } => Op::Isend { peer: peer(*to)?, tag: *tag, bytes: *bytes },
        Op::Recv { peer: from, tag, bytes } => Op::Recv { peer: peer(*from)?, tag: *tag, bytes: *bytes },
        Op::Irecv { peer: from, tag, bytes } => Op::Irecv { peer: peer(*from)?, tag: *tag, bytes: *bytes },
        Op::SendRecv { to, send_bytes, from, recv_bytes } => {
            let (to, from) = (to.and_then(number), from.and_then(number));
            Op::SendRecv { to, send_bytes: *send_bytes, from, recv_bytes: *recv_bytes }
        }
        Op::Wait(name) => Op::Wait(request(name)?),
        Op::Test(name) => Op::Test(request(name)?),
        Op::Collective(collective) => Op::Collective(keep_collective(collective, ranks)),
        other => other.clone(),
    })
}

fn keep_collective(collective: &Collective, ranks: &Range<u32>) -> Collective {
    let mut kept = collective.clone();
    let part = |counts: &mut Box<[u64]>| {
        *counts = counts[ranks.start as usize..ranks.end as usize].into();
    };
    match &mut kept {
        Collective::Bcast { root, .. }
        | Collective::Reduce { root, .. }
        | Collective::Gather { root, .. }
        | Collective::Scatter { root, .. }
        | Collective::Gatherv { root, .. }
        | Collective::Scatterv { root, .. } => {
            let number = if ranks.contains(&root.get()) { root.get() - ranks.start } else { 0 };
            *root = Rank::new(number);
        }
        _ => {}
    }
    match &mut kept {
        Collective::Alltoallv { send_counts, recv_counts, .. } => {
            part(send_counts);
            part(recv_counts);
        }
        Collective::Gatherv { recv_counts, .. }
        | Collective::Allgatherv { recv_counts, .. }
        | Collective::ReduceScatter { recv_counts, .. } => part(recv_counts),
        Collective::Scatterv { send_counts, .. } => part(send_counts),
        _ => {}
    }
    kept
}
