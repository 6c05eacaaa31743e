//! Checks of calls for numbers that cannot be stored.

use std::sync::Arc;

use pdes_core::{Bytes, Rank};

use super::{OpError, RankBuilder};
use crate::call::{CallOp, FileCall, MAX_OFFSET, Named, Visit, WindowCall};
use crate::collective::Collective;
use crate::communicator::{CommId, Group};
use crate::record::MAX_BYTES;
use crate::side_tables::has_legal_sizes;
use crate::structure::{Peer, RecvFrom, SendTo};

/// Checks the numbers of a call.
pub(super) fn check_call(builder: &RankBuilder<'_>, call: &CallOp) -> Result<(), OpError> {
    let mut numbers = NumberCheck { builder, call, ranks: 0, result: Ok(()) };
    call.visit(&mut numbers);
    numbers.result
}

/// Check of the fields of a call, which keeps the first error.
struct NumberCheck<'a> {
    builder: &'a RankBuilder<'a>,
    call: &'a CallOp,
    /// Number of ranks of the communicator, once it was seen.
    ranks: u32,
    result: Result<(), OpError>,
}

impl NumberCheck<'_> {
    fn check(&mut self, check: impl FnOnce(&Self) -> Result<(), OpError>) {
        if self.result.is_ok() {
            self.result = check(self);
        }
    }
}

impl Visit<'_, Named> for NumberCheck<'_> {
    fn destination(&mut self, to: &SendTo) {
        self.check(|numbers| check_peer(to.peer, numbers.builder.ranks).map(|_| ()));
    }

    fn source(&mut self, from: &RecvFrom) {
        self.check(|numbers| match from.peer {
            Peer::Rank(rank) | Peer::Any { recorded: Some(rank) } => check_rank(rank, numbers.builder.ranks),
            Peer::ProcNull | Peer::Any { recorded: None } => Ok(()),
        });
    }

    fn bytes(&mut self, bytes: Bytes) {
        self.check(|_| check_size(bytes).map(|_| ()));
    }

    fn file_call(&mut self, call: FileCall) {
        if let Some((_, bytes)) = call.access() {
            self.bytes(bytes);
        }
        let found = call.offset().unwrap_or(0);
        let limit = MAX_OFFSET;
        self.check(|_| if found <= limit { Ok(()) } else { Err(OpError::Offset { found, limit }) });
    }

    fn window_call(&mut self, call: WindowCall) {
        call.bytes().into_iter().for_each(|bytes| self.bytes(bytes));
        self.check(|numbers| {
            call.target().map_or(Ok(()), |target| check_rank(Rank::new(target), numbers.ranks))
        });
    }

    fn communicator(&mut self, communicator: &CommId) {
        let communicators = &self.builder.communicators;
        match communicators.find(*communicator) {
            Ok(index) => self.ranks = communicators.get(index).group.len(),
            Err(kind) => self.check(|numbers| Err(OpError::Call { action: numbers.call.name(), kind })),
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
            group.members().try_for_each(|member| check_rank(member, numbers.builder.ranks))
        });
    }
}

fn check_rank(found: Rank, ranks: u32) -> Result<(), OpError> {
    if found.get() < ranks { Ok(()) } else { Err(OpError::Peer { found, ranks }) }
}

/// Checks that a peer is a rank of the run.
pub(super) fn check_peer(peer: Option<Rank>, ranks: u32) -> Result<Option<Rank>, OpError> {
    peer.map_or(Ok(()), |found| check_rank(found, ranks)).map(|()| peer)
}

/// Checks the arguments of a collective operation on a communicator of `ranks` ranks.
pub(crate) fn check_collective(operation: &Collective, ranks: u32) -> Result<(), OpError> {
    if !operation.vectors().iter().all(|vector| vector.len() == ranks as usize) || !has_legal_sizes(operation)
    {
        return Err(OpError::Collective { name: operation.name(), ranks });
    }
    operation.root().map_or(Ok(()), |root| check_rank(root, ranks))?;
    operation.flops().map_or(Ok(0.0), check_amount).map(|_| ())
}

/// Checks an amount of computation or a time to sleep.
///
/// # Errors
/// Fails if it is not finite, or negative.
pub fn check_amount(found: f64) -> Result<f64, OpError> {
    // Adding zero turns -0 into 0.
    if found.is_finite() && found >= 0.0 { Ok(found + 0.0) } else { Err(OpError::Amount { found }) }
}

/// Checks the size of a message.
///
/// # Errors
/// Fails above 2^48 bytes.
pub fn check_size(bytes: Bytes) -> Result<Bytes, OpError> {
    if bytes.get() <= MAX_BYTES {
        Ok(bytes)
    } else {
        Err(OpError::Size { found: bytes.get(), limit: MAX_BYTES })
    }
}
