//! Communicators of a rank between transformations.

use std::sync::Arc;

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::{CallOp, CommId, CommunicatorCall, Group, Op};

use super::Program;
use super::selector::collective;

/// Returns the communicator all of whose ranks make an operation together.
pub(super) fn joint(op: &Op) -> Option<CommId> {
    match op {
        Op::Call(CallOp::NewCommunicator { parent, kind, .. }) => {
            let is_of_parent = !matches!(kind, CommunicatorCall::CreateGroup | CommunicatorCall::Define);
            is_of_parent.then_some(*parent)
        }
        Op::Call(CallOp::File { communicator, call, .. }) => call.is_collective().then_some(*communicator),
        Op::Call(CallOp::SetView { communicator, .. }) => Some(*communicator),
        Op::Call(CallOp::Window { communicator, call, .. }) => call.is_collective().then_some(*communicator),
        op => collective(op).map(|(_, communicator)| communicator),
    }
}

/// The communicators that a rank has made so far, with the world.
#[derive(Debug)]
pub(super) struct Communicators {
    me: Rank,
    groups: FxHashMap<CommId, Arc<Group>>,
}

impl Communicators {
    pub(super) fn new(program: &Program<'_>, me: Rank) -> Self {
        let world = Arc::new(Group::world(program.ranks().count() as u32));
        Self { me, groups: FxHashMap::from_iter([(CommId::WORLD, world)]) }
    }

    /// Takes note of the next operation.
    pub(super) fn follow(&mut self, op: &Op) {
        if let Op::Call(CallOp::NewCommunicator { new: Some((id, group)), .. }) = op {
            self.groups.insert(*id, Arc::clone(group));
        }
    }

    /// Returns the group of a communicator, and the position of the rank there; `None` if the rank has not made it.
    pub(super) fn group(&self, id: CommId) -> Option<(&Arc<Group>, u32)> {
        let group = self.groups.get(&id)?;
        Some((group, group.position(self.me)?))
    }
}
