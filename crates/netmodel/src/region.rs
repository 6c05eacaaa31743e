//! Regions: parts of a platform that solve the sharing of their own links.
//!
//! A region owns hosts and links. A link belongs to the region of one host, by a fixed rule of the topology:
//!
//! | link | host |
//! |---|---|
//! | cable of a fat tree | the first below its lower end: the cables up to the top belong to the subtree |
//! | cable of a torus | the one at its lower coordinate |
//! | green, black or blue cable of a dragonfly | the first of its first router: blue ones belong to the group of the lower number |
//! | cable of a flat cluster, loopback, limiter of a host | its own |
//! | limiter of a switch | the first below it |
//! | listed link | of the routes between the first hosts of the zones and all others, the first that crosses it decides: its source for the first half of the route, its destination for the second |
//! | backbone, and any link that no rule covers | the first of the cluster, or of the platform |

mod file;
mod lookahead;
mod ownership;

use std::fmt;

use thiserror::Error;

use crate::platform::routing::Routing;
use crate::{HostId, LinkId, Platform};

/// Identifier of a region; regions are numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct RegionId(u32);

impl RegionId {
    /// Makes the identifier with this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for RegionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Assignment of each host and each link of a platform to a region.
///
/// ```
/// use netmodel::{HostId, Platform, Regions};
/// let text = "[topology]\nkind = \"fat_tree\"\nspeed = \"1Gf\"\nbandwidth = \"1GBps\"\nlatency = \"1us\"\n\
///             levels = [{ children = 4, parents = 1 }, { children = 2, parents = 2 }]\n";
/// let platform = Platform::from_toml(text, "tree.toml")?;
/// let regions = Regions::natural(&platform);
/// assert_eq!(regions.count(), 2);
/// assert_eq!(regions.of_host(HostId::new(3)).get(), 0);
/// assert_eq!(regions.of_host(HostId::new(4)).get(), 1);
/// # Ok::<(), netmodel::PlatformError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Regions {
    count: u32,
    host_slots: Vec<RegionSlot>,
    link_slots: Vec<RegionSlot>,
}

/// Region of a host or link, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegionSlot {
    pub(crate) region: RegionId,
    /// Number among the hosts or the links of the region.
    pub(crate) slot: u32,
}

/// Error in a file that assigns hosts to regions.
#[derive(Debug, Error)]
pub enum RegionError {
    /// The file cannot be read.
    #[error("the regions {origin}: {source}")]
    Read {
        /// The file.
        origin: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A line is not a host and its region.
    #[error("{origin}:{line}: found {found:?}, expected the name of a host and the name of its region")]
    Line {
        /// The file.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// Its text.
        found: String,
    },
    /// A name is not that of a host.
    #[error("{origin}:{line}: the platform has no host {host:?}")]
    UnknownHost {
        /// The file.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// The name.
        host: String,
    },
    /// A host is listed twice.
    #[error("{origin}:{line}: host {host:?} is listed before")]
    Repeated {
        /// The file.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// The host.
        host: String,
    },
    /// A host is not listed.
    #[error("{origin}: host {host:?} is missing; expected a line for each of the {hosts} hosts")]
    Missing {
        /// The file.
        origin: String,
        /// The host.
        host: String,
        /// The hosts of the platform.
        hosts: usize,
    },
}

impl Regions {
    /// Makes one region of the whole platform.
    pub fn whole(platform: &Platform) -> Self {
        Self::of_blocks(platform, &vec![0; platform.hosts().len()])
    }

    /// Takes the natural parts of a platform: the subtrees below the children of a fat tree's top, the groups of a
    /// dragonfly, the zones of a platform of several. Tori and flat clusters, which have none, are cut into blocks of
    /// about 64 hosts, 2 to 64 blocks.
    pub fn natural(platform: &Platform) -> Self {
        Self::of_blocks(platform, &blocks(platform, None))
    }

    /// Divides a platform into about `wanted` regions of neighbouring hosts: at most as many as there are hosts, in a
    /// torus the next product of powers of two that its sides allow.
    pub fn with_count(platform: &Platform, wanted: u32) -> Self {
        Self::of_blocks(platform, &blocks(platform, Some(wanted)))
    }

    /// Makes the regions from the region of each host; regions are numbered from 0 without a gap.
    fn of_blocks(platform: &Platform, blocks: &[u32]) -> Self {
        let count = blocks.iter().max().map_or(1, |last| last + 1);
        let owners = ownership::link_owners(platform, blocks);
        let of_host = number_slots(count, blocks.iter().copied());
        let of_link = number_slots(count, owners.iter().map(|host| blocks[host.index()]));
        Self { count, host_slots: of_host, link_slots: of_link }
    }

    /// Returns the number of regions.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the region of a host.
    pub fn of_host(&self, host: HostId) -> RegionId {
        self.host_slots[host.index()].region
    }

    /// Returns the region of a link.
    pub fn of_link(&self, link: LinkId) -> RegionId {
        self.link_slots[link.index()].region
    }

    pub(crate) fn host_slot(&self, host: HostId) -> RegionSlot {
        self.host_slots[host.index()]
    }

    pub(crate) fn link_slot(&self, link: LinkId) -> RegionSlot {
        self.link_slots[link.index()]
    }

    /// Lists the hosts of each region, in the order of their slots.
    pub(crate) fn hosts_by_region(&self) -> Vec<Vec<HostId>> {
        let mut hosts = vec![Vec::new(); self.count as usize];
        for (number, member) in (0..).zip(&self.host_slots) {
            hosts[member.region.index()].push(HostId::new(number));
        }
        hosts
    }

    /// Lists the links of each region, in the order of their slots.
    pub(crate) fn links_by_region(&self) -> Vec<Vec<LinkId>> {
        let mut links = vec![Vec::new(); self.count as usize];
        for (number, member) in (0..).zip(&self.link_slots) {
            links[member.region.index()].push(LinkId::new(number));
        }
        links
    }
}

/// Numbers the hosts or links of each region in their order.
fn number_slots(count: u32, regions: impl Iterator<Item = u32>) -> Vec<RegionSlot> {
    let mut sizes = vec![0; count as usize];
    let member = |region: u32| {
        let size: &mut u32 = &mut sizes[region as usize];
        *size += 1;
        RegionSlot { region: RegionId(region), slot: *size - 1 }
    };
    regions.map(member).collect()
}

/// Returns the block of each host of a platform.
fn blocks(platform: &Platform, wanted: Option<u32>) -> Vec<u32> {
    let hosts = platform.hosts().len();
    let zones = || platform.zones().iter().filter(|zone| !zone.holds_zones() && !zone.hosts.is_empty());
    let mut leaves = zones();
    if let (Some(zone), None) = (leaves.next(), leaves.next())
        && let Routing::Cluster(topology, _) = &zone.routing
    {
        return topology.blocks(wanted);
    }
    let count = zones().count() as u64;
    let wanted = wanted.map_or(count, u64::from).clamp(1, hosts.max(1) as u64);
    let mut blocks = vec![0; hosts];
    for (number, zone) in (0..).zip(zones()) {
        for host in zone.hosts.clone() {
            let in_zones = number * wanted / count;
            let in_hosts = u64::from(host) * wanted / hosts as u64;
            blocks[host as usize] = if wanted <= count { in_zones } else { in_hosts } as u32;
        }
    }
    blocks
}
