//! The dragonfly (Kim et al., ISCA 2008): routers in chassis, chassis in groups, and cables of three colours between
//! them.

use std::fmt;

use super::{
    Cable, RoutingRule, Topology, Wiring, checked_product, consecutive_pairs, contiguous_blocks, third_number,
};
use crate::LinkId;
use crate::layout::NetworkShape;

/// The parameters of a dragonfly. Each count but that of the nodes comes with the bandwidth of its cables, in
/// multiples of the cluster's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DragonflyShape {
    /// Groups; every two are joined by one blue cable.
    pub groups: u32,
    /// Bandwidth of a blue cable.
    pub blue: u32,
    /// Chassis per group; routers of the same blade number are joined by black cables.
    pub chassis: u32,
    /// Bandwidth of a black cable.
    pub black: u32,
    /// Blades (routers) per chassis; every two are joined by a green cable.
    pub blades: u32,
    /// Bandwidth of a green cable.
    pub green: u32,
    /// Hosts per router.
    pub nodes: u32,
}

impl DragonflyShape {
    /// Returns whether SimGrid has this network: it reads beyond its tables if a chassis has fewer blades than there are groups.
    pub(crate) fn is_in_simgrid(&self) -> bool {
        self.groups == 1 || self.blades >= self.groups
    }
}

/// A dragonfly with minimal routing. The blue cable between groups `i < j` joins router `j` of group `i`, counted over its chassis,
/// with router `i` of group `j`, both modulo the number of routers of a group: with at least as many blades as groups, blades `j` and
/// `i` of their chassis 0, as in SimGrid. A cable's upward direction leads to the larger number, or from the host
/// to its router.
#[derive(Debug)]
pub(crate) struct Dragonfly {
    shape: DragonflyShape,
    /// First number in the names of the cables: SimGrid numbers the cables of all dragonflies of a platform in one
    /// sequence.
    first_name: u64,
}

/// A router by its coordinates.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Router {
    group: u64,
    chassis: u64,
    blade: u64,
}

impl Dragonfly {
    /// Makes a dragonfly, or returns `None` if a parameter is zero, or the sizes exceed 64 bits.
    pub(crate) fn try_new(shape: DragonflyShape, first_name: u64) -> Option<Self> {
        let DragonflyShape { groups, blue, chassis, black, blades, green, nodes } = shape;
        let zero = [groups, blue, chassis, black, blades, green, nodes].contains(&0);
        let fits = checked_product([groups, chassis, blades, nodes]).is_some();
        (!zero && fits).then_some(Self { shape, first_name })
    }

    fn counts(&self) -> [u64; 4] {
        let DragonflyShape { groups, chassis, blades, nodes, .. } = self.shape;
        [groups.into(), chassis.into(), blades.into(), nodes.into()]
    }

    fn routers(&self) -> u64 {
        let [groups, chassis, blades, _] = self.counts();
        groups * chassis * blades
    }

    fn router_of(&self, host: u32) -> Router {
        let [_, chassis, blades, nodes] = self.counts();
        let router = u64::from(host) / nodes;
        Router {
            group: router / blades / chassis,
            chassis: router / blades % chassis,
            blade: router % blades,
        }
    }

    /// Returns the router of a group with the blue cable to another group.
    fn facing(&self, group: u64, peer: u64) -> Router {
        let [_, chassis, blades, _] = self.counts();
        let router = peer % (chassis * blades);
        Router { group, chassis: router / blades, blade: router % blades }
    }

    fn router_number(&self, router: Router) -> u64 {
        let [_, chassis, blades, _] = self.counts();
        (router.group * chassis + router.chassis) * blades + router.blade
    }

    fn station(&self, router: Router) -> u64 {
        self.hosts() + self.router_number(router)
    }

    /// Returns the numbers of the first green, black and blue cable; the cables of hosts come before.
    fn first_cables(&self) -> [u64; 3] {
        let [groups, chassis, blades, _] = self.counts();
        let green = self.hosts();
        let black = green + groups * chassis * pair_count(blades);
        [green, black, black + groups * pair_count(chassis) * blades]
    }

    fn green(&self, wiring: &Wiring, from: Router, blade: u64) -> LinkId {
        let [_, chassis, blades, _] = self.counts();
        let enclosure = from.group * chassis + from.chassis;
        let cable =
            self.first_cables()[0] + enclosure * pair_count(blades) + pair_index(from.blade, blade, blades);
        cable_towards(wiring, cable, from.blade < blade)
    }

