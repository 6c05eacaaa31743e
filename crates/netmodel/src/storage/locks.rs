//! Locks of extents, as in Lustre: a server grants a client the largest extent of its part of a file that conflicts with no other one,
//! and the client keeps it until the server calls it back for another client.
//!
//! Locks conflict if they belong to different hosts, overlap, and one of them is for writing. Requests for a file are granted in their
//! order. A client that is called back gives a lock up when no access uses it any more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::packet::Client;
use super::slab::Slab;

/// Number of a lock, at its server.
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

/// A lock of a client, as its server knows it.
#[derive(Debug, Serialize, Deserialize)]
struct Lock {
    client: Client,
    file: u32,
    extent: Extent,
    is_called_back: bool,
}

/// A request for a lock, for an operation of a client.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct LockRequest {
    pub(super) client: Client,
    pub(super) extent: Extent,
    pub(super) operation: u32,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct FileLocks {
    granted: Vec<LockId>,
    waiting: VecDeque<LockRequest>,
}

/// A message of a server to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockEffect {
    /// The server grants a lock to an operation.
    Grant { client: Client, operation: u32, lock: LockId, extent: Extent },
    /// The server calls a lock of a file back.
    CallBack { client: Client, file: u32, lock: LockId },
}

/// The locks that a server has granted.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ServerLocks {
    locks: Slab<Lock>,
    files: BTreeMap<u32, FileLocks>,
}

impl ServerLocks {
    /// Takes a request.
    pub(super) fn request(&mut self, file: u32, request: LockRequest, effects: &mut Vec<LockEffect>) {
        self.files.entry(file).or_default().waiting.push_back(request);
        self.grant(file, effects);
    }

    /// Grants requests in their order, up to one that conflicts; calls back the locks that it conflicts with.
    fn grant(&mut self, number: u32, effects: &mut Vec<LockEffect>) {
        let Self { locks, files } = self;
        let Some(file) = files.get_mut(&number) else { return };
        while let Some(request) = file.waiting.front().copied() {
            let conflicts = |lock: &Lock| {
                lock.client.host != request.client.host
                    && lock.extent.overlaps(request.extent)
                    && (lock.extent.is_write || request.extent.is_write)
            };
            let mut is_free = true;
            for &id in &file.granted {
                let Some(lock) = locks.get_mut(id).filter(|lock| conflicts(lock)) else { continue };
                is_free = false;
                if !lock.is_called_back {
                    lock.is_called_back = true;
                    effects.push(LockEffect::CallBack { client: lock.client, file: number, lock: id });
                }
            }
            if !is_free {
                return;
            }
            file.waiting.pop_front();
            let LockRequest { client, operation, extent: wanted } = request;
            let others =
                file.granted.iter().filter_map(|id| locks.get(*id)).map(|lock| (lock.client, lock.extent));
            let others = others.chain(file.waiting.iter().map(|other| (other.client, other.extent)));
            let others = others.filter(|(other, _)| other.host != client.host).map(|(_, extent)| extent);
            let extent = largest(wanted, others);
            let lock = locks.insert(Lock { client, file: number, extent, is_called_back: false });
            file.granted.push(lock);
            effects.push(LockEffect::Grant { client, operation, lock, extent });
        }
    }

    /// Takes a lock that a client has given up.
    pub(super) fn given_up(&mut self, id: LockId, effects: &mut Vec<LockEffect>) {
        let Some(lock) = self.locks.remove(id) else { return };
        if let Some(file) = self.files.get_mut(&lock.file) {
            file.granted.retain(|other| *other != id);
        }
        self.grant(lock.file, effects);
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

/// A lock that a client has.
#[derive(Debug, Serialize, Deserialize)]
struct HeldLock {
    id: LockId,
    extent: Extent,
    /// Number of accesses that use it.
    users: u32,
    is_called_back: bool,
}

/// Server, and number of a file.
type Place = (u32, u32);

/// The locks that the clients of a host have.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ClientLocks {
    held: BTreeMap<Place, Vec<HeldLock>>,
    /// Locks that were called back before their grant has come, with their servers.
    called_back_early: BTreeSet<(u32, LockId)>,
}

impl ClientLocks {
    /// Finds a lock for an extent, and uses it.
    pub(super) fn find(&mut self, place: Place, extent: Extent) -> Option<LockId> {
        let is_usable = |lock: &&mut HeldLock| !lock.is_called_back && lock.extent.covers(extent);
        let lock = self.held.get_mut(&place)?.iter_mut().find(is_usable)?;
        lock.users += 1;
        Some(lock.id)
    }

    /// Takes a lock that is granted, and uses it.
    pub(super) fn granted(&mut self, place: Place, id: LockId, extent: Extent) {
        let is_called_back = self.called_back_early.remove(&(place.0, id));
        self.held.entry(place).or_default().push(HeldLock { id, extent, users: 1, is_called_back });
    }

