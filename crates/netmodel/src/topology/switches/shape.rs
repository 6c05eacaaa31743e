//! Sizes of networks of switches, and where their hosts are.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::topology::checked_product;

/// Largest number of switches with cables to others: the distances between these are in memory.
const MAX_SWITCHES: u64 = 8192;

/// Largest number of servers with a switch of their own.
const MAX_SERVERS: u64 = 1 << 20;

/// Largest number of cables between switches.
const MAX_CABLES: u64 = 1 << 22;

/// The sizes of a network of switches with shortest routes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "design", rename_all = "snake_case")]
pub enum SwitchShape {
    /// A grid of switches in which every two that differ in one coordinate are joined (Ahn et al., "HyperX: Topology, Routing, and
    /// Packaging of Efficient Large-Scale Networks", SC 2009).
    #[serde(rename = "hyperx")]
    HyperX {
        /// Number of switches along each dimension; the first coordinate changes fastest.
        dims: Vec<u32>,
        /// Parallel cables between two switches.
        cables: u32,
        /// Hosts of a switch.
        nodes: u32,
    },
    /// `2 q^2` switches with `(3 q - d) / 2` neighbours each, for a power `q = 4 w + d` of a prime, `d` one of -1, 0 and 1 (Besta and
    /// Hoefler, "Slim Fly: A Cost Effective Low-Diameter Network Topology", SC 2014).
    SlimFly {
        /// `q`.
        order: u32,
        /// Hosts of a switch.
        nodes: u32,
    },
    /// `q^2 + q + 1` switches with `q + 1` neighbours each, `q + 1` of them with one fewer, for a power `q` of a prime (Lakhotia et al.,
    /// "PolarFly: A Cost-Effective and Flexible Low-Diameter Topology", SC 2022).
    #[serde(rename = "polarfly")]
    PolarFly {
        /// `q`.
        order: u32,
        /// Hosts of a switch.
        nodes: u32,
    },
    /// Switches that are joined at random (Singla et al., "Jellyfish: Networking Data Centers Randomly", NSDI 2012).
    Jellyfish {
        /// Number of switches.
        switches: u32,
        /// Neighbours of a switch.
        degree: u32,
        /// Hosts of a switch.
        nodes: u32,
        /// Seed of the random numbers.
        seed: u64,
    },
    /// Groups of two levels, joined by their upper one (Shpiner et al., "Dragonfly+: Low Cost Topology for Scaling Datacenters",
    /// HiPINEB 2017).
    DragonflyPlus {
        /// Number of groups.
        groups: u32,
        /// Lower switches of a group, each joined with all of its upper ones.
        leaves: u32,
        /// Upper switches of a group.
        spines: u32,
        /// Cables between every two groups.
        cables: u32,
        /// Hosts of a leaf.
        nodes: u32,
    },
    /// Servers whose hosts, accelerators with a network card each, are joined by a switch inside; host `i` of each server of a unit is on
    /// leaf `i` of the unit, its rail, and all leaves are joined by spines (Wang et al., "Rail-only: A Low-Cost High-Performance Network
    /// for Training LLMs with Trillion Parameters", HOTI 2024, describe both).
    RailOptimized {
        /// Units of servers with leaves of their own.
        units: u32,
        /// Servers of a unit.
        servers: u32,
        /// Hosts of a server, and leaves of a unit.
        rails: u32,
        /// Switches above the leaves.
        spines: u32,
        /// Cables between a leaf and a spine.
        cables: u32,
        /// Bandwidth of the cables inside a server, in multiples of the cluster's.
        local: u32,
    },
}

impl SwitchShape {
    /// Returns the number of hosts, or `None` if it exceeds 64 bits.
    pub(crate) fn hosts(&self) -> Option<u64> {
        match *self {
            Self::RailOptimized { units, servers, rails, .. } => checked_product([units, servers, rails]),
            Self::DragonflyPlus { groups, leaves, nodes, .. } => checked_product([groups, leaves, nodes]),
            Self::HyperX { nodes, .. }
            | Self::SlimFly { nodes, .. }
            | Self::PolarFly { nodes, .. }
            | Self::Jellyfish { nodes, .. } => self.sizes()?[0].checked_mul(nodes.into()),
        }
    }

