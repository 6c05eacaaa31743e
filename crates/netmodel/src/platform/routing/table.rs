//! Table of listed routes.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Gateways, ListedRoute};
use crate::LinkId;

/// Listed routes of a zone by the vertices that they join, and the loopback link of vertices without a route to
/// themselves.
#[derive(Debug, Default)]
pub(crate) struct RouteTable {
    links: Vec<LinkId>,
    routes: BTreeMap<(u32, u32), Range<usize>>,
    /// Gateways of routes between zones; separate because other routes have none.
    gateways: BTreeMap<(u32, u32), Gateways>,
    loopback: Option<LinkId>,
}

impl RouteTable {
    /// Returns the number of listed routes, one per direction.
    pub(crate) fn len(&self) -> usize {
        self.routes.len()
    }

    /// Lists a route, or returns `false` if it is listed already.
    pub(crate) fn insert(
        &mut self,
        (src, dst): (u32, u32),
        links: &[LinkId],
        gateways: Option<Gateways>,
    ) -> bool {
        let start = self.links.len();
        if self.routes.contains_key(&(src, dst)) {
            return false;
        }
        self.links.extend_from_slice(links);
        self.routes.insert((src, dst), start..self.links.len());
        if let Some(gateways) = gateways {
            self.gateways.insert((src, dst), gateways);
        }
        true
    }

    /// Returns whether a route of this vertex to itself is listed.
    pub(crate) fn has_self_route(&self, vertex: u32) -> bool {
        self.routes.contains_key(&(vertex, vertex))
    }

    /// Sets the link of all unlisted routes from a vertex to itself.
    pub(crate) fn set_loopback(&mut self, link: LinkId) {
        self.loopback = Some(link);
    }

    /// Returns a route, in `O(log n)`.
    pub(crate) fn route(&self, src: u32, dst: u32) -> Option<ListedRoute<'_>> {
        let key = (src, dst);
        let links = match self.routes.get(&key) {
            Some(range) => &self.links[range.clone()],
            None if src == dst => std::slice::from_ref(self.loopback.as_ref()?),
            None => return None,
        };
        Some(ListedRoute { links, gateways: self.gateways.get(&key).copied() })
    }

    /// Lists the ends of the routes and their numbers of links, in the order of the ends.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = ((u32, u32), u64)> {
        self.routes.iter().map(|(&ends, links)| (ends, links.len() as u64))
    }

    /// Returns the number of links of a vertex's route to itself.
    pub(crate) fn self_route_length(&self, vertex: u32) -> Option<u64> {
        self.route(vertex, vertex).map(|route| route.links.len() as u64)
    }
}
