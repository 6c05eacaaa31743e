//! Calls in terms of the program.

use std::sync::Arc;

use pdes_core::Bytes;

use crate::call::{Call, SendMode, Source};
use crate::channel::{InIdx, OutIdx, Slot, Tag};
use crate::communicator::{CommId, CommIdx};
use crate::structure::{CallOp, Direction, Peer, RecvFrom, RequestName, SendTo};
use crate::trace::{Ops, RankTrace};

/// Returns the name of the request in a slot: when the slot is reused, the name is free again.
pub(super) fn name(slot: Slot) -> RequestName {
    RequestName::new(slot.get())
}

fn names(slots: &[Slot]) -> Vec<RequestName> {
    slots.iter().copied().map(name).collect()
}

impl RankTrace {
    pub(crate) fn id(&self, communicator: CommIdx) -> CommId {
        self.communicators[communicator.index()].id
    }

    pub(super) fn send_to(&self, to: Option<OutIdx>) -> SendTo {
        match to.map(|to| self.outgoing[to.index()]) {
            Some(channel) => {
                let communicator = self.id(channel.communicator);
                SendTo { peer: Some(channel.peer), tag: channel.tag, communicator }
            }
            None => SendTo { peer: None, tag: Tag::new(0), communicator: CommId::WORLD },
        }
    }

    pub(super) fn recv_from(&self, from: Source) -> RecvFrom {
        match from {
            Source::Nobody => RecvFrom::on_world(Peer::Nobody, None),
            Source::Rank(from) => self.recv_from_rank(from),
            Source::Any { tag, communicator, recorded } => {
                RecvFrom { peer: Peer::Any { recorded }, tag, communicator: self.id(communicator) }
            }
        }
    }

    pub(super) fn recv_from_rank(&self, from: InIdx) -> RecvFrom {
        let channel = self.incoming[from.index()];
        let communicator = self.id(channel.communicator);
        RecvFrom { peer: Peer::Rank(channel.peer), tag: channel.tag, communicator }
    }
}

impl Ops<'_> {
    /// Returns a nonblocking send and records its request.
    pub(super) fn isend(&mut self, mode: SendMode, to: Option<OutIdx>, bytes: Bytes, slot: Slot) -> CallOp {
        let to = self.rank.send_to(to);
        self.post(slot, Direction::Send, to.peer, Some(to.tag));
        CallOp::Isend { mode, to, bytes, request: self.own_name(slot) }
    }

    /// Returns a nonblocking receive and records its request.
    pub(super) fn irecv(&mut self, from: RecvFrom, bytes: Bytes, slot: Slot) -> CallOp {
        match from.peer {
            Peer::Any { .. } => self.post(slot, Direction::ReceiveAny, None, from.tag),
            Peer::Rank(peer) => self.post(slot, Direction::Receive, Some(peer), from.tag),
            Peer::Nobody => self.post(slot, Direction::Receive, None, from.tag),
        }
        CallOp::Irecv { from, bytes, request: self.own_name(slot) }
    }

    fn own_name(&self, slot: Slot) -> Option<RequestName> {
        self.rank.names_requests.then(|| name(slot))
    }

    pub(super) fn call(&mut self, call: &Call) -> CallOp {
        let rank = self.rank;
        match *call {
            Call::Send { mode, to, bytes } => CallOp::Send { mode, to: rank.send_to(to), bytes },
            Call::Isend { mode, to, bytes, slot } => self.isend(mode, to, bytes, slot),
            Call::Recv { from, bytes } => CallOp::Recv { from: rank.recv_from(from), bytes },
            Call::Irecv { from, bytes, slot } => self.irecv(rank.recv_from(from), bytes, slot),
            Call::SendRecv { to, send_bytes, from, recv_bytes } => {
                let (to, from) = (rank.send_to(to), rank.recv_from(from));
                CallOp::SendRecv { to, send_bytes, from, recv_bytes }
            }
            Call::SendInit { mode, to, bytes, slot } => {
                CallOp::SendInit { mode, to: rank.send_to(to), bytes, request: name(slot) }
            }
            Call::RecvInit { from, bytes, slot } => {
                CallOp::RecvInit { from: rank.recv_from(from), bytes, request: name(slot) }
            }
            Call::Probe { from } => CallOp::Probe { from: rank.recv_from(from) },
            Call::Iprobe { from, found } => CallOp::Iprobe { from: rank.recv_from(from), found },
            Call::Collective { operation, communicator, slot } => {
                let operation = rank.collective(operation).clone();
                CallOp::Collective { operation, communicator: rank.id(communicator), request: slot.map(name) }
            }
            Call::NeighborAlltoall { communicator, ref to, ref from, slot } => {
                let (communicator, request) = (rank.id(communicator), slot.map(name));
                CallOp::NeighborAlltoall { communicator, to: to.to_vec(), from: from.to_vec(), request }
            }
            Call::NewCommunicator { kind, parent, new } => {
                let new = new.map(|new| &rank.communicators[new.index()]);
                let new = new.map(|new| (new.id, Arc::clone(&new.group)));
                CallOp::NewCommunicator { kind, parent: rank.id(parent), new }
            }
            Call::FreeCommunicator { communicator } => {
                CallOp::FreeCommunicator { communicator: rank.id(communicator) }
            }
            Call::Unmodelled(ref call) => CallOp::Unmodelled(call.clone()),
            ref completion => completion_op(completion),
        }
    }
}

fn completion_op(call: &Call) -> CallOp {
    match call {
        Call::Start { slots } => CallOp::Start { requests: names(slots) },
        Call::Free { slot } => CallOp::Free { request: name(*slot) },
        Call::Waitany { slots, done } => CallOp::Waitany { requests: names(slots), done: done.map(name) },
        Call::Waitsome { slots, done } => CallOp::Waitsome { requests: names(slots), done: names(done) },
        Call::Test { slot, done } => CallOp::Test { request: name(*slot), done: Some(*done) },
        Call::Testall { slots, done } => CallOp::Testall { requests: names(slots), done: *done },
        Call::Testany { slots, done } => CallOp::Testany { requests: names(slots), done: done.map(name) },
        Call::Testsome { slots, done } => CallOp::Testsome { requests: names(slots), done: names(done) },
        Call::Cancel { slot, cancelled, .. } => {
            CallOp::Cancel { request: name(*slot), cancelled: *cancelled }
        }
        Call::Waitall { slots } => CallOp::Waitall { requests: names(slots) },
        _ => unreachable!("no other call names an earlier request"),
    }
}
