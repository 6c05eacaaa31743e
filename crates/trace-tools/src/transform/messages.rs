//! Messages between two ranks: the parts of operations that send and receive them.

mod persistent;
mod selected;

pub(super) use persistent::{PersistentRequests, PersistentTracker};
pub(super) use selected::{MessageTracker, SelectedMessages, Sides};

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::folded::State;
use trace_mmap::{CallOp, CommId, Op, Peer, RecvFrom, RequestName, SendMode, SendTo, Tag};

use super::state::{Stateful, describe};

/// A message as its sender posts it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) call: &'static str,
    pub(super) to: Rank,
    pub(super) tag: Tag,
    pub(super) communicator: CommId,
    pub(super) bytes: Bytes,
}

/// A receive as it is posted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    /// The source; `None` for any.
    pub(super) from: Option<Rank>,
    /// The tag; `None` for any.
    pub(super) tag: Option<Tag>,
    pub(super) communicator: CommId,
}

impl Received {
    /// Returns source, tag and communicator; `None` if it takes any source or tag.
    pub(super) fn named(&self) -> Option<(Rank, Tag, CommId)> {
        Some((self.from?, self.tag?, self.communicator))
    }

    /// Returns whether a message could fit both receives if they were on one communicator.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        fn fit<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        fit(self.from, other.from) && fit(self.tag, other.tag)
    }
}

/// A part of an operation that concerns messages.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A send, and whether its request is persistent.
    Send(Sent, bool),
    /// A receive, and whether its request is persistent.
    Receive(Received, bool),
    /// A probe that found, or waited for, a message.
    Probe(Received),
    /// The cancellation of a receive.
    Cancel,
}

/// The persistent requests of a rank, which give the meaning of their starts.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    persistent: FxHashMap<RequestName, Event>,
}

impl Endpoints {
    /// Calls a function with the events of an operation: at most one send, then one receive, except for starts.
    pub(super) fn events(&mut self, op: &Op, mut f: impl FnMut(Event)) {
        match op {
            Op::Call(CallOp::SendInit { to, bytes, request, .. }) => {
                self.create(*request, sent_to(to, *bytes, "start").map(|sent| Event::Send(sent, true)));
            }
            Op::Call(CallOp::RecvInit { from, request, .. }) => {
                self.create(*request, received_from(from).map(|received| Event::Receive(received, true)));
            }
            Op::Call(CallOp::Start { requests }) => {
                requests.iter().filter_map(|name| self.persistent.get(name)).copied().for_each(f);
            }
            Op::Call(CallOp::Probe { from } | CallOp::Iprobe { from, found: true }) => {
                received_from(from).map(Event::Probe).into_iter().for_each(f);
            }
            Op::Call(CallOp::Cancel { cancelled: true, .. }) => f(Event::Cancel),
            op => {
                sent(op).into_iter().for_each(|sent| f(Event::Send(sent, false)));
                received(op).into_iter().for_each(|received| f(Event::Receive(received, false)));
            }
        }
    }

    fn create(&mut self, request: RequestName, event: Option<Event>) {
        match event {
            Some(event) => self.persistent.insert(request, event),
            None => self.persistent.remove(&request),
        };
    }
}

impl Stateful for Endpoints {
    fn state(&mut self, state: &mut State<'_>) {
        self.persistent.state(state);
    }
}

impl Stateful for Event {
    fn state(&mut self, state: &mut State<'_>) {
        describe(self, state);
    }
}

fn sent_to(to: &SendTo, bytes: Bytes, call: &'static str) -> Option<Sent> {
    Some(Sent { call, to: to.peer?, tag: to.tag, communicator: to.communicator, bytes })
}

pub(super) fn received_from(from: &RecvFrom) -> Option<Received> {
    let source = match from.peer {
        Peer::ProcNull => return None,
        Peer::Rank(rank) => Some(rank),
        Peer::Any { .. } => None,
    };
    Some(Received { from: source, tag: from.tag, communicator: from.communicator })
}

/// Returns the message that an operation sends.
pub(super) fn sent(op: &Op) -> Option<Sent> {
    let on_world = |to: &Option<Rank>, tag: Tag, bytes: &Bytes, call| {
        Some(Sent { call, to: (*to)?, tag, communicator: CommId::WORLD, bytes: *bytes })
    };
    match op {
        Op::Send { peer, tag, bytes } => on_world(peer, *tag, bytes, "send"),
        Op::Isend { peer, tag, bytes } => on_world(peer, *tag, bytes, "isend"),
        Op::SendRecv { to, send_bytes, .. } => on_world(to, Tag::new(0), send_bytes, "sendRecv"),
        Op::Call(
            call @ (CallOp::Send { to, bytes, .. }
            | CallOp::Isend { to, bytes, .. }
            | CallOp::SendRecv { to, send_bytes: bytes, .. }),
        ) => sent_to(to, *bytes, call.name()),
        _ => None,
    }
}

