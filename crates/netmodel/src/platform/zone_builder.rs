//! Construction of a zone: its routes are checked and collected as they are declared.

use super::builder::{PlatformBuilder, RouteEnds};
use super::description::RouteDescription;
use super::routing::Routing;
use super::routing::dijkstra::Dijkstra;
use super::routing::floyd::{Floyd, VERTEX_LIMIT};
use super::routing::star::{ListedStar, Spoke};
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
pub(crate) struct ZoneBuilder {
    zone: ZoneId,
    kind: RoutingKind,
    table: RouteTable,
    /// Ends of the routes in the order in which the routes name them.
    vertex_order: Vec<u32>,
    bypasses: RouteTable,
    spokes: Vec<Spoke>,
    backbone: Option<LinkId>,
}

impl ZoneBuilder {
    /// Makes the builder of a zone that was just opened.
    pub(crate) fn new(zone: ZoneId, kind: RoutingKind) -> Self {
        let (table, bypasses) = (RouteTable::default(), RouteTable::default());
        Self { zone, kind, table, vertex_order: Vec::new(), bypasses, spokes: Vec::new(), backbone: None }
    }

    /// Adds a route between hosts and routers of the zone; in a star, one from a host to itself.
    pub(crate) fn add_route(
        &mut self,
        builder: &mut PlatformBuilder,
        route: &RouteDescription,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        match self.kind {
            RoutingKind::Full | RoutingKind::Floyd | RoutingKind::Dijkstra => {
                let ends = builder.vertex_ends(self.zone, route, line)?;
                self.add_listed(builder, ends, route, line)
            }
            RoutingKind::Star if route.src == route.dst => self.add_loopback(builder, route, line),
            RoutingKind::Star => {
                let expected =
                    "a <host_link> or a <cabinet> for each host, and routes from a host to itself only";
                Err(self.routing_error(builder, "route", expected, line))
            }
            RoutingKind::None => {
                Err(self.routing_error(builder, "route", "another routing, such as Full", line))
            }
        }
    }

    /// Adds a route between zones directly inside the zone.
    pub(crate) fn add_zone_route(
        &mut self,
        builder: &mut PlatformBuilder,
        route: &RouteDescription,
        gateways: &(String, String),
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        if matches!(self.kind, RoutingKind::Star | RoutingKind::None) {
            let expected = "another routing, such as Full, around zones that routes join";
            return Err(self.routing_error(builder, "zoneRoute", expected, line));
        }
        let ends = builder.zone_ends(self.zone, route, gateways, line)?;
        self.add_listed(builder, ends, route, line)
    }

    /// Adds a route with precedence over those of the routing: between hosts and routers of the zone or, with
    /// gateways, between zones at any depth in it.
    pub(crate) fn add_bypass(
        &mut self,
        builder: &mut PlatformBuilder,
        route: &RouteDescription,
        gateways: Option<&(String, String)>,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        let ends = match gateways {
            Some(gateways) => builder.bypass_ends(self.zone, route, gateways, line)?,
            None => builder.vertex_ends(self.zone, route, line)?,
        };
        let links: Vec<LinkId> = builder.hops(route, line)?.into_iter().map(|(there, _)| there).collect();
        let fresh = self.bypasses.insert((ends.src, ends.dst), &links, ends.gateways);
        if fresh { Ok(()) } else { Err(declared_twice(builder, route, line)) }
    }

    /// Sets the link that all cables of a star end at.
    pub(crate) fn set_backbone(
        &mut self,
        builder: &PlatformBuilder,
        link: LinkId,
        name: &str,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        if self.kind != RoutingKind::Star {
            return Err(self.routing_error(builder, "backbone", "routing=\"Cluster\"", line));
        }
        match self.backbone.replace(link) {
            None => Ok(()),
            Some(_) => Err(builder.duplicate(line, "backbone", name)),
        }
    }

    /// Ties a vertex to the middle of a star by the links up and down.
    pub(crate) fn add_cable(
        &mut self,
        builder: &PlatformBuilder,
        vertex: u32,
        (up, down): (LinkId, LinkId),
        host: &str,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        match self.spoke(vertex).cable.replace((up, down)) {
            None => Ok(()),
            Some(_) => Err(builder.duplicate(line, "cable of the host", host)),
        }
    }

