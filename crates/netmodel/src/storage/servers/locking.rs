//! Locks of extents between clients and servers: an access asks each of its servers for one that the client does not have.

use pdes_core::SimTime;

use super::{Content, FileServers};
use crate::storage::file_request::{Consequences, FileOperation, FileRequest};
use crate::storage::locks::{Extent, LockEffect, LockId, LockRequest, ShareId};

impl<T: Copy> FileServers<'_, T> {
    /// Starts the transfers of a share, or asks for the lock that they need.
    pub(super) fn start_share(&mut self, now: SimTime, by: ShareId, found: &mut Consequences<T>) {
        let Some((request, place, extent)) = self.extent(by) else { return };
        let system = self.system(request.system);
        let is_access = matches!(request.operation, FileOperation::Read | FileOperation::Write);
        if !(system.has_locks && is_access) {
            return self.start_transfers(now, by.operation, by.share, found);
        }
        match self.state.locks.find(place, request.client, extent) {
            Some(lock) => self.start_locked(now, by, lock, found),
            None => {
                let (bytes, to) = (system.request.get(), self.state.servers[place.0 as usize].host);
                self.send(now, (request.client, to), Content::LockRequest(by), bytes, request, found);
            }
        }
    }

    fn start_locked(&mut self, now: SimTime, by: ShareId, lock: LockId, found: &mut Consequences<T>) {
        let Some(operation) = self.state.operations.get_mut(by.operation) else { return };
        if let Some(share) = operation.shares.get_mut(by.share as usize) {
            share.lock = Some(lock);
        }
        self.start_transfers(now, by.operation, by.share, found);
    }

    /// Returns the request of a share, its server and file, and the extent that it accesses.
    fn extent(&self, by: ShareId) -> Option<(FileRequest, (u32, u32), Extent)> {
        let operation = self.state.operations.get(by.operation)?;
        let (request, share) = (operation.request, operation.shares.get(by.share as usize)?);
        let is_write = request.operation == FileOperation::Write;
        let extent = Extent { begin: share.next, end: share.end, is_write };
        Some((request, (share.server, request.file), extent))
    }

    /// Takes the request of a lock at its server.
    pub(super) fn lock_requested(&mut self, now: SimTime, by: ShareId, found: &mut Consequences<T>) {
        let Some((request, place, extent)) = self.extent(by) else { return };
        let mut effects = Vec::new();
        let request = LockRequest { client: request.client, extent, by };
        self.state.locks.request(place, request, &mut effects);
        self.apply_locks(now, effects, found);
    }

    /// Takes a lock at its client.
    pub(super) fn lock_granted(
        &mut self,
        now: SimTime,
        lock: LockId,
        to: ShareId,
        found: &mut Consequences<T>,
    ) {
        self.state.locks.granted(lock);
        self.start_locked(now, to, lock, found);
    }

    /// Takes the call back of a lock at its client.
    pub(super) fn lock_called_back(&mut self, now: SimTime, lock: LockId, found: &mut Consequences<T>) {
        if self.state.locks.called_back(lock) {
            self.send_about(now, lock, false, found);
        }
    }

    /// Ends the use of a lock by a share that is complete.
    pub(super) fn end_use(&mut self, now: SimTime, lock: LockId, found: &mut Consequences<T>) {
        if self.state.locks.end_use(lock) {
            self.send_about(now, lock, false, found);
        }
    }

    /// Takes a lock that a client gives up, at its server.
    pub(super) fn lock_given_up(&mut self, now: SimTime, lock: LockId, found: &mut Consequences<T>) {
        let mut effects = Vec::new();
        self.state.locks.given_up(lock, &mut effects);
        self.apply_locks(now, effects, found);
    }

    fn apply_locks(&mut self, now: SimTime, effects: Vec<LockEffect>, found: &mut Consequences<T>) {
        for effect in effects {
            match effect {
                LockEffect::Grant { lock, to } => {
                    let Some((request, (server, _), _)) = self.extent(to) else { continue };
                    let hosts = (self.state.servers[server as usize].host, request.client);
                    let bytes = self.system(request.system).request.get();
                    self.send(now, hosts, Content::LockGrant { lock, to }, bytes, request, found);
                }
                LockEffect::CallBack(lock) => self.send_about(now, lock, true, found),
            }
        }
    }

    /// Calls a lock back, or gives it up: messages on behalf of the operation that waits for it.
    fn send_about(&mut self, now: SimTime, id: LockId, calls_back: bool, found: &mut Consequences<T>) {
        let Some(lock) = self.state.locks.get(id) else { return };
        let (client, server) = (lock.client, lock.place.0);
        let Some(by) = lock.called_back_for else { return };
        let Some(request) = self.state.operations.get(by).map(|operation| operation.request) else { return };
        let Some(server) = self.state.servers.get(server as usize).map(|server| server.host) else { return };
        let (hosts, content) = match calls_back {
            true => ((server, client), Content::CallBack { lock: id, by }),
            false => ((client, server), Content::GiveUp { lock: id, by }),
        };
        let bytes = self.system(request.system).request.get();
        self.send(now, hosts, content, bytes, FileRequest { client, ..request }, found);
    }
}
