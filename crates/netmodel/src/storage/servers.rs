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
//! With locks of extents, an access first asks each server for a lock that its client does not have. A server knows the size of its parts
//! of files. If it has not all of a read, it answers with what exists, and the client asks all servers of the file for their sizes: what
//! is missing is a hole, or beyond the end.
//!
//! The clients of a host and each server are logical processes: they know of each other by messages alone, which the caller sends over
//! its network, and whose arrival it reports. So one thread may have the processes of all hosts, or a region those of its own. A message
//! to the same host arrives at once. What happens to a process at one instant has an order of its own: operations that begin by their
//! ranks, then messages by their clients and contents.

mod client;
mod server_process;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use pdes_core::{Bytes, LpId, SimDuration, SimTime, State, StateVisitor};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::file_request::{Consequences, FileRequest};
use super::packet::{Client, Content, Packet, ServerMessage};
use super::server::Server;
use super::systems::Systems;
use super::usage::ServerUsage;
use super::{Devices, Storage, Striping};
use crate::{DeviceId, FileSystemId, HostId};
use client::{ClientEffects, ClientProcess};
use server_process::{ServerContext, ServerEffects, ServerProcess};

/// The clients and I/O servers of some hosts; `T` is the tag that the caller attaches to an operation, and gets back on its end.
#[derive(Debug)]
pub struct FileServers<'a, T> {
    systems: Systems<'a>,
    /// Devices of the servers, with the number of the server and of the access there.
    devices: Devices<(u32, u32)>,
    state: Progress<T>,
    /// Reads end at the end of their file; otherwise they may go beyond.
    checks_sizes: bool,
    client_effects: ClientEffects<T>,
    server_effects: ServerEffects,
    accesses_ended: Vec<(u32, u32)>,
}

#[derive(Debug)]
struct Progress<T> {
    clients: BTreeMap<HostId, ClientProcess<T>>,
    /// Servers by their numbers, each with that of its device.
    servers: BTreeMap<u32, (u32, ServerProcess)>,
    /// Operations to come, by their begin, their process, and the number of those before.
    upcoming: BTreeMap<(SimTime, LpId, u64), (FileRequest, T)>,
    submitted: u64,
    events: BinaryHeap<Reverse<ScheduledEvent>>,
    /// Instant from which each metadata server is free.
    metadata_free_from: Vec<SimTime>,
}

/// An event at a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, State)]
struct ScheduledEvent {
    at: SimTime,
    #[state(plain)]
    host: HostId,
    #[state(plain)]
    event: Event,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Event {
    /// The metadata server has opened the file of an operation.
    Opened {
        client: Client,
        system: FileSystemId,
        operation: u32,
    },
    Arrival(Client, Packet),
}

/// A message from a client to a server, or back.
#[derive(Clone, Copy, Debug)]
struct Sent {
    client: Client,
    server: u32,
    content: Content,
}

/// Order number of messages between clients and servers, with that of their host in the low bits: they come after those of ranks.
const MESSAGE_ORDER: u64 = 1 << 63;

impl<'a, T: Copy> FileServers<'a, T> {
    /// Creates the idle clients and servers of the hosts that `is_own` accepts. `number` returns the number of a file by its name, `striped`
    /// has the striping of files that hints stripe, by file system and number.
    pub fn new(
        storage: &'a Storage,
        is_own: impl Fn(HostId) -> bool,
        number: impl Fn(&str) -> u32,
        striped: BTreeMap<(FileSystemId, u32), Striping>,
    ) -> Self {
        let systems = Systems::new(storage.file_systems(), striped);
        let (mut servers, mut devices) = (BTreeMap::new(), Vec::new());
        for (id, system) in systems.iter() {
            let own = (0..).zip(&system.servers).filter(|(_, host)| is_own(**host));
            for (local, &host) in own {
                let mut process = ServerProcess::new(Server::new(host));
                for (name, size) in &system.files {
                    let file = number(name);
                    process.sizes.set(file, systems.striping(id, file).part(file, local, *size));
                }
                servers.insert(systems.base(id) + local, (devices.len() as u32, process));
                devices.push(system.device.idle());
            }
        }
        let state = Progress {
            clients: BTreeMap::new(),
            servers,
            upcoming: BTreeMap::new(),
            submitted: 0,
            events: BinaryHeap::new(),
            metadata_free_from: vec![SimTime::ZERO; systems.iter().count()],
        };
        let (client_effects, server_effects) = (ClientEffects::default(), ServerEffects::default());
        Self {
            systems,
            devices: Devices::new(devices),
            state,
            checks_sizes: true,
            client_effects,
            server_effects,
            accesses_ended: Vec::new(),
        }
    }

    /// Lets reads go beyond the end of files, as do those of a program that was recorded with the sizes of its buffers.
    pub fn allow_reads_beyond_the_end(&mut self) {
        self.checks_sizes = false;
    }

