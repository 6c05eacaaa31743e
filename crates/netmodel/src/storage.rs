//! Storage: devices to which ranks address accesses to files, and the directories at which hosts see them.
//!
//! A kind of device is one file, which implements [`Device`], and one row of [`DEVICE_KINDS`].

mod cache;
mod devices;
mod disk;
mod file_request;
mod file_sizes;
mod file_system;
mod hard_disk;
mod locks;
mod packet;
pub mod scheduler;
mod server;
mod servers;
mod slab;
mod ssd;
mod systems;
mod usage;

use std::fmt;

use pdes_core::{SimDuration, SimTime, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::identifier::{DeviceId, FileSystemId};
use crate::platform::builder::PlatformBuilder;
use crate::{HostId, PlatformError};
pub use cache::CacheSize;
pub use devices::Devices;
pub(crate) use disk::Disk;
pub use file_request::{BeyondEnd, Consequences, FileOperation, FileRequest};
pub use file_system::{
    CacheDescription, FileSystem, FileSystemDescription, MetadataDescription, Piece, Striping,
};
pub use packet::{Client, Packet, ServerMessage};
pub use servers::FileServers;
pub use usage::{Series, ServerUsage};

/// Direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

/// An access to a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Number of the file; different files may have one number, with a probability of 2^-32.
    pub file: u32,
    /// Direction.
    pub direction: Direction,
    /// First position in the file \[B\].
    pub offset: u64,
    /// Size \[B\].
    pub bytes: u64,
}

impl Access {
    /// Returns the end of the part of the file \[B\].
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }
}

/// Number of an access in progress, which the caller of a [`Device`] chooses.
pub type AccessId = u32;

/// A device: a resource to which work is addressed, such as a disk. It is simulated event by event.
///
/// Its [`State`] is everything on which its future depends, but for its parameters. It refuses one of other parameters.
///
/// # Laws
/// 1. Accesses begin, and the device advances, at instants that are not before those of the last call.
/// 2. Each access ends once. Times and the order of ends depend on the sequence of calls only.
pub trait Device: fmt::Debug + Send + Sync + State {
    /// Returns an idle device like this one.
    fn idle(&self) -> Box<dyn Device>;

    /// Returns the duration of an access to the idle device; `None` where it exceeds a [`SimDuration`].
    fn duration_alone(&self, access: &Access) -> Option<SimDuration>;

    /// Returns the duration of an access that begins at an instant, on a device that one client alone uses, with one access after the
    /// other; `None` where it exceeds a [`SimDuration`]. By default, the device remembers nothing.
    fn duration_after(
        &self,
        history: &mut AccessHistory,
        begin: SimTime,
        access: &Access,
    ) -> Option<SimDuration> {
        let _ = (history, begin);
        self.duration_alone(access)
    }

    /// Begins an access now.
    fn begin(&mut self, now: SimTime, access: &Access, id: AccessId);

    /// Returns the earliest end of an access in progress.
    fn next_event(&self) -> Option<SimTime>;

    /// Advances to the next event, and appends the accesses that end then.
    fn advance(&mut self, now: SimTime, ended: &mut Vec<AccessId>);

    /// Returns the number of accesses that the device does at the same time, without slowing each other down; 1 by default.
    fn concurrency(&self) -> u32 {
        1
    }

    /// Returns whether times depend on the positions of accesses in their files; true by default.
    fn has_positions(&self) -> bool {
        true
    }
}

/// State of a device that one client alone uses, after the accesses of this client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessHistory {
    /// File and position at which the last access ended.
    pub last: Option<(u32, u64)>,
    /// Instant from which the write cache is empty, if nothing else is accessed.
    pub cache_empty_at: SimTime,
}

/// A row of the table of devices.
pub struct DeviceKind {
    /// Name in platforms.
    pub key: &'static str,
    /// Description in one sentence.
    pub description: &'static str,
    /// Makes an idle device with the parameters of a platform, or says what is wrong with them.
    pub build: fn(toml::Table) -> Result<Box<dyn Device>, String>,
}

