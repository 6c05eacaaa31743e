//! The zones of a platform: a tree whose leaves hold hosts and routers.

use std::ops::Range;

use super::routing::Routing;
use super::routing::table::RouteTable;
use crate::identifier::ZoneId;
use crate::{HostId, Location};

/// Where a host or a router is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its zone.
    pub(crate) zone: ZoneId,
    /// Its position among the vertices of the zone.
    pub(crate) vertex: u32,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Node {
    Host(HostId),
    Router(Place),
    Zone(ZoneId),
}

/// What a zone routes between.
#[derive(Debug)]
pub(crate) enum Vertex {
    Host(HostId),
    /// A place for routes to begin and end that computes nothing, by its name.
    Router(Box<str>),
    Zone(ZoneId),
}

/// A part of a platform with one rule of routing between its vertices, which are hosts and routers or zones in it.
#[derive(Debug)]
pub(crate) struct Zone {
    pub(crate) name: String,
    pub(crate) at: Location,
    /// The place of the zone as a vertex of the one around it; `None` for the outermost.
    pub(crate) place: Option<Place>,
    /// The number of zones around it.
    pub(crate) depth: u32,
    /// The hosts of the zone and of the zones in it. They are numbered one after the other.
    pub(crate) hosts: Range<u32>,
    /// In the order of their declaration.
    pub(crate) vertices: Vec<Vertex>,
    pub(crate) routing: Routing,
    /// Routes that are taken before those of the routing: by vertices where these are hosts and routers, else by the
    /// numbers of zones at any depth.
    pub(crate) bypasses: Option<Box<RouteTable>>,
}

impl Zone {
    /// Returns whether the zone holds zones.
    pub(crate) fn holds_zones(&self) -> bool {
        matches!(self.vertices.first(), Some(Vertex::Zone(_)))
    }
}
