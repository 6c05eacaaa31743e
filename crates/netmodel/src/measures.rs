//! Size, diameter and bisection bandwidth of a platform.

use std::fmt;

use crate::{HostId, Platform, Sharing};

/// Largest number of hosts for which the diameter is computed from all pairs.
const ALL_PAIRS_LIMIT: u32 = 2048;

/// Number of source hosts on larger platforms.
const SAMPLED_SOURCES: u32 = 64;

/// Size, diameter and bisection bandwidth of a platform.
#[derive(Clone, Debug, PartialEq)]
pub struct Measures {
    /// Number of hosts.
    pub hosts: usize,
    /// Number of links.
    pub links: usize,
    /// The longest routes.
    pub diameter: Diameter,
    /// Bisection bandwidth, from one half of the hosts to the other [B/s]. `None` if no cluster holds all hosts, for listed
    /// routes, and if no closed form is known for the parameters of the topology:
    ///
    /// | topology | with `b` = bandwidth of a cable |
    /// |---|---|
    /// | flat cluster of `n` | `floor(n / 2) * b`, at most the bandwidth of a shared backbone, or `floor(n / 2)` times that of a fat pipe |
    /// | torus of `n`, largest dimension `d` even | `2 n / d * b` (`n / 2 * b` for `d = 2`) |
    /// | fat tree, top switches with an even number of children | half of the cables of the level that has the fewest, times `b` |
    /// | HyperX of `n` switches with even dimensions, the smallest `d` | `n d / 4 * cables * b` |
    /// | dragonfly of `g` groups, `g` even | `g^2 / 4 * blue * b`: the cables between halves of the groups |
    ///
    /// Limiters are not counted.
    pub bisection: Option<f64>,
}

/// The longest routes between different hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Diameter {
    /// Number of links of the longest route.
    pub links: usize,
    /// Latency of the slowest route \[s\].
    pub latency: f64,
    /// Number of pairs of different hosts without a route.
    pub missing: u64,
    /// Set of routes that were followed.
    pub coverage: Coverage,
}

/// Set of routes that were followed to find the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// All pairs: the figures are exact.
    AllPairs,
    /// Routes from some hosts, evenly spaced: the figures are lower bounds.
    Sources {
        /// Number of source hosts.
        sources: u32,
    },
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllPairs => f.write_str("all pairs of hosts"),
            Self::Sources { sources } => {
                write!(f, "routes from {sources} evenly spaced hosts, a lower bound")
            }
        }
    }
}

impl Measures {
    /// Measures a platform by the routes between all pairs of up to 2048 hosts, or from 64 evenly spaced hosts of
    /// larger platforms.
    pub fn of(platform: &Platform) -> Self {
        Self {
            hosts: platform.hosts().len(),
            links: platform.links().len(),
            diameter: diameter(platform),
            bisection: bisection(platform),
        }
    }
}

fn diameter(platform: &Platform) -> Diameter {
    let hosts = platform.hosts().len() as u32;
    let (sources, coverage) = if hosts <= ALL_PAIRS_LIMIT {
        (hosts, Coverage::AllPairs)
    } else {
        (SAMPLED_SOURCES, Coverage::Sources { sources: SAMPLED_SOURCES })
    };
    let mut diameter = Diameter { links: 0, latency: 0.0, missing: 0, coverage };
    let mut route = Vec::new();
    for sample in 0..sources {
        let src = (u64::from(sample) * u64::from(hosts) / u64::from(sources)) as u32;
        for dst in (0..hosts).filter(|&dst| dst != src) {
            let found = platform.route(HostId::new(src), HostId::new(dst), &mut route);
            diameter.missing += u64::from(found.is_err());
            diameter.links = diameter.links.max(route.len());
            let latency = route.iter().map(|&link| platform.link(link).latency).sum();
            diameter.latency = diameter.latency.max(latency);
        }
    }
    diameter
}

fn bisection(platform: &Platform) -> Option<f64> {
    let (topology, wiring) = platform.whole_cluster()?;
    let cable = platform.links().get(wiring.cables as usize)?.bandwidth;
    let cut = topology.bisection()? * cable;
    match wiring.backbone.map(|backbone| platform.link(backbone)) {
        Some(backbone) if backbone.sharing == Sharing::Shared => Some(cut.min(backbone.bandwidth)),
        Some(backbone) => Some(cut.min(topology.bisection()? * backbone.bandwidth)),
        None => Some(cut),
    }
}