    /// Submits an operation that begins at an instant, which is not before the last event.
    pub fn submit(&mut self, at: SimTime, request: FileRequest, tag: T) {
        let key = (at, request.client.lp, self.state.submitted);
        self.state.upcoming.insert(key, (request, tag));
        self.state.submitted += 1;
    }

    /// Returns the time of the next event, unless a message arrives before.
    pub fn next_event(&mut self) -> Option<SimTime> {
        let begin = self.state.upcoming.first_key_value().map(|((at, ..), _)| *at);
        let event = self.state.events.peek().map(|Reverse(event)| event.at);
        [self.devices.next_event(), begin, event].into_iter().flatten().min()
    }

    /// Advances to the next event, after all messages that arrive by then.
    pub fn advance(&mut self, now: SimTime, found: &mut Consequences<T>) {
        while self.next_event().is_some_and(|at| at <= now) {
            self.devices.advance(now, &mut self.accesses_ended);
            for (server, running) in std::mem::take(&mut self.accesses_ended) {
                self.at_server(server, now, found, |process, context, effects| {
                    process.access_ended(context, now, running, effects);
                });
            }
            while let Some(first) = self.state.upcoming.first_entry()
                && first.key().0 <= now
            {
                let (request, tag) = first.remove();
                self.at_client(request.client.host, now, found, |process, systems, effects| {
                    process.begin(systems, request, tag, effects);
                });
            }
            while let Some(Reverse(ScheduledEvent { at, host, event })) = self.state.events.peek().copied()
                && at <= now
            {
                self.state.events.pop();
                self.take(now, host, event, found);
            }
        }
    }

    /// Returns the host at which a message arrives; `None` if it is of no server.
    pub fn destination(&self, client: Client, packet: &Packet) -> Option<HostId> {
        let (_, to) = self.systems.ends(client, packet)?;
        if !packet.is_forwarded {
            return Some(to);
        }
        self.systems.forwarder(self.systems.of_packet(packet)?, client)
    }

    /// Takes the arrival of a message at one of the hosts.
    pub fn arrived(&mut self, now: SimTime, client: Client, packet: Packet) {
        if let Some(host) = self.destination(client, &packet) {
            self.schedule(now, host, Event::Arrival(client, packet));
        }
    }

    fn schedule(&mut self, at: SimTime, host: HostId, event: Event) {
        self.state.events.push(Reverse(ScheduledEvent { at, host, event }));
    }

    fn take(&mut self, now: SimTime, host: HostId, event: Event, found: &mut Consequences<T>) {
        let (client, packet) = match event {
            Event::Opened { client, system, operation } => {
                let content = Content::OpenReply { operation };
                return self.send(now, Sent { client, server: system.get(), content }, found);
            }
            Event::Arrival(client, packet) => (client, packet),
        };
        let Packet { content, is_forwarded, server } = packet;
        match content {
            _ if is_forwarded => {
                let Some((_, to)) = self.systems.ends(client, &packet) else { return };
                self.send_hop(now, (host, to), client, Packet { is_forwarded: false, ..packet }, found);
            }
            Content::OpenRequest { operation } => {
                let Some(system) = self.systems.of_packet(&packet) else { return };
                let Some((_, time)) = self.systems.get(system).metadata else { return };
                let free_from = &mut self.state.metadata_free_from[system.index()];
                *free_from = now.max(*free_from).saturating_add(time);
                let at = *free_from;
                self.schedule(at, host, Event::Opened { client, system, operation });
            }
            _ if content.is_to_server() => self.at_server(server, now, found, |process, context, effects| {
                process.take(context, now, (client, content), effects);
            }),
            _ => self.at_client(client.host, now, found, |process, systems, effects| {
                process.take(systems, (client, server), content, effects);
            }),
        }
    }

