//! A deadlock of the program that was replayed: who waits for whom.

use std::fmt;

use mpi_model::{Awaited, Waiting};
use pdes_core::Rank;
use trace_mmap::{Action, Location, RankTrace, Trace};

/// The most ranks of a chain that are looked up in the trace and listed.
const LISTED: usize = 16;

/// Ranks that wait for each other for ever, or for a rank that has finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The first 16 ranks round the cycle, or of the chain, each waiting for the next.
    pub chain: Vec<Link>,
    /// How many more ranks the cycle or the chain has.
    pub omitted: usize,
    /// Where the chain ends.
    pub end: ChainEnd,
    /// How many ranks had not finished.
    pub waiting: usize,
}

/// For whom the last rank of a chain waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainEnd {
    /// For the first one.
    Cycle,
    /// For a rank that has finished.
    Finished(Rank),
    /// For a message from any rank, and none is sent any more.
    Anybody,
}

/// A rank that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The rank.
    pub rank: Rank,
    /// What it waits for.
    pub waiting: Waiting,
    /// The action in which it waits, where that stands in the trace, and where in the program, if the trace says so.
    pub place: String,
}

impl Deadlock {
    /// Finds the cycle of waiting ranks that the lowest rank leads to, or where there is none, the chain from the
    /// lowest rank to one that waits for a finished rank.
    pub(crate) fn find(trace: &Trace, stalled: &[Rank], waiting: impl Fn(Rank) -> Option<Waiting>) -> Self {
        let mut is_stalled = vec![false; trace.ranks() as usize];
        stalled.iter().for_each(|rank| is_stalled[rank.index()] = true);
        let waiting = |rank: Rank| waiting(rank).filter(|_| is_stalled[rank.index()]);
        let mut seen = vec![false; trace.ranks() as usize];
        let mut ways = stalled.iter().map(|&start| follow(start, waiting, &mut seen));
        let first = ways.next().unwrap_or_default();
        let cycle = if first.1 { None } else { ways.find(|(_, cycle)| *cycle) };
        let (chain, is_cycle) = cycle.unwrap_or(first);
        let link =
            |&(rank, waiting): &(Rank, Waiting)| Link { rank, waiting, place: place(trace, rank, waiting) };
        Self {
            omitted: chain.len().saturating_sub(LISTED),
            end: match chain.last().and_then(|(_, waiting)| waiting.awaited.peer()) {
                _ if is_cycle => ChainEnd::Cycle,
                Some(rank) => ChainEnd::Finished(rank),
                None => ChainEnd::Anybody,
            },
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
        let Some(peer) = waiting.awaited.peer() else { break };
        rank = peer;
    }
    (chain, false)
}

fn place(trace: &Trace, rank: Rank, waiting: Waiting) -> String {
    // The tables of a rank of another process were right when that one held it.
    let actions = trace.outline(rank).map_or(u64::MAX, |(actions, _)| actions);
    let ended = waiting.action >= actions;
    let index = waiting.action.min(actions.saturating_sub(1));
    let location = trace
        .locate(rank, index)
        .map_or(String::new(), |Location { file, line }| format!(" at {}:{line}", file.display()));
    if ended {
        return "after the end of its trace".to_owned();
    }
    let operation = waiting.operation.map_or(String::new(), |kind| format!(" ({})", kind.name()));
    let site = trace.look_at(rank, |trace| call_site(trace, index).map(str::to_owned)).ok().flatten();
    let site = site.map_or(String::new(), |site| format!(", called at {site}"));
    format!("in action {index}{operation}{location}{site}")
}

/// Finds the call site of an action: the last one that the trace names up to there.
fn call_site(trace: &RankTrace, index: u64) -> Option<&str> {
    let actions = trace.cursor().take(usize::try_from(index).ok()?);
    let sites = actions.filter_map(|action| match action {
        Action::Location(site) => Some(site),
        _ => None,
    });
    sites.last().map(|site| trace.location(site))
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what =
            if self.end == ChainEnd::Cycle { "ranks wait for each other" } else { "ranks wait for ever" };
        write!(f, "deadlock in the program: {} {what}", self.waiting)?;
        for Link { rank, waiting, place } in &self.chain {
            write!(f, "\n  rank {rank} waits {place} ")?;
            match waiting.awaited {
                Awaited::Sender(peer) => write!(f, "for a message from rank {peer}")?,
                Awaited::AnySender => write!(f, "for a message from any rank")?,
                Awaited::Receiver(peer) => write!(f, "for rank {peer} to receive its message")?,
                Awaited::Operation(kind) => write!(f, "for the end of its {}", kind.name())?,
            }
        }
        if self.omitted > 0 {
            write!(f, "\n  ... and {} more", self.omitted)?;
        }
        match self.end {
            ChainEnd::Finished(rank) => write!(f, "\n  rank {rank} has finished"),
            ChainEnd::Cycle | ChainEnd::Anybody => Ok(()),
        }
    }
}
