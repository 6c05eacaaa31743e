//! Parallel file systems: files striped over I/O servers on hosts, with a metadata server and forwarders.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use pdes_core::{Bytes, SimDuration};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::cache::CacheSize;
use super::scheduler::{SCHEDULERS, Scheduler};
use super::{DEVICE_KINDS, Device, default_kind};
use crate::platform::builder::PlatformBuilder;
use crate::quantity::Size;
use crate::{HostId, PlatformError};

/// A file system of a platform.
#[derive(Debug)]
pub struct FileSystem {
    /// Directory at which all hosts see it.
    pub directory: String,
    /// Hosts of the I/O servers.
    pub servers: Vec<HostId>,
    /// A device like that of each server, idle.
    pub device: Box<dyn Device>,
    /// Striping of files.
    pub striping: Striping,
    /// Choice of the next request of a server.
    pub scheduler: &'static Scheduler,
    /// Maximum number of accesses that a server has on its device at once.
    pub threads: u32,
    /// Cache of each server.
    pub cache: Option<CacheSize>,
    /// Host of the metadata server, and the time that it takes for an operation.
    pub metadata: Option<(HostId, SimDuration)>,
    /// Hosts through which messages between clients and servers go.
    pub forwarders: Vec<HostId>,
    /// Size of a message without data.
    pub request: Bytes,
    /// Maximum amount of data of a message.
    pub transfer_bytes: u64,
    /// Maximum number of such messages that an access has under way with a server.
    pub transfers: u32,
    /// Clients need locks of the extents that they access.
    pub has_locks: bool,
    /// Files that exist before the run, with their sizes \[B\].
    pub files: BTreeMap<String, u64>,
}

/// Striping of files over servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Striping {
    /// Size of a stripe \[B\].
    pub bytes: u64,
    /// Number of servers of a file.
    pub count: u32,
    /// Server of the first stripe; `None`: by the number of the file.
    pub start: Option<u32>,
    /// Number of servers of the file system.
    pub servers: u32,
}

/// The piece of an access that a server has: one range of its part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Number of the server in the file system.
    pub server: u32,
    /// Begin in the part of the file that the server has \[B\].
    pub begin: u64,
    /// End.
    pub end: u64,
}

impl Striping {
    /// Returns the striping of a file that is opened with hints: the size of a stripe \[B\], and the number of servers, at most all.
    pub fn with_hints(self, stripe: Option<NonZeroU64>, servers: Option<NonZeroU64>) -> Self {
        let bytes = stripe.map_or(self.bytes, NonZeroU64::get);
        let count = servers.map_or(self.count, |count| count.get().min(self.servers.into()) as u32);
        Self { bytes, count, ..self }
    }

    /// Returns the pieces of a range of a file, those of servers without any omitted. `O(count)`.
    pub fn pieces(self, file: u32, begin: u64, end: u64) -> impl Iterator<Item = Piece> {
        let start = self.start.unwrap_or(file % self.servers);
        let piece = move |slot: u32| Piece {
            server: (start + slot) % self.servers,
            begin: self.before(begin, slot),
            end: self.before(end, slot),
        };
        // The server of the first byte goes first.
        let first = (begin / self.bytes % u64::from(self.count)) as u32;
        let slots = (first..self.count).chain(0..first);
        slots.map(piece).filter(|piece| piece.begin < piece.end)
    }

    /// Returns the servers of a file.
    pub fn servers_of(self, file: u32) -> impl Iterator<Item = u32> {
        let start = self.start.unwrap_or(file % self.servers);
        (0..self.count).map(move |slot| (start + slot) % self.servers)
    }

    /// Returns the size of the part that a server has of a file \[B\].
    pub fn part(self, file: u32, server: u32, size: u64) -> u64 {
        let start = self.start.unwrap_or(file % self.servers);
        self.before(size, (server + self.servers - start) % self.servers)
    }

    /// Returns the end in the file of the part of a size that a server has \[B\].
    pub(super) fn end_of_part(self, file: u32, server: u32, size: u64) -> u64 {
        let Some(last) = size.checked_sub(1) else { return 0 };
        let start = self.start.unwrap_or(file % self.servers);
        let slot = u64::from((server + self.servers - start) % self.servers);
        let stripes = last / self.bytes * u64::from(self.count) + slot;
        stripes.saturating_mul(self.bytes).saturating_add(last % self.bytes + 1)
    }

    /// Returns the amount before a position of a file that is in a slot \[B\].
    fn before(self, position: u64, slot: u32) -> u64 {
        let round = self.bytes * u64::from(self.count);
        let rest = (position % round).saturating_sub(u64::from(slot) * self.bytes);
        position / round * self.bytes + rest.min(self.bytes)
    }
}

