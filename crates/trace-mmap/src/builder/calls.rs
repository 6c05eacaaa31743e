//! Resolution of calls to indices.

use std::sync::Arc;

use pdes_core::Bytes;

use crate::action::{Action, CollectiveId, SendRecv};
use crate::builder::{RankTraceBuilder, RequestKey};
use crate::call::{Call, CallError, CallId, CommunicatorCall, SendMode, Source};
use crate::channel::{OutIdx, Slot, Tag};
use crate::communicator::{CommId, CommIdx, Group};
use crate::structure::{CallOp, Peer, RecvFrom, RequestName, SendTo};
use crate::text::TextError;
use crate::transfer::Transfer;

/// A call cannot be resolved.
pub(crate) enum ResolveError {
    Call(CallError),
    Text(TextError),
}

impl From<CallError> for ResolveError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<TextError> for ResolveError {
    fn from(error: TextError) -> Self {
        Self::Text(error)
    }
}

impl ResolveError {
    /// Adds the name of the action.
    pub(crate) fn with_action(self, action: &'static str) -> TextError {
        match self {
            Self::Call(kind) => TextError::Call { action, kind },
            Self::Text(error) => error,
        }
    }
}

impl RankTraceBuilder {
    /// Resolves a call other than a collective operation.
    pub(crate) fn resolve_call(&mut self, op: &CallOp) -> Result<Action, TextError> {
        self.resolve(op).map_err(|error| error.with_action(op.name()))
    }

    fn resolve(&mut self, op: &CallOp) -> Result<Action, ResolveError> {
        match *op {
            CallOp::Send { mode, to, bytes } => self.send_call(mode, to, bytes),
            CallOp::Isend { mode, to, bytes, request } => self.isend_call(mode, to, bytes, request),
            CallOp::Recv { from, bytes } => self.recv_call(from, bytes),
            CallOp::Irecv { from, bytes, request } => self.irecv_call(from, bytes, request),
            CallOp::SendRecv { to, send_bytes, from, recv_bytes } => {
                self.send_recv_call(to, send_bytes, from, recv_bytes)
            }
            CallOp::SendInit { mode, to, bytes, request } => {
                self.requests.check_free(request)?;
                let to = self.resolve_destination(to)?;
                let slot = self.requests.init_persistent(request, to.map(|to| Transfer::Send(to, bytes)))?;
                Ok(self.intern(Call::SendInit { mode, to, bytes, slot }))
            }
            CallOp::RecvInit { from, bytes, request } => {
                self.requests.check_free(request)?;
                let from = self.resolve_source(from)?;
                let slot = self.requests.init_persistent(request, Some(Transfer::Receive(from, bytes)))?;
                Ok(self.intern(Call::RecvInit { from, bytes, slot }))
            }
            CallOp::Probe { from } => {
                let from = self.resolve_source(from)?;
                Ok(self.intern(Call::Probe { from }))
            }
            CallOp::Iprobe { from, found } => {
                let from = self.resolve_source(from)?;
                Ok(self.intern(Call::Iprobe { from, found }))
            }
            CallOp::NewCommunicator { kind, parent, ref new } => {
                let parent = self.communicators.find(parent)?;
                let new = new.as_ref().map(|(id, group)| self.new_communicator(kind, parent, *id, group));
                Ok(self.intern(Call::NewCommunicator { kind, parent, new: new.transpose()? }))
            }
            CallOp::FreeCommunicator { communicator } => {
                let communicator = self.communicators.free(communicator)?;
                Ok(self.intern(Call::FreeCommunicator { communicator }))
            }
            CallOp::NeighborAlltoall { communicator, ref to, ref from, request } => {
                let communicator = self.communicators.find(communicator)?;
                let slot = self.post_collective(request)?;
                let (to, from) = (to.as_slice().into(), from.as_slice().into());
                Ok(self.intern(Call::NeighborAlltoall { communicator, to, from, slot }))
            }
            CallOp::Unmodelled(ref call) => Ok(self.intern(Call::Unmodelled(call.clone()))),
            CallOp::Collective { .. } => unreachable!("collective operations are resolved by their text"),
            _ => self.resolve_completion(op),
        }
    }

