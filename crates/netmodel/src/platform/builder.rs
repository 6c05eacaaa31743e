//! Construction of a platform: names are resolved and checked as they are declared.

use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Platform;
use super::description::{CableSharing, HostDescription, LinkDescription};
use super::zone::{NamedNode, Vertex, Zone, ZoneVertex};
use crate::identifier::ZoneId;
use crate::parameters::LOOPBACK_BANDWIDTH;
use crate::storage::Storage;
use crate::topology::fat_tree::FatTreeOffsets;
use crate::{Host, HostId, Link, LinkId, Location, PlatformError, Power, ResourceChanges, Sharing};

mod routes;
mod zones;

pub(crate) use routes::RouteEnds;

/// Maximum number of hosts of a platform.
pub(crate) const HOST_LIMIT: u64 = 1 << 24;
/// Maximum number of links of a platform.
pub(crate) const LINK_LIMIT: u64 = 1 << 28;

/// Link through which hosts of zones with listed routes send to themselves (FullZone.cpp, network_cm02.cpp).
pub(super) const LOOPBACK_NAME: &str = "__loopback__";

/// Object of a link name in a route.
#[derive(Clone, Copy, Debug)]
enum LinkName {
    One(LinkId),
    Split { up: LinkId, down: LinkId },
}

/// Builder of a platform, to which hosts, links and zones are added in the order of their declaration.
#[derive(Debug)]
pub(crate) struct PlatformBuilder {
    origin: Arc<str>,
    hosts: Vec<Host>,
    links: Vec<Link>,
    link_names: FxHashMap<String, LinkName>,
    /// Zone and vertex of each host.
    host_vertices: Vec<ZoneVertex>,
    /// Hosts, routers and zones by name; they share one name space.
    nodes: FxHashMap<String, NamedNode>,
    zones: Vec<Zone>,
    /// Zones that are not closed yet, the outermost first.
    open_zones: Vec<ZoneId>,
    warnings: Vec<String>,
    pub(crate) storage: Storage,
    pub(crate) power: Power,
    /// Hosts that see disks of others, with the values of the property and their lines.
    remote_disks: Vec<(HostId, String, u32)>,
    /// Changes by the profiles of hosts and links.
    pub(crate) changes: ResourceChanges,
    /// First numbers of the next fat tree.
    pub(crate) fat_tree_origin: FatTreeOffsets,
    /// First cable number of the next dragonfly.
    pub(crate) dragonfly_cables: u64,
}

impl PlatformBuilder {
    /// Begins a platform; `origin` is the name of its text in messages.
    pub(crate) fn new(origin: &str) -> Self {
        Self {
            origin: origin.into(),
            hosts: Vec::new(),
            links: Vec::new(),
            link_names: FxHashMap::default(),
            host_vertices: Vec::new(),
            nodes: FxHashMap::default(),
            zones: Vec::new(),
            open_zones: Vec::new(),
            warnings: Vec::new(),
            storage: Storage::default(),
            power: Power::default(),
            remote_disks: Vec::new(),
            changes: ResourceChanges::default(),
            fat_tree_origin: FatTreeOffsets::default(),
            dragonfly_cables: 0,
        }
    }

    /// Returns the directory of the platform, to which paths in it are relative.
    pub(crate) fn directory(&self) -> &Path {
        Path::new(&*self.origin).parent().unwrap_or(Path::new(""))
    }

    /// Returns the location of a line.
    pub(crate) fn at(&self, line: Option<u32>) -> Location {
        Location { origin: self.origin.clone(), line }
    }

    /// Adds a warning about the description.
    pub(crate) fn warn(&mut self, line: Option<u32>, warning: &str) {
        self.warnings.push(format!("{}: {warning}", self.at(line)));
    }

    /// Makes the error about a value.
    pub(crate) fn value_error(
        &self,
        line: Option<u32>,
        owner: &str,
        field: &'static str,
        found: impl ToString,
        expected: &'static str,
    ) -> PlatformError {
        let (owner, found) = (owner.to_owned(), found.to_string());
        PlatformError::Value { at: self.at(line), owner, field, found, expected }
    }

    /// Makes the error about a storage device.
    pub(crate) fn storage_error(&self, line: Option<u32>, message: String) -> PlatformError {
        PlatformError::Storage { at: self.at(line), message }
    }

