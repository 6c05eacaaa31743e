//! Persistent requests of selected messages.

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::folded::State;
use trace_mmap::{CallOp, Op, Peer, RequestName};

use crate::transform::state::Stateful;
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

/// The requests that a rank has created.
#[derive(Default)]
struct CreatedRequests {
    /// A flag for each: true if the messages of its starts are selected, none before the first one.
    flags: Vec<Option<bool>>,
    /// The numbers of those that have a peer.
    numbers: FxHashMap<RequestName, usize>,
}

impl Stateful for CreatedRequests {
    fn state(&mut self, state: &mut State<'_>) {
        if !self.flags.is_empty() {
            state.unknown();
        }
    }
}

impl PersistentRequests {
    /// Finds the requests of selected messages: `begin` begins the selection of a rank, and `select` yields a flag for each message of
    /// the next operation.
    ///
    /// # Errors
    /// Fails at a start whose message is selected where that of another start of the same request is not, or the reverse.
    pub(in crate::transform) fn new<S: Stateful>(
        program: &Program<'_>,
        begin: impl Fn(Rank) -> S,
        select: impl Fn(&mut S, &Op) -> Vec<bool>,
    ) -> Result<Self, Refusal> {
        let of_rank = |rank: Rank| {
            let mut values = (begin(rank), CreatedRequests::default());
            program.walk(rank, &mut values, |(selects, CreatedRequests { flags, numbers }), step| {
                let mut messages = select(selects, &step.op).into_iter();
                if let Some((request, has_peer)) = created(&step.op) {
                    numbers.remove(&request);
                    numbers.extend(has_peer.then_some((request, flags.len())));
                    flags.push(None);
                }
                let Op::Call(CallOp::Start { requests }) = &step.op else { return Ok(()) };
                // A request without a peer has no message.
                for number in requests.iter().filter_map(|request| numbers.get(request)) {
                    let is_selected = messages.next().unwrap_or_default();
                    if *flags[*number].get_or_insert(is_selected) != is_selected {
                        let reason = "a start of a persistent request, whose message is selected at some starts only: select all of them, or none";
                        return Err(Refusal::at(rank, step.action, reason));
                    }
                }
                Ok(())
            })?;
            let (_, CreatedRequests { flags, .. }) = values;
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

impl Stateful for PersistentTracker<'_> {
    fn state(&mut self, state: &mut State<'_>) {
        state.word(self.0.len() as u64);
    }
}

impl PersistentTracker<'_> {
    /// Follows the next operation; returns the request that it creates, if it is one of selected messages.
    pub(in crate::transform) fn follow(&mut self, op: &Op) -> Option<RequestName> {
        let (request, _) = created(op)?;
        self.0.next().copied().unwrap_or_default().then_some(request)
    }
}
