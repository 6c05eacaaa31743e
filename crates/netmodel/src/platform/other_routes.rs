//! Routes beside that of the platform: other shortest ones, and ways over third hosts, which shun loaded links.

use pdes_core::mix;
use serde::{Deserialize, Serialize};

use crate::{HostId, LinkId, Platform, RouteError};

/// A route between two hosts beside that of the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum OtherRoute {
    /// Over the switch of a third host.
    Over(HostId),
    /// The shortest route of this number, from 1 on.
    Shortest(u64),
}

impl OtherRoute {
    /// Returns the third host.
    pub(crate) fn via(self) -> Option<HostId> {
        match self {
            Self::Over(via) => Some(via),
            Self::Shortest(_) => None,
        }
    }
}

impl Platform {
    /// Returns whether messages between the hosts that are farthest from each other have ways over a third group or switch, or, in a torus,
    /// over another host. The platform has to be one such cluster, without backbone and limiters.
    pub fn has_indirect_routes(&self) -> bool {
        let (first, last) = self.farthest_hosts();
        self.third_host(first, last, 0).is_some()
    }

    /// Returns whether messages between these hosts have several routes at once: [indirect](Self::has_indirect_routes) or other shortest ones.
    pub fn has_several_routes(&self) -> bool {
        let (first, last) = self.farthest_hosts();
        !self.other_routes((first, last), 1, 0).is_empty()
    }

    fn farthest_hosts(&self) -> (HostId, HostId) {
        (HostId::new(0), HostId::new((self.hosts().len() as u32).saturating_sub(1)))
    }

    /// Returns a host over whose switch a message between two hosts may go, one of several by a number; `None` if there is none.
    pub(crate) fn third_host(&self, src: HostId, dst: HostId, number: u64) -> Option<HostId> {
        let (topology, wiring) = self.whole_cluster()?;
        if wiring.backbone.is_some() || wiring.limiter.is_some() {
            return None;
        }
        topology.third_host(src.get(), dst.get(), number).map(HostId::new)
    }

    /// Lists at most so many routes between two hosts beside that of the platform, in an order by a random number. Other shortest ones
    /// share no cables between switches with that nor with each other, as long as there are such.
    pub(crate) fn other_routes(
        &self,
        (src, dst): (HostId, HostId),
        most: u64,
        random: u64,
    ) -> Vec<OtherRoute> {
        let Some((topology, _)) = self.whole_cluster().filter(|_| src != dst) else { return Vec::new() };
        let [first, of_each] = topology.shortest_routes(src.get(), dst.get());
        if first > 1 {
            let count = first.saturating_mul(of_each).min(most.saturating_add(1));
            return (1..count)
                .map(|place| OtherRoute::Shortest(nth_route([first, of_each], random, place)))
                .collect();
        }
        // Numbers that follow each other are third hosts that differ, until all have been.
        let third = |place| self.third_host(src, dst, (random >> 1) + place);
        let is_new = |&(place, host): &(u64, HostId)| place == 0 || Some(host) != third(0);
        (0..most)
            .map_while(|place| Some((place, third(place)?)))
            .take_while(is_new)
            .map(|(_, host)| OtherRoute::Over(host))
            .collect()
    }

    /// Writes the links of a route from one host to another beside that of the platform into `out`. Costs twice as much as
    /// [`Platform::route`]: what leads to the switch of a third host, to that host and back from it is computed, and left out.
    ///
    /// # Errors
    /// As [`Platform::route`].
    pub(crate) fn write_other_route(
        &self,
        (src, dst): (HostId, HostId),
        route: OtherRoute,
        out: &mut Vec<LinkId>,
    ) -> Result<(), RouteError> {
        match route {
            OtherRoute::Over(via) => self.route_over((src, via, dst), out),
            OtherRoute::Shortest(number) => {
                self.route(src, dst, out)?;
                if let Some((topology, wiring)) = self.whole_cluster() {
                    out.clear();
                    topology.route_among(wiring, (src.get(), dst.get()), number, out);
                }
                Ok(())
            }
        }
    }

    fn route_over(
        &self,
        (src, via, dst): (HostId, HostId, HostId),
        out: &mut Vec<LinkId>,
    ) -> Result<(), RouteError> {
        let mut behind = Vec::new();
        self.route(via, dst, &mut behind)?;
        self.route(src, via, out)?;
        let cable = |link: LinkId| self.whole_cluster().and_then(|(_, wiring)| wiring.cable_of(link));
        let mut behind = behind.into_iter().peekable();
        while let (Some(&last), Some(&next)) = (out.last(), behind.peek())
            && cable(last).is_some_and(|last| cable(next) == Some(last))
        {
            out.pop();
            behind.next();
        }
        out.extend(behind);
        Ok(())
    }
}

