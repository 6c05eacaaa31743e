//! Clients and I/O servers: the messages of an access to a file of a file system, and their times.
//!
//! An access becomes transfers of at most so many bytes with each server of its file, of which so many are under way at once:
//!
//! | step | write | read | sync | open |
//! |---|---|---|---|---|
//! | client to server | request | request | request | request to the metadata server |
//! | server | waits for room in the cache | cache or device | waits until the file's data are on the device | waits for its turn |
//! | server to client | grant | data | acknowledgement | answer |
//! | client to server | data | | | |
//! | server | cache, or device | | | |
//! | server to client | acknowledgement | | | |
//!
//! With locks of extents, an access first asks each server for a lock that its client does not have.
//!
//! The caller sends the messages over its network, and reports their arrival. A message to the same host arrives at once.

mod locking;

use std::collections::BTreeMap;

use pdes_core::{Bytes, SimDuration, SimTime, StateWriter};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::file_request::{BeyondEnd, Consequences, FileOperation, FileRequest, ServerMessage};
use super::file_sizes::FileSizes;
use super::locks::{LockId, Locks, ShareId};
use super::server::{Effect, Server, TransferId};
use super::slab::Slab;
use super::usage::ServerUsage;
use super::{Access, Devices, Direction, FileSystem, Storage, Striping, read_state};
use crate::flow::event_queue::EventQueue;
use crate::{DeviceId, FileSystemId, ForeignState, HostId};

