//! Shape of a regular platform and the two ends of each cable, for drawings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::topology::Topology;
use crate::topology::dragonfly::{Dragonfly, DragonflyShape};
use crate::topology::fat_tree::{FatTree, FatTreeLevel, FatTreeOffsets};
use crate::topology::star::Star;
use crate::topology::switches::{SwitchGraph, SwitchShape};
use crate::topology::torus::Torus;
use crate::{LinkId, Platform};

/// The regular network that holds all hosts of a platform. Takes a few bytes for any size of the platform.
///
/// ```
/// use netmodel::{Layout, LinkId, NetworkShape, Platform};
///
/// let text = "topology = { kind = 'torus', dims = [4, 2], speed = '1Gf', bandwidth = '1GBps', latency = '1us' }";
/// let layout = Layout::of(&Platform::from_toml(text, "torus.toml")?).unwrap();
/// assert_eq!(layout.shape, NetworkShape::Torus { dims: vec![4, 2] });
/// let cables = layout.cables().unwrap();
/// // The second cable of host 3 leads to host 7.
/// assert_eq!((cables[7].lower, cables[7].upper), (3, 7));
/// assert_eq!((cables[7].up, cables[7].down), (LinkId::new(14), LinkId::new(15)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// The shape of the network.
    #[serde(flatten)]
    pub shape: NetworkShape,
    /// Number of the first link of the first cable.
    pub first_link: u32,
    /// Split duplex: each cable is two links, one per direction, and not one link that both directions share.
    pub split_duplex: bool,
    /// Number of accelerators of each host. These are the hosts of the platform that follow those of the network, and no stations.
    #[serde(default, skip_serializing_if = "is_none")]
    pub accelerators: u32,
}

fn is_none(accelerators: &u32) -> bool {
    *accelerators == 0
}

/// A regular network and its sizes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NetworkShape {
    /// Hosts around one switch.
    Star {
        /// The number of hosts.
        hosts: u32,
    },
    /// A grid of hosts that is closed in each dimension.
    Torus {
        /// Number of hosts along each dimension; the coordinate of the first dimension changes fastest.
        dims: Vec<u32>,
    },
    /// Levels of switches above the hosts.
    FatTree {
        /// The levels, the lowest first.
        levels: Vec<FatTreeLevel>,
    },
    /// Groups of routers.
    Dragonfly(DragonflyShape),
    /// Switches with shortest routes.
    Switches(SwitchShape),
}

/// A cable. Its ends are stations: hosts by their number, then switches, those of a fat tree level by level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CableEnds {
    /// The station at its lower end.
    pub lower: u64,
    /// The station at its upper end.
    pub upper: u64,
    /// The link from the lower to the upper end.
    pub up: LinkId,
    /// The link from the upper to the lower end, which is the same where both directions share one.
    pub down: LinkId,
}

impl Layout {
    /// Returns the layout of a platform whose hosts are all in one cluster; `None` for others.
    pub fn of(platform: &Platform) -> Option<Self> {
        let (topology, wiring) = platform.whole_cluster()?;
        let (shape, accelerators) = (topology.shape(), topology.accelerators_each());
        Some(Self { shape, first_link: wiring.cables, split_duplex: wiring.duplex, accelerators })
    }

    /// Returns the layout of a platform whose hosts are all in one cluster and have no accelerators: its stations are the nodes of its graph.
    pub fn of_bare(platform: &Platform) -> Option<Self> {
        Self::of(platform).filter(|layout| layout.accelerators == 0)
    }

    /// Returns the number of hosts: the stations below this number.
    pub fn hosts(&self) -> u64 {
        let product = |sizes: &mut dyn Iterator<Item = u32>| sizes.map(u64::from).product();
        match &self.shape {
            NetworkShape::Star { hosts } => u64::from(*hosts),
            NetworkShape::Torus { dims } => product(&mut dims.iter().copied()),
            NetworkShape::FatTree { levels } => product(&mut levels.iter().map(|level| level.children)),
            NetworkShape::Dragonfly(DragonflyShape { groups, chassis, blades, nodes, .. }) => {
                product(&mut [*groups, *chassis, *blades, *nodes].into_iter())
            }
            NetworkShape::Switches(shape) => shape.hosts().unwrap_or_default(),
        }
    }

