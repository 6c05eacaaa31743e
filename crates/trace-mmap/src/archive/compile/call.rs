//! Compiler of calls.

use pdes_core::{Bytes, Rank};

use crate::action::Action;
use crate::archive::compile::{Compiler, StructureError, check_size};
use crate::structure::{CallOp, Op, Peer, RecvFrom, SendTo};
use crate::text::TextError;

impl Compiler {
    pub(super) fn call(&mut self, call: &CallOp) -> Result<Action, StructureError> {
        if let CallOp::Collective { operation, communicator, request } = call {
            let refuse = |kind| TextError::Call { action: call.name(), kind };
            let index = self.builder.communicators.find(*communicator).map_err(refuse)?;
            // Operations are deduplicated by their text, from which the request is left out.
            let (operation_only, communicator) = (operation.clone(), *communicator);
            let text =
                Op::Call(CallOp::Collective { operation: operation_only, communicator, request: None });
            let id = self.intern_collective(&text, operation, index)?;
            let resolved = self.builder.resolve_collective(id, index, *request);
            return Ok(resolved.map_err(|refusal| refusal.with_action(call.name()))?);
        }
        self.check_call(call)?;
        Ok(self.builder.resolve_call(call)?)
    }

    /// Checks for numbers that the text parser would have refused.
    fn check_call(&self, call: &CallOp) -> Result<(), StructureError> {
        match call {
            CallOp::Send { to, bytes, .. }
            | CallOp::Isend { to, bytes, .. }
            | CallOp::SendInit { to, bytes, .. } => self.check_message(to, *bytes),
            CallOp::Recv { from, bytes }
            | CallOp::Irecv { from, bytes, .. }
            | CallOp::RecvInit { from, bytes, .. } => self.check_receive(from, *bytes),
            CallOp::Probe { from } | CallOp::Iprobe { from, .. } => self.check_receive(from, Bytes::ZERO),
            CallOp::SendRecv { to, send_bytes, from, recv_bytes } => {
                self.check_message(to, *send_bytes)?;
                self.check_receive(from, *recv_bytes)
            }
            CallOp::NeighborAlltoall { communicator, to, from, .. } => {
                let refuse = |kind| TextError::Call { action: call.name(), kind };
                let index = self.builder.communicators.find(*communicator).map_err(refuse)?;
                let ranks = self.builder.communicators.get(index).group.len();
                to.iter().chain(from).try_for_each(|(rank, bytes)| {
                    check_size(*bytes)?;
                    check_rank(Rank::new(*rank), ranks)
                })
            }
            CallOp::NewCommunicator { new: Some((_, group)), .. } => {
                group.members().try_for_each(|member| check_rank(member, self.ranks))
            }
            _ => Ok(()),
        }
    }

    fn check_message(&self, to: &SendTo, bytes: Bytes) -> Result<(), StructureError> {
        check_size(bytes)?;
        self.check_peer(to.peer).map(|_| ())
    }

    fn check_receive(&self, from: &RecvFrom, bytes: Bytes) -> Result<(), StructureError> {
        check_size(bytes)?;
        match from.peer {
            Peer::Rank(rank) | Peer::Any { recorded: Some(rank) } => check_rank(rank, self.ranks),
            Peer::ProcNull | Peer::Any { recorded: None } => Ok(()),
        }
    }
}

fn check_rank(found: Rank, ranks: u32) -> Result<(), StructureError> {
    if found.get() < ranks { Ok(()) } else { Err(StructureError::Peer { found, ranks }) }
}