    /// Returns the host of this name, if it was added.
    pub(crate) fn host_by_name(&self, name: &str) -> Option<HostId> {
        match self.nodes.get(name) {
            Some(&NamedNode::Host(host)) => Some(host),
            _ => None,
        }
    }

    /// Checks a value that must be finite and greater than zero.
    pub(crate) fn check_positive(
        &self,
        line: Option<u32>,
        owner: &str,
        field: &'static str,
        value: f64,
    ) -> Result<(), PlatformError> {
        let valid = value.is_finite() && value > 0.0;
        if valid { Ok(()) } else { Err(self.value_error(line, owner, field, value, "more than zero")) }
    }

    /// Checks a value that must be finite and not negative.
    pub(crate) fn check_not_negative(
        &self,
        line: Option<u32>,
        owner: &str,
        field: &'static str,
        value: f64,
    ) -> Result<(), PlatformError> {
        let valid = value.is_finite() && value >= 0.0;
        if valid { Ok(()) } else { Err(self.value_error(line, owner, field, value, "zero or more")) }
    }

    /// Checks that this many more hosts and links can be numbered; `None` counts as too many.
    pub(crate) fn check_limits(
        &self,
        line: Option<u32>,
        hosts: Option<u64>,
        links: Option<u64>,
    ) -> Result<(), PlatformError> {
        let fits = |have: usize, more: Option<u64>, limit: u64| {
            more.and_then(|more| more.checked_add(have as u64)).is_some_and(|sum| sum <= limit)
        };
        if !fits(self.hosts.len(), hosts, HOST_LIMIT) {
            return Err(PlatformError::TooLarge { at: self.at(line), kind: "hosts", limit: HOST_LIMIT });
        }
        if !fits(self.links.len(), links, LINK_LIMIT) {
            return Err(PlatformError::TooLarge { at: self.at(line), kind: "links", limit: LINK_LIMIT });
        }
        Ok(())
    }

    /// Returns the number that the next host will have.
    pub(crate) fn next_host(&self) -> u32 {
        self.hosts.len() as u32
    }

    /// Returns the number that the next link will have.
    pub(crate) fn next_link(&self) -> u32 {
        self.links.len() as u32
    }

    /// Adds a host to the zone that was opened last, and returns its vertex.
    pub(crate) fn add_host(
        &mut self,
        host: HostDescription,
        line: Option<u32>,
    ) -> Result<ZoneVertex, PlatformError> {
        let owner = format!("the host {:?}", host.name);
        self.check_limits(line, Some(1), Some(0))?;
        self.check_positive(line, &owner, "speed", host.speed)?;
        if let Some(bandwidth) = host.memory_bandwidth {
            self.check_positive(line, &owner, "memory_bandwidth", bandwidth)?;
        }
        if host.cores == 0 {
            return Err(self.value_error(line, &owner, "core", 0, "one or more"));
        }
        let id = HostId::new(self.next_host());
        // A zone or router declared before may have the name of a host and then loses it, as in SimGrid.
        if let Some(NamedNode::Host(_)) = self.nodes.insert(host.name.clone(), NamedNode::Host(id)) {
            return Err(self.duplicate(line, "host", &host.name));
        }
        let place = self.add_vertex(Vertex::Host(id));
        self.host_vertices.push(place);
        let HostDescription { name, speed, cores, memory_bandwidth } = host;
        self.hosts.push(Host { name, speed, cores, memory_bandwidth });
        Ok(place)
    }

    /// Reserves memory for this many more links.
    pub(crate) fn reserve_links(&mut self, links: usize, names: usize) {
        self.links.reserve(links);
        self.link_names.reserve(names);
    }

    /// Adds a link that its cluster has checked.
    pub(crate) fn add_plain_link(&mut self, link: Link, line: Option<u32>) -> Result<LinkId, PlatformError> {
        let id = LinkId::new(self.next_link());
        if self.link_names.insert(link.name.clone(), LinkName::One(id)).is_some() {
            return Err(self.duplicate(line, "link", &link.name));
        }
        self.links.push(link);
        Ok(id)
    }