    fn black(&self, wiring: &Wiring, from: Router, chassis: u64) -> LinkId {
        let [_, per_group, blades, _] = self.counts();
        let bundle = from.group * pair_count(per_group) + pair_index(from.chassis, chassis, per_group);
        let cable = self.first_cables()[1] + bundle * blades + from.blade;
        cable_towards(wiring, cable, from.chassis < chassis)
    }

    fn blue(&self, wiring: &Wiring, from: u64, group: u64) -> LinkId {
        let cable = self.first_cables()[2] + pair_index(from, group, self.counts()[0]);
        cable_towards(wiring, cable, from < group)
    }

    /// Appends the hops to another group: green to the blade of the router that faces it, black to the chassis of that router, and the
    /// blue cable. Returns the router reached.
    fn change_group(&self, wiring: &Wiring, from: Router, group: u64, out: &mut Vec<LinkId>) -> Router {
        let mut current = from;
        let facing = self.facing(from.group, group);
        if current.blade != facing.blade {
            wiring.push_limiter(self.station(current), out);
            out.push(self.green(wiring, current, facing.blade));
            current.blade = facing.blade;
        }
        if current.chassis != facing.chassis {
            wiring.push_limiter(self.station(current), out);
            out.push(self.black(wiring, current, facing.chassis));
        }
        out.push(self.blue(wiring, from.group, group));
        wiring.push_limiter(self.station(facing), out);
        self.facing(group, from.group)
    }

    /// Appends the hops to a router of the same group: green to its blade, then black to its chassis.
    ///
    /// SimGrid (DragonflyZone.cpp) continues from chassis 0 after the green hop, regardless of the chassis of that hop. So
    /// a route between two routers of one chassis other than 0 has a green and a black hop, and on routes to chassis 0 the
    /// black hop is missing. The rule [`RoutingRule::Simgrid`] reproduces both on purpose, in networks that SimGrid has.
    fn change_router(&self, wiring: &Wiring, from: Router, to: Router, out: &mut Vec<LinkId>) {
        let mut current = from;
        if current.blade != to.blade {
            wiring.push_limiter(self.station(current), out);
            out.push(self.green(wiring, current, to.blade));
            current = match wiring.rule {
                RoutingRule::Simgrid | RoutingRule::Random if self.shape.is_in_simgrid() => {
                    Router { chassis: 0, ..to }
                }
                _ => Router { blade: to.blade, ..current },
            };
        }
        if current.chassis != to.chassis {
            wiring.push_limiter(self.station(current), out);
            out.push(self.black(wiring, current, to.chassis));
        }
    }

    /// Returns the routers at the ends of each green, black and blue cable, in the order of their numbers.
    fn router_ends(&self) -> Vec<(Router, Router)> {
        let [groups, chassis, blades, _] = self.counts();
        let mut ends = Vec::new();
        for group in 0..groups {
            for chassis in 0..chassis {
                let router = |blade| Router { group, chassis, blade };
                ends.extend(pair_list(blades).map(|(low, high)| (router(low), router(high))));
            }
        }
        for group in 0..groups {
            for (low, high) in pair_list(chassis) {
                let router = |chassis, blade| Router { group, chassis, blade };
                ends.extend((0..blades).map(|blade| (router(low, blade), router(high, blade))));
            }
        }
        ends.extend(pair_list(groups).map(|(low, high)| (self.facing(low, high), self.facing(high, low))));
        ends
    }

    fn first_host(&self, router: Router) -> u32 {
        (self.router_number(router) * self.counts()[3]) as u32
    }

    fn add_coloured_cables(&self, next: &mut impl FnMut(String, u32)) {
        let [groups, chassis, blades, _] = self.counts();
        for enclosure in 0..groups * chassis {
            for (low, high) in pair_list(blades) {
                let place = enclosure % chassis;
                let name = format!("green_link_in_chassis_{place}_between_routers_{low}_and_{high}");
                next(name, self.shape.green);
            }
        }
        for group in 0..groups {
            for (low, high) in pair_list(chassis) {
                for blade in 0..blades {
                    let ends = format!("between_chassis_{low}_and_{high}_blade_{blade}");
                    next(format!("black_link_in_group_{group}_{ends}"), self.shape.black);
                }
            }
        }
        for (low, high) in pair_list(groups) {
            let [from, to] =
                [(low, high), (high, low)].map(|(group, peer)| self.router_number(self.facing(group, peer)));
            let ends = format!("routers_{from}_and_{to}");
            next(format!("blue_link_between_group_{low}_and_{high}_{ends}"), self.shape.blue);
        }
    }
}

impl fmt::Display for Dragonfly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DragonflyShape { groups, blue, chassis, black, blades, green, nodes } = self.shape;
        write!(f, "dragonfly {groups},{blue};{chassis},{black};{blades},{green};{nodes}")
    }
}

