//! The zones of a platform: a tree whose leaves hold hosts and routers.

use std::ops::Range;

use super::routing::Routing;
use super::routing::table::RouteTable;
use crate::identifier::ZoneId;
use crate::{HostId, Location};

/// A vertex of a zone: a host, a router or a zone in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZoneVertex {
    /// Zone.
    pub(crate) zone: ZoneId,
    /// Position among the vertices of the zone.
    pub(crate) vertex: u32,
}

/// Object of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NamedNode {
    Host(HostId),
    Router(ZoneVertex),
    Zone(ZoneId),
}

/// A vertex of a zone, between which it routes.
#[derive(Debug)]
pub(crate) enum Vertex {
    Host(HostId),
    /// An end of routes that computes nothing, by its name.
    Router(Box<str>),
    Zone(ZoneId),
}

/// A part of a platform with one rule of routing between its vertices, which are hosts and routers or zones in it.
#[derive(Debug)]
pub(crate) struct Zone {
    pub(crate) name: String,
    pub(crate) at: Location,
    /// Vertex of the surrounding zone; `None` for the outermost zone.
    pub(crate) parent_vertex: Option<ZoneVertex>,
    /// Number of zones around it.
    pub(crate) depth: u32,
    /// Hosts of the zone and of the zones in it, numbered consecutively.
    pub(crate) hosts: Range<u32>,
    /// Vertices in the order of their declaration.
    pub(crate) vertices: Vec<Vertex>,
    pub(crate) routing: Routing,
    /// Routes with precedence over those of the routing: by vertices if these are hosts and routers, else by the
    /// numbers of zones at any depth.
    pub(crate) bypasses: Option<Box<RouteTable>>,
}

impl Zone {
    /// Returns whether the zone holds zones.
    pub(crate) fn holds_zones(&self) -> bool {
        matches!(self.vertices.first(), Some(Vertex::Zone(_)))
    }
}