/// The I/O servers of a machine with their clients; `T` is the tag that the caller attaches to an operation, and gets back on its end.
#[derive(Debug)]
pub struct FileServers<'a, T> {
    systems: &'a [FileSystem],
    /// Number of the first server of each file system.
    bases: Vec<u32>,
    /// Devices of the servers, with the number of the server and of the access there.
    devices: Devices<(u32, u32)>,
    state: State<T>,
    /// Reads end at the end of their file; otherwise they may go beyond.
    checks_sizes: bool,
    effects: Vec<Effect>,
    accesses_ended: Vec<(u32, u32)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct State<T> {
    servers: Vec<Server>,
    operations: Slab<Operation<T>>,
    transfers: Slab<Transfer>,
    messages: Slab<UnderWay>,
    events: EventQueue<Event>,
    locks: Locks,
    sizes: FileSizes,
    /// Striping of files that hints of an open have striped, by file system and number.
    striped: BTreeMap<(u32, u32), Striping>,
    /// Instant from which each metadata server is free.
    metadata_free_from: Vec<SimTime>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Operation<T> {
    request: FileRequest,
    tag: T,
    shares: Vec<Share>,
    /// Number of shares that are not complete.
    left: u32,
}

/// The share of a server in an operation.
#[derive(Debug, Serialize, Deserialize)]
struct Share {
    server: u32,
    /// Begin of the next transfer, and end of the last one, in the part of the file that the server has \[B\].
    next: u64,
    end: u64,
    under_way: u32,
    /// Lock that it uses.
    lock: Option<LockId>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Transfer {
    operation: u32,
    share: u32,
    offset: u64,
    bytes: u64,
}

/// A message under way.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct UnderWay {
    content: Content,
    bytes: u64,
    /// Host to which it goes now.
    at: HostId,
    /// Host to which it goes from there.
    then: Option<HostId>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Content {
    Request(TransferId),
    Grant(TransferId),
    Data(TransferId),
    Reply(TransferId),
    OpenRequest(u32),
    OpenReply(u32),
    LockRequest(ShareId),
    LockGrant { lock: LockId, to: ShareId },
    CallBack { lock: LockId, by: u32 },
    GiveUp { lock: LockId, by: u32 },
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Event {
    Begin(u32),
    Arrival(u32),
    Opened(u32),
}

impl<'a, T: Copy> FileServers<'a, T> {
    /// Creates idle servers. `number` returns the number of a file by its name.
    pub fn new(storage: &'a Storage, number: impl Fn(&str) -> u32) -> Self {
        let systems = storage.file_systems();
        let mut state = State {
            servers: Vec::new(),
            operations: Slab::default(),
            transfers: Slab::default(),
            messages: Slab::default(),
            events: EventQueue::default(),
            locks: Locks::default(),
            sizes: FileSizes::default(),
            striped: BTreeMap::new(),
            metadata_free_from: vec![SimTime::ZERO; systems.len()],
        };
        let (mut bases, mut devices) = (Vec::new(), Vec::new());
        for (system, of) in (0..).zip(systems) {
            bases.push(state.servers.len() as u32);
            state.servers.extend(of.servers.iter().map(|&host| Server::new(host)));
            devices.extend(of.servers.iter().map(|_| of.device.idle()));
            of.files.iter().for_each(|(name, size)| state.sizes.set(system, number(name), *size));
        }
        let devices = Devices::new(devices);
        let (effects, accesses_ended) = (Vec::new(), Vec::new());
        Self { systems, bases, devices, state, checks_sizes: true, effects, accesses_ended }
    }

    /// Lets reads go beyond the end of files, as do those of a program that was recorded with the sizes of its buffers.
    pub fn allow_reads_beyond_the_end(&mut self) {
        self.checks_sizes = false;
    }

    /// Submits an operation that begins at an instant, which is not before the last event.
    pub fn submit(&mut self, at: SimTime, request: FileRequest, tag: T) {
        let operation = Operation { request, tag, shares: Vec::new(), left: 0 };
        let id = self.state.operations.insert(operation);
        self.state.events.add(at, Event::Begin(id));
    }

    /// Returns the time of the next event, unless a message arrives before.
    pub fn next_event(&mut self) -> Option<SimTime> {
        [self.devices.next_event(), self.state.events.next()].into_iter().flatten().min()
    }

    /// Advances to the next event.
    pub fn advance(&mut self, now: SimTime, found: &mut Consequences<T>) {
        while self.next_event().is_some_and(|at| at <= now) {
            self.devices.advance(now, &mut self.accesses_ended);
            for (server, running) in std::mem::take(&mut self.accesses_ended) {
                let system = self.system_of(server);
                let Some(of) = self.state.servers.get_mut(server as usize) else { continue };
                of.access_ended(system, now, running, &mut self.effects);
                self.apply(now, server, found);
            }
            let end = now.saturating_add(pdes_core::SimDuration::from_picos(1));
            while let Some((_, event)) = self.state.events.pop_before(end) {
                match event {
                    Event::Begin(operation) => self.begin(now, operation, found),
                    Event::Arrival(message) => self.arrived(now, message, found),
                    Event::Opened(operation) => self.opened(now, operation, found),
                }
            }
        }
    }

    /// Takes the arrival of a message.
    pub fn arrived(&mut self, now: SimTime, message: u32, found: &mut Consequences<T>) {
        let Some(UnderWay { content, bytes, at, then }) = self.state.messages.remove(message) else { return };
        if let Some(then) = then {
            return self.send_hop(now, UnderWay { content, bytes, at: then, then: None }, at, found);
        }
        match content {
            Content::Request(transfer) => self.requested(now, transfer, found),
            Content::Grant(transfer) => self.send_to_server(now, transfer, true, found),
            Content::Data(transfer) => {
                let Some((server, request, access)) = self.access(transfer) else { return };
                let system = self.system(request.system);
                let of = &mut self.state.servers[server as usize];
                of.written(system, now, (transfer, access), &mut self.effects);
                self.apply(now, server, found);
            }
            Content::Reply(transfer) => self.complete(now, transfer, found),
            Content::OpenRequest(operation) => {
                let Some(request) = self.state.operations.get(operation).map(|operation| operation.request)
                else {
                    return;
                };
                let Some((_, time)) = self.system(request.system).metadata else { return };
                let free_from = &mut self.state.metadata_free_from[request.system.index()];
                *free_from = now.max(*free_from).saturating_add(time);
                self.state.events.add(*free_from, Event::Opened(operation));
            }
            Content::OpenReply(operation) => self.end(operation, found),
            Content::LockRequest(by) => self.lock_requested(now, by, found),
            Content::LockGrant { lock, to } => self.lock_granted(now, lock, to, found),
            Content::CallBack { lock, .. } => self.lock_called_back(now, lock, found),
            Content::GiveUp { lock, .. } => self.lock_given_up(now, lock, found),
        }
    }

    fn system(&self, id: FileSystemId) -> &'a FileSystem {
        &self.systems[id.index()]
    }

    fn system_of(&self, server: u32) -> &'a FileSystem {
        &self.systems[self.bases.partition_point(|base| *base <= server) - 1]
    }

    fn begin(&mut self, now: SimTime, id: u32, found: &mut Consequences<T>) {
        let Some(operation) = self.state.operations.get_mut(id) else { return };
        self.state.sizes.cut_to_existing(&mut operation.request);
        let (request, tag) = (operation.request, operation.tag);
        let system = &self.systems[request.system.index()];
        let base = self.bases[request.system.index()];
        let striping = striping(&self.state.striped, system, &request);
        let (begin, end) = (request.offset, request.offset.saturating_add(request.bytes));
        match request.operation {
            FileOperation::Open { stripe, servers } => {
                if (stripe, servers) != (None, None) && !self.state.sizes.has(&request) {
                    let striping = system.striping.with_hints(stripe, servers);
                    self.state.striped.insert((request.system.get(), request.file), striping);
                }
                match system.metadata {
                    Some((host, _)) => {
                        let content = Content::OpenRequest(id);
                        self.send(now, (request.client, host), content, system.request.get(), request, found);
                    }
                    None => self.end(id, found),
                }
            }
            FileOperation::Sync => {
                let server =
                    |server| Share { server: base + server, next: 0, end: 1, under_way: 0, lock: None };
                operation.shares = striping.servers_of(request.file).map(server).collect();
                self.start_shares(now, id, found);
            }
            FileOperation::Read | FileOperation::ReadExisting | FileOperation::Write => {
                if let Err(size) = self.state.sizes.access(&request, end)
                    && self.checks_sizes
                {
                    self.state.operations.remove(id);
                    return found.failed.push((tag, BeyondEnd { request, size }));
                }
                let pieces = striping.pieces(request.file, begin, end);
                let share = |piece: super::Piece| Share {
                    server: base + piece.server,
                    next: piece.begin,
                    end: piece.end,
                    under_way: 0,
                    lock: None,
                };
                operation.shares = pieces.map(share).collect();
                self.start_shares(now, id, found);
            }
        }
    }

    fn start_shares(&mut self, now: SimTime, id: u32, found: &mut Consequences<T>) {
        let Some(operation) = self.state.operations.get_mut(id) else { return };
        let shares = operation.shares.len() as u32;
        operation.left = shares;
        if shares == 0 {
            return self.end(id, found);
        }
        (0..shares).for_each(|share| self.start_share(now, ShareId { operation: id, share }, found));
    }

    /// Starts transfers of a share while it may have more of them under way.
    fn start_transfers(&mut self, now: SimTime, id: u32, number: u32, found: &mut Consequences<T>) {
        let Some(operation) = self.state.operations.get_mut(id) else { return };
        let system = &self.systems[operation.request.system.index()];
        let share = &mut operation.shares[number as usize];
        let mut started = Vec::new();
        while share.next < share.end && share.under_way < system.transfers {
            let bytes = system.transfer_bytes.min(share.end - share.next);
            let transfer = Transfer { operation: id, share: number, offset: share.next, bytes };
            share.next += bytes;
            share.under_way += 1;
            started.push(self.state.transfers.insert(transfer));
        }
        started.into_iter().for_each(|transfer| self.send_to_server(now, transfer, false, found));
    }

    /// Sends the request of a transfer to its server, or its data.
    fn send_to_server(&mut self, now: SimTime, id: TransferId, has_data: bool, found: &mut Consequences<T>) {
        let Some((server, request, access)) = self.access(id) else { return };
        let (content, bytes) = match has_data {
            true => (Content::Data(id), access.bytes),
            false => (Content::Request(id), self.system(request.system).request.get()),
        };
        let hosts = (request.client, self.state.servers[server as usize].host);
        self.send(now, hosts, content, bytes, request, found);
    }

    /// Returns the server of a transfer, the request of its operation, and its access there.
    fn access(&self, id: TransferId) -> Option<(u32, FileRequest, Access)> {
        let transfer = self.state.transfers.get(id)?;
        let operation = self.state.operations.get(transfer.operation)?;
        let request = operation.request;
        let direction = match request.operation {
            FileOperation::Write => Direction::Write,
            _ => Direction::Read,
        };
        let access = Access { file: request.file, direction, offset: transfer.offset, bytes: transfer.bytes };
        Some((operation.shares.get(transfer.share as usize)?.server, request, access))
    }

    fn requested(&mut self, now: SimTime, id: TransferId, found: &mut Consequences<T>) {
        let Some((server, request, access)) = self.access(id) else { return };
        let system = self.system(request.system);
        let of = &mut self.state.servers[server as usize];
        match request.operation {
            FileOperation::Write => of.write_requested(system, (id, access.bytes), &mut self.effects),
            FileOperation::Read | FileOperation::ReadExisting => {
                let size = self.state.sizes.of(&request);
                let local = server - self.bases[request.system.index()];
                let striping = striping(&self.state.striped, system, &request);
                let size = size.map(|size| striping.part(request.file, local, size));
                of.read_requested(system, now, (id, access), size, &mut self.effects);
            }
            FileOperation::Sync => of.sync_requested((id, request.file), &mut self.effects),
            FileOperation::Open { .. } => {}
        }
        self.apply(now, server, found);
    }

    /// Carries out what a server has caused.
    fn apply(&mut self, now: SimTime, server: u32, found: &mut Consequences<T>) {
        let host = self.state.servers[server as usize].host;
        for effect in std::mem::take(&mut self.effects) {
            let (id, is_done) = match effect {
                Effect::Access { access, running } => {
                    self.devices.submit(now, DeviceId::new(server), access, (server, running));
                    continue;
                }
                Effect::Granted(id) => (id, false),
                Effect::Done(id) => (id, true),
            };
            let Some((_, request, access)) = self.access(id) else { continue };
            let has_data = is_done && request.operation == FileOperation::Read;
            let bytes = if has_data { access.bytes } else { self.system(request.system).request.get() };
            let content = if is_done { Content::Reply(id) } else { Content::Grant(id) };
            self.send(now, (host, request.client), content, bytes, request, found);
        }
    }

    /// Completes a transfer at its client.
    fn complete(&mut self, now: SimTime, id: TransferId, found: &mut Consequences<T>) {
        let Some(transfer) = self.state.transfers.remove(id) else { return };
        let Some(operation) = self.state.operations.get_mut(transfer.operation) else { return };
        let share = &mut operation.shares[transfer.share as usize];
        share.under_way -= 1;
        if share.next < share.end {
            return self.start_transfers(now, transfer.operation, transfer.share, found);
        }
        if share.under_way == 0 {
            let lock = share.lock.take();
            operation.left -= 1;
            let is_complete = operation.left == 0;
            if let Some(lock) = lock {
                self.end_use(now, lock, found);
            }
            if is_complete {
                self.end(transfer.operation, found);
            }
        }
    }

    fn opened(&mut self, now: SimTime, id: u32, found: &mut Consequences<T>) {
        let Some(request) = self.state.operations.get(id).map(|operation| operation.request) else { return };
        let system = self.system(request.system);
        if let Some((host, _)) = system.metadata {
            let bytes = system.request.get();
            self.send(now, (host, request.client), Content::OpenReply(id), bytes, request, found);
        }
    }

    fn end(&mut self, id: u32, found: &mut Consequences<T>) {
        found.ended.extend(self.state.operations.remove(id).map(|operation| operation.tag));
    }

    /// Sends a message between a client and a server, through the forwarder of the client if it has one.
    fn send(
        &mut self,
        now: SimTime,
        (from, to): (HostId, HostId),
        content: Content,
        bytes: u64,
        request: FileRequest,
        found: &mut Consequences<T>,
    ) {
        let forwarders = &self.system(request.system).forwarders;
        let forwarder = forwarders.get(request.client.index() % forwarders.len().max(1)).copied();
        let message = match forwarder.filter(|via| *via != from && *via != to) {
            Some(via) => UnderWay { content, bytes, at: via, then: Some(to) },
            None => UnderWay { content, bytes, at: to, then: None },
        };
        self.send_hop(now, message, from, found);
    }

    fn send_hop(&mut self, now: SimTime, message: UnderWay, from: HostId, found: &mut Consequences<T>) {
        let operation = match message.content {
            Content::Request(transfer)
            | Content::Grant(transfer)
            | Content::Data(transfer)
            | Content::Reply(transfer) => {
                self.state.transfers.get(transfer).map_or(u32::MAX, |transfer| transfer.operation)
            }
            Content::OpenRequest(operation) | Content::OpenReply(operation) => operation,
            Content::LockRequest(by) | Content::LockGrant { to: by, .. } => by.operation,
            Content::CallBack { by, .. } | Content::GiveUp { by, .. } => by,
        };
        let Some(tag) = self.state.operations.get(operation).map(|operation| operation.tag) else { return };
        let number = self.state.messages.insert(message);
        if message.at == from {
            self.state.events.add(now, Event::Arrival(number));
        } else {
            let bytes = Bytes::new(message.bytes);
            found.messages.push(ServerMessage { from, to: message.at, bytes, number, tag });
        }
    }

    /// Returns the tags of all operations that have not ended.
    pub fn unfinished(&self) -> impl Iterator<Item = T> + '_ {
        self.state.operations.iter().map(|operation| operation.tag)
    }

    /// Returns the file system, the host and the use of each server.
    pub fn usage(&self) -> impl Iterator<Item = (FileSystemId, HostId, &ServerUsage)> {
        let system = |server: usize| self.bases.partition_point(|base| *base as usize <= server) - 1;
        let servers = self.state.servers.iter().enumerate();
        servers.map(move |(number, server)| {
            (FileSystemId::new(system(number) as u32), server.host, &server.usage)
        })
    }

    /// Writes everything on which the future of the servers depends; returns false while an operation or a message is in progress.
    pub fn write_state(&self, state: &mut StateWriter) -> bool {
        let State {
            servers, operations, messages, events, locks, sizes, striped, metadata_free_from, ..
        } = &self.state;
        if operations.iter().next().is_some() || messages.iter().next().is_some() || events.len() > 0 {
            return false;
        }
        self.devices.write_state(state, |tag, state| state.value(&tag));
        servers.iter().for_each(|server| server.write_state(state));
        locks.write_state(state);
        sizes.write_state(state);
        state.value(striped);
        metadata_free_from.iter().for_each(|free| state.time((*free).max(state.now())));
        true
    }

    /// Announces that the interval which begins now may be repeated.
    pub fn watch_period(&mut self, now: SimTime) {
        self.state.servers.iter_mut().for_each(|server| server.usage.watch(now));
    }

    /// Adds the use of the interval that was announced last, and ends now, so many times. The servers stay at this time.
    pub fn repeat_period(&mut self, now: SimTime, period: SimDuration, times: u64) {
        self.state.servers.iter_mut().for_each(|server| server.usage.repeat(now, period, times));
    }

    /// Returns the state of all servers and operations.
    pub fn save(&self) -> Vec<u8>
    where
        T: Serialize,
    {
        postcard::to_allocvec(&(self.devices.save(), &self.state)).expect("memory takes all")
    }

    /// Continues from a state of the same servers.
    ///
    /// # Errors
    /// If the bytes are no such state.
    pub fn restore(&mut self, state: &[u8]) -> Result<(), ForeignState>
    where
        T: DeserializeOwned,
    {
        let (devices, state): (Vec<u8>, State<T>) = read_state(state)?;
        let hosts = |servers: &[Server]| servers.iter().map(|server| server.host).collect::<Vec<_>>();
        let is_same = hosts(&state.servers) == hosts(&self.state.servers)
            && state.metadata_free_from.len() == self.systems.len()
            && state.striped.iter().all(|((system, _), striping)| {
                let known = self.systems.get(*system as usize).map(|system| system.striping);
                known.is_some_and(|known| {
                    let Striping { bytes, count, .. } = *striping;
                    *striping == Striping { bytes, count, ..known }
                        && bytes > 0
                        && (1..=known.servers).contains(&count)
                })
            })
            && state.operations.iter().all(|operation| {
                operation.request.system.index() < self.systems.len()
                    && operation.shares.iter().all(|share| (share.server as usize) < state.servers.len())
            });
        if !is_same {
            return Err(ForeignState);
        }
        self.devices.restore(&devices)?;
        self.state = state;
        Ok(())
    }
}

/// Returns the striping of the file of a request.
fn striping(
    striped: &BTreeMap<(u32, u32), Striping>,
    system: &FileSystem,
    request: &FileRequest,
) -> Striping {
    striped.get(&(request.system.get(), request.file)).copied().unwrap_or(system.striping)
}
