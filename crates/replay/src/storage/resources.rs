//! The storage of the hosts of a region in the order of time: devices, clients and servers of file systems, and pointers that ranks share.

use std::collections::BTreeMap;

use mpi_model::{Completion, FileAccess, FileOperation as Operation, StorageKind};
use netmodel::storage::{Client, Consequences, ServerMessage};
use netmodel::{DeviceId, Devices, FileServers, HostId, Message, NetworkModel, Storage};
use pdes_core::{Bytes, LpId, SimDuration, SimTime, State, StateVisitor};
use serde::{Deserialize, Serialize};

use super::shared_pointers::{SharedAccess, SharedPointers};
use super::{FileRules, addressed, file_request};
use crate::network_tag::NetworkTag;
use crate::region_adapter::Part;
use crate::simulation::ServerUse;

/// Waiter for an access to a device or a file system.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
enum Waiter {
    /// A rank, or an operation of it.
    Rank(Completion),
    /// An access at a shared pointer, by its number.
    Shared(u32),
}

/// An access at a shared pointer, from its begin in the rank to its end.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct RunningAccess {
    shared: SharedAccess,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Step {
    /// The access waits for its begin, or for the pointer.
    Begin,
    /// Its data are on the way to the device.
    TransferBefore,
    /// The device or the file system does the access.
    Access,
    /// Its data are on the way back.
    TransferAfter,
}

/// Devices, clients and servers of the hosts of a region, which ranks on them alone access; with the whole machine in one region, also from
/// other hosts and at shared pointers. They act after all events of the network of the same instant.
#[derive(Debug)]
pub(crate) struct StorageResources<'a> {
    storage: &'a Storage,
    /// Host of each logical process.
    lp_hosts: &'a [HostId],
    /// The region, unless it is the whole machine.
    part: Option<Part<'a>>,
    devices: Devices<Waiter>,
    /// Numbers in the set of devices by those in the platform.
    numbers: BTreeMap<DeviceId, DeviceId>,
    servers: FileServers<'a, Waiter>,
    /// Instant of the earliest timer of a part, without which its network might advance beyond an event here.
    timer: Option<SimTime>,
    pointers: SharedPointers,
    /// Accesses at shared pointers, by their numbers.
    running: BTreeMap<u32, RunningAccess>,
    /// Number of the next access.
    next: u32,
    consequences: Consequences<Waiter>,
    device_ends: Vec<Waiter>,
    /// Completions of accesses that have ended.
    pub(crate) ended: Vec<Completion>,
    /// Accesses that read beyond the end of their file, with its size.
    pub(crate) failed: Vec<(Completion, u64)>,
}

