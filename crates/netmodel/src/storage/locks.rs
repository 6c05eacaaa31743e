//! Locks of extents, as in Lustre: a server grants a client the largest extent of its part of a file that conflicts with no other one,
//! and the client keeps it until the server calls it back for another client.
//!
//! Locks conflict if they belong to different clients, overlap, and one of them is for writing. Requests for a file are granted in their
//! order. A client that is called back gives a lock up when no access uses it any more.

use std::collections::{BTreeMap, VecDeque};

use pdes_core::StateWriter;
use serde::{Deserialize, Serialize};

use super::slab::Slab;
use crate::HostId;

/// Number of a lock.
pub(super) type LockId = u32;

/// Extent of the part of a file that a server has, for reading or writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Extent {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) is_write: bool,
}

impl Extent {
    fn overlaps(self, other: Self) -> bool {
        self.begin < other.end && other.begin < self.end
    }

    fn covers(self, other: Self) -> bool {
        self.begin <= other.begin && other.end <= self.end && (self.is_write || !other.is_write)
    }
}

/// The share of an operation that asks for a lock, or uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ShareId {
    pub(super) operation: u32,
    pub(super) share: u32,
}

/// A lock of a client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Lock {
    pub(super) client: HostId,
    /// Server, and number of the file.
    pub(super) place: (u32, u32),
    extent: Extent,
    /// Number of accesses that use it.
    users: u32,
    /// True once the client knows of it.
    is_known: bool,
    /// True once the client has been told to give it up.
    is_called_back: bool,
    /// Operation for which the server calls it back.
    pub(super) called_back_for: Option<u32>,
}

/// A request for a lock.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct LockRequest {
    pub(super) client: HostId,
    pub(super) extent: Extent,
    pub(super) by: ShareId,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct FileLocks {
    granted: Vec<LockId>,
    waiting: VecDeque<LockRequest>,
}

/// A message that locks cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockEffect {
    /// The server grants a lock.
    Grant { lock: LockId, to: ShareId },
    /// The server calls a lock back.
    CallBack(LockId),
}

/// The locks of all clients.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Locks {
    locks: Slab<Lock>,
    files: BTreeMap<(u32, u32), FileLocks>,
}

impl Locks {
    pub(super) fn get(&self, lock: LockId) -> Option<&Lock> {
        self.locks.get(lock)
    }

    /// Writes the locks that clients have, in the order of their grants, while no message about them is under way.
    pub(super) fn write_state(&self, state: &mut StateWriter) {
        for (place, file) in &self.files {
            let granted = file.granted.iter().filter_map(|id| self.locks.get(*id));
            let granted: Vec<_> =
                granted.map(|lock| (lock.client, lock.extent, lock.is_called_back)).collect();
            state.value(&(place, granted));
        }
    }

    /// Finds a lock that the client has, and uses it.
    pub(super) fn find(&mut self, place: (u32, u32), client: HostId, extent: Extent) -> Option<LockId> {
        let Self { locks, files } = self;
        let is_usable = |lock: &Lock| {
            lock.client == client && lock.is_known && !lock.is_called_back && lock.extent.covers(extent)
        };
        let granted = &files.get(&place)?.granted;
        let found = *granted.iter().find(|id| locks.get(**id).is_some_and(is_usable))?;
        locks.get_mut(found)?.users += 1;
        Some(found)
    }

    /// Takes a request at the server.
    pub(super) fn request(&mut self, place: (u32, u32), request: LockRequest, effects: &mut Vec<LockEffect>) {
        self.files.entry(place).or_default().waiting.push_back(request);
        self.grant(place, effects);
    }

    /// Grants requests in their order, up to one that conflicts; calls back the locks that it conflicts with.
    fn grant(&mut self, place: (u32, u32), effects: &mut Vec<LockEffect>) {
        let Self { locks, files } = self;
        let Some(file) = files.get_mut(&place) else { return };
        while let Some(request) = file.waiting.front().copied() {
            let conflicts = |lock: &Lock| {
                lock.client != request.client
                    && lock.extent.overlaps(request.extent)
                    && (lock.extent.is_write || request.extent.is_write)
            };
            let mut is_free = true;
            for &id in &file.granted {
                let Some(lock) = locks.get_mut(id).filter(|lock| conflicts(lock)) else { continue };
                is_free = false;
                if lock.called_back_for.is_none() {
                    lock.called_back_for = Some(request.by.operation);
                    effects.push(LockEffect::CallBack(id));
                }
            }
            if !is_free {
                return;
            }
            file.waiting.pop_front();
            let others =
                file.granted.iter().filter_map(|id| locks.get(*id)).map(|lock| (lock.client, lock.extent));
            let others = others.chain(file.waiting.iter().map(|other| (other.client, other.extent)));
            let others = others.filter(|(client, _)| *client != request.client).map(|(_, extent)| extent);
            let extent = largest(request.extent, others);
            let lock = locks.insert(Lock {
                client: request.client,
                place,
                extent,
                users: 1,
                is_known: false,
                is_called_back: false,
                called_back_for: None,
            });
            file.granted.push(lock);
            effects.push(LockEffect::Grant { lock, to: request.by });
        }
    }

