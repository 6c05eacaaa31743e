//! Persistent requests of selected messages.

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::{CallOp, Op, Peer, RequestName};

use crate::transform::{Program, Refusal};

/// The persistent requests of a program with a flag for each: true if all messages of its starts are selected.
#[derive(Debug)]
pub(in crate::transform) struct PersistentRequests {
    /// The flags of each rank, in the order in which it creates the requests.
    selected: Vec<Vec<bool>>,
}

/// Returns the request that an operation creates, and whether it has a peer.
fn created(op: &Op) -> Option<(RequestName, bool)> {
    match op {
        Op::Call(CallOp::SendInit { to, request, .. }) => Some((*request, to.peer.is_some())),
        Op::Call(CallOp::RecvInit { from, request, .. }) => Some((*request, from.peer != Peer::ProcNull)),
        _ => None,
    }
}

impl PersistentRequests {
    /// Finds the requests of selected messages: `select` begins the selection of a rank, which of each operation in order yields a flag
    /// for each message.
    ///
    /// # Errors
    /// Fails at a start whose message is selected where that of another start of the same request is not, or the reverse.
    pub(in crate::transform) fn new<F: FnMut(&Op) -> Vec<bool>>(
        program: &Program<'_>,
        select: impl Fn(Rank) -> F,
    ) -> Result<Self, Refusal> {
        let of_rank = |rank: Rank| {
            let mut selects = select(rank);
            let mut flags: Vec<Option<bool>> = Vec::new();
            let mut numbers: FxHashMap<RequestName, usize> = FxHashMap::default();
            for step in program.steps(rank) {
                let mut messages = selects(&step.op).into_iter();
                if let Some((request, has_peer)) = created(&step.op) {
                    numbers.remove(&request);
                    numbers.extend(has_peer.then_some((request, flags.len())));
                    flags.push(None);
                }
                let Op::Call(CallOp::Start { requests }) = &step.op else { continue };
                // A request without a peer has no message.
                for number in requests.iter().filter_map(|request| numbers.get(request)) {
                    let is_selected = messages.next().unwrap_or_default();
                    if *flags[*number].get_or_insert(is_selected) != is_selected {
                        let reason = "a start of a persistent request, whose message is selected at some starts only: select all of them, or none";
                        return Err(Refusal::at(rank, step.action, reason));
                    }
                }
            }
            Ok(flags.into_iter().map(Option::unwrap_or_default).collect())
        };
        Ok(Self { selected: program.ranks().map(of_rank).collect::<Result<_, _>>()? })
    }

    /// Starts following the requests of a rank.
    pub(in crate::transform) fn follow(&self, rank: Rank) -> PersistentTracker<'_> {
        PersistentTracker(self.selected[rank.index()].iter())
    }
}

/// Follows the persistent requests of a rank.
#[derive(Debug)]
pub(in crate::transform) struct PersistentTracker<'p>(std::slice::Iter<'p, bool>);

impl PersistentTracker<'_> {
    /// Follows the next operation; returns the request that it creates, if it is one of selected messages.
    pub(in crate::transform) fn follow(&mut self, op: &Op) -> Option<RequestName> {
        let (request, _) = created(op)?;
        self.0.next().copied().unwrap_or_default().then_some(request)
    }
}