    /// Returns the names of switches, in the order of their stations, which follow the hosts: of a fat tree leaves, spines and, with
    /// three levels or more, cores; of a dragonfly the numbers of group, chassis and blade; of other networks those of their parts.
    pub fn switches(&self) -> Vec<String> {
        match &self.shape {
            NetworkShape::Star { .. } => vec!["the switch".to_owned()],
            NetworkShape::Torus { .. } => Vec::new(),
            NetworkShape::FatTree { levels } => {
                let name = |level: usize| match level {
                    0 => "leaf".to_owned(),
                    1 => "spine".to_owned(),
                    _ if level + 1 == levels.len() => "core".to_owned(),
                    _ => format!("switch of level {}", level + 1),
                };
                let count = |level: usize| -> u64 {
                    let parents = levels[..=level].iter().map(|level| u64::from(level.parents));
                    parents.chain(levels[level + 1..].iter().map(|level| u64::from(level.children))).product()
                };
                let of_level =
                    |level| (0..count(level)).map(move |switch| format!("{} {switch}", name(level)));
                (0..levels.len()).flat_map(of_level).collect()
            }
            NetworkShape::Dragonfly(DragonflyShape { groups, chassis, blades, .. }) => {
                let blade = |router: u32| {
                    let (group, rest) = (router / (chassis * blades), router % (chassis * blades));
                    format!("router {group}.{}.{}", rest / blades, rest % blades)
                };
                (0..groups * chassis * blades).map(blade).collect()
            }
            NetworkShape::Switches(shape) => shape.switch_names(),
        }
    }

    /// Returns the names of links by what they connect, such as `leaf 3 to spine 1`; `O(cables)`.
    pub fn names_of_links(&self) -> BTreeMap<LinkId, String> {
        let (hosts, switches) = (self.hosts(), self.switches());
        let name = |station: u64| match station.checked_sub(hosts) {
            None => format!("host {station}"),
            Some(switch) => {
                switches.get(switch as usize).cloned().unwrap_or_else(|| format!("switch {switch}"))
            }
        };
        let cables = self.cables().unwrap_or_default().into_iter();
        let names = cables.flat_map(|CableEnds { lower, upper, up, down }| {
            let (lower, upper) = (name(lower), name(upper));
            if up == down {
                vec![(up, format!("{lower} and {upper}"))]
            } else {
                vec![(up, format!("{lower} to {upper}")), (down, format!("{upper} to {lower}"))]
            }
        });
        names.collect()
    }

    /// Lists the cables in the order of their links; `None` if the sizes describe no network. `O(cables)`.
    pub fn cables(&self) -> Option<Vec<CableEnds>> {
        let topology: Box<dyn Topology> = match &self.shape {
            NetworkShape::Star { hosts } => Box::new(Star::new((0..*hosts).collect())),
            NetworkShape::Torus { dims } => Box::new(Torus::try_new(dims)?),
            NetworkShape::FatTree { levels } => {
                Box::new(FatTree::try_new(levels, FatTreeOffsets::default())?)
            }
            NetworkShape::Dragonfly(shape) => Box::new(Dragonfly::try_new(*shape, 0)?),
            NetworkShape::Switches(shape) => Box::new(SwitchGraph::try_new(shape)?),
        };
        let link = |cable: u32, half: u32| {
            LinkId::new(self.first_link + if self.split_duplex { 2 * cable + half } else { cable })
        };
        let cable = |(cable, (lower, upper))| CableEnds {
            lower,
            upper,
            up: link(cable, 0),
            down: link(cable, if self.split_duplex { 1 } else { 0 }),
        };
        Some((0..).zip(topology.cable_ends()).map(cable).collect())
    }
}

/// Level of a hierarchical network, whose parts have hosts near each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkLevel {
    /// The hosts of a leaf switch, of a router of a dragonfly, of a server of a rail-optimised fabric, or of a ring in the first dimension
    /// of a torus.
    Leaf,
    /// The hosts below the switches of the second level of a fat tree, those of a group of a dragonfly or a unit of a rail-optimised
    /// fabric, or of a plane of a torus.
    Group,
}