/// Returns the number of the shortest route at a place of a random order: the first ones differ in their first choice, of which there are
/// `first`, each with `of_each` routes. At place 0 is route 0.
fn nth_route([first, of_each]: [u64; 2], random: u64, place: u64) -> u64 {
    let choice = match place % first {
        0 => 0,
        other => 1 + (random % (first - 1) + other - 1) % (first - 1),
    };
    let turn = if choice == 0 { 0 } else { mix(random.wrapping_add(choice)) % of_each };
    choice + first * ((turn + place / first) % of_each)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::RoutingRule;

    /// Whatever is random: all routes come once, first those that differ in their first choice.
    #[test]
    fn orders_of_shortest_routes_are_permutations() {
        for sizes in [[2, 1], [4, 1], [4, 4], [3, 10]] {
            let count = sizes[0] * sizes[1];
            for random in [0, 1, 12345, u64::MAX] {
                let order: Vec<u64> = (0..count).map(|place| nth_route(sizes, random, place)).collect();
                assert_eq!(order[0], 0);
                let firsts = order[..sizes[0] as usize].iter().map(|route| route % sizes[0]);
                assert_eq!(firsts.collect::<BTreeSet<_>>().len() as u64, sizes[0], "{order:?}");
                assert_eq!(order.iter().collect::<BTreeSet<_>>().len() as u64, count, "{order:?}");
                assert!(order.iter().all(|&route| route < count), "{order:?}");
            }
        }
    }

    /// Returns the cables of a route, which leads over stations from one host to another.
    fn cables(platform: &Platform, (src, dst): (HostId, HostId), other: Option<OtherRoute>) -> Vec<u32> {
        let (topology, wiring) = platform.whole_cluster().unwrap();
        let mut links = Vec::new();
        match other {
            None => platform.route(src, dst, &mut links).unwrap(),
            Some(other) => platform.write_other_route((src, dst), other, &mut links).unwrap(),
        }
        let cables: Vec<u32> = links.iter().map(|&link| wiring.cable_of(link).unwrap()).collect();
        let ends = topology.cable_ends();
        let last = cables.iter().fold(u64::from(src.get()), |station, &cable| {
            let (lower, upper) = ends[cable as usize];
            assert!(station == lower || station == upper, "{links:?} of {src} to {dst}");
            lower + upper - station
        });
        assert_eq!(last, u64::from(dst.get()));
        cables
    }

    /// Those that differ in their first choice share the cables of both hosts only.
    #[test]
    fn shortest_routes_lead_to_the_host_and_are_apart() {
        for (topology, first, all) in [
            (
                "kind = 'fat_tree', levels = [{ children = 2, parents = 1 }, { children = 4, parents = 4 }]",
                4,
                4,
            ),
            (
                "kind = 'fat_tree', levels = [{ children = 2, parents = 1 }, { children = 2, parents = 2 }, { children = 3, parents = 3 }]",
                2,
                6,
            ),
            (
                "kind = 'fat_tree', levels = [{ children = 3, parents = 1 }, { children = 2, parents = 2, cables = 2 }, { children = 2, parents = 2, cables = 3 }]",
                4,
                24,
            ),
            (
                "kind = 'rail_optimized', units = 2, servers = 2, rails = 2, spines = 3, cables = 2, local = 4",
                6,
                6,
            ),
        ] {
            let rates = "speed = '1Gf', bandwidth = '1GBps', latency = '1us'";
            let mut platform =
                Platform::from_toml(&format!("topology = {{ {topology}, {rates} }}"), "test").unwrap();
            platform.set_routing_rule(RoutingRule::Textbook);
            let last = HostId::new(platform.hosts().len() as u32 - 1);
            for src in (0..last.get()).map(HostId::new) {
                let others = platform.other_routes((src, last), u64::MAX, 7);
                let routes = std::iter::once(None).chain(others.into_iter().map(Some));
                let routes: Vec<_> = routes.map(|other| cables(&platform, (src, last), other)).collect();
                if src.get() == 0 {
                    assert_eq!(routes.len(), all, "{topology}");
                }
                assert!(routes.iter().all(|route| route.len() == routes[0].len()), "as short");
                assert_eq!(routes.iter().collect::<BTreeSet<_>>().len(), routes.len(), "{topology}");
                let apart = &routes[..first.min(routes.len())];
                let between: Vec<u32> =
                    apart.iter().flat_map(|route| route[1..route.len() - 1].iter().copied()).collect();
                assert_eq!(between.iter().collect::<BTreeSet<_>>().len(), between.len(), "{topology}");
            }
        }
    }
}
