//! Communicators of a rank between transformations.

use std::sync::Arc;

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::{CallOp, CommId, Group, Op};

use super::Program;

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
