//! Construction of a zone: its routes are checked and collected as they are declared.

use super::assembly::{Assembly, RouteEnds};
use super::description::RouteDescription;
use super::routing::Routing;
use super::routing::dijkstra::Dijkstra;
use super::routing::floyd::{Floyd, VERTEX_LIMIT};
use super::routing::star::{Spoke, Star};
use super::routing::table::RouteTable;
use crate::identifier::ZoneId;
use crate::{LinkId, PlatformError};

/// Routing rule of a zone under construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoutingKind {
    Full,
    Floyd,
    Dijkstra,
    Star,
    None,
}

impl RoutingKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Full => "Full",
            Self::Floyd => "Floyd",
            Self::Dijkstra => "Dijkstra",
            Self::Star => "Cluster",
            Self::None => "None",
        }
    }
}

/// Builder of the routes of an open zone.
#[derive(Debug)]
pub(crate) struct ZoneDraft {
    zone: ZoneId,
    kind: RoutingKind,
    table: RouteTable,
    /// Ends of the routes in the order in which the routes name them.
    named: Vec<u32>,
    bypasses: RouteTable,
    spokes: Vec<Spoke>,
    backbone: Option<LinkId>,
}

impl ZoneDraft {
    /// Makes the builder of a zone that was just opened.
    pub(crate) fn new(zone: ZoneId, kind: RoutingKind) -> Self {
        let (table, bypasses) = (RouteTable::default(), RouteTable::default());
        Self { zone, kind, table, named: Vec::new(), bypasses, spokes: Vec::new(), backbone: None }
    }

    /// Adds a route between hosts and routers of the zone; in a star, one from a host to itself.
    pub(crate) fn add_route(
        &mut self,
        assembly: &mut Assembly,
        route: &RouteDescription,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        match self.kind {
            RoutingKind::Full | RoutingKind::Floyd | RoutingKind::Dijkstra => {
                let ends = assembly.vertex_ends(self.zone, route, line)?;
                self.list(assembly, ends, route, line)
            }
            RoutingKind::Star if route.src == route.dst => self.add_loopback(assembly, route, line),
            RoutingKind::Star => {
                let expected =
                    "a <host_link> or a <cabinet> for each host, and routes from a host to itself only";
                Err(self.out_of_place(assembly, "route", expected, line))
            }
            RoutingKind::None => {
                Err(self.out_of_place(assembly, "route", "another routing, such as Full", line))
            }
        }
    }

    /// Adds a route between zones directly inside the zone.
    pub(crate) fn add_zone_route(
        &mut self,
        assembly: &mut Assembly,
        route: &RouteDescription,
        gateways: &(String, String),
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        if matches!(self.kind, RoutingKind::Star | RoutingKind::None) {
            let expected = "another routing, such as Full, around zones that routes join";
            return Err(self.out_of_place(assembly, "zoneRoute", expected, line));
        }
        let ends = assembly.zone_ends(self.zone, route, gateways, line)?;
        self.list(assembly, ends, route, line)
    }

    /// Adds a route with precedence over those of the routing: between hosts and routers of the zone or, with
    /// gateways, between zones at any depth in it.
    pub(crate) fn add_bypass(
        &mut self,
        assembly: &mut Assembly,
        route: &RouteDescription,
        gateways: Option<&(String, String)>,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        let ends = match gateways {
            Some(gateways) => assembly.bypass_ends(self.zone, route, gateways, line)?,
            None => assembly.vertex_ends(self.zone, route, line)?,
        };
        let links: Vec<LinkId> = assembly.hops(route, line)?.into_iter().map(|(there, _)| there).collect();
        let fresh = self.bypasses.insert((ends.src, ends.dst), &links, ends.gateways);
        if fresh { Ok(()) } else { Err(declared_twice(assembly, route, line)) }
    }

    /// Sets the link that all cables of a star end at.
    pub(crate) fn set_backbone(
        &mut self,
        assembly: &Assembly,
        link: LinkId,
        name: &str,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        if self.kind != RoutingKind::Star {
            return Err(self.out_of_place(assembly, "backbone", "routing=\"Cluster\"", line));
        }
        match self.backbone.replace(link) {
            None => Ok(()),
            Some(_) => Err(assembly.duplicate(line, "backbone", name)),
        }
    }

    /// Ties a vertex to the middle of a star by the links up and down.
    pub(crate) fn add_cable(
        &mut self,
        assembly: &Assembly,
        vertex: u32,
        (up, down): (LinkId, LinkId),
        host: &str,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        match self.spoke(vertex).cable.replace((up, down)) {
            None => Ok(()),
            Some(_) => Err(assembly.duplicate(line, "cable of the host", host)),
        }
    }

