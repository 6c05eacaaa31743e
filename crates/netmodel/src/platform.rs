//! The platform: hosts, links, and the route between two hosts.

use rustc_hash::FxHashMap;

use crate::storage::{Storage, StoragePlace};
use crate::topology::{Topology, Wiring};
use crate::{
    ChangeError, Host, HostId, Link, LinkId, MissingRoute, NetworkGraph, NoStorage, PlatformDescription,
    PlatformError, Power, Profile, ProfileSpec, Resource, ResourceChange, ResourceChanges, RouteError,
    RoutingRule, xml,
};

pub(crate) mod builder;
pub(crate) mod cluster;
pub mod description;
mod detours;
pub(crate) mod link_class;
mod other_routes;
pub mod quantity;
mod route_builder;
pub(crate) mod routing;
mod summary;
mod text;
pub(crate) mod zone;
pub(crate) mod zone_builder;

pub(crate) use other_routes::OtherRoute;
use route_builder::{RouteBuilder, RouteGap};
use zone::{NamedNode, Vertex, Zone, ZoneVertex};

/// A machine on which programs run.
///
/// Hosts and links are numbered in the order of their declaration, the hosts of a cluster in the order of its
/// `radical`. The links of each cluster come in the order cables (`_UP` before `_DOWN`), backbone, loopbacks,
/// limiters. Routes of clusters are computed, those of other zones looked up or, in zones of shortest paths,
/// composed; memory is proportional to hosts, links and declared routes, and for a zone of routing Floyd to the
/// square of its vertices.
#[derive(Debug)]
pub struct Platform {
    hosts: Vec<Host>,
    links: Vec<Link>,
    /// Hosts, routers and zones by their names.
    nodes: FxHashMap<String, NamedNode>,
    /// Zone and vertex of each host.
    host_vertices: Vec<ZoneVertex>,
    zones: Vec<Zone>,
    warnings: Vec<String>,
    storage: Storage,
    changes: ResourceChanges,
    /// Graph of the network, in which messages go around links that are off, if they do.
    detours: Option<NetworkGraph>,
    power: Power,
}

impl Platform {
    /// Reads a platform: SimGrid's XML if the first character that is not blank is `<`, else TOML.
    ///
    /// # Errors
    /// If the file cannot be read, and as [`Platform::from_xml`] and [`Platform::from_toml`].
    pub fn from_path(path: &std::path::Path) -> Result<Self, PlatformError> {
        let text = read(path).map_err(|source| PlatformError::Read { path: path.to_owned(), source })?;
        let origin = path.display().to_string();
        if is_xml(path, &text) { Self::from_xml(&text, &origin) } else { Self::from_toml(&text, &origin) }
    }

    /// Returns whether [`Platform::from_path`] reads a file as SimGrid's XML; `false` if it cannot be read.
    pub fn is_xml_file(path: &std::path::Path) -> bool {
        read(path).is_ok_and(|text| is_xml(path, &text))
    }

    /// Reads a platform in SimGrid's XML, version 4.x; `origin` is the name of the text in messages.
    ///
    /// The [crate documentation](crate#simgrids-xml) lists the supported part.
    ///
    /// # Errors
    /// If the text is not such a platform, or uses an unsupported feature: each error names the file, the line, what
    /// was found and what was expected.
    pub fn from_xml(text: &str, origin: &str) -> Result<Self, PlatformError> {
        xml::read(text, origin)
    }