impl Platform {
    /// Returns the number of the part of the network in which each host is: one of this level where all hosts are in one regular
    /// network, else the innermost zone.
    pub fn parts(&self, level: NetworkLevel) -> Vec<u32> {
        let hosts = self.hosts().len() as u32;
        let Some(layout) = Layout::of(self) else {
            let mut parts = vec![0; hosts as usize];
            // Inner zones follow those around them.
            for (part, zone) in (0..).zip(self.zones()) {
                zone.hosts.clone().for_each(|host| parts[host as usize] = part);
            }
            return parts;
        };
        let (network, each) = (layout.hosts() as u32, layout.accelerators);
        let sizes = match layout.shape {
            NetworkShape::Star { hosts } => vec![hosts],
            NetworkShape::Torus { dims } => dims,
            NetworkShape::FatTree { levels } => levels.iter().map(|level| level.children).collect(),
            NetworkShape::Dragonfly(shape) => vec![shape.nodes, shape.chassis * shape.blades],
            NetworkShape::Switches(shape) => {
                let ratio = |pair: &[u64]| (pair[1] / pair[0]) as u32;
                shape.units().windows(2).map(ratio).collect()
            }
        };
        let levels = match level {
            NetworkLevel::Leaf => 1,
            NetworkLevel::Group => 2,
        };
        let size: u32 = sizes.iter().take(levels).product();
        let own = (0..network).flat_map(|host| std::iter::repeat_n(host, each as usize));
        (0..network).chain(own).map(|host| host / size).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lower and upper stations of the cables, and the names of their upward links.
    fn cables(topology: &str) -> Vec<(u64, u64, String)> {
        let text =
            format!("topology = {{ {topology}, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }}");
        let platform = Platform::from_toml(&text, "test").unwrap();
        let layout = Layout::of(&platform).unwrap();
        let text = serde_json::to_string(&layout).unwrap();
        assert_eq!(serde_json::from_str::<Layout>(&text).unwrap(), layout);
        let cables = layout.cables().unwrap();
        cables.iter().map(|cable| (cable.lower, cable.upper, platform.link(cable.up).name.clone())).collect()
    }

    #[test]
    fn names_of_links_hold_the_same_ends() {
        for (lower, upper, name) in cables("kind = 'torus', dims = [3, 4, 2]") {
            assert!(name.ends_with(&format!("_link_from_{lower}_to_{upper}_UP")), "{name}: {lower} {upper}");
        }
        // 16 hosts; the names of switches count down from 31 while stations count up from 16.
        let levels = "kind = 'fat_tree', levels = [{ children = 4, parents = 2 }, { children = 4, parents = 3, cables = 2 }]";
        for (lower, upper, name) in cables(levels) {
            let number = |station: u64| if station < 16 { station } else { 47 - station };
            let ends = format!("link_from_{}_{}_", number(lower), number(upper));
            assert!(name.starts_with(&ends), "{name}: {lower} {upper}");
        }
        let shape = "groups = 3, blue = 1, chassis = 2, black = 1, blades = 4, green = 1, nodes = 2";
        for (lower, upper, name) in cables(&format!("kind = 'dragonfly', {shape}")) {
            let (low, high) = (lower.wrapping_sub(48), upper - 48);
            let (group, chassis) = (low / 8, low / 4 % 2);
            let expected = match name.split('_').next().unwrap() {
                "local" => format!("local_link_from_router_{high}_to_node_{}", lower % 2),
                "green" => {
                    format!("green_link_in_chassis_{chassis}_between_routers_{}_and_{}", low % 4, high % 4)
                }
                "black" => format!("black_link_in_group_{group}_between_chassis_0_and_1_blade_{}", high % 4),
                _ => format!("blue_link_between_group_{group}_and_{}_routers_{low}_and_{high}", high / 8),
            };
            assert!(name.starts_with(&expected), "{name}: {lower} {upper}, {expected}");
        }
        assert_eq!(cables("kind = 'cluster', hosts = 3")[2].0, 2);
    }

    #[test]
    fn links_are_named_by_what_they_connect() {
        let names = |topology: &str, duplex: &str| {
            let text = format!(
                "topology = {{ {topology}, speed = '1Gf', bandwidth = '1GBps', latency = '1us'{duplex} }}"
            );
            let platform = Platform::from_toml(&text, "test").unwrap();
            let layout = Layout::of(&platform).unwrap();
            let highest = layout.cables().unwrap().iter().map(|cable| cable.upper).max().unwrap();
            let is_torus = matches!(layout.shape, NetworkShape::Torus { .. });
            assert_eq!(layout.hosts(), platform.hosts().len() as u64);
            let stations = layout.hosts() + layout.switches().len() as u64;
            assert!(is_torus || highest + 1 == stations, "{topology}: {highest} {stations}");
            layout.names_of_links().into_values().collect::<Vec<_>>()
        };
        let tree =
            "kind = 'fat_tree', levels = [{ children = 4, parents = 1 }, { children = 4, parents = 3 }]";
        let tree = names(tree, "");
        for name in ["host 5 to leaf 1", "leaf 3 to spine 2", "spine 0 to leaf 2"] {
            assert!(tree.iter().any(|known| known == name), "{name}: {tree:?}");
        }
        let shape = "kind = 'dragonfly', groups = 3, blue = 1, chassis = 2, black = 1, blades = 4, green = 1, nodes = 2";
        let dragonfly = names(shape, "");
        let name = "router 0.0.0 to router 0.0.1".to_owned();
        assert!(dragonfly.contains(&name), "{dragonfly:?}");
        let torus = names("kind = 'torus', dims = [3, 2]", "");
        assert!(torus.contains(&"host 0 to host 1".to_owned()), "{torus:?}");
        assert!(names("kind = 'cluster', hosts = 3", "").contains(&"host 2 to the switch".to_owned()));
    }

    #[test]
    fn parts_are_those_of_a_level() {
        let parts = |topology: &str| {
            let text =
                format!("topology = {{ {topology}, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }}");
            let platform = Platform::from_toml(&text, "test").unwrap();
            [NetworkLevel::Leaf, NetworkLevel::Group].map(|level| platform.parts(level))
        };
        let levels = "kind = 'fat_tree', levels = [{ children = 2, parents = 1 }, { children = 2, parents = 1 }, { children = 2, parents = 1 }]";
        assert_eq!(parts(levels), [[0, 0, 1, 1, 2, 2, 3, 3], [0, 0, 0, 0, 1, 1, 1, 1]]);
        let dragonfly = "kind = 'dragonfly', groups = 2, blue = 1, chassis = 1, black = 1, blades = 2, green = 1, nodes = 1";
        assert_eq!(parts(dragonfly), [[0, 1, 2, 3], [0, 0, 1, 1]]);
        assert_eq!(parts("kind = 'torus', dims = [2, 2]"), [[0, 0, 1, 1], [0, 0, 0, 0]]);
        let text = r#"<platform version="4.1"><zone id="all" routing="Full">
            <cluster id="a" prefix="a-" suffix="" radical="0-1" speed="1Gf" bw="1GBps" lat="1us" router_id="left"/>
            <cluster id="b" prefix="b-" suffix="" radical="0-0" speed="1Gf" bw="1GBps" lat="1us" router_id="right"/>
            </zone></platform>"#;
        let parts = Platform::from_xml(text, "test").unwrap().parts(NetworkLevel::Group);
        assert_eq!(parts, [1, 1, 2]);
    }

    #[test]
    fn graphs_have_no_layout() {
        let text = r#"<platform version="4.1"><zone id="z" routing="Full"><host id="a" speed="1Gf"/></zone></platform>"#;
        assert_eq!(Layout::of(&Platform::from_xml(text, "test").unwrap()), None);
        let shape = NetworkShape::Torus { dims: Vec::new() };
        assert_eq!(Layout { shape, first_link: 0, split_duplex: true, accelerators: 0 }.cables(), None);
    }
}