    /// Resolves a call that refers to existing requests.
    fn resolve_completion(&mut self, op: &CallOp) -> Result<Action, ResolveError> {
        let requests = &mut self.requests;
        let call = match op {
            CallOp::Start { requests } => return self.start(requests),
            CallOp::Free { request } => Call::Free { slot: requests.free_request(*request)? },
            CallOp::Wait { request } => return Ok(Action::Wait { slot: requests.complete_named(*request)? }),
            CallOp::Waitall { requests: names } => {
                let slots = requests.slots_of(names)?;
                requests.complete_listed(names)?;
                Call::Waitall { slots }
            }
            CallOp::Waitany { requests: names, done } => {
                let slots = requests.slots_of(names)?;
                if done.is_none() {
                    requests.check_inactive(names)?;
                }
                let done = requests.complete_some(names, done.as_slice())?.first().copied();
                Call::Waitany { slots, done }
            }
            CallOp::Waitsome { requests: names, done } => {
                let slots = requests.slots_of(names)?;
                if done.is_empty() {
                    requests.check_inactive(names)?;
                }
                Call::Waitsome { slots, done: requests.complete_some(names, done)? }
            }
            CallOp::Test { request, done: None } => {
                return Ok(Action::Test { slot: requests.slot_of(*request)? });
            }
            CallOp::Test { request, done: Some(done) } => {
                let slot = requests.slot_of(*request)?;
                if *done {
                    requests.complete_named(*request)?;
                }
                Call::Test { slot, done: *done }
            }
            CallOp::Testall { requests: names, done } => {
                let slots = requests.slots_of(names)?;
                if *done {
                    requests.complete_listed(names)?;
                }
                Call::Testall { slots, done: *done }
            }
            CallOp::Testany { requests: names, done } => {
                let slots = requests.slots_of(names)?;
                let done = requests.complete_some(names, done.as_slice())?.first().copied();
                Call::Testany { slots, done }
            }
            CallOp::Testsome { requests: names, done } => {
                let slots = requests.slots_of(names)?;
                Call::Testsome { slots, done: requests.complete_some(names, done)? }
            }
            CallOp::Cancel { request, cancelled } => {
                let (slot, from) = requests.cancel(*request, *cancelled)?;
                if *cancelled {
                    self.count_receive(from, -1);
                }
                Call::Cancel { slot, from, cancelled: *cancelled }
            }
            _ => unreachable!("all other calls refer to no existing request"),
        };
        Ok(self.intern(call))
    }

    fn send_call(&mut self, mode: SendMode, to: SendTo, bytes: Bytes) -> Result<Action, ResolveError> {
        let Some(to) = self.resolve_destination(to)? else { return Ok(Action::ProcNull { slot: None }) };
        self.count_send(to);
        Ok(match (mode, self.is_on_world(to)) {
            (SendMode::Standard, true) => Action::Send { to, bytes },
            _ => self.intern(Call::Send { mode, to: Some(to), bytes }),
        })
    }

    fn isend_call(
        &mut self,
        mode: SendMode,
        to: SendTo,
        bytes: Bytes,
        request: Option<RequestName>,
    ) -> Result<Action, ResolveError> {
        let key = RequestKey::send(self.rank(), to.peer, Some(to.tag));
        request.map_or(Ok(()), |request| self.requests.check_free(request))?;
        let to = self.resolve_destination(to)?;
        let slot = self.post_request(request, key, to.map(|to| Transfer::Send(to, bytes)))?;
        let Some(to) = to else { return Ok(Action::ProcNull { slot: Some(slot) }) };
        self.count_send(to);
        Ok(match (mode, self.is_on_world(to)) {
            (SendMode::Standard, true) => Action::Isend { to, bytes, slot },
            _ => self.intern(Call::Isend { mode, to: Some(to), bytes, slot }),
        })
    }

    fn recv_call(&mut self, from: RecvFrom, bytes: Bytes) -> Result<Action, ResolveError> {
        let from = self.resolve_source(from)?;
        self.count_receive(from, 1);
        Ok(match from {
            Source::ProcNull => Action::ProcNull { slot: None },
            Source::Rank(from) if self.incoming[from.index()].2 == CommIdx::WORLD => {
                Action::Recv { from, bytes }
            }
            from => self.intern(Call::Recv { from, bytes }),
        })
    }

    fn irecv_call(
        &mut self,
        from: RecvFrom,
        bytes: Bytes,
        request: Option<RequestName>,
    ) -> Result<Action, ResolveError> {
        let me = self.rank();
        let key = match from.peer {
            Peer::ProcNull => RequestKey::receive(me, None, from.tag),
            Peer::Rank(peer) => RequestKey::receive(me, Some(peer), from.tag),
            Peer::Any { .. } => RequestKey::receive_from_any(me, from.tag),
        };
        request.map_or(Ok(()), |request| self.requests.check_free(request))?;
        let from = self.resolve_source(from)?;
        let slot = self.post_request(request, key, Some(Transfer::Receive(from, bytes)))?;
        self.count_receive(from, 1);
        Ok(match from {
            Source::ProcNull => Action::ProcNull { slot: Some(slot) },
            Source::Rank(from) if self.incoming[from.index()].2 == CommIdx::WORLD => {
                Action::Irecv { from, bytes, slot }
            }
            from => self.intern(Call::Irecv { from, bytes, slot }),
        })
    }