    /// Takes the grant at the client.
    pub(super) fn granted(&mut self, lock: LockId) {
        if let Some(lock) = self.locks.get_mut(lock) {
            lock.is_known = true;
        }
    }

    /// Takes the call back at the client; returns whether the client gives the lock up now.
    pub(super) fn called_back(&mut self, lock: LockId) -> bool {
        let Some(lock) = self.locks.get_mut(lock) else { return false };
        lock.is_called_back = true;
        lock.users == 0
    }

    /// Ends a use of a lock; returns whether the client gives the lock up now.
    pub(super) fn end_use(&mut self, lock: LockId) -> bool {
        let Some(lock) = self.locks.get_mut(lock) else { return false };
        lock.users = lock.users.saturating_sub(1);
        lock.users == 0 && lock.is_called_back
    }

    /// Takes a lock that a client has given up, at the server.
    pub(super) fn given_up(&mut self, id: LockId, effects: &mut Vec<LockEffect>) {
        let Some(lock) = self.locks.remove(id) else { return };
        if let Some(file) = self.files.get_mut(&lock.place) {
            file.granted.retain(|other| *other != id);
        }
        self.grant(lock.place, effects);
    }
}

/// Returns the largest extent around a wanted one that overlaps with no conflicting one of the others.
fn largest(wanted: Extent, others: impl Iterator<Item = Extent>) -> Extent {
    let mut extent = Extent { begin: 0, end: u64::MAX, ..wanted };
    for other in others.filter(|other| other.is_write || wanted.is_write) {
        if other.end <= wanted.begin {
            extent.begin = extent.begin.max(other.end);
        } else {
            extent.end = extent.end.min(other.begin.max(wanted.end));
        }
    }
    extent
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: (u32, u32) = (3, 7);

    fn extent(begin: u64, end: u64, is_write: bool) -> Extent {
        Extent { begin, end, is_write }
    }

    fn request(locks: &mut Locks, client: u32, operation: u32, extent: Extent) -> Vec<LockEffect> {
        let (client, by) = (HostId::new(client), ShareId { operation, share: 0 });
        let mut effects = Vec::new();
        locks.request(PLACE, LockRequest { client, extent, by }, &mut effects);
        effects
    }

    fn grant(lock: LockId, operation: u32) -> LockEffect {
        LockEffect::Grant { lock, to: ShareId { operation, share: 0 } }
    }

    #[test]
    fn a_lock_is_called_back_when_its_user_has_ended() {
        let mut locks = Locks::default();
        let (one, other) = (HostId::new(1), HostId::new(2));
        assert_eq!(request(&mut locks, 1, 10, extent(0, 5, true)), [grant(0, 10)]);
        // Only what the client knows of can be used: all of the file.
        assert_eq!(locks.find(PLACE, one, extent(90, 95, true)), None);
        locks.granted(0);
        assert_eq!(locks.find(PLACE, one, extent(90, 95, true)), Some(0));
        assert_eq!(request(&mut locks, 2, 11, extent(50, 60, false)), [LockEffect::CallBack(0)]);
        assert_eq!(request(&mut locks, 1, 12, extent(55, 56, true)), []);
        assert!(!locks.called_back(0) && !locks.end_use(0) && locks.end_use(0));
        assert_eq!(locks.find(PLACE, one, extent(0, 1, true)), None);
        // The reader gets all up to the writer that waits, which calls it back at once.
        let mut effects = Vec::new();
        locks.given_up(0, &mut effects);
        assert_eq!(effects, [grant(0, 11), LockEffect::CallBack(0)]);
        assert_eq!(locks.get(0).map(|lock| lock.extent), Some(extent(0, 60, false)));
        locks.granted(0);
        assert_eq!(locks.find(PLACE, other, extent(0, 10, true)), None, "it is for reading");
        assert!(!locks.called_back(0) && locks.end_use(0));
    }

    #[test]
    fn extents_grow_up_to_those_of_others() {
        let others = [extent(0, 10, true), extent(20, 30, false), extent(70, 80, true)];
        let largest = |wanted| largest(wanted, others.into_iter());
        assert_eq!(largest(extent(40, 50, true)), extent(30, 70, true));
        assert_eq!(largest(extent(40, 50, false)), extent(10, 70, false));
        assert_eq!(largest(extent(90, 95, true)), extent(80, u64::MAX, true));
        let mut locks = Locks::default();
        request(&mut locks, 1, 1, extent(0, 5, false));
        // Readers share, and other files have other locks.
        assert_eq!(request(&mut locks, 2, 2, extent(0, 5, false)), [grant(1, 2)]);
        assert_eq!(locks.find((3, 8), HostId::new(1), extent(0, 5, false)), None);
    }
}