    /// Adds the two halves of a split-duplex link.
    pub(crate) fn add_split_link(&mut self, link: Link, line: Option<u32>) -> Result<(), PlatformError> {
        let half = |suffix| Link { name: format!("{}_{suffix}", link.name), ..link.clone() };
        let up = self.add_plain_link(half("UP"), line)?;
        let down = self.add_plain_link(half("DOWN"), line)?;
        if self.link_names.insert(link.name.clone(), LinkName::Split { up, down }).is_some() {
            return Err(self.duplicate(line, "link", &link.name));
        }
        Ok(())
    }

    /// Adds a link, or the two of a split-duplex one.
    pub(crate) fn add_link(&mut self, link: LinkDescription, line: Option<u32>) -> Result<(), PlatformError> {
        let owner = format!("the link {:?}", link.name);
        self.check_limits(line, Some(0), Some(2))?;
        self.check_positive(line, &owner, "bandwidth", link.bandwidth)?;
        self.check_not_negative(line, &owner, "latency", link.latency)?;
        if link.name == LOOPBACK_NAME {
            let expected = "another name: this is that of the built-in loopback link";
            return Err(self.value_error(line, "a link", "id", &link.name, expected));
        }
        let LinkDescription { name, bandwidth, latency, sharing } = link;
        let sharing_of_one =
            if sharing == CableSharing::FatPipe { Sharing::FatPipe } else { Sharing::Shared };
        let plain = Link { name, bandwidth, latency, sharing: sharing_of_one };
        match sharing {
            CableSharing::SplitDuplex => self.add_split_link(plain, line),
            CableSharing::Shared | CableSharing::FatPipe => self.add_plain_link(plain, line).map(drop),
        }
    }

    /// Returns the loopback link of vertices without a route to themselves.
    pub(crate) fn default_loopback(&mut self, line: Option<u32>) -> Result<LinkId, PlatformError> {
        match self.link_names.get(LOOPBACK_NAME) {
            Some(&LinkName::One(loopback)) => Ok(loopback),
            _ => self.add_plain_link(default_loopback(), line),
        }
    }

    /// Lets a host see a disk of another one, which may be declared later: `directory:disk:host`.
    pub(crate) fn see_remote_disk(&mut self, host: HostId, remote: &str, line: u32) {
        self.remote_disks.push((host, remote.to_owned(), line));
    }

    fn mount_remote_disks(&mut self) -> Result<(), PlatformError> {
        for (host, remote, line) in std::mem::take(&mut self.remote_disks) {
            let find = || {
                let [directory, disk, owner] = remote.split(':').collect::<Vec<_>>().try_into().ok()?;
                Some((directory, self.storage.by_name(self.host_by_name(owner)?, disk)?))
            };
            let Some((directory, device)) = find() else {
                let expected = "directory:disk:host, where the disk of the host has a property mount";
                let owner = format!("the host {:?}", self.hosts[host.index()].name);
                return Err(self.value_error(Some(line), &owner, "remote_disk", &remote, expected));
            };
            self.storage.mount(directory.to_owned(), Some(host), device);
        }
        Ok(())
    }

    /// Finishes the platform.
    pub(crate) fn finish(mut self) -> Result<Platform, PlatformError> {
        self.mount_remote_disks()?;
        if let Some(directory) = self.storage.doubled_directory() {
            let message = format!(
                "the directory {directory:?} is that of two devices or file systems for one host, expected one"
            );
            return Err(self.storage_error(None, message));
        }
        if self.hosts.is_empty() {
            return Err(PlatformError::NoHosts { origin: self.origin });
        }
        let Self { hosts, links, nodes, host_vertices, zones, warnings, storage, power, changes, .. } = self;
        let detours = None;
        Ok(Platform { hosts, links, nodes, host_vertices, zones, warnings, storage, changes, detours, power })
    }

    pub(crate) fn duplicate(&self, line: Option<u32>, kind: &'static str, name: &str) -> PlatformError {
        PlatformError::Duplicate { at: self.at(line), kind, name: name.to_owned() }
    }
}

fn default_loopback() -> Link {
    let name = LOOPBACK_NAME.to_owned();
    Link { name, bandwidth: LOOPBACK_BANDWIDTH, latency: 0.0, sharing: Sharing::FatPipe }
}