impl<'a> StorageResources<'a> {
    /// Creates the idle storage of a region.
    pub(crate) fn new(
        storage: &'a Storage,
        rules: &FileRules,
        lp_hosts: &'a [HostId],
        part: Option<Part<'a>>,
    ) -> Self {
        let is_own = |host: HostId| part.is_none_or(|part| part.has(host));
        let all = (0..).map(DeviceId::new).zip(storage.idle_devices());
        let own = all.filter(|(device, _)| is_own(storage.host(*device)));
        let (numbers, devices): (Vec<DeviceId>, Vec<_>) = own.unzip();
        Self {
            storage,
            lp_hosts,
            part,
            devices: Devices::new(devices),
            numbers: numbers.into_iter().zip((0..).map(DeviceId::new)).collect(),
            servers: rules.servers(storage, is_own),
            timer: None,
            pointers: SharedPointers::default(),
            running: BTreeMap::new(),
            next: 0,
            consequences: Consequences::default(),
            device_ends: Vec::new(),
            ended: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Submits an access that begins at an instant.
    ///
    /// # Panics
    /// If it is one to a device that does not belong to the region.
    #[cold]
    pub(crate) fn submit<N: NetworkModel<NetworkTag>>(
        &mut self,
        network: &mut N,
        at: SimTime,
        access: FileAccess,
        tag: Completion,
    ) {
        if access.shared_pointer.is_none() {
            return self.start(at, &access, tag.owner(), Waiter::Rank(tag));
        }
        let number = self.next;
        self.next = number.wrapping_add(1);
        let running = RunningAccess { shared: SharedAccess { access, tag, number }, step: Step::Begin };
        self.running.insert(number, running);
        network.schedule(at, NetworkTag::SharedAccess(number));
    }

    fn client(&self, lp: LpId) -> Client {
        Client { lp, host: self.lp_hosts[lp.index()] }
    }

    /// Starts an access on its device, or in its file system.
    fn start(&mut self, at: SimTime, access: &FileAccess, lp: LpId, waiter: Waiter) {
        if access.storage == StorageKind::Device {
            let (device, access) = addressed(access);
            return self.devices.submit(at, self.numbers[&device], access, waiter);
        }
        self.servers.submit(at, file_request(access, self.client(lp)), waiter);
    }

    /// Returns the next event, if it comes before that of the network.
    pub(crate) fn next_event(&mut self, of_network: Option<SimTime>) -> Option<SimTime> {
        let at = [self.devices.next_event(), self.servers.next_event()].into_iter().flatten().min()?;
        of_network.is_none_or(|other| at < other).then_some(at)
    }

    /// Lets the network of a part stop at the next event here.
    pub(crate) fn set_timer<N: NetworkModel<NetworkTag>>(&mut self, network: &mut N) {
        let Some(next) = self.next_event(None).filter(|_| self.part.is_some()) else { return };
        if self.timer.is_none_or(|at| next < at) {
            self.timer = Some(next);
            network.schedule(next, NetworkTag::StorageTimer);
        }
    }

    /// Advances to the next event.
    pub(crate) fn advance<N: NetworkModel<NetworkTag>>(&mut self, network: &mut N, now: SimTime) {
        self.devices.advance(now, &mut self.device_ends);
        for waiter in std::mem::take(&mut self.device_ends) {
            self.access_ended(network, now, waiter);
        }
        self.servers.advance(now, &mut self.consequences);
        self.follow(network, now);
    }

    /// Takes timers, messages between clients and servers, and data at shared pointers out of what the network has completed.
    pub(crate) fn take_arrivals<N: NetworkModel<NetworkTag>>(
        &mut self,
        network: &mut N,
        now: SimTime,
        arrived: &mut Vec<NetworkTag>,
    ) {
        self.timer = self.timer.filter(|at| *at > now);
        arrived.retain(|&tag| {
            match tag {
                NetworkTag::Ranks(_) => return true,
                NetworkTag::Packet(client, packet) => {
                    let client = self.client(client);
                    // The region of the sender is told of the arrival, too.
                    let to = self.servers.destination(client, &packet);
                    if to.is_some_and(|host| self.part.is_none_or(|part| part.has(host))) {
                        self.servers.arrived(now, client, packet);
                    }
                }
                NetworkTag::SharedAccess(number) => self.continue_shared(network, now, number),
                NetworkTag::StorageTimer => {}
            }
            false
        });
    }

    /// Continues an access at a shared pointer.
    fn continue_shared<N: NetworkModel<NetworkTag>>(&mut self, network: &mut N, now: SimTime, number: u32) {
        let Some(RunningAccess { shared, step }) = self.running.get(&number).copied() else { return };
        match step {
            Step::Begin => {
                if let Some(first) = self.pointers.submit(shared) {
                    self.begin_shared(network, now, first);
                }
            }
            Step::TransferBefore => self.access_shared(now, shared),
            Step::Access | Step::TransferAfter => self.end_shared(network, now, shared),
        }
    }

    /// Carries out what the servers have caused.
    fn follow<N: NetworkModel<NetworkTag>>(&mut self, network: &mut N, now: SimTime) {
        let Consequences { messages, ended, failed } = std::mem::take(&mut self.consequences);
        for ServerMessage { from, to, bytes, order, client, packet } in messages {
            let submitter = client.lp;
            let tag = NetworkTag::Packet(submitter, packet);
            let message =
                Message { at: now, order, submitter, origin: from, src: from, dst: to, size: bytes, tag };
            send(network, message);
        }
        ended.into_iter().for_each(|waiter| self.access_ended(network, now, waiter));
        for (waiter, beyond) in failed {
            let tag = self.tag(waiter);
            self.failed.push((tag, beyond.size));
        }
    }

    fn tag(&self, waiter: Waiter) -> Completion {
        match waiter {
            Waiter::Rank(tag) => tag,
            Waiter::Shared(number) => self.running[&number].shared.tag,
        }
    }

    fn access_ended<N: NetworkModel<NetworkTag>>(&mut self, network: &mut N, now: SimTime, waiter: Waiter) {
        let number = match waiter {
            Waiter::Rank(tag) => return self.ended.push(tag),
            Waiter::Shared(number) => number,
        };
        let Some(RunningAccess { shared, .. }) = self.running.get(&number).copied() else { return };
        match self.remote(&shared).filter(|_| shared.access.operation == Operation::Read) {
            Some((client, owner)) => {
                self.running.insert(number, RunningAccess { shared, step: Step::TransferAfter });
                send_shared(network, now, (owner, client), &shared);
            }
            None => self.end_shared(network, now, shared),
        }
    }

    /// Returns the hosts of a rank and of its device, if these are two.
    fn remote(&self, shared: &SharedAccess) -> Option<(HostId, HostId)> {
        let access = &shared.access;
        let client = self.lp_hosts[shared.tag.owner().index()];
        let is_device = access.storage == StorageKind::Device;
        let owner = is_device.then(|| self.storage.host(addressed(access).0))?;
        (owner != client).then_some((client, owner))
    }

    /// Begins an access that has got its pointer.
    fn begin_shared<N: NetworkModel<NetworkTag>>(
        &mut self,
        network: &mut N,
        now: SimTime,
        shared: SharedAccess,
    ) {
        match self.remote(&shared).filter(|_| shared.access.operation == Operation::Write) {
            Some(hosts) => {
                let running = RunningAccess { shared, step: Step::TransferBefore };
                self.running.insert(shared.number, running);
                send_shared(network, now, hosts, &shared);
            }
            None => self.access_shared(now, shared),
        }
    }

    fn access_shared(&mut self, now: SimTime, shared: SharedAccess) {
        self.running.insert(shared.number, RunningAccess { shared, step: Step::Access });
        self.start(now, &shared.access, shared.tag.owner(), Waiter::Shared(shared.number));
    }

    /// Ends an access at a shared pointer, and begins the next one.
    fn end_shared<N: NetworkModel<NetworkTag>>(
        &mut self,
        network: &mut N,
        now: SimTime,
        shared: SharedAccess,
    ) {
        self.running.remove(&shared.number);
        self.ended.push(shared.tag);
        if let Some(next) = self.pointers.end(&shared.access) {
            self.begin_shared(network, now, next);
        }
    }

    /// Returns the completions of all accesses that have not ended.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = Completion> + '_ {
        let of_ranks = self.devices.unfinished().chain(self.servers.unfinished());
        let of_ranks = of_ranks.filter_map(|waiter| match waiter {
            Waiter::Rank(tag) => Some(tag),
            Waiter::Shared(_) => None,
        });
        of_ranks.chain(self.running.values().map(|running| running.shared.tag))
    }

    /// Returns the use of each I/O server of the region, with its number.
    pub(crate) fn server_use(&self) -> impl Iterator<Item = (u32, ServerUse)> {
        let usage = self.servers.usage();
        usage.map(|(number, system, host, usage)| (number, ServerUse { system, host, usage: usage.clone() }))
    }

    /// Announces that the interval of length `period` which begins now may be repeated so many times.
    pub(crate) fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        self.servers.watch_period(now, period, repetitions);
    }

