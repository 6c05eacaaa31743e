//! The storage of the hosts of a region: devices that the ranks on them alone access, and clients and servers of file systems.

use std::collections::BTreeMap;

use mpi_model::{Completion, FileAccess, StorageKind};
use netmodel::storage::{Client, Consequences, Packet, ServerMessage};
use netmodel::{DeviceId, Devices, FileServers, HostId, Message, NetworkRegion, Storage};
use pdes_core::{LpId, RegionIndex, SimDuration, SimTime, State};

use super::{FileRules, addressed, file_request};
use crate::simulation::ServerUse;

/// Content of the message that stands for a timer.
const TIMER: [u64; 4] = [0xfe, 0, 0, 0];

/// The devices, clients and servers of the hosts of a region. They act after all events of the network of the same instant.
#[derive(Debug, State)]
#[state(in_place)]
pub(crate) struct RegionStorage<'a> {
    #[state(skip = "context")]
    index: RegionIndex,
    /// Region of each host.
    #[state(skip = "context")]
    hosts: &'a [RegionIndex],
    #[state(skip = "context")]
    lp_hosts: &'a [HostId],
    devices: Devices<Completion>,
    /// Numbers in the set of devices by those in the platform.
    #[state(skip = "context")]
    numbers: BTreeMap<u32, DeviceId>,
    servers: FileServers<'a, Completion>,
    #[state(skip = "empty between two events")]
    consequences: Consequences<Completion>,
    /// Instant of the earliest timer of the region, without which it might advance beyond an event here.
    timer: Option<SimTime>,
    /// Accesses that read beyond the end of their file, with its size.
    #[state(skip = "empty between two events")]
    pub(crate) failed: Vec<(Completion, u64)>,
}

impl<'a> RegionStorage<'a> {
    /// Creates the idle storage of a region.
    pub(crate) fn new(
        storage: &'a Storage,
        rules: &FileRules,
        lp_hosts: &'a [HostId],
        (hosts, index): (&'a [RegionIndex], RegionIndex),
    ) -> Self {
        let is_own = |host: HostId| hosts[host.index()] == index;
        let all = (0..).map(DeviceId::new).zip(storage.idle_devices());
        let own = all.filter(|(number, _)| is_own(storage.host(*number)));
        let (numbers, devices): (Vec<DeviceId>, Vec<_>) = own.unzip();
        let numbers = numbers.iter().map(|number| number.get()).zip((0..).map(DeviceId::new)).collect();
        Self {
            index,
            hosts,
            lp_hosts,
            devices: Devices::new(devices),
            numbers,
            servers: rules.servers(storage, is_own),
            consequences: Consequences::default(),
            timer: None,
            failed: Vec::new(),
        }
    }

    /// Announces that the interval of length `period` which begins now may be repeated so many times.
    pub(crate) fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        self.servers.watch_period(now, period, repetitions);
    }

    /// Adds the use of the interval that was announced last, and ends now, as often as it is repeated.
    pub(crate) fn repeat_loads(&mut self, now: SimTime) {
        self.servers.repeat_loads(now);
    }

    /// Returns the use of each I/O server of the region, with its number.
    pub(crate) fn server_use(&self) -> impl Iterator<Item = (u32, ServerUse)> {
        let usage = self.servers.usage();
        usage.map(|(number, system, host, usage)| (number, ServerUse { system, host, usage: usage.clone() }))
    }

    /// Returns the completions of all accesses that have not ended.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = Completion> + '_ {
        self.devices.unfinished().chain(self.servers.unfinished())
    }

    fn client(&self, lp: LpId) -> Client {
        Client { lp, host: self.lp_hosts[lp.index()] }
    }

    /// Submits an access that begins at an instant.
    ///
    /// # Panics
    /// If it is one to a device that does not belong to the region.
    pub(crate) fn submit(&mut self, at: SimTime, access: &FileAccess, tag: Completion) {
        match access.storage {
            StorageKind::Device => {
                let (device, access) = addressed(access);
                self.devices.submit(at, self.numbers[&device.get()], access, tag);
            }
            StorageKind::FileSystem => {
                self.servers.submit(at, file_request(access, self.client(tag.owner())), tag);
            }
        }
    }

    /// Returns the next event, if it comes before that of the network.
    pub(crate) fn next_event(&mut self, of_network: Option<SimTime>) -> Option<SimTime> {
        let at = [self.devices.next_event(), self.servers.next_event()].into_iter().flatten().min()?;
        of_network.is_none_or(|other| at < other).then_some(at)
    }

    /// Lets the region stop at the next event here.
    pub(crate) fn set_timer<N: NetworkRegion<Completion>>(&mut self, region: &mut N) {
        let Some(next) = self.next_event(None) else { return };
        if self.timer.is_none_or(|at| next < at) {
            self.timer = Some(next);
            region.schedule(next, Completion::of_storage(LpId::new(0), TIMER));
        }
    }

    /// Advances to the next event, and appends the accesses that end then.
    pub(crate) fn advance<N: NetworkRegion<Completion>>(
        &mut self,
        region: &mut N,
        now: SimTime,
        ended: &mut Vec<Completion>,
    ) {
        self.devices.advance(now, ended);
        self.servers.advance(now, &mut self.consequences);
        let found = &mut self.consequences;
        ended.append(&mut found.ended);
        self.failed.extend(found.failed.drain(..).map(|(tag, beyond)| (tag, beyond.size)));
        for ServerMessage { from: src, to: dst, bytes: size, order, client, packet } in
            found.messages.drain(..)
        {
            let tag = Completion::of_storage(client.lp, packet.to_words());
            let message = Message { at: now, order, submitter: client.lp, src, dst, size, tag };
            let mut forwarded = Vec::new();
            region
                .send(message, &mut forwarded)
                .expect("routes between clients and servers are checked before the replay");
            debug_assert!(forwarded.is_empty(), "a region sends the messages of its hosts itself");
        }
    }

    /// Takes timers and messages out of the completions of the region.
    pub(crate) fn take_arrivals(&mut self, now: SimTime, completions: &mut Vec<Completion>) {
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = None;
        }
        completions.retain(|completion| {
            let Some(message) = completion.storage_message() else { return true };
            if let Some(packet) = Packet::from_words(message) {
                let client = self.client(completion.owner());
                // The region of the sender is told of the arrival, too.
                let to = self.servers.destination(client, &packet);
                if to.is_some_and(|host| self.hosts[host.index()] == self.index) {
                    self.servers.arrived(now, client, packet);
                }
            }
            false
        });
    }
}
