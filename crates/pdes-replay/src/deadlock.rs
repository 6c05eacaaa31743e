//! A deadlock of the program that was replayed: who waits for whom.

use std::fmt;

use mpi_model::{ActionKind, Direction, Machine, RankProcess, Waiting};
use pdes_core::Rank;
use trace_mmap::{Location, Trace};

/// The most ranks that a message lists.
const LISTED: usize = 16;

/// Ranks that wait for each other for ever, or for a rank that has finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The ranks on the way into or round the cycle, each waiting for the next.
    pub chain: Vec<Link>,
    /// Whether the last rank of the chain waits for the first one; else it waits for a rank that has finished.
    pub cycle: bool,
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
        let waiting = |rank: Rank| processes[rank.index()].waiting().filter(|_| stalled.contains(&rank));
        let mut best: Option<(Vec<(Rank, Waiting)>, bool)> = None;
        let mut seen = vec![false; processes.len()];
        for &start in stalled {
            let (chain, cycle) = follow(start, waiting, &mut seen);
            if best.is_none() || cycle {
                best = Some((chain, cycle));
            }
            if cycle {
                break;
            }
        }
        let (chain, cycle) = best.unwrap_or_default();
        let link =
            |(rank, waiting): (Rank, Waiting)| Link { rank, waiting, place: place(trace, rank, waiting) };
        Self { chain: chain.into_iter().map(link).collect(), cycle, waiting: stalled.len() }
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
        let what = if self.cycle { "ranks wait for each other" } else { "ranks wait for ever" };
        write!(f, "deadlock in the program: {} {what}", self.waiting)?;
        for Link { rank, waiting, place } in self.chain.iter().take(LISTED) {
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
        if self.chain.len() > LISTED {
            write!(f, "\n  ... and {} more", self.chain.len() - LISTED)?;
        }
        match self.chain.last() {
            Some(last) if !self.cycle => {
                write!(f, "\n  rank {} has finished", last.waiting.awaited.peer)
            }
            _ => Ok(()),
        }
    }
}