/// All kinds of devices, the default first.
pub static DEVICE_KINDS: [DeviceKind; 3] = [
    DeviceKind {
        key: "disk",
        description: "SimGrid's disk: simultaneous accesses share its bandwidths.",
        build: disk::build,
    },
    DeviceKind {
        key: "hard-disk",
        description: "PIOsimHD's hard disk: one access after the other, each with the movement of the arm.",
        build: hard_disk::build,
    },
    DeviceKind {
        key: "ssd",
        description: "A solid-state disk: channels with a latency, and a write cache.",
        build: ssd::build,
    },
];

/// The devices and file systems of a platform, and the directories at which hosts see them.
#[derive(Debug, Default)]
pub struct Storage {
    devices: Vec<StorageDevice>,
    file_systems: Vec<FileSystem>,
    mounts: Vec<Mount>,
}

#[derive(Debug)]
struct StorageDevice {
    name: String,
    host: HostId,
    device: Box<dyn Device>,
}

/// Place of a file: a device, or a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoragePlace {
    /// A device.
    Device(DeviceId),
    /// A file system.
    FileSystem(FileSystemId),
}

/// A directory at which a device or a file system is seen.
#[derive(Debug)]
struct Mount {
    directory: String,
    /// The host that sees it; `None` for all.
    host: Option<HostId>,
    place: StoragePlace,
}

impl Mount {
    /// Returns the directory without a slash at its end, and the host that sees it.
    fn seen_at(&self) -> (&str, Option<HostId>) {
        (self.directory.trim_end_matches('/'), self.host)
    }
}

impl Storage {
    /// Returns whether there are neither devices nor file systems.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty() && self.file_systems.is_empty()
    }

    /// Returns the file systems, in the order of their numbers.
    pub fn file_systems(&self) -> &[FileSystem] {
        &self.file_systems
    }

    /// Returns whether times depend on the positions of accesses in their files.
    pub fn has_positions(&self) -> bool {
        !self.file_systems.is_empty() || self.devices.iter().any(|device| device.device.has_positions())
    }

    /// Returns the place at which a host finds a file: that of the longest directory that begins the name; `None` if there is none.
    pub fn find(&self, host: HostId, file: &str) -> Option<StoragePlace> {
        let is_seen = |mount: &&Mount| {
            mount.host.is_none_or(|seen_by| seen_by == host) && file.starts_with(&mount.directory)
        };
        let mounts = self.mounts.iter().filter(is_seen);
        mounts.max_by_key(|mount| mount.directory.len()).map(|mount| mount.place)
    }

    /// Returns the directories that a host sees.
    pub fn directories(&self, host: HostId) -> impl Iterator<Item = &str> {
        let mounts = self.mounts.iter().filter(move |mount| mount.host.is_none_or(|seen_by| seen_by == host));
        mounts.map(|mount| mount.directory.as_str())
    }

    /// Returns the host of a device.
    pub fn host(&self, device: DeviceId) -> HostId {
        self.devices[device.index()].host
    }

    /// Returns the duration of an access to the idle device; `None` where it exceeds a [`SimDuration`].
    pub fn duration_alone(&self, device: DeviceId, access: &Access) -> Option<SimDuration> {
        self.devices[device.index()].device.duration_alone(access)
    }

    /// Returns the [duration](Device::duration_after) of an access on a device that one client alone uses.
    pub fn duration_after(
        &self,
        device: DeviceId,
        history: &mut AccessHistory,
        begin: SimTime,
        access: &Access,
    ) -> Option<SimDuration> {
        self.devices[device.index()].device.duration_after(history, begin, access)
    }

    /// Returns the devices of a machine on which nothing happens yet.
    pub fn idle<T: Copy>(&self) -> Devices<T> {
        Devices::new(self.idle_devices())
    }

    /// Returns idle devices like these, in their order.
    pub fn idle_devices(&self) -> Vec<Box<dyn Device>> {
        self.devices.iter().map(|device| device.device.idle()).collect()
    }

    /// Adds a device to a host.
    pub(crate) fn add(&mut self, name: String, host: HostId, device: Box<dyn Device>) -> DeviceId {
        self.devices.push(StorageDevice { name, host, device });
        DeviceId::new(self.devices.len() as u32 - 1)
    }

    /// Lets a host, or all, see a device at a directory.
    pub(crate) fn mount(&mut self, directory: String, host: Option<HostId>, device: DeviceId) {
        self.mounts.push(Mount { directory, host, place: StoragePlace::Device(device) });
    }

    /// Adds a file system, which all hosts see.
    pub(crate) fn add_file_system(&mut self, system: FileSystem) {
        let place = StoragePlace::FileSystem(FileSystemId::new(self.file_systems.len() as u32));
        self.mounts.push(Mount { directory: system.directory.clone(), host: None, place });
        self.file_systems.push(system);
    }

    /// Returns a directory at which a host sees two devices or file systems, if there is one.
    pub(crate) fn doubled_directory(&self) -> Option<&str> {
        let mut mounts: Vec<&Mount> = self.mounts.iter().collect();
        // Those that all hosts see come first.
        mounts.sort_by(|one, other| one.seen_at().cmp(&other.seen_at()));
        let doubled = mounts.windows(2).find(|pair| {
            let ((first, seen_by), (second, also_by)) = (pair[0].seen_at(), pair[1].seen_at());
            first == second && seen_by.is_none_or(|host| also_by == Some(host))
        });
        doubled.map(|pair| pair[1].directory.as_str())
    }

    /// Returns the device of a host with a name.
    pub(crate) fn by_name(&self, host: HostId, name: &str) -> Option<DeviceId> {
        let place = self.devices.iter().position(|device| device.host == host && device.name == name);
        place.map(|place| DeviceId::new(place as u32))
    }
}

