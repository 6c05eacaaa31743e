//! Calls in terms of the program.

use std::sync::Arc;

use pdes_core::Bytes;

use crate::call::{Call, SendMode, Source};
use crate::channel::{InIdx, OutIdx, Slot, Tag};
use crate::communicator::{CommId, CommIdx};
use crate::structure::{CallOp, Direction, Peer, RecvFrom, RequestName, SendTo};
use crate::trace::{Ops, RankTrace};

/// Returns the name of the request in a slot: when the slot is reused, the name is free again.
pub(super) fn request_name(slot: Slot) -> RequestName {
    RequestName::new(slot.get())
}

fn request_names(slots: &[Slot]) -> Vec<RequestName> {
    slots.iter().copied().map(request_name).collect()
}

impl RankTrace {
    pub(crate) fn communicator_id(&self, communicator: CommIdx) -> CommId {
        self.communicators[communicator.index()].id
    }

    pub(super) fn send_to(&self, to: Option<OutIdx>) -> SendTo {
        match to.map(|to| self.outgoing[to.index()]) {
            Some(channel) => {
                let communicator = self.communicator_id(channel.communicator);
                SendTo { peer: Some(channel.peer), tag: channel.tag, communicator }
            }
            None => SendTo { peer: None, tag: Tag::new(0), communicator: CommId::WORLD },
        }
    }

    pub(super) fn recv_from(&self, from: Source) -> RecvFrom {
        match from {
            Source::ProcNull => RecvFrom::on_world(Peer::ProcNull, None),
            Source::Rank(from) => self.recv_from_rank(from),
            Source::Any { tag, communicator, recorded } => RecvFrom {
                peer: Peer::Any { recorded },
                tag,
                communicator: self.communicator_id(communicator),
            },
        }
    }

    pub(super) fn recv_from_rank(&self, from: InIdx) -> RecvFrom {
        let channel = self.incoming[from.index()];
        let communicator = self.communicator_id(channel.communicator);
        RecvFrom { peer: Peer::Rank(channel.peer), tag: channel.tag, communicator }
    }
}

impl Ops<'_> {
    /// Returns a nonblocking send and records its request.
    pub(super) fn isend(&mut self, mode: SendMode, to: Option<OutIdx>, bytes: Bytes, slot: Slot) -> CallOp {
        let to = self.rank.send_to(to);
        self.post(slot, Direction::Send, to.peer, Some(to.tag));
        CallOp::Isend { mode, to, bytes, request: self.request_name(slot) }
    }

    /// Returns a nonblocking receive and records its request.
    pub(super) fn irecv(&mut self, from: RecvFrom, bytes: Bytes, slot: Slot) -> CallOp {
        match from.peer {
            Peer::Any { .. } => self.post(slot, Direction::ReceiveFromAny, None, from.tag),
            Peer::Rank(peer) => self.post(slot, Direction::Receive, Some(peer), from.tag),
            Peer::ProcNull => self.post(slot, Direction::Receive, None, from.tag),
        }
        CallOp::Irecv { from, bytes, request: self.request_name(slot) }
    }

    fn request_name(&self, slot: Slot) -> Option<RequestName> {
        self.rank.has_named_requests.then(|| request_name(slot))
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
                CallOp::SendInit { mode, to: rank.send_to(to), bytes, request: request_name(slot) }
            }
            Call::RecvInit { from, bytes, slot } => {
                CallOp::RecvInit { from: rank.recv_from(from), bytes, request: request_name(slot) }
            }
            Call::Probe { from } => CallOp::Probe { from: rank.recv_from(from) },
            Call::Iprobe { from, found } => CallOp::Iprobe { from: rank.recv_from(from), found },
            Call::Collective { operation, communicator, slot } => {
                let operation = rank.collective(operation).clone();
                CallOp::Collective {
                    operation,
                    communicator: rank.communicator_id(communicator),
                    request: slot.map(request_name),
                }
            }
            Call::NeighborAlltoall { communicator, ref to, ref from, slot } => {
                let (communicator, request) = (rank.communicator_id(communicator), slot.map(request_name));
                CallOp::NeighborAlltoall { communicator, to: to.to_vec(), from: from.to_vec(), request }
            }
            Call::NewCommunicator { kind, parent, new } => {
                let new = new.map(|new| &rank.communicators[new.index()]);
                let new = new.map(|new| (new.id, Arc::clone(&new.group)));
                CallOp::NewCommunicator { kind, parent: rank.communicator_id(parent), new }
            }
            Call::FreeCommunicator { communicator } => {
                CallOp::FreeCommunicator { communicator: rank.communicator_id(communicator) }
            }
            Call::Unmodelled(ref call) => CallOp::Unmodelled(call.clone()),
            ref completion => completion_op(completion),
        }
    }
}

fn completion_op(call: &Call) -> CallOp {
    match call {
        Call::Start { slots } => CallOp::Start { requests: request_names(slots) },
        Call::Free { slot } => CallOp::Free { request: request_name(*slot) },
        Call::Waitany { slots, done } => {
            CallOp::Waitany { requests: request_names(slots), done: done.map(request_name) }
        }
        Call::Waitsome { slots, done } => {
            CallOp::Waitsome { requests: request_names(slots), done: request_names(done) }
        }
        Call::Test { slot, done } => CallOp::Test { request: request_name(*slot), done: Some(*done) },
        Call::Testall { slots, done } => CallOp::Testall { requests: request_names(slots), done: *done },
        Call::Testany { slots, done } => {
            CallOp::Testany { requests: request_names(slots), done: done.map(request_name) }
        }
        Call::Testsome { slots, done } => {
            CallOp::Testsome { requests: request_names(slots), done: request_names(done) }
        }
        Call::Cancel { slot, cancelled, .. } => {
            CallOp::Cancel { request: request_name(*slot), cancelled: *cancelled }
        }
        Call::Waitall { slots } => CallOp::Waitall { requests: request_names(slots) },
        _ => unreachable!("no other call names an earlier request"),
    }
}
