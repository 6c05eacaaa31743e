//! Construction of the route through the zones from one host to another.
//!
//! The routing of a zone joins its hosts. Otherwise the route between the two zones that hold the hosts, side by side in
//! the innermost zone around both, names the gateways; the routes from the source to the first gateway and from the second
//! one to the destination are found recursively, each inside a smaller zone (NetZoneImpl.cpp; Bobelin et al., "Scalable
//! Multi-Purpose Network Representation for Large Scale Distributed System Simulation", 2012). Bypasses take precedence.

use super::routing::{Gateways, LinkOrder, ListedPath, ListedRoute, Routing};
use super::zone::{Zone, ZoneVertex};
use crate::LinkId;
use crate::identifier::ZoneId;

/// A missing piece of a route, between two vertices of a zone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteGap {
    pub(crate) zone: ZoneId,
    pub(crate) src: u32,
    pub(crate) dst: u32,
}

/// A route under construction.
pub(crate) struct RouteBuilder<'a> {
    pub(crate) zones: &'a [Zone],
    pub(crate) out: &'a mut Vec<LinkId>,
    /// First piece that its zone does not list and that counts as a piece without links.
    pub(crate) unlisted: Option<RouteGap>,
}

impl<'a> RouteBuilder<'a> {
    fn zone(&self, zone: ZoneId) -> &'a Zone {
        &self.zones[zone.index()]
    }

    /// Appends the links from one vertex to another. The links from `base` on are those of the route that this one
    /// continues. Each recursion goes down one level of zones.
    pub(crate) fn append(&mut self, src: ZoneVertex, dst: ZoneVertex, base: usize) -> Result<(), RouteGap> {
        if src.zone == dst.zone {
            return self.append_in_zone(src.zone, (src.vertex, dst.vertex), base);
        }
        let (around, ends) = self.common_zone(src.zone, dst.zone);
        let zone = self.zone(around);
        if let Some(ListedRoute { links, gateways: Some(gateways) }) = self.bypass(zone, src.zone, dst.zone) {
            // A gateway that is the source itself is reached through its loopback link here, as in SimGrid.
            self.append(src, gateways.src, base)?;
            self.out.extend_from_slice(links);
            return self.append(gateways.dst, dst, base);
        }
        let gap = RouteGap { zone: around, src: ends.0, dst: ends.1 };
        let path = zone.routing.path(ends.0, ends.1).ok_or(gap)?;
        let gateways = path.gateways().ok_or(gap)?;
        if src != gateways.src {
            self.append(src, gateways.src, base)?;
        }
        let middle = self.out.len();
        self.append_path(&path, middle)?;
        if gateways.dst != dst { self.append(gateways.dst, dst, base) } else { Ok(()) }
    }

    fn append_in_zone(&mut self, id: ZoneId, ends: (u32, u32), base: usize) -> Result<(), RouteGap> {
        let zone = self.zone(id);
        let gap = RouteGap { zone: id, src: ends.0, dst: ends.1 };
        if let Some(bypass) = zone.bypasses.as_ref().and_then(|bypasses| bypasses.route(ends.0, ends.1)) {
            self.out.extend_from_slice(bypass.links);
            return Ok(());
        }
        match &zone.routing {
            Routing::Cluster(topology, wiring) => {
                let itself = ends.0 == ends.1 && (ends.0 as usize) < zone.hosts.len();
                match wiring.loopback(ends.0).filter(|_| itself) {
                    Some(loopback) => self.out.push(loopback),
                    None => topology.route(wiring, ends.0, ends.1, self.out),
                }
                Ok(())
            }
            Routing::Star(star) => star.route(ends.0, ends.1, self.out).ok_or(gap),
            routing => match routing.path(ends.0, ends.1) {
                Some(path) => self.append_path(&path, base),
                // As in SimGrid (FullZone.cpp), the rest of the route decides whether this is an error.
                None if matches!(routing, Routing::Full(_)) => {
                    self.unlisted.get_or_insert(gap);
                    Ok(())
                }
                None => Err(gap),
            },
        }
    }

    /// Writes the links of a path, and between two of its routes those from one gateway to the next.
    fn append_path(&mut self, path: &ListedPath<'_>, base: usize) -> Result<(), RouteGap> {
        let start = self.out.len();
        let mut entered: Option<ZoneVertex> = None;
        for route in path.routes() {
            if let (Some(entered), Some(Gateways { src, .. })) = (entered, route.gateways)
                && entered != src
            {
                let base = if path.order == LinkOrder::Appended { base } else { self.out.len() };
                self.append(entered, src, base)?;
            }
            match path.order {
                LinkOrder::Appended => self.out.extend_from_slice(route.links),
                LinkOrder::Inserted => self.out.extend(route.links.iter().rev()),
            }
            entered = route.gateways.map(|gateways| gateways.dst);
        }
        if path.order == LinkOrder::Inserted {
            let written = self.out.len() - start;
            self.out[base..].rotate_right(written);
        }
        Ok(())
    }

    /// Returns the innermost zone around two different ones, and its vertices that contain these. Zones that hold
    /// hosts or routers hold no zones, so that neither zone is around the other.
    fn common_zone(&self, one: ZoneId, other: ZoneId) -> (ZoneId, (u32, u32)) {
        let place = |zone: ZoneId| self.zone(zone).parent_vertex.expect("a zone beside another is in one");
        let (mut src, mut dst) = (one, other);
        while self.zone(src).depth > self.zone(dst).depth {
            src = place(src).zone;
        }
        while self.zone(dst).depth > self.zone(src).depth {
            dst = place(dst).zone;
        }
        while place(src).zone != place(dst).zone {
            (src, dst) = (place(src).zone, place(dst).zone);
        }
        (place(src).zone, (place(src).vertex, place(dst).vertex))
    }

    /// Finds the bypass between zones around the source and zones around the destination, all inside `around`, the
    /// innermost of them first. The order is SimGrid's (`get_bypass_route` in NetZoneImpl.cpp).
    fn bypass(&self, around: &'a Zone, src: ZoneId, dst: ZoneId) -> Option<ListedRoute<'a>> {
        let bypasses = around.bypasses.as_ref()?;
        let chain = |zone: ZoneId| -> Vec<ZoneId> {
            let outwards = |zone: &ZoneId| self.zone(*zone).parent_vertex.map(|place| place.zone);
            let inside = |zone: &ZoneId| self.zone(*zone).depth > around.depth;
            std::iter::successors(Some(zone), outwards).take_while(inside).collect()
        };
        let (from, to) = (chain(src), chain(dst));
        let listed = |i: usize, j: usize| bypasses.route(from.get(i)?.get(), to.get(j)?.get());
        (0..from.len().max(to.len())).find_map(|most| {
            let uneven = (0..most).find_map(|less| listed(less, most).or_else(|| listed(most, less)));
            uneven.or_else(|| listed(most, most))
        })
    }
}