/// A device of a platform in TOML, or one for each host.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct StorageDescription {
    /// Directory at which hosts see the device: the begin of the names of its files.
    pub directory: String,
    /// The host that has the device; without it, each host has one of its own.
    pub host: Option<String>,
    /// All hosts see the device, not its own alone.
    #[serde(default)]
    pub shared: bool,
    /// Kind of device: `disk`, `hard-disk` or `ssd`.
    #[serde(default = "default_kind")]
    pub kind: String,
    /// Parameters of this kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub parameters: toml::Table,
}

fn default_kind() -> String {
    DEVICE_KINDS[0].key.to_owned()
}

/// Reads the parameters of a kind of device; an error names the key.
fn read_parameters<T: serde::de::DeserializeOwned>(parameters: toml::Table) -> Result<T, String> {
    parameters.try_into().map_err(|error: toml::de::Error| error.to_string().trim().replace('\n', ", "))
}

impl StorageDescription {
    /// Adds the device to a platform, all hosts of which are known.
    pub(crate) fn add_to(self, builder: &mut PlatformBuilder) -> Result<(), PlatformError> {
        let Self { directory, host, shared, kind, parameters } = self;
        let owner = format!("the storage {directory:?}");
        let fail = |builder: &PlatformBuilder, field, found: &str, expected| {
            Err(builder.value_error(None, &owner, field, found, expected))
        };
        let Some(kind) = DEVICE_KINDS.iter().find(|row| row.key == kind) else {
            return fail(builder, "kind", &kind, "disk, hard-disk or ssd");
        };
        if directory.is_empty() {
            return fail(builder, "directory", "", "the begin of the names of files, such as /scratch");
        }
        let device = (kind.build)(parameters)
            .map_err(|message| builder.storage_error(None, format!("{owner}: {message}")))?;
        let hosts = match host {
            Some(name) => match builder.host_by_name(&name) {
                Some(host) => host.get()..host.get() + 1,
                None => return fail(builder, "host", &name, "the name of a host"),
            },
            None if shared => return fail(builder, "host", "", "the host of a device that all hosts see"),
            None => 0..builder.next_host(),
        };
        for host in hosts.map(HostId::new) {
            let device = builder.storage.add(directory.clone(), host, device.idle());
            builder.storage.mount(directory.clone(), (!shared).then_some(host), device);
        }
        Ok(())
    }
}