    /// Checks that the zone is a star and so accepts an element.
    pub(crate) fn check_star(
        &self,
        assembly: &Assembly,
        element: &'static str,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        if self.kind == RoutingKind::Star {
            return Ok(());
        }
        Err(self.out_of_place(assembly, element, "routing=\"Cluster\"", line))
    }

    /// Closes the zone and computes its routing.
    pub(crate) fn finish(mut self, assembly: &mut Assembly, line: Option<u32>) -> Result<(), PlatformError> {
        let vertices = assembly.vertex_count(self.zone);
        if self.kind == RoutingKind::Floyd && vertices > VERTEX_LIMIT {
            let kind = "hosts, routers or zones in one zone of routing Floyd (Dijkstra takes more)";
            return Err(PlatformError::TooLarge { at: assembly.at(line), kind, limit: VERTEX_LIMIT.into() });
        }
        self.add_default_loopback(assembly, vertices, line)?;
        let routing = match self.kind {
            RoutingKind::None => Routing::None,
            RoutingKind::Full => Routing::Full(self.table),
            RoutingKind::Floyd => Routing::Floyd(Floyd::new(self.table, vertices)),
            RoutingKind::Dijkstra => Routing::Dijkstra(Dijkstra::new(self.table, &self.named)),
            RoutingKind::Star => {
                self.spokes.resize(vertices as usize, Spoke::default());
                Routing::Star(Star::new(self.spokes, self.backbone))
            }
        };
        assembly.close_zone(routing, self.bypasses);
        Ok(())
    }

    /// Adds the built-in loopback link to hosts and routers without a route to themselves. In Dijkstra zones only
    /// vertices that routes name have it, as in SimGrid.
    fn add_default_loopback(
        &mut self,
        assembly: &mut Assembly,
        vertices: u32,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        let missing = |vertex: u32| !self.table.has_self_route(vertex);
        let needed = match self.kind {
            RoutingKind::Full | RoutingKind::Floyd => (0..vertices).any(missing),
            RoutingKind::Dijkstra => self.named.iter().copied().any(missing),
            RoutingKind::Star | RoutingKind::None => false,
        };
        if needed && !assembly.holds_zones(self.zone) {
            self.table.set_loopback(assembly.default_loopback(line)?);
        }
        Ok(())
    }

    /// Lists a route, and the reverse route of a symmetrical one. The reverse of a route from a vertex to itself is a
    /// second route in SimGrid's Floyd and Dijkstra zones, and the same in its Full ones.
    fn list(
        &mut self,
        assembly: &mut Assembly,
        ends: RouteEnds,
        route: &RouteDescription,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        let hops = assembly.hops(route, line)?;
        let there: Vec<LinkId> = hops.iter().map(|&(there, _)| there).collect();
        let mut fresh = self.table.insert((ends.src, ends.dst), &there, ends.gateways);
        self.named.extend([ends.src, ends.dst]);
        if fresh && route.symmetrical && (ends.src != ends.dst || self.kind != RoutingKind::Full) {
            let back: Vec<LinkId> = hops.iter().rev().map(|&(_, back)| back).collect();
            let ends = ends.reversed();
            fresh = self.table.insert((ends.src, ends.dst), &back, ends.gateways);
        }
        if fresh { Ok(()) } else { Err(declared_twice(assembly, route, line)) }
    }

    fn add_loopback(
        &mut self,
        assembly: &mut Assembly,
        route: &RouteDescription,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        let ends = assembly.vertex_ends(self.zone, route, line)?;
        let links = assembly.hops(route, line)?.into_iter().map(|(there, _)| there).collect();
        match self.spoke(ends.src).loopback.replace(links) {
            None => Ok(()),
            Some(_) => Err(declared_twice(assembly, route, line)),
        }
    }

    fn spoke(&mut self, vertex: u32) -> &mut Spoke {
        let index = vertex as usize;
        if self.spokes.len() <= index {
            self.spokes.resize(index + 1, Spoke::default());
        }
        &mut self.spokes[index]
    }

    fn out_of_place(
        &self,
        assembly: &Assembly,
        element: &'static str,
        expected: &'static str,
        line: Option<u32>,
    ) -> PlatformError {
        let (zone, routing) = (assembly.zone_name(self.zone).to_owned(), self.kind.name());
        PlatformError::Routing { at: assembly.at(line), element, zone, routing, expected }
    }
}

fn declared_twice(assembly: &Assembly, route: &RouteDescription, line: Option<u32>) -> PlatformError {
    let (src, dst) = (route.src.clone(), route.dst.clone());
    PlatformError::DuplicateRoute { at: assembly.at(line), src, dst }
}
