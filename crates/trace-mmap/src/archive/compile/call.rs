//! Compiler of calls.

use std::sync::Arc;

use pdes_core::{Bytes, Rank};

use crate::action::Action;
use crate::archive::compile::{Compiler, StructureError, check_size};
use crate::call::{CallOp, Named, Visit};
use crate::communicator::{CommId, Group};
use crate::structure::{Op, Peer, RecvFrom, SendTo};
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
        let mut numbers = NumberCheck { compiler: self, call, ranks: 0, result: Ok(()) };
        call.visit(&mut numbers);
        numbers.result
    }
}

/// Check of the fields of a call, which keeps the first error.
struct NumberCheck<'a> {
    compiler: &'a Compiler,
    call: &'a CallOp,
    /// Number of ranks of the communicator, once it was seen.
    ranks: u32,
    result: Result<(), StructureError>,
}

impl NumberCheck<'_> {
    fn check(&mut self, check: impl FnOnce(&Self) -> Result<(), StructureError>) {
        if self.result.is_ok() {
            self.result = check(self);
        }
    }
}

impl Visit<'_, Named> for NumberCheck<'_> {
    fn destination(&mut self, to: &SendTo) {
        self.check(|numbers| numbers.compiler.check_peer(to.peer).map(|_| ()));
    }

    fn source(&mut self, from: &RecvFrom) {
        self.check(|numbers| match from.peer {
            Peer::Rank(rank) | Peer::Any { recorded: Some(rank) } => check_rank(rank, numbers.compiler.ranks),
            Peer::ProcNull | Peer::Any { recorded: None } => Ok(()),
        });
    }

    fn bytes(&mut self, bytes: Bytes) {
        self.check(|_| check_size(bytes).map(|_| ()));
    }

    fn communicator(&mut self, communicator: &CommId) {
        let communicators = &self.compiler.builder.communicators;
        match communicators.find(*communicator) {
            Ok(index) => self.ranks = communicators.get(index).group.len(),
            Err(kind) => {
                self.check(|numbers| Err(TextError::Call { action: numbers.call.name(), kind }.into()))
            }
        }
    }

    fn neighbors(&mut self, list: &[(u32, Bytes)]) {
        self.check(|numbers| {
            list.iter().try_for_each(|(rank, bytes)| {
                check_size(*bytes)?;
                check_rank(Rank::new(*rank), numbers.ranks)
            })
        });
    }

    fn new_communicator(&mut self, new: &Option<(CommId, Arc<Group>)>) {
        let Some((_, group)) = new else { return };
        self.check(|numbers| {
            group.members().try_for_each(|member| check_rank(member, numbers.compiler.ranks))
        });
    }
}

fn check_rank(found: Rank, ranks: u32) -> Result<(), StructureError> {
    if found.get() < ranks { Ok(()) } else { Err(StructureError::Peer { found, ranks }) }
}
