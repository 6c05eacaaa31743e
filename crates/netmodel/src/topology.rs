//! Topologies of clusters: their hosts, cables, and routes from one host to another.
//!
//! A route is computed from coordinates in time proportional to its length; nothing is stored per pair of hosts. To
//! add a topology, imitate [`torus`], or add a shape to [`switches`], where routes follow from the cables.

use std::fmt;

use pdes_core::{GOLDEN_GAMMA, mix};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::LinkId;
use crate::layout::NetworkShape;

pub(crate) mod accelerators;
pub(crate) mod dragonfly;
pub(crate) mod fat_tree;
pub(crate) mod star;
pub(crate) mod switches;
pub(crate) mod torus;

/// A cable of a topology, before it becomes one link or, in split duplex, two.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cable {
    /// Name of the link.
    pub(crate) name: String,
    /// Bandwidth in multiples of the cluster's; `None` for the cable of an accelerator, which has bandwidth and latency of its own.
    pub(crate) bandwidth_multiple: Option<u32>,
}

/// The topology of a cluster. Hosts and switches are *stations*: hosts are numbered from 0, switches follow them.
pub(crate) trait Topology: fmt::Debug + fmt::Display + Send + Sync {
    /// Returns the number of hosts.
    fn hosts(&self) -> u64;

    /// Returns the number of accelerators of each host, which are hosts, too, and follow all others.
    fn accelerators_each(&self) -> u32 {
        0
    }

    /// Returns the numbers in the names of the switches, in the order of the stations.
    fn switch_numbers(&self) -> Vec<i64>;

    /// Returns an upper bound on the number of cables, or `None` if it exceeds 64 bits.
    fn cable_count(&self) -> Option<u64>;

    /// Lists the cables of the cluster of this name, in the order in which [`Topology::route`] numbers them.
    fn cables(&self, cluster: &str) -> Vec<Cable>;

    /// Returns the shape with its sizes.
    fn shape(&self) -> NetworkShape;

    /// Returns the stations at the lower and the upper end of each cable, in the order of `cables`.
    fn cable_ends(&self) -> Vec<(u64, u64)>;

    /// Appends the links from one host to another, which may be the same if there is no loopback link. In a flat
    /// cluster the station after the hosts is the router.
    fn route(&self, wiring: &Wiring, src: u32, dst: u32, out: &mut Vec<LinkId>);

    /// Returns a host over whose switch a message between two hosts may go to shun loaded links, one of several by a number; `None` if all
    /// ways between them are as short, or there is no third group or switch.
    fn third_host(&self, _src: u32, _dst: u32, _number: u64) -> Option<u32> {
        None
    }

    /// Returns the number of shortest routes from one host to another that [`Topology::route_among`] knows: that of the routes that use no
    /// cable between switches together, and how many routes there are for each of these.
    fn shortest_routes(&self, _src: u32, _dst: u32) -> [u64; 2] {
        [1, 1]
    }

    /// Appends the links of one of the shortest routes between two hosts, by its number: 0 is the route of [`Topology::route`], and numbers
    /// that differ modulo the first of [`Topology::shortest_routes`] use no cable between switches together.
    fn route_among(&self, wiring: &Wiring, (src, dst): (u32, u32), _number: u64, out: &mut Vec<LinkId>) {
        self.route(wiring, src, dst, out);
    }

    /// Returns a host at or below the lower end of each cable, in the order of `cables`.
    fn cable_hosts(&self) -> Vec<u32>;

    /// Returns a host at or below each switch, in the order of the stations.
    fn switch_hosts(&self) -> Vec<u32>;

    /// Divides the hosts into about `wanted` blocks, or into those that the shape suggests; returns the block of each
    /// host. Blocks are numbered from 0 without a gap.
    fn blocks(&self, wanted: Option<u32>) -> Vec<u32>;

    /// Lists pairs of hosts that, for any division of the hosts into regions, include one with the fewest cables
    /// between two regions.
    fn closest_pairs(&self) -> Vec<(u32, u32)>;

    /// Returns the bisection bandwidth in cables of the cluster's bandwidth, or `None` if no closed form is known for
    /// these parameters.
    fn bisection(&self) -> Option<f64>;
}

