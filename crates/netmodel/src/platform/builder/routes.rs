//! Resolution of the names in routes: ends, gateways and links.

use super::{LOOPBACK_NAME, LinkName, PlatformBuilder};
use crate::identifier::ZoneId;
use crate::platform::description::{Hop, RouteDescription};
use crate::platform::routing::Gateways;
use crate::platform::zone::{NamedNode, ZoneVertex};
use crate::{LinkId, PlatformError};

/// Ends of a route as vertices or as zones, and its gateways if it joins zones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteEnds {
    pub(crate) src: u32,
    pub(crate) dst: u32,
    pub(crate) gateways: Option<Gateways>,
}

impl RouteEnds {
    /// Returns the ends of the reverse route.
    pub(crate) fn reversed(self) -> Self {
        let swap = |Gateways { src, dst }| Gateways { src: dst, dst: src };
        Self { src: self.dst, dst: self.src, gateways: self.gateways.map(swap) }
    }
}

impl PlatformBuilder {
    /// Finds the two hosts or routers of a zone that a route joins.
    pub(crate) fn vertex_ends(
        &self,
        zone: ZoneId,
        route: &RouteDescription,
        line: Option<u32>,
    ) -> Result<RouteEnds, PlatformError> {
        let end = |name: &str| {
            let place = self.host_or_router(name).filter(|place| place.zone == zone);
            place.ok_or_else(|| self.unknown_in_route(route, "host or router of its zone", name, line))
        };
        let (src, dst) = (end(&route.src)?.vertex, end(&route.dst)?.vertex);
        Ok(RouteEnds { src, dst, gateways: None })
    }

    /// Finds the two zones directly inside a zone that a route joins, and its gateways.
    pub(crate) fn zone_ends(
        &self,
        around: ZoneId,
        route: &RouteDescription,
        gateways: &(String, String),
        line: Option<u32>,
    ) -> Result<RouteEnds, PlatformError> {
        const KIND: &str = "zone directly in its zone";
        let end = |name: &str| {
            let zone = self.zone_in_route(route, KIND, name, line)?;
            let place = self.zones[zone.index()].parent_vertex.filter(|place| place.zone == around);
            let place = place.ok_or_else(|| self.unknown_in_route(route, KIND, name, line))?;
            Ok((zone, place.vertex))
        };
        let ((src_zone, src), (dst_zone, dst)) = (end(&route.src)?, end(&route.dst)?);
        let gateways = self.gateways(route, (src_zone, dst_zone), gateways, line)?;
        Ok(RouteEnds { src, dst, gateways: Some(gateways) })
    }

    /// Finds the two zones anywhere inside a zone that a bypass joins, by their numbers, and its gateways.
    pub(crate) fn bypass_ends(
        &self,
        around: ZoneId,
        route: &RouteDescription,
        gateways: &(String, String),
        line: Option<u32>,
    ) -> Result<RouteEnds, PlatformError> {
        const KIND: &str = "zone inside its zone";
        let end = |name: &str| {
            let zone = self.zone_in_route(route, KIND, name, line)?;
            if zone != around && self.is_in(zone, around) {
                Ok(zone)
            } else {
                Err(self.unknown_in_route(route, KIND, name, line))
            }
        };
        let (src, dst) = (end(&route.src)?, end(&route.dst)?);
        let gateways = self.gateways(route, (src, dst), gateways, line)?;
        Ok(RouteEnds { src: src.get(), dst: dst.get(), gateways: Some(gateways) })
    }

    /// Returns the links of a route, each with the link of the same hop in the other direction.
    pub(crate) fn hops(
        &mut self,
        route: &RouteDescription,
        line: Option<u32>,
    ) -> Result<Vec<(LinkId, LinkId)>, PlatformError> {
        if route.links.is_empty() {
            let (src, dst) = (route.src.clone(), route.dst.clone());
            return Err(PlatformError::EmptyRoute { at: self.at(line), src, dst });
        }
        if route.links.iter().any(|hop| hop.link() == LOOPBACK_NAME) {
            self.default_loopback(line)?;
        }
        route.links.iter().map(|hop| self.hop(route, hop, line)).collect()
    }

