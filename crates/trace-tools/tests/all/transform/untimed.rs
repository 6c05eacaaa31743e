//! Untimed execution of small programs: do they end, if sends wait for their receives?

use std::collections::BTreeMap;

use pdes_core::Rank;
use trace_mmap::{Action, Call, CallOp, CommId, Op, Peer, Tag, Trace};

/// A send or a receive: its ranks, of which a receive may leave the source open, tag and communicator.
struct Posted {
    from: Option<Rank>,
    to: Rank,
    tag: Option<Tag>,
    communicator: CommId,
    is_send: bool,
    is_matched: bool,
}

#[derive(Default)]
struct Execution {
    posted: Vec<Posted>,
    /// Number of barriers and other blocking collective operations that each rank has entered.
    entered: Vec<usize>,
}

impl Execution {
    fn post(&mut self, mut new: Posted) -> usize {
        let fits = |old: &&mut Posted| {
            let (send, receive) = if new.is_send { (&new, &**old) } else { (&**old, &new) };
            old.is_send != new.is_send
                && !old.is_matched
                && send.to == receive.to
                && send.communicator == receive.communicator
                && receive.from.is_none_or(|from| send.from == Some(from))
                && receive.tag.is_none_or(|tag| send.tag == Some(tag))
        };
        if let Some(old) = self.posted.iter_mut().find(fits) {
            (old.is_matched, new.is_matched) = (true, true);
        }
        self.posted.push(new);
        self.posted.len() - 1
    }

    /// Posts the messages of an operation; `None` if it is one of those that this execution does not know.
    fn begin(&mut self, me: Rank, op: &Op) -> Option<Vec<usize>> {
        let mut sides = Vec::new();
        let mut send = |peer: Option<Rank>, tag, communicator| {
            sides.extend(peer.map(|to| (Some(me), to, Some(tag), communicator, true)));
        };
        match op {
            Op::Send { peer, tag, .. } | Op::Isend { peer, tag, .. } => send(*peer, *tag, CommId::WORLD),
            Op::SendRecv { to, .. } => send(*to, Tag::new(0), CommId::WORLD),
            Op::Call(CallOp::Send { to, .. } | CallOp::Isend { to, .. } | CallOp::SendRecv { to, .. }) => {
                send(to.peer, to.tag, to.communicator);
            }
            Op::Call(CallOp::Start { .. } | CallOp::Cancel { .. } | CallOp::Probe { .. }) => return None,
            _ => {}
        }
        let mut receive = |from, tag, communicator| sides.push((from, me, tag, communicator, false));
        match op {
            Op::Recv { peer: Some(peer), tag, .. } | Op::Irecv { peer: Some(peer), tag, .. } => {
                receive(Some(*peer), *tag, CommId::WORLD);
            }
            Op::SendRecv { from: Some(from), .. } => receive(Some(*from), Some(Tag::new(0)), CommId::WORLD),
            Op::Call(
                CallOp::Recv { from, .. } | CallOp::Irecv { from, .. } | CallOp::SendRecv { from, .. },
            ) => match from.peer {
                Peer::ProcNull => {}
                Peer::Rank(peer) => receive(Some(peer), from.tag, from.communicator),
                // As recorded: another message may leave a later receive without one.
                Peer::Any { recorded } => receive(recorded, from.tag, from.communicator),
            },
            _ => {}
        }
        let post = |(from, to, tag, communicator, is_send)| {
            self.post(Posted { from, to, tag, communicator, is_send, is_matched: false })
        };
        Some(sides.into_iter().map(post).collect())
    }
}

/// Returns whether a program ends; `None` if it has operations that this execution does not know.
pub(super) fn ends(trace: &Trace) -> Option<bool> {
    let ranks = (0..trace.ranks()).map(Rank::new);
    let programs: Vec<Vec<(Action, Op)>> =
        ranks.clone().map(|rank| trace.rank(rank).cursor().zip(trace.ops(rank)).collect()).collect();
    let mut execution = Execution { posted: Vec::new(), entered: vec![0; programs.len()] };
    let mut next = vec![0; programs.len()];
    let mut slots: Vec<BTreeMap<u32, Vec<usize>>> = vec![BTreeMap::new(); programs.len()];
    // What a rank waits for: messages, and barriers.
    let mut waits: Vec<Option<(Vec<usize>, usize)>> = vec![None; programs.len()];
    loop {
        let mut is_idle = true;
        for rank in ranks.clone() {
            let me = rank.index();
            if let Some((messages, barriers)) = &waits[me] {
                let is_late = messages.iter().any(|index| !execution.posted[*index].is_matched);
                if is_late || execution.entered.iter().any(|entered| entered < barriers) {
                    continue;
                }
                waits[me] = None;
            }
            let Some((action, op)) = programs[me].get(next[me]) else { continue };
            (is_idle, next[me]) = (false, next[me] + 1);
            let posted = execution.begin(rank, op)?;
            let call = if let Action::Call(id) = action { Some(trace.rank(rank).call(*id)) } else { None };
            let slot = match action {
                Action::Isend { slot, .. } | Action::Irecv { slot, .. } => Some(*slot),
                Action::ProcNull { slot } => *slot,
                _ => call.and_then(Call::posted_slot),
            };
            let mut take = |slot: u32| slots[me].remove(&slot).unwrap_or_default();
            let messages = match (action, call.and_then(|call| call.completion())) {
                (Action::Wait { slot }, _) => take(slot.get()),
                (Action::WaitAll, _) => std::mem::take(&mut slots[me]).into_values().flatten().collect(),
                (_, Some(completion)) => completion.done().iter().flat_map(|slot| take(slot.get())).collect(),
                _ if slot.is_none() => posted.clone(),
                _ => Vec::new(),
            };
            slots[me].extend(slot.map(|slot| (slot.get(), posted)));
            execution.entered[me] += usize::from(matches!(op, Op::Collective(_)));
            waits[me] = Some((messages, execution.entered[me]));
        }
        if is_idle {
            return Some((0..programs.len()).all(|me| waits[me].is_none()));
        }
    }
}