    /// Reads a platform in TOML; `origin` is the name of the text in messages.
    ///
    /// # Errors
    /// If the text is not TOML, has an unknown or a missing field, or describes no machine.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, PlatformError> {
        let description: PlatformDescription = toml::from_str(text).map_err(|error| PlatformError::Toml {
            origin: origin.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        description.assemble(origin)
    }

    /// Makes the platform of a description, for instance one inside another file.
    ///
    /// # Errors
    /// If the description describes no machine.
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
    /// If the platform has no host of this number.
    pub fn host(&self, host: HostId) -> &Host {
        &self.hosts[host.index()]
    }

    /// Returns the accelerators of the hosts of clusters, which are hosts, too.
    pub fn accelerators(&self) -> impl Iterator<Item = HostId> {
        let of_zone = |zone: &Zone| match &zone.routing {
            routing::Routing::Cluster(topology, _) => {
                let each = 1 + topology.accelerators_each();
                zone.hosts.start + zone.hosts.len() as u32 / each..zone.hosts.end
            }
            _ => 0..0,
        };
        self.zones.iter().flat_map(of_zone).map(HostId::new)
    }

    /// Returns the host of this name. `O(1)`.
    pub fn host_by_name(&self, name: &str) -> Option<HostId> {
        match self.nodes.get(name) {
            Some(&NamedNode::Host(host)) => Some(host),
            _ => None,
        }
    }

    /// Returns the links in the order of their numbers.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns a link.
    ///
    /// # Panics
    /// If the platform has no link of this number.
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link.index()]
    }

    /// Returns the storage devices.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Returns the place at which a host finds a file.
    ///
    /// # Errors
    /// If the host sees none.
    pub fn find_file(&self, host: HostId, file: &str) -> Result<StoragePlace, RouteError> {
        if let Some(place) = self.storage.find(host, file) {
            return Ok(place);
        }
        let directories = self.storage.directories(host).map(str::to_owned).collect();
        let (host, file) = (self.host(host).name.clone(), file.to_owned());
        Err(RouteError::NoStorage(Box::new(NoStorage { host, file, directories })))
    }

    /// Sets bandwidth [B/s] and latency \[s\] of the built-in loopback link, through which hosts of zones with listed
    /// routes send to themselves if no other route is listed (`network/loopback-bw` and `-lat`).
    ///
    /// # Panics
    /// If the bandwidth is not greater than zero, or the latency is negative.
    pub fn set_default_loopback(&mut self, bandwidth: f64, latency: f64) {
        assert!(bandwidth > 0.0 && latency >= 0.0, "a loopback link of {bandwidth} B/s and {latency} s");
        if let Some(link) = self.links.iter_mut().find(|link| link.name == builder::LOOPBACK_NAME) {
            (link.bandwidth, link.latency) = (bandwidth, latency);
        }
    }

    /// Sets the routing rule of fat trees and dragonflies; the default is SimGrid's.
    pub fn set_routing_rule(&mut self, rule: RoutingRule) {
        for zone in &mut self.zones {
            if let routing::Routing::Cluster(_, wiring) = &mut zone.routing {
                wiring.rule = rule;
            }
        }
    }

    /// Multiplies the speeds of all hosts by a factor, and those of their changes.
    ///
    /// # Panics
    /// If the factor is not greater than zero.
    pub fn scale_speeds(&mut self, factor: f64) {
        assert!(factor > 0.0, "speeds scaled by {factor}");
        self.hosts.iter_mut().for_each(|host| host.speed *= factor);
        self.changes.scale(|resource| if resource.link().is_none() { factor } else { 1.0 });
    }

    /// Multiplies the latency of some links by one factor and their bandwidth by another; also those of their changes.
    ///
    /// # Panics
    /// If the factor of the bandwidth is not greater than zero, or that of the latency is negative.
    pub fn scale_links(&mut self, is_scaled: impl Fn(LinkId) -> bool, latency: f64, bandwidth: f64) {
        assert!(bandwidth > 0.0 && latency >= 0.0, "links scaled by {latency} and {bandwidth}");
        for (_, link) in (0..).map(LinkId::new).zip(&mut self.links).filter(|(id, _)| is_scaled(*id)) {
            link.latency *= latency;
            link.bandwidth *= bandwidth;
        }
        self.changes.scale(|resource| match resource {
            Resource::Latency(link) if is_scaled(link) => latency,
            Resource::Bandwidth(link) if is_scaled(link) => bandwidth,
            _ => 1.0,
        });
    }

    /// Sets the changes of resources in the runs on this platform, in place of those of the same resources before.
    ///
    /// # Errors
    /// If the platform lacks a resource, or a value is negative or not finite.
    pub fn set_changes(
        &mut self,
        changes: impl IntoIterator<Item = ResourceChange>,
    ) -> Result<(), ChangeError> {
        let changes = ResourceChanges::new(self, changes)?;
        self.changes.extend(changes);
        Ok(())
    }

    /// Adds profiles of resources to the changes in the runs on this platform, in place of those of the same quantities before.
    ///
    /// # Errors
    /// If the platform lacks a resource.
    pub fn add_profiles(&mut self, profiles: &[ProfileSpec]) -> Result<(), ChangeError> {
        let mut changes = std::mem::take(&mut self.changes);
        let added = profiles.iter().try_for_each(|profile| changes.add_profile(self, profile));
        self.changes = changes;
        added
    }

    /// Sets the factors by which a resource differs from its own value over time, in place of its values before.
    ///
    /// # Errors
    /// If the platform lacks the resource.
    pub fn set_factors(&mut self, resource: Resource, factors: &Profile) -> Result<(), ChangeError> {
        let own = resource.own(self)?;
        self.changes.set_values(resource, factors.map_values(|factor| factor * own));
        Ok(())
    }

    /// Sets when a resource is off: while the profile is 0; in place of its states before.
    ///
    /// # Errors
    /// If the platform lacks the resource.
    pub fn set_state(&mut self, resource: Resource, state: Profile) -> Result<(), ChangeError> {
        resource.own(self)?;
        self.changes.set_state(resource, state);
        Ok(())
    }

    /// Drops the changes of links.
    pub fn drop_link_changes(&mut self) {
        self.changes.retain(|resource| resource.link().is_none());
    }

    /// Returns the changes of resources in a run.
    #[inline]
    pub fn changes(&self) -> &ResourceChanges {
        &self.changes
    }

    /// Returns the power of hosts and links, as far as it is known.
    #[inline]
    pub fn power(&self) -> &Power {
        &self.power
    }

    /// Returns the power of hosts and links, to be changed.
    pub fn power_mut(&mut self) -> &mut Power {
        &mut self.power
    }

    /// Changes the speeds and the memory of hosts; their names and cores stay, and so do
    /// changes in the course of a run.
    ///
    /// # Panics
    /// If a speed is then not greater than zero.
    pub fn change_hosts(&mut self, mut change: impl FnMut(HostId, &mut Host)) {
        for (id, host) in (0..).map(HostId::new).zip(&mut self.hosts) {
            change(id, host);
            assert!(host.speed > 0.0, "{host:?}");
        }
    }

    /// Changes the latencies and bandwidths of links; their names stay, and so do changes in the course of a run.
    ///
    /// # Panics
    /// If a bandwidth is then not greater than zero, or a latency negative.
    pub fn change_links(&mut self, mut change: impl FnMut(LinkId, &mut Link)) {
        for (id, link) in (0..).map(LinkId::new).zip(&mut self.links) {
            change(id, link);
            assert!(link.bandwidth > 0.0 && link.latency >= 0.0, "{link:?}");
        }
    }

    /// Returns warnings about the description, such as quantities without unit.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Writes the links from one host to another into `out`, in the order in which a message crosses them. Clears
    /// `out` first, also on an error. A link that a route crosses twice is in it twice.
    ///
    /// Costs the length of the route and the depth of the zones that it passes, times `O(log n)` per listed route of
    /// zones with `n` of them. A Dijkstra zone computes its paths from a vertex on the first request for a route from
    /// there, which changes no route.
    ///
    /// # Errors
    /// If a zone along the route has no route, or the route would cross no link, as from a host without loopback link
    /// in a torus to itself.
    ///
    /// # Panics
    /// If the platform has no host of one of these numbers.
    pub fn route(&self, src: HostId, dst: HostId, out: &mut Vec<LinkId>) -> Result<(), RouteError> {
        out.clear();
        let place = |host: HostId| {
            assert!(host.index() < self.hosts.len(), "host {host} of a platform of {}", self.hosts.len());
            self.host_vertices[host.index()]
        };
        let mut path = RouteBuilder { zones: &self.zones, out, unlisted: None };
        let joined = path.append(place(src), place(dst), 0);
        match (joined, path.unlisted) {
            (Ok(()), _) if !out.is_empty() => Ok(()),
            (Err(gap), _) | (Ok(()), Some(gap)) => {
                out.clear();
                Err(self.missing(src, dst, gap))
            }
            (Ok(()), None) => Err(self.empty(src, dst)),
        }
    }

    /// Returns the topology of a platform whose hosts are all in one cluster.
    pub(crate) fn whole_cluster(&self) -> Option<(&dyn Topology, &Wiring)> {
        self.zones.iter().find_map(|zone| match &zone.routing {
            routing::Routing::Cluster(topology, wiring) if zone.hosts.len() == self.hosts.len() => {
                Some((topology.as_ref(), wiring))
            }
            _ => None,
        })
    }

    pub(crate) fn zones(&self) -> &[Zone] {
        &self.zones
    }

    fn missing(&self, src: HostId, dst: HostId, gap: RouteGap) -> RouteError {
        let zone = &self.zones[gap.zone.index()];
        let name = |vertex: u32| match &zone.vertices[vertex as usize] {
            Vertex::Host(host) => self.host(*host).name.clone(),
            Vertex::Router(name) => name.to_string(),
            Vertex::Zone(zone) => self.zones[zone.index()].name.clone(),
        };
        RouteError::Missing(Box::new(MissingRoute {
            src: self.host(src).name.clone(),
            dst: self.host(dst).name.clone(),
            zone: zone.name.clone(),
            zone_at: zone.at.clone(),
            from: name(gap.src),
            to: name(gap.dst),
        }))
    }

    fn empty(&self, src: HostId, dst: HostId) -> RouteError {
        let zone = &self.zones[self.host_vertices[src.index()].zone.index()];
        let (zone, zone_at) = (zone.name.clone(), zone.at.clone());
        if src == dst {
            return RouteError::NoLoopback { host: self.host(src).name.clone(), zone, zone_at };
        }
        let [src, dst] = [src, dst].map(|host| self.host(host).name.clone());
        RouteError::Empty { src, dst, zone, zone_at }
    }
}

/// Reads the text of a platform file, without a byte order mark.
fn read(path: &std::path::Path) -> std::io::Result<String> {
    let mut text = std::fs::read(path).and_then(text::decode)?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

/// Returns whether a platform file is XML, perhaps with something else before it.
fn is_xml(path: &std::path::Path, text: &str) -> bool {
    let is_named_xml = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xml"));
    let is_toml = || text.parse::<toml::Table>().is_ok_and(|table| !table.is_empty());
    text.trim_start().starts_with('<')
        || (is_named_xml || text.contains("<?xml") || text.contains("<platform")) && !is_toml()
}