/// Routing rule of fat trees and dragonflies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoutingRule {
    /// SimGrid's rule with its peculiarities: on the way down a fat tree with parallel cables below the top, it
    /// continues to count ports from one switch to the next (FatTreeZone.cpp); in a dragonfly, it continues from
    /// chassis 0 after a hop inside a chassis (DragonflyZone.cpp).
    #[default]
    Simgrid,
    /// The published rule: every switch of a fat tree chooses its cable independently, and a hop inside a chassis of a
    /// dragonfly stays in the chassis.
    Textbook,
    /// Fat trees: each pair of hosts has a random path among the shortest ones, always the same, as where switches hash addresses
    /// (ECMP; Greenberg and Leiserson, "Randomized Routing on Fat-Trees", 1985). Dragonflies: as with SimGrid's rule.
    ///
    /// Networks of switches with shortest routes: the cable among several is chosen by the pair of hosts, not by the destination.
    Random,
}

impl RoutingRule {
    /// Returns the random number of a pair of hosts at a level, under the rule that needs it.
    pub(crate) fn random_choice(self, src: u64, dst: u64, level: usize) -> Option<u64> {
        let word = (src << 32 ^ dst).wrapping_add((level as u64 + 1).wrapping_mul(GOLDEN_GAMMA));
        (self == Self::Random).then_some(mix(word))
    }
}

/// Numbers of the links of a cluster in the platform's list.
#[derive(Debug)]
pub(crate) struct Wiring {
    /// First link of the first cable.
    pub(crate) cables: u32,
    /// Split duplex: a cable is two links, up and down, in this order.
    pub(crate) duplex: bool,
    /// Loopback link of host 0, followed by those of the other hosts.
    pub(crate) loopback: Option<u32>,
    /// Limiter link of station 0, followed by those of the other stations.
    pub(crate) limiter: Option<u32>,
    /// Routing rule.
    pub(crate) rule: RoutingRule,
    /// Link that all messages cross.
    pub(crate) backbone: Option<LinkId>,
}

impl Wiring {
    /// Returns the link of a cable in its upward direction.
    pub(crate) fn up(&self, cable: u64) -> LinkId {
        self.half_cable(cable, 0)
    }

    /// Returns the link of a cable in its downward direction.
    pub(crate) fn down(&self, cable: u64) -> LinkId {
        self.half_cable(cable, 1)
    }

    fn half_cable(&self, cable: u64, half: u32) -> LinkId {
        let cable = cable as u32;
        LinkId::new(self.cables + if self.duplex { 2 * cable + half } else { cable })
    }

    /// Returns the cable of a link that is one, or a direction of one.
    pub(crate) fn cable_of(&self, link: LinkId) -> Option<u32> {
        link.get().checked_sub(self.cables).map(|place| if self.duplex { place / 2 } else { place })
    }

    /// Appends the limiter of a station, if the cluster has limiters.
    pub(crate) fn push_limiter(&self, station: u64, out: &mut Vec<LinkId>) {
        if let Some(first) = self.limiter {
            out.push(LinkId::new(first + station as u32));
        }
    }

    /// Returns the loopback link of a host, if the cluster has loopback links.
    pub(crate) fn loopback(&self, host: u32) -> Option<LinkId> {
        self.loopback.map(|first| LinkId::new(first + host))
    }
}

/// Returns the product of sizes, or `None` if it exceeds 64 bits.
pub(crate) fn checked_product(factors: impl IntoIterator<Item = u32>) -> Option<u64> {
    factors.into_iter().try_fold(1_u64, |product, factor| product.checked_mul(u64::from(factor)))
}

/// Returns one of the numbers below `count` beside two different ones, by a number; `None` if there is none.
pub(crate) fn third_number(count: u64, (one, other): (u64, u64), number: u64) -> Option<u64> {
    let third = number % count.checked_sub(2).filter(|&left| left > 0 && one != other)?;
    let (low, high) = (one.min(other), one.max(other));
    let third = third + u64::from(third >= low);
    Some(third + u64::from(third >= high))
}

/// Returns the default number of blocks for a topology without natural parts.
pub(crate) fn default_block_count(hosts: u64) -> u32 {
    (hosts / 64).clamp(2, 64).min(hosts) as u32
}

/// Divides hosts into `wanted` blocks of neighbours: whole units of the largest size of which there are enough.
pub(crate) fn contiguous_blocks(hosts: u64, wanted: u32, units: &[u64]) -> Vec<u32> {
    let wanted = u64::from(wanted).clamp(1, hosts);
    let unit = units.iter().copied().filter(|&unit| hosts / unit >= wanted).max().unwrap_or(1);
    let count = hosts / unit;
    (0..hosts).map(|host| (host / unit * wanted / count) as u32).collect()
}

/// Lists the pairs of hosts with successive numbers.
pub(crate) fn consecutive_pairs(hosts: u64) -> impl Iterator<Item = (u32, u32)> {
    (1..hosts as u32).map(|host| (host - 1, host))
}
