//! Deadlocks of the replayed program: the cycle of ranks that wait for each other.

use std::fmt;

use mpi_model::{ActionKind, Awaited, WaitReason};
use pdes_core::Rank;
use trace_mmap::{Action, Call, Location, NoteKind, OutIdx, RankTrace, RecordingNote, SendMode, Trace};

/// Largest number of ranks of a chain that are located in the trace and listed.
const MAX_LISTED: usize = 16;

/// A set of ranks that wait for each other forever, or for a rank that has finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The first 16 ranks of the cycle or chain, each waiting for the next.
    pub chain: Vec<WaitingRank>,
    /// Number of further ranks in the cycle or chain.
    pub omitted: usize,
    /// Reason why the last rank of the chain waits.
    pub end: ChainEnd,
    /// Number of ranks that have not finished.
    pub waiting: usize,
    /// Ranks in which several threads called MPI: a possible cause.
    pub threads: Option<RecordingNote>,
    /// Advice about resources that are off for good, or receives from any source, if they may have caused the deadlock.
    pub advice: Option<String>,
}

/// The rank for which the last rank of a chain waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainEnd {
    /// The first rank of the chain.
    Cycle,
    /// A rank that has finished.
    Finished(Rank),
    /// Any rank (`MPI_ANY_SOURCE`): no more messages are sent.
    AnySource,
}

/// A waiting rank in a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingRank {
    /// The rank.
    pub rank: Rank,
    /// The event that it waits for.
    pub waiting: WaitReason,
    /// Rank that holds the lock of a window for which it waits.
    pub holder: Option<Rank>,
    /// True if it waits in a synchronous send, which no library keeps for the receiver.
    pub is_synchronous: bool,
    /// Position at which it waits: action, position in the trace, and call site in the program if the trace has it.
    pub position: String,
}

impl Deadlock {
    /// Finds the cycle of waiting ranks that is reachable from the lowest rank. If there is none, finds the first other cycle, or the
    /// chain from the lowest rank to one that waits for a finished rank.
    pub(crate) fn find(
        trace: &Trace,
        stalled: &[Rank],
        waiting: impl Fn(Rank) -> Option<WaitReason>,
        holder: impl Fn(Rank) -> Option<Rank>,
    ) -> Self {
        let mut is_stalled = vec![false; trace.ranks() as usize];
        stalled.iter().for_each(|rank| is_stalled[rank.index()] = true);
        let waiting = |rank: Rank| waiting(rank).filter(|_| is_stalled[rank.index()]);
        // Whoever waits for a lock waits for its holder, not for the rank whose memory it is.
        let holder = |rank: Rank, waiting: WaitReason| holder(rank).filter(|_| locked(waiting).is_some());
        let peer = |rank: Rank, waiting: WaitReason| holder(rank, waiting).or(waiting.awaited.peer());
        let mut seen = vec![false; trace.ranks() as usize];
        let mut chains = stalled.iter().map(|&start| follow_waits(start, waiting, peer, &mut seen));
        let first = chains.next().unwrap_or_default();
        let cycle = if first.1 { None } else { chains.find(|(_, cycle)| *cycle) };
        let (chain, is_cycle) = cycle.unwrap_or(first);
        let link = |&(rank, waiting): &(Rank, WaitReason)| WaitingRank {
            rank,
            waiting,
            holder: holder(rank, waiting),
            is_synchronous: is_synchronous(trace, rank, waiting),
            position: describe_position(trace, rank, waiting),
        };
        Self {
            omitted: chain.len().saturating_sub(MAX_LISTED),
            end: match chain.last().and_then(|&(rank, waiting)| peer(rank, waiting)) {
                _ if is_cycle => ChainEnd::Cycle,
                Some(rank) => ChainEnd::Finished(rank),
                None => ChainEnd::AnySource,
            },
            chain: chain.iter().take(MAX_LISTED).map(link).collect(),
            waiting: stalled.len(),
            threads: trace.provenance().notes_of(NoteKind::Threads).next().cloned(),
            advice: None,
        }
    }
}

/// Follows the wait-for edges from `start` to the end of the chain, to a cycle, or to a rank seen before. Returns the chain or the
/// cycle, and whether it is a cycle.
fn follow_waits(
    start: Rank,
    waiting: impl Fn(Rank) -> Option<WaitReason>,
    peer: impl Fn(Rank, WaitReason) -> Option<Rank>,
    seen: &mut [bool],
) -> (Vec<(Rank, WaitReason)>, bool) {
    let mut chain: Vec<(Rank, WaitReason)> = Vec::new();
    let mut rank = start;
    while let Some(waiting) = waiting(rank) {
        if seen[rank.index()] {
            let Some(first) = chain.iter().position(|&(earlier, _)| earlier == rank) else { break };
            return (chain.split_off(first), true);
        }
        seen[rank.index()] = true;
        chain.push((rank, waiting));
        let Some(peer) = peer(rank, waiting) else { break };
        rank = peer;
    }
    (chain, false)
}

