//! A deadlock of the program that was replayed: who waits for whom.

use std::fmt;

use mpi_model::{ActionKind, Direction, Machine, RankProcess, Waiting};
use pdes_core::Rank;
use trace_mmap::{Location, Trace};

/// The most ranks of a chain that are looked up in the trace and listed.
const LISTED: usize = 16;

/// Ranks that wait for each other for ever, or for a rank that has finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The first 16 ranks round the cycle, or of the chain, each waiting for the next.
    pub chain: Vec<Link>,
    /// How many more ranks the cycle or the chain has.
    pub omitted: usize,
    /// The finished rank for which the last rank of the chain waits; `None` for a cycle, whose last rank waits for the
    /// first one.
    pub finished: Option<Rank>,
    /// How many ranks had not finished.
    pub waiting: usize,
}

/// A rank that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The rank.
    pub rank: Rank,
    /// What it waits for.
    pub waiting: Waiting,
    /// The name of the action in which it waits, and where that stands in the trace.
    pub place: String,
}

impl Deadlock {
    /// Finds the cycle of waiting ranks that the lowest rank leads to, or where there is none, the chain from the
    /// lowest rank to one that waits for a finished rank.
    pub(crate) fn find<M: Machine>(
        trace: &Trace,
        processes: &[RankProcess<'_, M>],
        stalled: &[Rank],
    ) -> Self {
        let mut is_stalled = vec![false; processes.len()];
        stalled.iter().for_each(|rank| is_stalled[rank.index()] = true);
        let waiting = |rank: Rank| processes[rank.index()].waiting().filter(|_| is_stalled[rank.index()]);
        let mut seen = vec![false; processes.len()];
        let mut ways = stalled.iter().map(|&start| follow(start, waiting, &mut seen));
        let first = ways.next().unwrap_or_default();
        let cycle = if first.1 { None } else { ways.find(|(_, cycle)| *cycle) };
        let (chain, is_cycle) = cycle.unwrap_or(first);
        let link =
            |&(rank, waiting): &(Rank, Waiting)| Link { rank, waiting, place: place(trace, rank, waiting) };
        Self {
            omitted: chain.len().saturating_sub(LISTED),
            finished: chain.last().filter(|_| !is_cycle).map(|(_, waiting)| waiting.awaited.peer),
            chain: chain.iter().take(LISTED).map(link).collect(),
            waiting: stalled.len(),
        }
    }
}

/// Follows who waits for whom from one rank until the way ends, bites its own tail, or meets an earlier way.
fn follow(
    start: Rank,
    waiting: impl Fn(Rank) -> Option<Waiting>,
    seen: &mut [bool],
) -> (Vec<(Rank, Waiting)>, bool) {
    let mut chain: Vec<(Rank, Waiting)> = Vec::new();
    let mut rank = start;
    while let Some(waiting) = waiting(rank) {
        if seen[rank.index()] {
            let Some(first) = chain.iter().position(|&(earlier, _)| earlier == rank) else { break };
            return (chain.split_off(first), true);
        }
        seen[rank.index()] = true;
        chain.push((rank, waiting));
        rank = waiting.awaited.peer;
    }
    (chain, false)
}

fn place(trace: &Trace, rank: Rank, waiting: Waiting) -> String {
    let ended = waiting.action >= trace.rank(rank).len();
    let index = waiting.action.min(trace.rank(rank).len().saturating_sub(1));
    let location = trace
        .locate(rank, index)
        .map_or(String::new(), |Location { file, line }| format!(" at {}:{line}", file.display()));
    let operation = waiting.operation.map_or("", ActionKind::name);
    match (ended, operation) {
        (true, _) => "after the end of its trace".to_owned(),
        (false, "") => format!("in action {index}{location}"),
        (false, operation) => format!("in action {index} ({operation}){location}"),
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.finished.is_none() { "ranks wait for each other" } else { "ranks wait for ever" };
        write!(f, "deadlock in the program: {} {what}", self.waiting)?;
        for Link { rank, waiting, place } in &self.chain {
            let peer = waiting.awaited.peer;
            match waiting.awaited.direction {
                Direction::Receive => {
                    write!(f, "\n  rank {rank} waits {place} for a message from rank {peer}")?
                }
                Direction::Send => {
                    write!(f, "\n  rank {rank} waits {place} for rank {peer} to receive its message")?;
                }
            }
        }
        if self.omitted > 0 {
            write!(f, "\n  ... and {} more", self.omitted)?;
        }
        match self.finished {
            Some(rank) => write!(f, "\n  rank {rank} has finished"),
            None => Ok(()),
        }
    }
}