impl Topology for Dragonfly {
    fn hosts(&self) -> u64 {
        self.routers() * self.counts()[3]
    }

    fn switch_numbers(&self) -> Vec<i64> {
        let last = 2 * self.hosts() as i64 - 1;
        (0..self.routers() as i64).map(|router| last - router).collect()
    }

    fn cable_count(&self) -> Option<u64> {
        let [groups, chassis, blades, _] = self.counts();
        let per_router = blades.checked_add(chassis)?.checked_add(groups)?;
        self.routers().checked_mul(per_router)?.checked_add(self.hosts())
    }

    fn cables(&self, _cluster: &str) -> Vec<Cable> {
        let mut cables = Vec::new();
        let mut next = |name: String, multiple| {
            let unique = self.first_name + cables.len() as u64;
            cables.push(Cable { name: format!("{name}_{unique}"), bandwidth_multiple: Some(multiple) });
        };
        for router in 0..self.routers() {
            for node in 0..self.shape.nodes {
                next(format!("local_link_from_router_{router}_to_node_{node}"), 1);
            }
        }
        self.add_coloured_cables(&mut next);
        cables
    }

    fn shape(&self) -> NetworkShape {
        NetworkShape::Dragonfly(self.shape)
    }

    fn cable_ends(&self) -> Vec<(u64, u64)> {
        let hosts = 0..self.hosts();
        let local = hosts.map(|host| (host, self.station(self.router_of(host as u32))));
        let colours = self.router_ends().into_iter();
        local.chain(colours.map(|(lower, upper)| (self.station(lower), self.station(upper)))).collect()
    }

    fn route(&self, wiring: &Wiring, src: u32, dst: u32, out: &mut Vec<LinkId>) {
        let (first, last) = (self.router_of(src), self.router_of(dst));
        wiring.push_limiter(src.into(), out);
        out.push(wiring.up(src.into()));
        let mut current = first;
        if first.group != last.group {
            current = self.change_group(wiring, current, last.group, out);
        }
        if first != last {
            self.change_router(wiring, current, last, out);
        }
        wiring.push_limiter(self.station(last), out);
        out.push(wiring.down(dst.into()));
        wiring.push_limiter(dst.into(), out);
    }

    /// The host is at the router by which the third group is entered.
    fn third_host(&self, src: u32, dst: u32, number: u64) -> Option<u32> {
        let [from, to] = [src, dst].map(|host| self.router_of(host).group);
        let third = third_number(self.counts()[0], (from, to), number)?;
        Some(self.first_host(self.facing(third, from)))
    }

    fn cable_hosts(&self) -> Vec<u32> {
        let colours = self.router_ends();
        let lower = colours.iter().map(|&(lower, _)| self.first_host(lower));
        (0..self.hosts() as u32).chain(lower).collect()
    }

    fn switch_hosts(&self) -> Vec<u32> {
        (0..self.routers()).map(|router| (router * self.counts()[3]) as u32).collect()
    }

    /// Suggests the groups.
    fn blocks(&self, wanted: Option<u32>) -> Vec<u32> {
        let [_, chassis, blades, nodes] = self.counts();
        let units = [1, nodes, nodes * blades, nodes * blades * chassis];
        contiguous_blocks(self.hosts(), wanted.unwrap_or(self.shape.groups), &units)
    }

    fn closest_pairs(&self) -> Vec<(u32, u32)> {
        let joined = self.router_ends().into_iter();
        let joined = joined.map(|(lower, upper)| (self.first_host(lower), self.first_host(upper)));
        consecutive_pairs(self.hosts()).chain(joined).collect()
    }

    /// Counts the blue cables between two halves of an even number of groups.
    fn bisection(&self) -> Option<f64> {
        let half = f64::from(self.shape.groups / 2);
        self.shape.groups.is_multiple_of(2).then_some(half * half * f64::from(self.shape.blue))
    }
}

fn cable_towards(wiring: &Wiring, cable: u64, up: bool) -> LinkId {
    if up { wiring.up(cable) } else { wiring.down(cable) }
}

/// Returns the number of unordered pairs of different numbers below `count`.
fn pair_count(count: u64) -> u64 {
    count * count.saturating_sub(1) / 2
}

/// Lists the pairs of different numbers below `count`, the smaller first, in lexicographic order.
fn pair_list(count: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..count).flat_map(move |low| (low + 1..count).map(move |high| (low, high)))
}

/// Returns the position of a pair in [`pair_list`].
fn pair_index(one: u64, other: u64, count: u64) -> u64 {
    let (low, high) = (one.min(other), one.max(other));
    low * (2 * count - low - 1) / 2 + high - low - 1
}