/// A file system of a platform in TOML. All hosts see it.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSystemDescription {
    /// Directory at which hosts see it: the begin of the names of its files.
    pub directory: String,
    /// Names of the hosts of its I/O servers; `node-[0-3]` stands for four. A host may have several.
    pub servers: Vec<String>,
    /// Device of each server: its kind, `disk` by default, and the parameters of this kind.
    #[schemars(schema_with = "device_schema")]
    pub device: toml::Table,
    /// Size of a stripe.
    #[serde(default = "mebibyte")]
    #[schemars(extend("default" = "1MiB"))]
    pub stripe: Size,
    /// Number of servers of a file; by default all.
    pub stripe_count: Option<u32>,
    /// Number of the server of the first stripe of each file; by default, it differs from file to file.
    pub start: Option<u32>,
    /// Order of the requests of a server: `in-order`, `by-offset` or `merging`.
    #[serde(default = "default_scheduler")]
    pub scheduler: String,
    /// Maximum number of accesses that a server has on its device at once; by default, what the device can do at the same time.
    pub threads: Option<u32>,
    /// Cache of each server; none by default.
    pub cache: Option<CacheDescription>,
    /// Metadata server; without one, opening a file takes no time in the file system.
    pub metadata: Option<MetadataDescription>,
    /// Names of hosts through which the messages of clients go: those of host `i` through number `i` modulo their number.
    #[serde(default)]
    pub forwarders: Vec<String>,
    /// Size of a message without data.
    #[serde(default = "request_bytes")]
    #[schemars(extend("default" = 128))]
    pub request: Size,
    /// Maximum amount of data of a message.
    #[serde(default = "mebibyte")]
    #[schemars(extend("default" = "1MiB"))]
    pub transfer: Size,
    /// Maximum number of such messages that an access has under way with a server.
    #[serde(default = "transfers")]
    #[schemars(extend("default" = 8))]
    pub transfers: u32,
    /// Clients need locks of the extents of files that they access; servers call them back for other clients.
    #[serde(default)]
    #[schemars(extend("default" = false))]
    pub locks: bool,
    /// Files that exist before the run, with their sizes.
    #[serde(default)]
    pub files: BTreeMap<String, Size>,
}

/// Cache of an I/O server in TOML.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheDescription {
    /// Size of the cache.
    pub bytes: Size,
    /// Maximum amount that is acknowledged and not yet on the device, by default half of the cache; 0 for a cache of reads alone.
    pub dirty: Option<Size>,
    /// Amount that a read which continues the last one of its file reads beyond its end; 0 by default.
    pub read_ahead: Option<Size>,
}

/// Metadata server of a file system in TOML.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetadataDescription {
    /// Name of its host.
    pub host: String,
    /// Number of operations that it does in a second.
    pub rate: f64,
}

fn device_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "properties": { "kind": { "description": "Kind of device.", "type": "string" } } })
}

fn mebibyte() -> Size {
    Size(1_048_576.0)
}

fn request_bytes() -> Size {
    Size(128.0)
}

fn transfers() -> u32 {
    8
}

fn default_scheduler() -> String {
    SCHEDULERS[0].key.to_owned()
}

/// Error in a value: its field, the value found, and the one expected.
type Wrong = (&'static str, String, &'static str);

impl FileSystemDescription {
    /// Adds the file system to a platform, all hosts of which are known.
    pub(crate) fn add_to(self, builder: &mut PlatformBuilder) -> Result<(), PlatformError> {
        let owner = format!("the file system {:?}", self.directory);
        let device =
            self.device().map_err(|message| builder.storage_error(None, format!("{owner}: {message}")))?;
        let system = self
            .resolve(builder, device)
            .map_err(|(field, found, expected)| builder.value_error(None, &owner, field, found, expected))?;
        builder.storage.add_file_system(system);
        Ok(())
    }

    /// Makes the device of a server.
    fn device(&self) -> Result<Box<dyn Device>, String> {
        let mut parameters = self.device.clone();
        let kind = match parameters.remove("kind") {
            Some(toml::Value::String(kind)) => kind,
            Some(other) => return Err(format!("the kind of device {other}, expected {}", kinds())),
            None => default_kind(),
        };
        let row = DEVICE_KINDS.iter().find(|row| row.key == kind);
        let row = row.ok_or_else(|| format!("the kind of device {kind:?}, expected {}", kinds()))?;
        (row.build)(parameters)
    }