    /// Returns the numbers of switches and of the cables between them, or `None` if one exceeds 64 bits.
    fn sizes(&self) -> Option<[u64; 2]> {
        let product = |factors: &[u32]| checked_product(factors.iter().copied());
        let sum = |one: Option<u64>, other: Option<u64>| one?.checked_add(other?);
        let sizes = match *self {
            Self::HyperX { ref dims, cables, .. } => {
                let switches = product(dims);
                let neighbours = dims.iter().map(|&size| u64::from(size.saturating_sub(1))).sum::<u64>();
                let ends = switches?.checked_mul(neighbours)?.checked_mul(cables.into())?;
                [switches, Some(ends / 2)]
            }
            Self::SlimFly { order, .. } => {
                let switches = product(&[2, order, order]);
                let neighbours = (u64::from(order) * 3).div_ceil(2);
                [switches, Some(switches?.checked_mul(neighbours)? / 2)]
            }
            Self::PolarFly { order, .. } => {
                let switches = product(&[order, order])?.checked_add(u64::from(order) + 1)?;
                [Some(switches), Some(switches.checked_mul(u64::from(order) + 1)? / 2)]
            }
            Self::Jellyfish { switches, degree, .. } => {
                [Some(switches.into()), Some(product(&[switches, degree])? / 2)]
            }
            Self::DragonflyPlus { groups, leaves, spines, cables, .. } => {
                let between = product(&[groups, groups.saturating_sub(1)])? / 2;
                let between = between.checked_mul(cables.into());
                let inside = product(&[groups, leaves, spines]);
                [sum(product(&[groups, leaves]), product(&[groups, spines])), sum(inside, between)]
            }
            Self::RailOptimized { units, servers, rails, spines, cables, .. } => {
                let below = sum(product(&[units, servers]), product(&[units, rails]));
                [
                    sum(below, Some(spines.into())),
                    product(&[units, rails, spines])?.checked_mul(cables.into()),
                ]
            }
        };
        let [switches, cables] = sizes;
        Some([switches?, cables?])
    }

    /// Returns the number of switches, or `None` if a size is zero or too large.
    pub(super) fn checked_switches(&self) -> Option<u32> {
        let has_all = match *self {
            Self::HyperX { ref dims, cables, nodes } => {
                !dims.is_empty() && dims.len() < usize::from(u8::MAX) && cables > 0 && nodes > 0
            }
            Self::SlimFly { order, nodes } | Self::PolarFly { order, nodes } => order > 1 && nodes > 0,
            Self::Jellyfish { switches, degree, nodes, .. } => switches > degree && degree > 2 && nodes > 0,
            Self::DragonflyPlus { groups, leaves, spines, cables, nodes } => {
                ![groups, leaves, spines, cables, nodes].contains(&0)
            }
            Self::RailOptimized { units, servers, rails, spines, cables, local } => {
                ![units, servers, rails, spines, cables, local].contains(&0)
            }
        };
        let [switches, cables] = self.sizes().filter(|_| has_all)?;
        let alone = self.alone().filter(|alone| *alone <= MAX_SERVERS)?;
        (1..=MAX_SWITCHES).contains(&(switches - alone)).then_some(())?;
        (cables <= MAX_CABLES && self.hosts().is_some()).then_some(switches as u32)
    }

    /// Returns the number of switches without cables to others, the first ones; `None` if it exceeds 64 bits.
    pub(super) fn alone(&self) -> Option<u64> {
        match *self {
            Self::RailOptimized { units, servers, .. } => checked_product([units, servers]),
            _ => Some(0),
        }
    }