/// Returns the receive that an operation posts.
pub(super) fn received(op: &Op) -> Option<Received> {
    let on_world = |from: &Option<Rank>, tag: Option<Tag>| {
        Some(Received { from: Some((*from)?), tag, communicator: CommId::WORLD })
    };
    match op {
        Op::Recv { peer, tag, .. } | Op::Irecv { peer, tag, .. } => on_world(peer, *tag),
        Op::SendRecv { from, .. } => on_world(from, Some(Tag::new(0))),
        Op::Call(CallOp::Recv { from, .. } | CallOp::Irecv { from, .. } | CallOp::SendRecv { from, .. }) => {
            received_from(from)
        }
        _ => None,
    }
}

/// Returns the size of the message that an operation sends, or that of a persistent request.
pub(super) fn sent_bytes_mut(op: &mut Op) -> Option<&mut Bytes> {
    match op {
        Op::Send { bytes, .. }
        | Op::Isend { bytes, .. }
        | Op::SendRecv { send_bytes: bytes, .. }
        | Op::Call(
            CallOp::Send { bytes, .. }
            | CallOp::Isend { bytes, .. }
            | CallOp::SendInit { bytes, .. }
            | CallOp::SendRecv { send_bytes: bytes, .. },
        ) => Some(bytes),
        _ => None,
    }
}

/// Returns the size of the buffer of the receive that an operation posts, or that of a persistent request.
pub(super) fn buffer_mut(op: &mut Op) -> Option<&mut Bytes> {
    match op {
        Op::Recv { bytes, .. }
        | Op::Irecv { bytes, .. }
        | Op::SendRecv { recv_bytes: bytes, .. }
        | Op::Call(
            CallOp::Recv { bytes, .. }
            | CallOp::Irecv { bytes, .. }
            | CallOp::RecvInit { bytes, .. }
            | CallOp::SendRecv { recv_bytes: bytes, .. },
        ) => Some(bytes),
        _ => None,
    }
}

/// Returns the send of an operation as an `isend` with this request.
pub(super) fn as_isend(op: &Op, request: RequestName) -> Option<Op> {
    let on_world = |peer: &Option<Rank>, tag| SendTo { peer: *peer, tag, communicator: CommId::WORLD };
    let (to, mode, bytes) = match op {
        Op::Send { peer, tag, bytes } | Op::Isend { peer, tag, bytes } => {
            (on_world(peer, *tag), SendMode::Standard, *bytes)
        }
        Op::SendRecv { to, send_bytes, .. } => (on_world(to, Tag::new(0)), SendMode::Standard, *send_bytes),
        Op::Call(CallOp::Send { to, mode, bytes } | CallOp::Isend { to, mode, bytes, .. }) => {
            (*to, *mode, *bytes)
        }
        Op::Call(CallOp::SendRecv { to, send_bytes, .. }) => (*to, SendMode::Standard, *send_bytes),
        _ => return None,
    };
    Some(Op::Call(CallOp::Isend { to, request: Some(request), mode, bytes }))
}

/// Returns the receive of an operation as an `irecv` with this request.
pub(super) fn as_irecv(op: &Op, request: RequestName) -> Option<Op> {
    let on_world =
        |peer: &Option<Rank>, tag| RecvFrom::on_world(peer.map_or(Peer::ProcNull, Peer::Rank), tag);
    let (from, bytes) = match op {
        Op::Recv { peer, tag, bytes } | Op::Irecv { peer, tag, bytes } => (on_world(peer, *tag), *bytes),
        Op::SendRecv { from, recv_bytes, .. } => (on_world(from, Some(Tag::new(0))), *recv_bytes),
        Op::Call(
            CallOp::Recv { from, bytes }
            | CallOp::Irecv { from, bytes, .. }
            | CallOp::SendRecv { from, recv_bytes: bytes, .. },
        ) => (*from, *bytes),
        _ => return None,
    };
    Some(Op::Call(CallOp::Irecv { from, request: Some(request), bytes }))
}

/// Returns an operation without its send, its receive, or both; `None` if nothing is left.
pub(super) fn without(mut op: Op, sides: Sides) -> Option<Op> {
    match &mut op {
        Op::SendRecv { to, from, .. } => {
            *to = to.filter(|_| !sides.send);
            *from = from.filter(|_| !sides.receive);
        }
        Op::Call(CallOp::SendRecv { to, from, .. }) => {
            if sides.send {
                to.peer = None;
            }
            if sides.receive {
                *from = RecvFrom::on_world(Peer::ProcNull, None);
            }
        }
        _ => return None,
    }
    (sent(&op).is_some() || received(&op).is_some()).then_some(op)
}