    fn send_recv_call(
        &mut self,
        to: SendTo,
        send_bytes: Bytes,
        from: RecvFrom,
        recv_bytes: Bytes,
    ) -> Result<Action, ResolveError> {
        // Tag and communicator of a peer `MPI_PROC_NULL` do not matter.
        let zero = Tag::new(0);
        let is_plain = (to.peer.is_none() || (to.tag, to.communicator) == (zero, CommId::WORLD))
            && (from.peer == Peer::ProcNull || (from.tag, from.communicator) == (Some(zero), CommId::WORLD));
        let to = self.resolve_destination(to)?;
        let from = self.resolve_source(from)?;
        to.into_iter().for_each(|to| self.count_send(to));
        self.count_receive(from, 1);
        let plain = match from {
            Source::ProcNull => Some(None),
            Source::Rank(from) => Some(Some(from)),
            Source::Any { .. } => None,
        };
        Ok(match plain {
            Some(from) if is_plain => {
                Action::SendRecv(self.insert_send_recv(SendRecv { to, send_bytes, from, recv_bytes }))
            }
            _ => self.intern(Call::SendRecv { to, send_bytes, from, recv_bytes }),
        })
    }

    /// Starts persistent requests; each start sends or receives a message.
    fn start(&mut self, requests: &[RequestName]) -> Result<Action, ResolveError> {
        let slots = self.requests.slots_of(requests)?;
        for request in requests {
            match self.requests.start(*request)? {
                Some(Transfer::Send(to, _)) => self.count_send(to),
                Some(Transfer::Receive(from, _)) => self.count_receive(from, 1),
                Some(Transfer::Cancelled(_)) | None => {}
            }
        }
        Ok(self.intern(Call::Start { slots }))
    }

    fn new_communicator(
        &mut self,
        kind: CommunicatorCall,
        parent: CommIdx,
        id: CommId,
        group: &Arc<Group>,
    ) -> Result<CommIdx, CallError> {
        let parent = self.communicators.get(parent);
        if kind == CommunicatorCall::Dup && *group != parent.group {
            return Err(CallError::MembersDiffer { id });
        }
        if let Some(rank) = group.first_not_in(&parent.group) {
            return Err(CallError::NotMember { rank, id: parent.id });
        }
        self.communicators.create(self.rank(), id, Arc::clone(group))
    }

    /// Resolves a collective operation that is already stored.
    pub(crate) fn resolve_collective(
        &mut self,
        operation: CollectiveId,
        communicator: CommIdx,
        request: Option<RequestName>,
    ) -> Result<Action, ResolveError> {
        if (communicator, request) == (CommIdx::WORLD, None) {
            return Ok(Action::Collective(operation));
        }
        let slot = self.post_collective(request)?;
        Ok(self.intern(Call::Collective { operation, communicator, slot }))
    }

    fn post_collective(&mut self, request: Option<RequestName>) -> Result<Option<Slot>, ResolveError> {
        let Some(request) = request else { return Ok(None) };
        self.requests.check_free(request)?;
        Ok(Some(self.requests.post_named(request, None)?))
    }

    fn post_request(
        &mut self,
        request: Option<RequestName>,
        key: RequestKey,
        transfer: Option<Transfer>,
    ) -> Result<Slot, TextError> {
        match request {
            Some(request) => self.requests.post_named(request, transfer),
            None => self.requests.post(key),
        }
    }

    fn resolve_destination(&mut self, to: SendTo) -> Result<Option<OutIdx>, CallError> {
        let SendTo { peer, tag, communicator } = to;
        match peer {
            None => self.communicators.find(communicator).map(|_| None),
            Some(peer) => {
                let communicator = self.communicators.with_member(communicator, peer)?;
                Ok(Some(self.outgoing_index(peer, tag, communicator)))
            }
        }
    }

    fn resolve_source(&mut self, from: RecvFrom) -> Result<Source, CallError> {
        let RecvFrom { peer, tag, communicator } = from;
        Ok(match peer {
            Peer::ProcNull => self.communicators.find(communicator).map(|_| Source::ProcNull)?,
            Peer::Rank(peer) => {
                let communicator = self.communicators.with_member(communicator, peer)?;
                Source::Rank(self.incoming_index(peer, tag, communicator))
            }
            Peer::Any { recorded } => {
                let communicator = match recorded {
                    Some(peer) => self.communicators.with_member(communicator, peer)?,
                    None => self.communicators.find(communicator)?,
                };
                Source::Any { tag, communicator, recorded }
            }
        })
    }

    fn is_on_world(&self, to: OutIdx) -> bool {
        self.outgoing[to.index()].communicator == CommIdx::WORLD
    }

    /// Stores a call, once per value.
    fn intern(&mut self, call: Call) -> Action {
        let calls = &mut self.side.calls;
        let id = *self.call_by_value.entry(call).or_insert_with_key(|call| {
            calls.push(call.clone());
            CallId::new(calls.len() as u32 - 1)
        });
        Action::Call(id)
    }
}