    /// Adds the use of the interval that was announced last, and ends now, as often as it is repeated.
    pub(crate) fn repeat_loads(&mut self, now: SimTime) {
        self.servers.repeat_loads(now);
    }
}

/// Accesses at shared pointers do not recur.
impl State for StorageResources<'_> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self {
            storage: _,
            lp_hosts: _,
            part: _,
            devices,
            numbers: _,
            servers,
            timer,
            pointers,
            running,
            next,
            consequences: _,
            device_ends: _,
            ended: _,
            failed: _,
        } = self;
        if visitor.is_observing() && !running.is_empty() {
            visitor.refuse();
        }
        devices.visit(visitor);
        servers.visit(visitor);
        timer.visit(visitor);
        visitor.plain(pointers);
        visitor.saved(running);
        visitor.saved(next);
    }
}

/// Sends the data of an access at a shared pointer.
fn send_shared<N: NetworkModel<NetworkTag>>(
    network: &mut N,
    at: SimTime,
    (src, dst): (HostId, HostId),
    &SharedAccess { access, tag, number }: &SharedAccess,
) {
    let (submitter, size) = (tag.owner(), Bytes::new(access.bytes));
    let tag = NetworkTag::SharedAccess(number);
    send(network, Message { at, order: 0, submitter, origin: src, src, dst, size, tag });
}

/// Sends a message without an envelope.
fn send<N: NetworkModel<NetworkTag>>(network: &mut N, message: Message<NetworkTag>) {
    network.send(message).expect("routes between clients and servers are checked before the replay");
}