    /// Returns what the sizes must be, for messages.
    pub(crate) fn expected(&self) -> &'static str {
        match self {
            Self::HyperX { .. } => {
                "one dimension or more, no zero, at most 8192 switches and 4194304 cables between them"
            }
            Self::SlimFly { .. } => {
                "a power of a prime from 3 to 64 as order, and one host of a switch or more"
            }
            Self::PolarFly { .. } => {
                "a power of a prime from 2 to 89 as order, and one host of a switch or more"
            }
            Self::Jellyfish { .. } => {
                "a degree from 3 to one below the number of switches, of which at most 8192, and one host of a switch or more"
            }
            Self::DragonflyPlus { .. } => "no zero, at most 8192 switches and 4194304 cables between them",
            Self::RailOptimized { .. } => {
                "no zero, at most 1048576 servers, 8192 leaves and spines, and 4194304 cables between these"
            }
        }
    }

    /// Returns the number of cables of a host.
    pub(super) fn host_ports(&self) -> usize {
        if matches!(self, Self::RailOptimized { .. }) { 2 } else { 1 }
    }

    /// Returns the bandwidth of the cable of a host at this place, in multiples of the cluster's.
    pub(super) fn multiple_of_host_cable(&self, place: usize) -> u32 {
        match *self {
            Self::RailOptimized { local, .. } if place == 0 => local,
            _ => 1,
        }
    }

    /// Returns the number of hosts of the switch with the first cables of hosts.
    fn nodes(&self) -> u32 {
        match *self {
            Self::HyperX { nodes, .. }
            | Self::SlimFly { nodes, .. }
            | Self::PolarFly { nodes, .. }
            | Self::Jellyfish { nodes, .. }
            | Self::DragonflyPlus { nodes, .. } => nodes,
            Self::RailOptimized { rails, .. } => rails,
        }
    }

    /// Returns the difference of the numbers of two successive hosts of a switch to which switches lead.
    pub(super) fn host_stride(&self) -> u32 {
        match *self {
            Self::RailOptimized { rails, .. } => rails,
            _ => 1,
        }
    }

    /// Lists the switches of a host, in the order of its cables.
    pub(super) fn switches_of(&self, host: u32) -> impl Iterator<Item = u32> + use<> {
        let leaf = match *self {
            Self::RailOptimized { units, servers, rails, .. } => {
                Some(units * servers + host / (servers * rails) * rails + host % rails)
            }
            _ => None,
        };
        std::iter::once(host / self.nodes()).chain(leaf)
    }

    /// Lists the hosts of a switch.
    pub(super) fn hosts_of(&self, switch: u32) -> impl Iterator<Item = u32> + use<> {
        let [first, stride, count] = match *self {
            Self::RailOptimized { units, servers, rails, .. } if switch >= units * servers => {
                let leaf = switch - units * servers;
                let first = leaf / rails * servers * rails + leaf % rails;
                [first, rails, if leaf < units * rails { servers } else { 0 }]
            }
            Self::DragonflyPlus { groups, leaves, .. } if switch >= groups * leaves => [0, 1, 0],
            _ => [switch * self.nodes(), 1, self.nodes()],
        };
        (0..count).map(move |place| first + place * stride)
    }

    /// Returns the numbers of hosts of parts of the network that lie in each other, the smallest first.
    pub(crate) fn units(&self) -> Vec<u64> {
        let nodes = u64::from(self.nodes());
        let group = match *self {
            Self::DragonflyPlus { leaves, .. } => nodes.checked_mul(leaves.into()),
            Self::RailOptimized { servers, .. } => nodes.checked_mul(servers.into()),
            Self::HyperX { .. } | Self::SlimFly { .. } | Self::PolarFly { .. } | Self::Jellyfish { .. } => {
                None
            }
        };
        [1, nodes].into_iter().chain(group).collect()
    }

    /// Returns the names of the switches, in the order of their stations.
    pub(crate) fn switch_names(&self) -> Vec<String> {
        let switches = self.sizes().map_or(0, |[switches, _]| switches as u32);
        let name = |switch: u32| match *self {
            Self::DragonflyPlus { groups, leaves, spines, .. } => match switch.checked_sub(groups * leaves) {
                None => format!("leaf {}.{}", switch / leaves, switch % leaves),
                Some(spine) => format!("spine {}.{}", spine / spines, spine % spines),
            },
            Self::RailOptimized { units, servers, rails, .. } => match switch.checked_sub(units * servers) {
                None => format!("server {switch}"),
                Some(leaf) if leaf < units * rails => format!("leaf {}.{}", leaf / rails, leaf % rails),
                Some(above) => format!("spine {}", above - units * rails),
            },
            _ => format!("switch {switch}"),
        };
        (0..switches).map(name).collect()
    }

    /// Returns the bisection bandwidth in cables, or `None` if no closed form is known: that of a HyperX all of whose dimensions are even
    /// is between the halves of one of them (Ahn et al.).
    pub(super) fn bisection(&self) -> Option<f64> {
        let Self::HyperX { dims, cables, .. } = self else { return None };
        let switches: f64 = dims.iter().map(|&size| f64::from(size)).product();
        let across = |size: &u32| f64::from(*size) / 4.0 * switches * f64::from(*cables);
        dims.iter().all(|size| size.is_multiple_of(2)).then(|| dims.iter().map(across).reduce(f64::min))?
    }

    /// Returns whether all shortest ways go up levels of switches and down again, with at most one cable between two switches of the
    /// upper one.
    pub fn has_levels(&self) -> bool {
        matches!(self, Self::DragonflyPlus { .. } | Self::RailOptimized { .. })
    }

    /// Returns the number of hosts of a switch, of switches with hosts in a unit, and of units, in a network whose packets may go over a
    /// switch of a third unit to shun loaded links: a group of a dragonfly+, a switch of the others; `None` for rail-optimised fabrics,
    /// where all ways between two leaves are as short.
    pub fn units_of_detours(&self) -> Option<[u32; 3]> {
        match *self {
            Self::RailOptimized { .. } => None,
            Self::DragonflyPlus { groups, leaves, nodes, .. } => Some([nodes, leaves, groups]),
            _ => Some([self.nodes(), 1, self.sizes()?[0] as u32]),
        }
    }

    /// Lists hosts with a longest route among those between them.
    pub fn representative_hosts(&self) -> impl Iterator<Item = u32> + use<> {
        let step = if self.host_ports() > 1 { 1 } else { self.nodes() };
        (0..self.hosts().unwrap_or_default() as u32).step_by(step as usize)
    }
}

impl fmt::Display for SwitchShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HyperX { dims, cables, nodes } => {
                let dims: Vec<String> = dims.iter().map(u32::to_string).collect();
                write!(f, "HyperX {}, {cables} cables, {nodes} hosts per switch", dims.join("x"))
            }
            Self::SlimFly { order, nodes } => {
                write!(f, "Slim Fly of order {order}, {nodes} hosts per switch")
            }
            Self::PolarFly { order, nodes } => {
                write!(f, "PolarFly of order {order}, {nodes} hosts per switch")
            }
            Self::Jellyfish { switches, degree, nodes, seed } => {
                write!(
                    f,
                    "Jellyfish of {switches} switches of degree {degree}, seed {seed}, {nodes} hosts per switch"
                )
            }
            Self::DragonflyPlus { groups, leaves, spines, cables, nodes } => write!(
                f,
                "dragonfly+ of {groups} groups of {leaves} leaves and {spines} spines, {cables} cables, {nodes} hosts per leaf"
            ),
            Self::RailOptimized { units, servers, rails, spines, cables, local } => write!(
                f,
                "rail-optimised fabric of {units} units of {servers} servers of {rails} hosts, {spines} spines, {cables} cables, \
                 {local}-fold inside servers"
            ),
        }
    }
}