    /// Returns the link of this name, unless it is the name of a split-duplex link, which has two.
    pub(crate) fn single_link(&self, name: &str) -> Option<LinkId> {
        match self.link_names.get(name) {
            Some(&LinkName::One(link)) => Some(link),
            _ => None,
        }
    }

    /// Returns the vertex of the host of this name, if it is in this zone.
    pub(crate) fn host_in_zone(&self, name: &str, zone: ZoneId) -> Option<u32> {
        match self.nodes.get(name) {
            Some(NamedNode::Host(host)) => Some(self.host_vertices[host.index()]),
            _ => None,
        }
        .filter(|place| place.zone == zone)
        .map(|place| place.vertex)
    }

    /// Returns the vertex of the host or router of this name.
    fn host_or_router(&self, name: &str) -> Option<ZoneVertex> {
        match self.nodes.get(name)? {
            NamedNode::Host(host) => Some(self.host_vertices[host.index()]),
            NamedNode::Router(place) => Some(*place),
            NamedNode::Zone(_) => None,
        }
    }

    fn zone_in_route(
        &self,
        route: &RouteDescription,
        kind: &'static str,
        name: &str,
        line: Option<u32>,
    ) -> Result<ZoneId, PlatformError> {
        match self.nodes.get(name) {
            Some(&NamedNode::Zone(zone)) => Ok(zone),
            _ => Err(self.unknown_in_route(route, kind, name, line)),
        }
    }

    fn gateways(
        &self,
        route: &RouteDescription,
        zones: (ZoneId, ZoneId),
        names: &(String, String),
        line: Option<u32>,
    ) -> Result<Gateways, PlatformError> {
        let gateway = |zone: ZoneId, name: &String| {
            let place = self.host_or_router(name);
            place.filter(|place| self.is_in(place.zone, zone)).ok_or_else(|| PlatformError::Gateway {
                at: self.at(line),
                src: route.src.clone(),
                dst: route.dst.clone(),
                gateway: name.clone(),
                zone: self.zone_name(zone).to_owned(),
            })
        };
        Ok(Gateways { src: gateway(zones.0, &names.0)?, dst: gateway(zones.1, &names.1)? })
    }

    /// Returns whether a zone is `around` or inside it.
    fn is_in(&self, zone: ZoneId, around: ZoneId) -> bool {
        let outwards = |zone: &ZoneId| self.zones[zone.index()].parent_vertex.map(|place| place.zone);
        std::iter::successors(Some(zone), outwards).any(|zone| zone == around)
    }

    fn hop(
        &self,
        route: &RouteDescription,
        hop: &Hop,
        line: Option<u32>,
    ) -> Result<(LinkId, LinkId), PlatformError> {
        let name = hop.link();
        let link = self.link_names.get(name).copied();
        match (link.ok_or_else(|| self.unknown_in_route(route, "link", name, line))?, hop) {
            (LinkName::One(link), Hop::Either(_)) => Ok((link, link)),
            (LinkName::Split { up, down }, Hop::Up { .. }) => Ok((up, down)),
            (LinkName::Split { up, down }, Hop::Down { .. }) => Ok((down, up)),
            (LinkName::Split { .. }, Hop::Either(_)) => {
                let expected = "a direction, because it is a split-duplex link";
                Err(self.direction_error(route, name, expected, line))
            }
            (LinkName::One(_), Hop::Up { .. } | Hop::Down { .. }) => {
                let expected = "no direction, because it is not a split-duplex link";
                Err(self.direction_error(route, name, expected, line))
            }
        }
    }

    fn direction_error(
        &self,
        route: &RouteDescription,
        link: &str,
        expected: &'static str,
        line: Option<u32>,
    ) -> PlatformError {
        let (src, dst, link) = (route.src.clone(), route.dst.clone(), link.to_owned());
        PlatformError::Direction { at: self.at(line), src, dst, link, expected }
    }

    fn unknown_in_route(
        &self,
        route: &RouteDescription,
        kind: &'static str,
        name: &str,
        line: Option<u32>,
    ) -> PlatformError {
        let (src, dst, name) = (route.src.clone(), route.dst.clone(), name.to_owned());
        PlatformError::UnknownInRoute { at: self.at(line), src, dst, kind, name }
    }
}
