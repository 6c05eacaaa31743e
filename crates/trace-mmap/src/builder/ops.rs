//! Resolution of operations to actions.

use pdes_core::{Bytes, Rank};

use super::check::{check_call, check_collective, check_peer, check_size};
use super::{OpError, RankBuilder, RequestKey, check_amount};
use crate::action::{Action, CollectiveId, LocationId, SendRecv};
use crate::call::{CallError, CallOp};
use crate::channel::Tag;
use crate::collective::Collective;
use crate::communicator::{CommId, CommIdx, Communicator};
use crate::structure::{Direction, Op, Request, RequestName};

impl RankBuilder<'_> {
    /// Resolves the next operation of the program to an action, which is then to be [pushed](Self::push).
    ///
    /// # Errors
    /// Fails if a number is out of range, or if the operation uses a request or a communicator illegally.
    pub fn resolve(&mut self, op: &Op) -> Result<Action, OpError> {
        let ranks = self.ranks;
        Ok(match op {
            Op::Init => Action::Init,
            Op::Finalize => Action::Finalize,
            Op::Communicator => Action::Communicator,
            Op::Location { file, line } => self.checked_location(file, *line)?,
            Op::Compute { flops } => Action::Compute { flops: check_amount(*flops)? },
            Op::Sleep { seconds } => Action::Sleep { seconds: check_amount(*seconds)? },
            Op::Send { peer, tag, bytes } => self.send(check_peer(*peer, ranks)?, *tag, check_size(*bytes)?),
            Op::Isend { peer, tag, bytes } => {
                self.isend(check_peer(*peer, ranks)?, *tag, check_size(*bytes)?)?
            }
            Op::Recv { peer, tag, bytes } => self.recv(check_peer(*peer, ranks)?, *tag, check_size(*bytes)?),
            Op::Irecv { peer, tag, bytes } => {
                self.irecv(check_peer(*peer, ranks)?, *tag, check_size(*bytes)?)?
            }
            Op::SendRecv { to, send_bytes, from, recv_bytes } => {
                self.send_recv(*to, *send_bytes, *from, *recv_bytes)?
            }
            Op::Wait(request) => self.wait_for(self.key_of(*request))?,
            Op::Test(request) => self.test_for(self.key_of(*request))?,
            Op::WaitAll => self.wait_all(),
            Op::Collective(operation) => {
                Action::Collective(self.intern_collective(operation, CommIdx::WORLD)?)
            }
            Op::Call(CallOp::Collective { operation, communicator, request }) => {
                let name = if request.is_some() { operation.nonblocking_name() } else { operation.name() };
                let (index, _) = self
                    .communicator_of(*communicator)
                    .map_err(|kind| OpError::Call { action: name, kind })?;
                let id = self.intern_collective(operation, index)?;
                self.collective_call(name, id, index, *request)?
            }
            Op::Call(call) => {
                check_call(self, call)?;
                self.call(call)?
            }
        })
    }

    /// Resolves `MPI_Send`. A peer `None` is `MPI_PROC_NULL`. Here and in the following functions the caller has checked that ranks
    /// are below [`ranks`](Self::ranks), and sizes at most 2^48 bytes.
    #[inline]
    pub fn send(&mut self, peer: Option<Rank>, tag: Tag, bytes: Bytes) -> Action {
        match peer {
            None => Action::ProcNull { slot: None },
            Some(peer) => Action::Send { to: self.send_to(peer, tag), bytes },
        }
    }

    /// Resolves `MPI_Isend`.
    ///
    /// # Errors
    /// Fails if too many requests are pending.
    #[inline]
    pub fn isend(&mut self, peer: Option<Rank>, tag: Tag, bytes: Bytes) -> Result<Action, OpError> {
        let slot = self.requests.post(RequestKey::send(self.rank, peer, Some(tag)))?;
        Ok(match peer {
            None => Action::ProcNull { slot: Some(slot) },
            Some(peer) => Action::Isend { to: self.send_to(peer, tag), bytes, slot },
        })
    }

    /// Resolves `MPI_Recv` from a rank. A tag `None` is `MPI_ANY_TAG`.
    #[inline]
    pub fn recv(&mut self, peer: Option<Rank>, tag: Option<Tag>, bytes: Bytes) -> Action {
        match peer {
            None => Action::ProcNull { slot: None },
            Some(peer) => Action::Recv { from: self.receive_from(peer, tag), bytes },
        }
    }

    /// Resolves `MPI_Irecv` from a rank.
    ///
    /// # Errors
    /// Fails if too many requests are pending.
    #[inline]
    pub fn irecv(&mut self, peer: Option<Rank>, tag: Option<Tag>, bytes: Bytes) -> Result<Action, OpError> {
        let slot = self.requests.post(RequestKey::receive(self.rank, peer, tag))?;
        Ok(match peer {
            None => Action::ProcNull { slot: Some(slot) },
            Some(peer) => Action::Irecv { from: self.receive_from(peer, tag), bytes, slot },
        })
    }

    /// Resolves `MPI_Wait` for the oldest pending request of a key.
    ///
    /// # Errors
    /// Fails if none is pending.
    #[inline]
    pub fn wait_for(&mut self, key: RequestKey) -> Result<Action, OpError> {
        match self.requests.complete(key) {
            Some(slot) => Ok(Action::Wait { slot }),
            None => Err(self.requests.not_pending_error("wait", key)),
        }
    }

    /// Resolves `MPI_Test` of the oldest pending request of a key, which then moves behind the others of the key.
    ///
    /// # Errors
    /// Fails if none is pending.
    #[inline]
    pub fn test_for(&mut self, key: RequestKey) -> Result<Action, OpError> {
        match self.requests.rotate(key) {
            Some(slot) => Ok(Action::Test { slot }),
            None => Err(self.requests.not_pending_error("test", key)),
        }
    }

    /// Resolves `MPI_Waitall` on all pending requests.
    #[inline]
    pub fn wait_all(&mut self) -> Action {
        self.requests.complete_all();
        Action::WaitAll
    }

    /// Resolves a call other than a collective operation.
    ///
    /// # Errors
    /// Fails if it uses a request or a communicator illegally.
    pub fn call(&mut self, call: &CallOp) -> Result<Action, OpError> {
        call.resolve(self).map_err(|error| error.with_action(call.name()))
    }

    /// Resolves a collective operation that was [stored](Self::add_collective), with a request if it is nonblocking; `name` is that
    /// of the action, for errors.
    ///
    /// # Errors
    /// Fails if the name of the request is in use.
    pub fn collective_call(
        &mut self,
        name: &'static str,
        operation: CollectiveId,
        communicator: CommIdx,
        request: Option<RequestName>,
    ) -> Result<Action, OpError> {
        self.resolve_collective(operation, communicator, request).map_err(|error| error.with_action(name))
    }

    /// Stores a collective operation. Equal operations are to be stored once, which the caller sees to by his own key.
    pub fn add_collective(&mut self, operation: Collective, communicator: CommIdx) -> CollectiveId {
        self.side.add_collective(operation, communicator)
    }

    /// Finds a communicator that the rank has created and not freed.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn communicator_of(&self, id: CommId) -> Result<(CommIdx, &Communicator), CallError> {
        let index = self.communicators.find(id)?;
        Ok((index, self.communicators.get(index)))
    }

    /// Stores a call site, once per value.
    pub fn location(&mut self, file: &str, line: u32) -> LocationId {
        let names = &mut self.side.locations;
        *self.location_by_name.entry(format!("{file}:{line}")).or_insert_with_key(|name| {
            names.push(name.clone());
            LocationId::new(names.len() as u32 - 1)
        })
    }

    fn checked_location(&mut self, file: &str, line: u32) -> Result<Action, OpError> {
        if file.is_empty() || file.contains(char::is_whitespace) || line > i32::MAX as u32 {
            return Err(OpError::Location { found: format!("{file}:{line}") });
        }
        Ok(Action::Location(self.location(file, line)))
    }

    fn send_recv(
        &mut self,
        to: Option<Rank>,
        send_bytes: Bytes,
        from: Option<Rank>,
        recv_bytes: Bytes,
    ) -> Result<Action, OpError> {
        let tag = Tag::new(0);
        let (to, from) = (check_peer(to, self.ranks)?, check_peer(from, self.ranks)?);
        let (send_bytes, recv_bytes) = (check_size(send_bytes)?, check_size(recv_bytes)?);
        let to = to.map(|peer| self.send_to(peer, tag));
        let from = from.map(|peer| self.receive_from(peer, Some(tag)));
        Ok(Action::SendRecv(self.insert_send_recv(SendRecv { to, send_bytes, from, recv_bytes })))
    }

    /// Stores an operation on a communicator, once per value.
    fn intern_collective(
        &mut self,
        operation: &Collective,
        communicator: CommIdx,
    ) -> Result<CollectiveId, OpError> {
        check_collective(operation, self.communicators.get(communicator).group.len())?;
        // Amounts have no hash: the text of a value stands for it.
        let key = (communicator, format!("{operation:?}"));
        let side = &mut self.side;
        let new = || side.add_collective(operation.clone(), communicator);
        Ok(*self.collective_by_value.entry(key).or_insert_with(new))
    }

    fn key_of(&self, request: Request) -> RequestKey {
        match request.direction {
            Direction::Send => RequestKey::send(self.rank, request.peer, request.tag),
            Direction::Receive => RequestKey::receive(self.rank, request.peer, request.tag),
            Direction::ReceiveFromAny => RequestKey::receive_from_any(self.rank, request.tag),
        }
    }
}