    fn resolve(self, builder: &PlatformBuilder, device: Box<dyn Device>) -> Result<FileSystem, Wrong> {
        if self.directory.is_empty() {
            return Err(("directory", String::new(), "the begin of the names of files, such as /lustre"));
        }
        let hosts = |field, names: &[String]| {
            let names = names.iter().flat_map(|name| expand(name));
            let host = |name: String| {
                builder.host_by_name(&name).ok_or((field, name, "the name of a host, or prefix[first-last]"))
            };
            names.map(host).collect::<Result<Vec<HostId>, Wrong>>()
        };
        let servers = hosts("servers", &self.servers)?;
        let forwarders = hosts("forwarders", &self.forwarders)?;
        let count = servers.len() as u32;
        if count == 0 {
            return Err(("servers", "none".to_owned(), "the names of hosts"));
        }
        let striping = Striping {
            bytes: positive("stripe", self.stripe)?,
            count: self.stripe_count.unwrap_or(count),
            start: self.start,
            servers: count,
        };
        if !(1..=count).contains(&striping.count) {
            return Err(("stripe_count", striping.count.to_string(), "one to the number of servers"));
        }
        if let Some(start) = self.start.filter(|start| *start >= count) {
            return Err(("start", start.to_string(), "the number of a server, from 0"));
        }
        let scheduler = Scheduler::find(&self.scheduler).ok_or((
            "scheduler",
            self.scheduler,
            "in-order, by-offset or merging",
        ))?;
        let threads = self.threads.unwrap_or(device.concurrency());
        for (field, value) in [("threads", threads), ("transfers", self.transfers)] {
            if value == 0 {
                return Err((field, "0".to_owned(), "more than zero"));
            }
        }
        let cache = self.cache.map(CacheDescription::resolve).transpose()?;
        let metadata = self.metadata.map(|metadata| metadata.resolve(builder)).transpose()?;
        Ok(FileSystem {
            directory: self.directory,
            servers,
            device,
            striping,
            scheduler,
            threads,
            cache,
            metadata,
            forwarders,
            request: Bytes::new(self.request.0 as u64),
            transfer_bytes: positive("transfer", self.transfer)?,
            transfers: self.transfers,
            has_locks: self.locks,
            files: self.files.into_iter().map(|(name, size)| (name, size.0 as u64)).collect(),
        })
    }
}

impl CacheDescription {
    fn resolve(self) -> Result<CacheSize, Wrong> {
        let bytes = positive("cache.bytes", self.bytes)?;
        let dirty_bytes = self.dirty.map_or(bytes / 2, |size| size.0 as u64);
        if dirty_bytes > bytes {
            return Err(("cache.dirty", dirty_bytes.to_string(), "at most the size of the cache"));
        }
        Ok(CacheSize { bytes, dirty_bytes, read_ahead: self.read_ahead.map_or(0, |size| size.0 as u64) })
    }
}

impl MetadataDescription {
    fn resolve(self, builder: &PlatformBuilder) -> Result<(HostId, SimDuration), Wrong> {
        let host = builder.host_by_name(&self.host);
        let host = host.ok_or(("metadata.host", self.host, "the name of a host"))?;
        let time = SimDuration::try_from_secs_f64(1.0 / self.rate).filter(|_| self.rate > 0.0);
        let time =
            time.ok_or(("metadata.rate", self.rate.to_string(), "operations per second, more than zero"))?;
        Ok((host, time))
    }
}

fn positive(field: &'static str, size: Size) -> Result<u64, Wrong> {
    if size.0 >= 1.0 { Ok(size.0 as u64) } else { Err((field, size.0.to_string(), "more than zero")) }
}

/// Returns the names of all kinds of devices.
pub(super) fn kinds() -> String {
    let names: Vec<&str> = DEVICE_KINDS.iter().map(|row| row.key).collect();
    let (last, others) = names.split_last().expect("there are kinds of devices");
    format!("{} or {last}", others.join(", "))
}

/// Returns the names for which a name with a range stands: `node-[0-3]` for four; itself if it has none.
fn expand(name: &str) -> Vec<String> {
    let range = || {
        let (prefix, rest) = name.split_once('[')?;
        let (range, suffix) = rest.split_once(']')?;
        let (first, last) = range.split_once('-')?;
        let numbers: (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        Some((numbers.0..=numbers.1).map(|number| format!("{prefix}{number}{suffix}")).collect())
    };
    range().unwrap_or_else(|| vec![name.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_stand_for_names() {
        assert_eq!(expand("node-[8-10].x"), ["node-8.x", "node-9.x", "node-10.x"]);
        assert_eq!(expand("node-8"), ["node-8"]);
        assert_eq!(expand("node-[8]"), ["node-[8]"]);
    }

    /// Stripes of 10 B over three of four servers, from server 2: each byte is in one place, and the pieces have them all.
    #[test]
    fn stripes_go_round() {
        let striping = Striping { bytes: 10, count: 3, start: Some(2), servers: 4 };
        let pieces =
            |begin, end| striping.pieces(7, begin, end).map(|piece| (piece.server, piece.begin, piece.end));
        assert_eq!(pieces(0, 10).collect::<Vec<_>>(), [(2, 0, 10)]);
        assert_eq!(pieces(15, 47).collect::<Vec<_>>(), [(3, 5, 17), (0, 0, 10), (2, 10, 20)]);
        assert_eq!(pieces(30, 30).count(), 0);
        for (begin, end) in (0..70).flat_map(|begin| (begin..70).map(move |end| (begin, end))) {
            assert_eq!(pieces(begin, end).map(|(_, from, to)| to - from).sum::<u64>(), end - begin);
            // The end of the file is the last one of those of its parts.
            let end_of = |server| striping.end_of_part(7, server, striping.part(7, server, end));
            let ends = striping.servers_of(7).map(end_of);
            assert_eq!(ends.max(), Some(end));
        }
        let by_file = Striping { start: None, ..striping };
        assert_eq!(by_file.pieces(7, 0, 1).next().map(|piece| piece.server), Some(3));
        assert_eq!(by_file.servers_of(7).collect::<Vec<_>>(), [3, 0, 1]);
    }
}