    /// Checks that the zone is a star and so accepts an element.
    pub(crate) fn check_star(
        &self,
        builder: &PlatformBuilder,
        element: &'static str,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        if self.kind == RoutingKind::Star {
            return Ok(());
        }
        Err(self.routing_error(builder, element, "routing=\"Cluster\"", line))
    }

    /// Closes the zone and computes its routing.
    pub(crate) fn finish(
        mut self,
        builder: &mut PlatformBuilder,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        let vertices = builder.vertex_count(self.zone);
        if self.kind == RoutingKind::Floyd && vertices > VERTEX_LIMIT {
            let kind = "hosts, routers or zones in one zone of routing Floyd (Dijkstra takes more)";
            return Err(PlatformError::TooLarge { at: builder.at(line), kind, limit: VERTEX_LIMIT.into() });
        }
        self.add_default_loopback(builder, vertices, line)?;
        let routing = match self.kind {
            RoutingKind::None => Routing::None,
            RoutingKind::Full => Routing::Full(self.table),
            RoutingKind::Floyd => Routing::Floyd(Floyd::new(self.table, vertices)),
            RoutingKind::Dijkstra => Routing::Dijkstra(Dijkstra::new(self.table, &self.vertex_order)),
            RoutingKind::Star => {
                self.spokes.resize(vertices as usize, Spoke::default());
                Routing::Star(ListedStar::new(self.spokes, self.backbone))
            }
        };
        builder.close_zone(routing, self.bypasses);
        Ok(())
    }

    /// Adds the built-in loopback link to hosts and routers without a route to themselves. In Dijkstra zones only
    /// vertices that routes name have it, as in SimGrid.
    fn add_default_loopback(
        &mut self,
        builder: &mut PlatformBuilder,
        vertices: u32,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        let missing = |vertex: u32| !self.table.has_self_route(vertex);
        let needed = match self.kind {
            RoutingKind::Full | RoutingKind::Floyd => (0..vertices).any(missing),
            RoutingKind::Dijkstra => self.vertex_order.iter().copied().any(missing),
            RoutingKind::Star | RoutingKind::None => false,
        };
        if needed && !builder.holds_zones(self.zone) {
            self.table.set_loopback(builder.default_loopback(line)?);
        }
        Ok(())
    }

    /// Lists a route, and the reverse route of a symmetrical one. The reverse of a route from a vertex to itself is a
    /// second route in SimGrid's Floyd and Dijkstra zones, and the same in its Full ones.
    fn add_listed(
        &mut self,
        builder: &mut PlatformBuilder,
        ends: RouteEnds,
        route: &RouteDescription,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        let hops = builder.hops(route, line)?;
        let there: Vec<LinkId> = hops.iter().map(|&(there, _)| there).collect();
        let mut fresh = self.table.insert((ends.src, ends.dst), &there, ends.gateways);
        self.vertex_order.extend([ends.src, ends.dst]);
        if fresh && route.symmetrical && (ends.src != ends.dst || self.kind != RoutingKind::Full) {
            let back: Vec<LinkId> = hops.iter().rev().map(|&(_, back)| back).collect();
            let ends = ends.reversed();
            fresh = self.table.insert((ends.src, ends.dst), &back, ends.gateways);
        }
        if fresh { Ok(()) } else { Err(declared_twice(builder, route, line)) }
    }

    fn add_loopback(
        &mut self,
        builder: &mut PlatformBuilder,
        route: &RouteDescription,
        line: Option<u32>,
    ) -> Result<(), PlatformError> {
        let ends = builder.vertex_ends(self.zone, route, line)?;
        let links = builder.hops(route, line)?.into_iter().map(|(there, _)| there).collect();
        match self.spoke(ends.src).loopback.replace(links) {
            None => Ok(()),
            Some(_) => Err(declared_twice(builder, route, line)),
        }
    }

    fn spoke(&mut self, vertex: u32) -> &mut Spoke {
        let index = vertex as usize;
        if self.spokes.len() <= index {
            self.spokes.resize(index + 1, Spoke::default());
        }
        &mut self.spokes[index]
    }

    fn routing_error(
        &self,
        builder: &PlatformBuilder,
        element: &'static str,
        expected: &'static str,
        line: Option<u32>,
    ) -> PlatformError {
        let (zone, routing) = (builder.zone_name(self.zone).to_owned(), self.kind.name());
        PlatformError::Routing { at: builder.at(line), element, zone, routing, expected }
    }
}

fn declared_twice(builder: &PlatformBuilder, route: &RouteDescription, line: Option<u32>) -> PlatformError {
    let (src, dst) = (route.src.clone(), route.dst.clone());
    PlatformError::DuplicateRoute { at: builder.at(line), src, dst }
}