/// Returns the rank for the lock of whose memory a rank waits.
fn locked(waiting: WaitReason) -> Option<Rank> {
    match (waiting.operation, waiting.awaited) {
        (Some(ActionKind::WindowLock), Awaited::Receiver(of)) => Some(of),
        _ => None,
    }
}

fn describe_position(trace: &Trace, rank: Rank, waiting: WaitReason) -> String {
    // The tables of a rank of another process were valid when that process loaded it.
    let actions = trace.outline(rank).map_or(u64::MAX, |(actions, _)| actions);
    let actions = if trace.grows() { u64::MAX } else { actions };
    let ended = waiting.action >= actions;
    let index = waiting.action.min(actions.saturating_sub(1));
    let location = trace
        .locate(rank, index)
        .map_or(String::new(), |Location { file, line }| format!(" at {}:{line}", file.display()));
    if ended {
        return "after the end of its trace".to_owned();
    }
    let operation = waiting.operation.map_or(String::new(), |kind| format!(" ({})", kind.name()));
    let site = trace.with_rank(rank, |trace| call_site(trace, index).map(str::to_owned)).ok().flatten();
    let site = site.map_or(String::new(), |site| format!(", called at {site}"));
    format!("in action {index}{operation}{location}{site}")
}

/// Returns whether a rank waits in a send that is synchronous (`MPI_Ssend`), or for requests of such sends alone to its peer.
fn is_synchronous(trace: &Trace, rank: Rank, waiting: WaitReason) -> bool {
    let (Awaited::Receiver(peer), None) = (waiting.awaited, waiting.operation) else { return false };
    let Ok(index) = usize::try_from(waiting.action) else { return false };
    let modes = trace.with_rank(rank, |trace| {
        let is_to_peer = |to: OutIdx| trace.outgoing_channel(to).peer == peer;
        let mode_of = |action| match action {
            Action::Send { to, .. } | Action::Isend { to, .. } => {
                is_to_peer(to).then_some(SendMode::Standard)
            }
            Action::SendRecv(_) => Some(SendMode::Standard),
            Action::Call(id) => match trace.call(id) {
                Call::Send { mode, to, .. }
                | Call::Isend { mode, to, .. }
                | Call::SendInit { mode, to, .. } => to.is_some_and(is_to_peer).then_some(*mode),
                Call::SendRecv { .. } => Some(SendMode::Standard),
                _ => None,
            },
            _ => None,
        };
        let is_blocking = |action| match action {
            Action::Send { .. } | Action::SendRecv(_) => true,
            Action::Call(id) => matches!(trace.call(id), Call::Send { .. } | Call::SendRecv { .. }),
            _ => false,
        };
        let Some(last) = trace.cursor().nth(index) else { return false };
        if is_blocking(last) {
            return mode_of(last) == Some(SendMode::Synchronous);
        }
        let mut modes = trace.cursor().take(index + 1).filter_map(mode_of).peekable();
        modes.peek().is_some() && modes.all(|mode| mode == SendMode::Synchronous)
    });
    modes.unwrap_or(false)
}

/// Finds the call site of an action: the last one in the trace before it.
fn call_site(trace: &RankTrace, index: u64) -> Option<&str> {
    let actions = trace.cursor().take(usize::try_from(index).ok()?);
    let sites = actions.filter_map(|action| match action {
        Action::Location(site) => Some(site),
        _ => None,
    });
    sites.last().map(|site| trace.location(site))
}

impl Deadlock {
    /// Returns whether each rank of the chain waits in a send, and not all of these are synchronous: a library that keeps the messages
    /// would run the program.
    fn needs_buffers(&self) -> bool {
        let sends = |waiting: WaitReason| {
            matches!(waiting.awaited, Awaited::Receiver(_)) && locked(waiting).is_none()
        };
        self.chain.iter().all(|rank| sends(rank.waiting))
            && !self.chain.iter().all(|rank| rank.is_synchronous)
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match (self.waiting, self.end) {
            (1, ChainEnd::Cycle) => "rank waits for itself",
            (1, _) => "rank waits for ever",
            (_, ChainEnd::Cycle) => "ranks wait for each other",
            _ => "ranks wait for ever",
        };
        write!(f, "deadlock in the program: {} {what}", self.waiting)?;
        for WaitingRank { rank, waiting, holder, position, .. } in &self.chain {
            write!(f, "\n  rank {rank} waits {position} ")?;
            if let (Some(of), Some(holder)) = (locked(*waiting), holder) {
                write!(f, "for the lock of the window of rank {of}, which rank {holder} holds")?;
                continue;
            }
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
        if let Some(threads) = &self.threads {
            return write!(f, "\n  {threads}");
        }
        match self.end {
            ChainEnd::Finished(rank) => write!(f, "\n  rank {rank} has finished")?,
            ChainEnd::Cycle if self.needs_buffers() => write!(
                f,
                "\n  sends of mpi.detached_below_bytes or more wait for their receives; raise it if the MPI library of the program \
                 keeps larger messages"
            )?,
            ChainEnd::Cycle | ChainEnd::AnySource => {}
        }
        self.advice.iter().try_for_each(|advice| write!(f, "\n  {advice}"))
    }
}
