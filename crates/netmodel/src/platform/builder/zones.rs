//! Construction of zones and routers.

use super::PlatformBuilder;
use crate::PlatformError;
use crate::identifier::ZoneId;
use crate::platform::routing::Routing;
use crate::platform::routing::table::RouteTable;
use crate::platform::zone::{NamedNode, Vertex, Zone, ZoneVertex};

impl PlatformBuilder {
    /// Returns whether a zone was opened, the first of which is the outermost one.
    pub(crate) fn has_zones(&self) -> bool {
        !self.zones.is_empty()
    }

    /// Opens a zone inside the one that was opened last: later declarations are in it.
    pub(crate) fn open_zone(&mut self, name: &str, line: Option<u32>) -> Result<ZoneId, PlatformError> {
        let id = ZoneId::new(self.zones.len() as u32);
        self.name_node(name, NamedNode::Zone(id), "zone", line)?;
        let depth = self.open_zones.len() as u32;
        let place = (depth > 0).then(|| self.add_vertex(Vertex::Zone(id)));
        self.zones.push(Zone {
            name: name.to_owned(),
            at: self.at(line),
            parent_vertex: place,
            depth,
            hosts: self.next_host()..self.next_host(),
            vertices: Vec::new(),
            routing: Routing::None,
            bypasses: None,
        });
        self.open_zones.push(id);
        Ok(id)
    }

    /// Closes the zone that was opened last.
    ///
    /// # Panics
    /// If none is open.
    pub(crate) fn close_zone(&mut self, routing: Routing, bypasses: RouteTable) {
        let id = self.open_zones.pop().expect("a zone is open");
        let end = self.next_host();
        let zone = &mut self.zones[id.index()];
        zone.hosts.end = end;
        zone.routing = routing;
        zone.bypasses = (bypasses.len() > 0).then(|| Box::new(bypasses));
    }

    /// Adds a router to the zone that was opened last.
    ///
    /// # Panics
    /// If none is open.
    pub(crate) fn add_router(&mut self, name: &str, line: Option<u32>) -> Result<(), PlatformError> {
        let zone = *self.open_zones.last().expect("a zone is open");
        let place = ZoneVertex { zone, vertex: self.vertex_count(zone) };
        self.name_node(name, NamedNode::Router(place), "router", line)?;
        self.add_vertex(Vertex::Router(name.into()));
        Ok(())
    }

    /// Returns the number of vertices of a zone so far.
    pub(crate) fn vertex_count(&self, zone: ZoneId) -> u32 {
        self.zones[zone.index()].vertices.len() as u32
    }

    /// Returns whether a zone holds zones.
    pub(crate) fn holds_zones(&self, zone: ZoneId) -> bool {
        self.zones[zone.index()].holds_zones()
    }

    /// Returns the name of a zone.
    pub(crate) fn zone_name(&self, zone: ZoneId) -> &str {
        &self.zones[zone.index()].name
    }

    /// Adds a vertex to the zone that was opened last, and returns it.
    ///
    /// # Panics
    /// If none is open.
    pub(super) fn add_vertex(&mut self, vertex: Vertex) -> ZoneVertex {
        let zone = *self.open_zones.last().expect("a zone is open");
        let vertices = &mut self.zones[zone.index()].vertices;
        vertices.push(vertex);
        ZoneVertex { zone, vertex: vertices.len() as u32 - 1 }
    }

    fn name_node(
        &mut self,
        name: &str,
        node: NamedNode,
        kind: &'static str,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        if self.nodes.contains_key(name) {
            return Err(self.duplicate(line, kind, name));
        }
        self.nodes.insert(name.to_owned(), node);
        Ok(())
    }
}
