//! Builder of a rank's table of communicators.

use std::sync::Arc;

use pdes_core::Rank;
use rustc_hash::FxHashMap;

use crate::call::CallError;
use crate::communicator::{CommId, CommIdx, Communicator, Group};

/// The communicators of a rank, in the order of creation; the first one is the world.
pub(crate) struct CommunicatorTable {
    list: Vec<Communicator>,
    /// True for each communicator that is created and not freed.
    is_live: Vec<bool>,
    by_id: FxHashMap<CommId, CommIdx>,
}

impl CommunicatorTable {
    /// Starts with the world of `ranks` ranks.
    pub(crate) fn new(me: Rank, ranks: u32) -> Self {
        Self { list: vec![Communicator::world(me, ranks)], is_live: vec![true], by_id: FxHashMap::default() }
    }

    /// Finds a live communicator.
    pub(crate) fn find(&self, id: CommId) -> Result<CommIdx, CallError> {
        if id == CommId::WORLD {
            return Ok(CommIdx::WORLD);
        }
        match self.by_id.get(&id) {
            Some(index) if self.is_live[index.index()] => Ok(*index),
            known => Err(CallError::UnknownCommunicator { id, is_freed: known.is_some() }),
        }
    }

    /// Returns a communicator.
    pub(crate) fn get(&self, index: CommIdx) -> &Communicator {
        &self.list[index.index()]
    }

    /// Finds a live communicator of which a rank is a member.
    pub(crate) fn with_member(&self, id: CommId, rank: Rank) -> Result<CommIdx, CallError> {
        let index = self.find(id)?;
        let is_member = index == CommIdx::WORLD || self.get(index).group.position(rank).is_some();
        if is_member { Ok(index) } else { Err(CallError::NotMember { rank, id }) }
    }

    /// Adds a communicator of which rank `me` is a member, or revives a freed one with the same members.
    pub(crate) fn create(&mut self, me: Rank, id: CommId, group: Arc<Group>) -> Result<CommIdx, CallError> {
        let rank = group.position(me).ok_or(CallError::NotMember { rank: me, id })?;
        if id == CommId::WORLD {
            return Err(CallError::CommunicatorExists { id });
        }
        if let Some(&index) = self.by_id.get(&id) {
            if self.get(index).group != group {
                return Err(CallError::MembersDiffer { id });
            }
            if std::mem::replace(&mut self.is_live[index.index()], true) {
                return Err(CallError::CommunicatorExists { id });
            }
            return Ok(index);
        }
        let index = CommIdx::new(self.list.len() as u32);
        self.list.push(Communicator { id, rank, group });
        self.is_live.push(true);
        self.by_id.insert(id, index);
        Ok(index)
    }

    /// Frees a communicator.
    pub(crate) fn free(&mut self, id: CommId) -> Result<CommIdx, CallError> {
        let index = self.find(id)?;
        if index == CommIdx::WORLD {
            return Err(CallError::WorldFreed);
        }
        self.is_live[index.index()] = false;
        Ok(index)
    }

    /// Returns, for each communicator, whether it is live.
    pub(crate) fn live(&self) -> Vec<bool> {
        self.is_live.clone()
    }

    pub(crate) fn into_list(self) -> Vec<Communicator> {
        self.list
    }
}
