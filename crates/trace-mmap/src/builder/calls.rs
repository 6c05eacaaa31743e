//! Resolution of calls to indices.

use std::sync::Arc;

use pdes_core::Bytes;

use crate::action::{Action, CollectiveId, SendRecv};
use crate::builder::{OpError, RankBuilder, RequestKey};
use crate::call::{
    Call, CallError, CallId, CallOp, CommunicatorCall, Completion, FileName, FileView, RequestUse, SendMode,
    Source,
};
use crate::channel::{OutIdx, Slot, Tag};
use crate::communicator::{CommId, CommIdx, Group};
use crate::structure::{Peer, RecvFrom, RequestName, SendTo};
use crate::transfer::Transfer;

/// A call cannot be resolved.
pub(crate) enum ResolveError {
    Call(CallError),
    Op(OpError),
}

impl From<CallError> for ResolveError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<OpError> for ResolveError {
    fn from(error: OpError) -> Self {
        Self::Op(error)
    }
}

impl ResolveError {
    /// Adds the name of the action.
    pub(crate) fn with_action(self, action: &'static str) -> OpError {
        match self {
            Self::Call(kind) => OpError::Call { action, kind },
            Self::Op(error) => error,
        }
    }
}

impl RankBuilder<'_> {
    /// Returns the slots of the requests of a field, and posts or frees them.
    pub(crate) fn slots<I, N: ResolveRequests<I>>(
        &mut self,
        requests: &N,
        used: RequestUse,
    ) -> Result<I, ResolveError> {
        requests.resolve(self, used)
    }

    /// Completes the requests of a wait or a test that completed in the recorded run.
    pub(crate) fn complete(&mut self, op: &CallOp) -> Result<(), CallError> {
        let Some(Completion { requests, done, waits }) = op.completion() else { return Ok(()) };
        match done {
            None => self.requests.complete_listed(requests),
            Some([]) if waits => self.requests.check_inactive(requests),
            Some(done) => self.requests.complete_some(requests, done),
        }
    }

    pub(crate) fn wait(&mut self, request: RequestName) -> Result<Action, ResolveError> {
        Ok(Action::Wait { slot: self.requests.complete_named(request)? })
    }

    pub(crate) fn test(
        &mut self,
        done: &Option<bool>,
        request: &RequestName,
    ) -> Result<Action, ResolveError> {
        let slot = self.requests.slot_of(*request)?;
        let Some(done) = *done else { return Ok(Action::Test { slot }) };
        if done {
            self.requests.complete_named(*request)?;
        }
        Ok(self.intern(Call::Test { slot, done }))
    }

    pub(crate) fn cancel(&mut self, request: &RequestName, cancelled: &bool) -> Result<Action, ResolveError> {
        let (slot, from) = self.requests.cancel(*request, *cancelled)?;
        if *cancelled {
            self.count_receive(from, -1);
        }
        Ok(self.intern(Call::Cancel { slot, from, cancelled: *cancelled }))
    }

    pub(crate) fn send_init(
        &mut self,
        to: &SendTo,
        request: &RequestName,
        &mode: &SendMode,
        &bytes: &Bytes,
    ) -> Result<Action, ResolveError> {
        self.requests.check_free(*request)?;
        let to = self.destination(to)?;
        let slot = self.requests.init_persistent(*request, to.map(|to| Transfer::Send(to, bytes)))?;
        Ok(self.intern(Call::SendInit { mode, to, bytes, slot }))
    }

    pub(crate) fn recv_init(
        &mut self,
        from: &RecvFrom,
        request: &RequestName,
        &bytes: &Bytes,
    ) -> Result<Action, ResolveError> {
        self.requests.check_free(*request)?;
        let from = self.source(from)?;
        let slot = self.requests.init_persistent(*request, Some(Transfer::Receive(from, bytes)))?;
        Ok(self.intern(Call::RecvInit { from, bytes, slot }))
    }

    pub(crate) fn send_call(
        &mut self,
        to: &SendTo,
        &mode: &SendMode,
        &bytes: &Bytes,
    ) -> Result<Action, ResolveError> {
        let Some(to) = self.destination(to)? else { return Ok(Action::ProcNull { slot: None }) };
        self.count_send(to);
        Ok(match (mode, self.is_on_world(to)) {
            (SendMode::Standard, true) => Action::Send { to, bytes },
            _ => self.intern(Call::Send { mode, to: Some(to), bytes }),
        })
    }

    pub(crate) fn isend_call(
        &mut self,
        to: &SendTo,
        &request: &Option<RequestName>,
        &mode: &SendMode,
        &bytes: &Bytes,
    ) -> Result<Action, ResolveError> {
        let key = RequestKey::send(self.rank(), to.peer, Some(to.tag));
        request.map_or(Ok(()), |request| self.requests.check_free(request))?;
        let to = self.destination(to)?;
        let slot = self.post_request(request, key, to.map(|to| Transfer::Send(to, bytes)))?;
        let Some(to) = to else { return Ok(Action::ProcNull { slot: Some(slot) }) };
        self.count_send(to);
        Ok(match (mode, self.is_on_world(to)) {
            (SendMode::Standard, true) => Action::Isend { to, bytes, slot },
            _ => self.intern(Call::Isend { mode, to: Some(to), bytes, slot }),
        })
    }

    pub(crate) fn recv_call(&mut self, from: &RecvFrom, &bytes: &Bytes) -> Result<Action, ResolveError> {
        let from = self.source(from)?;
        self.count_receive(from, 1);
        Ok(match from {
            Source::ProcNull => Action::ProcNull { slot: None },
            Source::Rank(from) if self.incoming[from.index()].2 == CommIdx::WORLD => {
                Action::Recv { from, bytes }
            }
            from => self.intern(Call::Recv { from, bytes }),
        })
    }

    pub(crate) fn irecv_call(
        &mut self,
        from: &RecvFrom,
        &request: &Option<RequestName>,
        &bytes: &Bytes,
    ) -> Result<Action, ResolveError> {
        let me = self.rank();
        let key = match from.peer {
            Peer::ProcNull => RequestKey::receive(me, None, from.tag),
            Peer::Rank(peer) => RequestKey::receive(me, Some(peer), from.tag),
            Peer::Any { .. } => RequestKey::receive_from_any(me, from.tag),
        };
        request.map_or(Ok(()), |request| self.requests.check_free(request))?;
        let from = self.source(from)?;
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

    pub(crate) fn send_recv_call(
        &mut self,
        to: &SendTo,
        from: &RecvFrom,
        &send_bytes: &Bytes,
        &recv_bytes: &Bytes,
    ) -> Result<Action, ResolveError> {
        // Tag and communicator of a peer `MPI_PROC_NULL` do not matter.
        let zero = Tag::new(0);
        let is_plain = (to.peer.is_none() || (to.tag, to.communicator) == (zero, CommId::WORLD))
            && (from.peer == Peer::ProcNull || (from.tag, from.communicator) == (Some(zero), CommId::WORLD));
        let to = self.destination(to)?;
        let from = self.source(from)?;
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
    pub(crate) fn start(&mut self, requests: &[RequestName]) -> Result<Action, ResolveError> {
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

    pub(crate) fn new_communicator(
        &mut self,
        parent: &CommId,
        new: &Option<(CommId, Arc<Group>)>,
        &kind: &CommunicatorCall,
    ) -> Result<Action, ResolveError> {
        let parent = self.communicator(parent)?;
        let new = new.as_ref().map(|(id, group)| self.create_communicator(kind, parent, *id, group));
        let new = new.transpose()?;
        if kind == CommunicatorCall::Window {
            new.into_iter().for_each(|window| self.add_window(window));
        }
        Ok(self.intern(Call::NewCommunicator { kind, parent, new }))
    }

    fn create_communicator(
        &mut self,
        kind: CommunicatorCall,
        parent: CommIdx,
        id: CommId,
        group: &Arc<Group>,
    ) -> Result<CommIdx, CallError> {
        let parent = self.communicators.get(parent);
        if kind.keeps_group() && *group != parent.group {
            return Err(CallError::MembersDiffer { id });
        }
        if let Some(rank) = group.first_not_in(&parent.group) {
            return Err(CallError::NotMember { rank, id: parent.id });
        }
        self.communicators.create(self.rank(), id, Arc::clone(group))
    }

    pub(crate) fn elsewhere<C, O, R>(&self, _: C, _: O, _: R) -> ! {
        unreachable!("collective operations are resolved by their text")
    }

    /// Resolves a collective operation that is already stored.
    pub(super) fn resolve_collective(
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

    pub(super) fn post_collective(
        &mut self,
        request: Option<RequestName>,
    ) -> Result<Option<Slot>, ResolveError> {
        let Some(request) = request else { return Ok(None) };
        self.requests.check_free(request)?;
        Ok(Some(self.requests.post_named(request, None)?))
    }

    fn post_request(
        &mut self,
        request: Option<RequestName>,
        key: RequestKey,
        transfer: Option<Transfer>,
    ) -> Result<Slot, OpError> {
        match request {
            Some(request) => self.requests.post_named(request, transfer),
            None => self.requests.post(key),
        }
    }

    pub(crate) fn destination(&mut self, to: &SendTo) -> Result<Option<OutIdx>, CallError> {
        let &SendTo { peer, tag, communicator } = to;
        match peer {
            None => self.communicators.find(communicator).map(|_| None),
            Some(peer) => {
                let communicator = self.communicators.with_member(communicator, peer)?;
                Ok(Some(self.outgoing_index(peer, tag, communicator)))
            }
        }
    }

    pub(crate) fn source(&mut self, from: &RecvFrom) -> Result<Source, CallError> {
        let &RecvFrom { peer, tag, communicator } = from;
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

    pub(crate) fn communicator(&self, id: &CommId) -> Result<CommIdx, CallError> {
        self.communicators.find(*id)
    }

    pub(crate) fn freed_communicator(&mut self, id: &CommId) -> Result<CommIdx, CallError> {
        if self.is_window(self.communicators.find(*id)?) {
            return Err(CallError::IsWindow { id: *id });
        }
        self.communicators.free(*id)
    }

    pub(crate) fn neighbors(&self, list: &[(u32, Bytes)]) -> Result<Box<[(u32, Bytes)]>, CallError> {
        Ok(list.into())
    }

    pub(crate) fn file(&self, file: &FileName) -> Result<FileName, CallError> {
        Ok(file.clone())
    }

    pub(crate) fn file_view(&self, view: &FileView) -> Result<FileView, CallError> {
        Ok(view.clone())
    }

    fn is_on_world(&self, to: OutIdx) -> bool {
        self.outgoing[to.index()].communicator == CommIdx::WORLD
    }

    /// Stores a call, once per value.
    pub(crate) fn intern(&mut self, call: Call) -> Action {
        let calls = &mut self.side.calls;
        let id = *self.call_by_value.entry(call).or_insert_with_key(|call| {
            calls.push(call.clone());
            CallId::new(calls.len() as u32 - 1)
        });
        Action::Call(id)
    }
}

/// Requests of a field by their names, which become slots `I`.
pub(crate) trait ResolveRequests<I> {
    fn resolve(&self, builder: &mut RankBuilder<'_>, used: RequestUse) -> Result<I, ResolveError>;
}

impl ResolveRequests<Slot> for RequestName {
    fn resolve(&self, builder: &mut RankBuilder<'_>, used: RequestUse) -> Result<Slot, ResolveError> {
        let requests = &mut builder.requests;
        Ok(if used == RequestUse::Freed { requests.free_request(*self)? } else { requests.slot_of(*self)? })
    }
}

impl ResolveRequests<Option<Slot>> for Option<RequestName> {
    fn resolve(&self, builder: &mut RankBuilder<'_>, used: RequestUse) -> Result<Option<Slot>, ResolveError> {
        match *self {
            None => Ok(None),
            Some(_) if used == RequestUse::Posted => builder.post_collective(*self),
            Some(request) => Ok(Some(builder.requests.slot_of(request)?)),
        }
    }
}

impl ResolveRequests<Box<[Slot]>> for Vec<RequestName> {
    fn resolve(&self, builder: &mut RankBuilder<'_>, _: RequestUse) -> Result<Box<[Slot]>, ResolveError> {
        Ok(builder.requests.slots_of(self)?)
    }
}
