//! The shapes of clusters: how many hosts and cables each has, and the way from one host to another.
//!
//! A route is computed from coordinates in time proportional to its length; nothing is stored per pair of hosts. To
//! add a topology, imitate [`torus`].

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::LinkId;
use crate::layout::NetworkShape;

pub(crate) mod dragonfly;
pub(crate) mod fat_tree;
pub(crate) mod star;
pub(crate) mod torus;

/// A cable of a topology, before it becomes one link or, in split duplex, two.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cable {
    /// The name of the link.
    pub(crate) name: String,
    /// Its bandwidth in multiples of the cluster's.
    pub(crate) multiple: u32,
}

/// The shape of a cluster. Hosts and switches are stations: hosts are numbered from 0, switches follow them.
pub(crate) trait Topology: fmt::Debug + fmt::Display + Send + Sync {
    /// Returns the number of hosts.
    fn hosts(&self) -> u64;

    /// Returns the numbers that the names of the switches hold, in the order of the stations.
    fn switch_numbers(&self) -> Vec<i64>;

    /// Returns an upper bound of the number of cables, or `None` where it leaves 64 bits.
    fn cable_count(&self) -> Option<u64>;

    /// Lists the cables of the cluster of this name, in the order in which `route` numbers them.
    fn cables(&self, cluster: &str) -> Vec<Cable>;

    /// Returns the shape and its sizes.
    fn shape(&self) -> NetworkShape;

    /// Returns the stations at the lower and the upper end of each cable, in the order of `cables`.
    fn cable_ends(&self) -> Vec<(u64, u64)>;

    /// Appends the links from one host to another, which may be itself where there is no loopback link. In a flat
    /// cluster the number after those of the hosts is the router.
    fn route(&self, wiring: &Wiring, src: u32, dst: u32, out: &mut Vec<LinkId>);

    /// Returns a host at or below the lower end of each cable, in the order of `cables`.
    fn cable_hosts(&self) -> Vec<u32>;

    /// Returns a host at or below each switch, in the order of the stations.
    fn switch_hosts(&self) -> Vec<u32>;

    /// Divides the hosts into blocks that the shape suggests, or about so many; returns the block of each host. Blocks
    /// are numbered from 0 without a gap.
    fn blocks(&self, wanted: Option<u32>) -> Vec<u32>;

    /// Lists pairs of hosts among which, however hosts are divided into regions, is one with the fewest cables between
    /// two regions.
    fn close_pairs(&self) -> Vec<(u32, u32)>;

    /// Returns what one half of the hosts can send to the other, in cables of the cluster's bandwidth, or `None`
    /// where no closed form is known for these parameters.
    fn bisection(&self) -> Option<f64>;
}

/// Whose rule the routes of fat trees and dragonflies follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoutingRule {
    /// SimGrid's, with its peculiarities: on the way down a fat tree with parallel cables below the top, it goes on counting ports
    /// from one switch to the next (FatTreeZone.cpp); in a dragonfly, it continues from chassis 0 after a hop inside a
    /// chassis (DragonflyZone.cpp).
    #[default]
    Simgrid,
    /// The published one: every switch of a fat tree chooses its cable anew, and a hop inside a chassis of a dragonfly
    /// stays in the chassis.
    Textbook,
}

/// Where the links of a cluster begin in the platform's list.
#[derive(Debug)]
pub(crate) struct Wiring {
    /// The first link of the first cable.
    pub(crate) cables: u32,
    /// Whether a cable is two links, up and down, in this order.
    pub(crate) duplex: bool,
    /// The loopback link of host 0, followed by those of the others.
    pub(crate) loopback: Option<u32>,
    /// The limiter link of station 0, followed by those of the others.
    pub(crate) limiter: Option<u32>,
    /// Whose rule routes follow.
    pub(crate) rule: RoutingRule,
    /// The link that all messages cross.
    pub(crate) backbone: Option<LinkId>,
}

impl Wiring {
    /// Returns the link that a cable is in its upward direction.
    pub(crate) fn up(&self, cable: u64) -> LinkId {
        self.half(cable, 0)
    }

    /// Returns the link that a cable is in its downward direction.
    pub(crate) fn down(&self, cable: u64) -> LinkId {
        self.half(cable, 1)
    }

    fn half(&self, cable: u64, half: u32) -> LinkId {
        let cable = cable as u32;
        LinkId::new(self.cables + if self.duplex { 2 * cable + half } else { cable })
    }

    /// Appends the limiter of a station, if the cluster has limiters.
    pub(crate) fn limit(&self, station: u64, out: &mut Vec<LinkId>) {
        if let Some(first) = self.limiter {
            out.push(LinkId::new(first + station as u32));
        }
    }

    /// Returns the loopback link of a host, if the cluster has loopback links.
    pub(crate) fn loopback(&self, host: u32) -> Option<LinkId> {
        self.loopback.map(|first| LinkId::new(first + host))
    }
}

/// Multiplies sizes, or returns `None` where the product leaves 64 bits.
pub(crate) fn product(factors: impl IntoIterator<Item = u32>) -> Option<u64> {
    factors.into_iter().try_fold(1_u64, |product, factor| product.checked_mul(u64::from(factor)))
}

/// The number of blocks of a network that has no parts of its own, for so many hosts.
pub(crate) fn usual_blocks(hosts: u64) -> u32 {
    (hosts / 64).clamp(2, 64).min(hosts) as u32
}

/// Divides hosts into blocks of neighbours: whole units of the largest size of which there are enough.
pub(crate) fn runs(hosts: u64, wanted: u32, units: &[u64]) -> Vec<u32> {
    let wanted = u64::from(wanted).clamp(1, hosts);
    let unit = units.iter().copied().filter(|&unit| hosts / unit >= wanted).max().unwrap_or(1);
    let count = hosts / unit;
    (0..hosts).map(|host| (host / unit * wanted / count) as u32).collect()
}

/// Lists the pairs of hosts with successive numbers.
pub(crate) fn successors(hosts: u64) -> impl Iterator<Item = (u32, u32)> {
    (1..hosts as u32).map(|host| (host - 1, host))
}