    /// Takes the call back of a lock; returns whether the client gives the lock up now.
    pub(super) fn called_back(&mut self, place: Place, id: LockId) -> bool {
        let held = self.held.get_mut(&place).and_then(|held| held.iter_mut().find(|lock| lock.id == id));
        match held {
            Some(lock) => lock.is_called_back = true,
            None => drop(self.called_back_early.insert((place.0, id))),
        }
        self.give_up(place, id)
    }

    /// Ends a use of a lock; returns whether the client gives the lock up now.
    pub(super) fn end_use(&mut self, place: Place, id: LockId) -> bool {
        let held = self.held.get_mut(&place).and_then(|held| held.iter_mut().find(|lock| lock.id == id));
        if let Some(lock) = held {
            lock.users = lock.users.saturating_sub(1);
        }
        self.give_up(place, id)
    }

    /// Removes a lock that is called back, and that nothing uses.
    fn give_up(&mut self, place: Place, id: LockId) -> bool {
        let Some(held) = self.held.get_mut(&place) else { return false };
        let before = held.len();
        held.retain(|lock| lock.id != id || lock.users > 0 || !lock.is_called_back);
        held.len() < before
    }
}

#[cfg(test)]
mod tests {
    use pdes_core::LpId;

    use super::*;
    use crate::HostId;

    const FILE: u32 = 7;
    const PLACE: Place = (3, FILE);

    fn client(number: u32) -> Client {
        Client { lp: LpId::new(number), host: HostId::new(number) }
    }

    fn extent(begin: u64, end: u64, is_write: bool) -> Extent {
        Extent { begin, end, is_write }
    }

    fn request(locks: &mut ServerLocks, number: u32, operation: u32, extent: Extent) -> Vec<LockEffect> {
        let mut effects = Vec::new();
        locks.request(FILE, LockRequest { client: client(number), extent, operation }, &mut effects);
        effects
    }

    fn grant(number: u32, operation: u32, lock: LockId, extent: Extent) -> LockEffect {
        LockEffect::Grant { client: client(number), operation, lock, extent }
    }

    #[test]
    fn a_server_grants_all_that_does_not_conflict() {
        let mut locks = ServerLocks::default();
        let whole = extent(0, u64::MAX, true);
        assert_eq!(request(&mut locks, 1, 10, extent(0, 5, true)), [grant(1, 10, 0, whole)]);
        let call_back = LockEffect::CallBack { client: client(1), file: FILE, lock: 0 };
        assert_eq!(request(&mut locks, 2, 11, extent(50, 60, false)), [call_back]);
        assert_eq!(request(&mut locks, 1, 12, extent(55, 56, true)), []);
        // The reader gets all up to the writer that waits, which calls it back at once.
        let mut effects = Vec::new();
        locks.given_up(0, &mut effects);
        let call_back = LockEffect::CallBack { client: client(2), file: FILE, lock: 0 };
        assert_eq!(effects, [grant(2, 11, 0, extent(0, 60, false)), call_back]);
    }

    #[test]
    fn a_client_gives_a_lock_up_when_its_user_has_ended() {
        let mut locks = ClientLocks::default();
        let wanted = extent(90, 95, true);
        assert_eq!(locks.find(PLACE, wanted), None);
        locks.granted(PLACE, 0, extent(0, u64::MAX, true));
        assert_eq!(locks.find(PLACE, wanted), Some(0));
        assert!(!locks.called_back(PLACE, 0) && !locks.end_use(PLACE, 0) && locks.end_use(PLACE, 0));
        assert_eq!(locks.find(PLACE, wanted), None);
        // A call back may come before the grant.
        assert!(!locks.called_back(PLACE, 1));
        locks.granted(PLACE, 1, extent(0, 60, false));
        assert_eq!(locks.find(PLACE, extent(0, 10, false)), None);
        assert!(locks.end_use(PLACE, 1));
        locks.granted(PLACE, 2, extent(0, 60, false));
        assert_eq!(locks.find(PLACE, extent(0, 10, true)), None, "it is for reading");
        assert!(!locks.end_use(PLACE, 2) && locks.called_back(PLACE, 2));
    }

    #[test]
    fn extents_grow_up_to_those_of_others() {
        let others = [extent(0, 10, true), extent(20, 30, false), extent(70, 80, true)];
        let largest = |wanted| largest(wanted, others.into_iter());
        assert_eq!(largest(extent(40, 50, true)), extent(30, 70, true));
        assert_eq!(largest(extent(40, 50, false)), extent(10, 70, false));
        assert_eq!(largest(extent(90, 95, true)), extent(80, u64::MAX, true));
        let mut locks = ServerLocks::default();
        let (one, other) = (extent(0, 5, false), extent(0, u64::MAX, false));
        request(&mut locks, 1, 1, one);
        // Readers share.
        assert_eq!(request(&mut locks, 2, 2, one), [grant(2, 2, 1, other)]);
    }
}