    /// Lets a server do something, and carries out what that causes.
    fn at_server(
        &mut self,
        number: u32,
        now: SimTime,
        found: &mut Consequences<T>,
        event: impl FnOnce(&mut ServerProcess, ServerContext<'a>, &mut ServerEffects),
    ) {
        let Some(system) = self.systems.of_server(number).map(|id| self.systems.get(id)) else { return };
        let Some((device, process)) = self.state.servers.get_mut(&number) else { return };
        let context = ServerContext { number, system, checks_sizes: self.checks_sizes };
        let effects = &mut self.server_effects;
        event(process, context, effects);
        for (access, running) in effects.accesses.drain(..) {
            self.devices.submit(now, DeviceId::new(*device), access, (number, running));
        }
        let mut sent = std::mem::take(&mut effects.sent);
        sent.drain(..).for_each(|sent| self.send(now, sent, found));
        self.server_effects.sent = sent;
    }

    /// Lets the clients of a host do something, and carries out what that causes.
    fn at_client(
        &mut self,
        host: HostId,
        now: SimTime,
        found: &mut Consequences<T>,
        event: impl FnOnce(&mut ClientProcess<T>, &Systems<'a>, &mut ClientEffects<T>),
    ) {
        let process = self.state.clients.entry(host).or_default();
        event(process, &self.systems, &mut self.client_effects);
        found.ended.append(&mut self.client_effects.ended);
        found.failed.append(&mut self.client_effects.failed);
        let mut sent = std::mem::take(&mut self.client_effects.sent);
        sent.drain(..).for_each(|sent| self.send(now, sent, found));
        self.client_effects.sent = sent;
    }

    /// Sends a message, through the forwarder of its client if it has one.
    fn send(&mut self, now: SimTime, Sent { client, server, content }: Sent, found: &mut Consequences<T>) {
        let packet = Packet { content, is_forwarded: false, server };
        let Some((from, to)) = self.systems.ends(client, &packet) else { return };
        let system = self.systems.of_packet(&packet);
        let forwarder = system.and_then(|system| self.systems.forwarder(system, client));
        match forwarder.filter(|via| *via != from && *via != to) {
            Some(via) => {
                let packet = Packet { is_forwarded: true, ..packet };
                self.send_hop(now, (from, via), client, packet, found);
            }
            None => self.send_hop(now, (from, to), client, packet, found),
        }
    }

    fn send_hop(
        &mut self,
        now: SimTime,
        (from, to): (HostId, HostId),
        client: Client,
        packet: Packet,
        found: &mut Consequences<T>,
    ) {
        if from == to {
            return self.schedule(now, to, Event::Arrival(client, packet));
        }
        let bytes = match packet.content {
            Content::Data { bytes, .. } | Content::Reply { bytes, .. } => Bytes::new(bytes),
            _ => match self.systems.of_packet(&packet) {
                Some(system) => self.systems.get(system).request,
                None => return,
            },
        };
        let order = MESSAGE_ORDER | u64::from(from.get());
        found.messages.push(ServerMessage { from, to, bytes, order, client, packet });
    }

    /// Returns the tags of all operations that have not ended.
    pub fn unfinished(&self) -> impl Iterator<Item = T> + '_ {
        let running = self.state.clients.values().flat_map(ClientProcess::unfinished);
        self.state.upcoming.values().map(|(_, tag)| *tag).chain(running)
    }

    /// Returns the number, the file system, the host and the use of each server.
    pub fn usage(&self) -> impl Iterator<Item = (u32, FileSystemId, HostId, &ServerUsage)> {
        self.state.servers.iter().filter_map(|(&number, (_, process))| {
            Some((number, self.systems.of_server(number)?, process.server.host, &process.server.usage))
        })
    }

    /// Announces that the period which begins now may be repeated so many times.
    pub fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        let servers = self.state.servers.values_mut();
        servers.for_each(|(_, process)| process.server.usage.watch(now, period, repetitions));
    }

    /// Adds the repetitions of the period that was announced last, and ends now, to what servers have done over time. The state
    /// is repeated after that.
    pub fn repeat_loads(&mut self, now: SimTime) {
        self.state.servers.values_mut().for_each(|(_, process)| process.server.usage.repeat(now));
    }

    /// Returns whether all that is in progress is of these file systems.
    fn fits(&self) -> bool {
        let Progress { clients, upcoming, events, .. } = &self.state;
        let knows = |system: FileSystemId| system.index() < self.state.metadata_free_from.len();
        clients.values().all(|process| process.fits(&self.systems))
            && upcoming.values().all(|(request, _)| knows(request.system))
            && events.iter().all(|Reverse(scheduled)| match scheduled.event {
                Event::Opened { system, .. } => knows(system),
                Event::Arrival(..) => true,
            })
    }
}

impl<T: State + Copy + Serialize + DeserializeOwned> State for FileServers<'_, T> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self {
            systems: _,
            devices,
            state,
            checks_sizes: _,
            client_effects: _,
            server_effects: _,
            accesses_ended: _,
        } = self;
        let Progress { clients, servers, upcoming, submitted, events, metadata_free_from } = state;
        devices.visit(visitor);
        clients.visit(visitor);
        visitor.parts(servers.values_mut().map(|(_, process)| process));
        if !visitor.saves_whole(upcoming) {
            visitor.compare(&upcoming.len());
            let visited = std::mem::take(upcoming).into_iter().map(|(key, (request, mut tag))| {
                let (mut at, lp, order) = key;
                at.visit(visitor);
                visitor.compare(&(lp, request));
                tag.visit(visitor);
                ((at, lp, order), (request, tag))
            });
            *upcoming = visited.collect();
        }
        // The order of operations matters, not their number.
        visitor.saved(submitted);
        events.visit(visitor);
        let later = visitor.now().saturating_add(SimDuration::from_picos(1));
        for free_from in metadata_free_from {
            visitor.time_from(later, free_from);
        }
        if visitor.is_loading() && !self.fits() {
            visitor.refuse();
        }
    }
}
