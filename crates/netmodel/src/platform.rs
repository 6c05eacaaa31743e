//! A machine: its hosts and links, and the route between two hosts.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use crate::topology::{Topology, Wiring};
use crate::{Host, HostId, Link, LinkId, Location, PlatformDescription, PlatformError, RouteError, xml};

pub(crate) mod assembly;
pub(crate) mod cluster;
pub mod description;
pub(crate) mod quantity;
pub(crate) mod table;

use table::RouteTable;

/// A machine that programs run on.
///
/// Hosts and links are numbered in the order of their declaration, the hosts of a cluster in the order of its
/// `radical`. Of each cluster the links come in the order cables (`_UP` before `_DOWN`), backbone, loopbacks, limiters.
/// Routes of clusters are computed, those of other zones looked up; memory is proportional to hosts, links and
/// declared routes.
#[derive(Debug)]
pub struct Platform {
    hosts: Vec<Host>,
    links: Vec<Link>,
    host_names: HashMap<String, HostId>,
    zones: Vec<Zone>,
    warnings: Vec<String>,
}

/// Hosts between which routes lead, by one rule.
#[derive(Debug)]
pub(crate) struct Zone {
    pub(crate) name: String,
    pub(crate) at: Location,
    /// The numbers of the zone's hosts.
    pub(crate) hosts: Range<u32>,
    pub(crate) routing: Routing,
}

/// The rule by which a zone routes.
#[derive(Debug)]
pub(crate) enum Routing {
    /// Routes that the platform lists.
    Table(RouteTable),
    /// Routes that follow from coordinates.
    Cluster(Box<dyn Topology>, Wiring),
}

impl Platform {
    /// Reads a platform: SimGrid's XML if the first character that is not blank is `<`, else our TOML.
    ///
    /// # Errors
    /// Where the file cannot be read, and as [`Platform::from_xml`] and [`Platform::from_toml`].
    pub fn from_path(path: &Path) -> Result<Self, PlatformError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| PlatformError::Read { path: path.to_owned(), source })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let origin = path.display().to_string();
        if text.trim_start().starts_with('<') {
            Self::from_xml(text, &origin)
        } else {
            Self::from_toml(text, &origin)
        }
    }

    /// Reads a platform in SimGrid's XML, version 4.x; `origin` is the name of the text in messages.
    ///
    /// The [crate documentation](crate#simgrids-xml) says which part of it is read.
    ///
    /// # Errors
    /// Where the text is not such a platform, or uses what is not supported: each names the file, the line, what was
    /// found and what was expected.
    pub fn from_xml(text: &str, origin: &str) -> Result<Self, PlatformError> {
        xml::read(text, origin)
    }

    /// Reads a platform in TOML; `origin` is the name of the text in messages.
    ///
    /// # Errors
    /// Where the text is not TOML, has an unknown or a missing field, or describes no machine.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, PlatformError> {
        let description: PlatformDescription = toml::from_str(text).map_err(|error| PlatformError::Toml {
            origin: origin.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        description.assemble(origin)
    }

    /// Makes the platform of a description, for instance one that stood inside another file.
    ///
    /// # Errors
    /// Where the description is of no machine.
    pub fn from_description(description: PlatformDescription) -> Result<Self, PlatformError> {
        description.assemble("platform description")
    }

    /// Returns the hosts in the order of their declaration.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Returns a host.
    ///
    /// # Panics
    /// Where the platform has no host of this number.
    pub fn host(&self, host: HostId) -> &Host {
        &self.hosts[host.index()]
    }

    /// Returns the host of this name. `O(1)`.
    pub fn host_by_name(&self, name: &str) -> Option<HostId> {
        self.host_names.get(name).copied()
    }

    /// Returns the links in the order of their numbers.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns a link.
    ///
    /// # Panics
    /// Where the platform has no link of this number.
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link.index()]
    }

    /// Returns what the description should have said differently, such as quantities without unit.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Writes the links from one host to another into `out`, in the order in which a message crosses them. What `out`
    /// held before is gone, also after an error. A link that a route crosses twice is in it twice.
    ///
    /// Costs the length of the route; one lookup in `O(log n)` where routes are listed.
    ///
    /// # Errors
    /// Where the hosts are in different zones, their zone lists no route, or a host without loopback link has no way to
    /// itself.
    ///
    /// # Panics
    /// Where the platform has no host of one of these numbers.
    pub fn route(&self, src: HostId, dst: HostId, out: &mut Vec<LinkId>) -> Result<(), RouteError> {
        out.clear();
        let zone = self.zone(src);
        if !zone.hosts.contains(&dst.get()) {
            return Err(self.between_zones(src, dst));
        }
        match &zone.routing {
            Routing::Table(table) => {
                out.extend_from_slice(table.route(src, dst).ok_or_else(|| self.missing(zone, src, dst))?);
            }
            Routing::Cluster(topology, wiring) => {
                let (from, to) = (src.get() - zone.hosts.start, dst.get() - zone.hosts.start);
                match wiring.loopback(from) {
                    Some(loopback) if from == to => out.push(loopback),
                    _ => topology.route(wiring, from, to, out),
                }
                if out.is_empty() {
                    return Err(self.no_loopback(zone, src));
                }
            }
        }
        Ok(())
    }

    /// Describes the zones and their topologies on one line.
    pub fn topology(&self) -> String {
        let describe = |zone: &Zone| match &zone.routing {
            Routing::Table(table) => {
                format!("{}: graph of {} hosts, {} routes", zone.name, zone.hosts.len(), table.len())
            }
            Routing::Cluster(topology, wiring) => {
                let backbone = if wiring.backbone.is_some() { " on a backbone" } else { "" };
                format!("{}: {topology}{backbone}, {} hosts", zone.name, zone.hosts.len())
            }
        };
        self.zones.iter().map(describe).collect::<Vec<_>>().join("; ")
    }

    pub(crate) fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// Returns the zone of a host. The zones partition the hosts, in their order.
    fn zone(&self, host: HostId) -> &Zone {
        assert!(host.index() < self.hosts.len(), "host {host} of a platform of {}", self.hosts.len());
        &self.zones[self.zones.partition_point(|zone| zone.hosts.end <= host.get())]
    }

    fn missing(&self, zone: &Zone, src: HostId, dst: HostId) -> RouteError {
        RouteError::Missing {
            src: self.host(src).name.clone(),
            dst: self.host(dst).name.clone(),
            zone: zone.name.clone(),
            zone_at: zone.at.clone(),
        }
    }

    fn between_zones(&self, src: HostId, dst: HostId) -> RouteError {
        RouteError::BetweenZones {
            src: self.host(src).name.clone(),
            src_zone: self.zone(src).name.clone(),
            dst: self.host(dst).name.clone(),
            dst_zone: self.zone(dst).name.clone(),
        }
    }

    fn no_loopback(&self, zone: &Zone, host: HostId) -> RouteError {
        RouteError::NoLoopback {
            host: self.host(host).name.clone(),
            zone: zone.name.clone(),
            zone_at: zone.at.clone(),
        }
    }
}
