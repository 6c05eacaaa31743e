//! Routes that a platform lists one by one.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::{HostId, LinkId};

/// The listed routes of a zone, and the loopback link that its other hosts send to themselves through.
#[derive(Debug, Default)]
pub(crate) struct RouteTable {
    links: Vec<LinkId>,
    routes: BTreeMap<(HostId, HostId), Range<usize>>,
    loopback: Option<LinkId>,
}

impl RouteTable {
    /// Returns the number of listed routes, one per direction.
    pub(crate) fn len(&self) -> usize {
        self.routes.len()
    }

    /// Lists a route, or returns `false` where it is listed already.
    pub(crate) fn insert(&mut self, src: HostId, dst: HostId, links: &[LinkId]) -> bool {
        let start = self.links.len();
        if self.routes.contains_key(&(src, dst)) {
            return false;
        }
        self.links.extend_from_slice(links);
        self.routes.insert((src, dst), start..self.links.len());
        true
    }

    /// Returns whether a route of this host to itself is listed.
    pub(crate) fn has_self_route(&self, host: HostId) -> bool {
        self.routes.contains_key(&(host, host))
    }

    /// Sets the link of all routes from a host to itself that are not listed.
    pub(crate) fn set_loopback(&mut self, link: LinkId) {
        self.loopback = Some(link);
    }

    /// Returns the links of a route.
    pub(crate) fn route(&self, src: HostId, dst: HostId) -> Option<&[LinkId]> {
        match self.routes.get(&(src, dst)) {
            Some(range) => Some(&self.links[range.clone()]),
            None if src == dst => self.loopback.as_ref().map(std::slice::from_ref),
            None => None,
        }
    }
}
