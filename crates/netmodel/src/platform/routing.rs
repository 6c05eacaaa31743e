//! Routing of zones: listed routes, shortest paths over them, stars, and computed networks.

use super::zone::ZoneVertex;
use crate::LinkId;
use crate::topology::{Topology, Wiring};

pub(crate) mod dijkstra;
pub(crate) mod floyd;
pub(crate) mod star;
pub(crate) mod table;

use dijkstra::Dijkstra;
use floyd::Floyd;
use star::ListedStar;
use table::RouteTable;

/// Routing rule between the vertices of a zone.
#[derive(Debug)]
pub(crate) enum Routing {
    /// No routing: only bypasses lead through the zone.
    None,
    /// Routes that the platform lists, one per pair.
    Full(RouteTable),
    /// Shortest paths over listed routes, all computed when the platform is read.
    Floyd(Floyd),
    /// Shortest paths over listed routes, computed from each source on the first request.
    Dijkstra(Dijkstra),
    /// A cable from each vertex to the middle, listed one by one.
    Star(ListedStar),
    /// Routes that follow from coordinates.
    Cluster(Box<dyn Topology>, Wiring),
}

/// Gateways of a route between zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gateways {
    /// The host or router of the zone that the route begins in.
    pub(crate) src: ZoneVertex,
    /// The host or router of the zone that the route ends in.
    pub(crate) dst: ZoneVertex,
}

/// A listed route: its links, and its gateways if it joins zones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListedRoute<'a> {
    pub(crate) links: &'a [LinkId],
    pub(crate) gateways: Option<Gateways>,
}

/// Path from one vertex of a zone to another: its listed routes in order.
#[derive(Debug)]
pub(crate) struct ListedPath<'a> {
    routes: PathRoutes<'a>,
    pub(crate) order: LinkOrder,
}

#[derive(Debug)]
enum PathRoutes<'a> {
    One([ListedRoute<'a>; 1]),
    Path(Vec<ListedRoute<'a>>),
}

/// Order in which the links of a path are written after those before it. It changes no cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkOrder {
    /// One after the other.
    Appended,
    /// Before all links so far, those of each listed route in reverse order: the order of SimGrid in Dijkstra zones
    /// (`insert_link_latency` in NetworkModel.cpp).
    Inserted,
}

impl<'a> ListedPath<'a> {
    /// Returns the listed routes, at least one.
    pub(crate) fn routes(&self) -> &[ListedRoute<'a>] {
        match &self.routes {
            PathRoutes::One(route) => route,
            PathRoutes::Path(routes) => routes,
        }
    }

    /// Returns the gateways at which the path leaves the first zone and enters the last, if it joins zones.
    pub(crate) fn gateways(&self) -> Option<Gateways> {
        let (first, last) = (self.routes().first()?.gateways?, self.routes().last()?.gateways?);
        Some(Gateways { src: first.src, dst: last.dst })
    }
}

impl Routing {
    /// Returns the path between two vertices by listed routes, or `None` if there is none.
    pub(crate) fn path(&self, src: u32, dst: u32) -> Option<ListedPath<'_>> {
        match self {
            Self::Full(table) => {
                let routes = PathRoutes::One([table.route(src, dst)?]);
                Some(ListedPath { routes, order: LinkOrder::Appended })
            }
            Self::Floyd(floyd) => {
                let routes = PathRoutes::Path(floyd.path(src, dst)?);
                Some(ListedPath { routes, order: LinkOrder::Appended })
            }
            Self::Dijkstra(dijkstra) => {
                let routes = PathRoutes::Path(dijkstra.path(src, dst)?);
                Some(ListedPath { routes, order: LinkOrder::Inserted })
            }
            Self::None | Self::Star(_) | Self::Cluster(..) => None,
        }
    }
}
