//! The fat tree: levels of switches above the hosts, with several parents and parallel cables if wanted.

use std::fmt;

use super::{Cable, RoutingRule, Topology, Wiring, checked_product, consecutive_pairs, contiguous_blocks};
use crate::LinkId;
use crate::layout::NetworkShape;

/// One level of a fat tree: the ties between its nodes and those of the level below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FatTreeLevel {
    /// Children of each node of this level.
    pub children: u32,
    /// Parents, on this level, of each node of the level below.
    pub parents: u32,
    /// Parallel cables between a node and each of its parents.
    #[serde(default = "one")]
    pub cables: u32,
}

fn one() -> u32 {
    1
}

/// An extended generalised fat tree with parallel cables (Öhring et al. 1995; Zahavi, "D-Mod-K Routing", 2010).
///
/// A node of level `l` (hosts are level 0) has a label with one digit per level, digit 0 varying fastest along the
/// level: digit `i` counts parents (`w_i` of them) below the node's level, children (`m_i`) at and above it. A node and
/// a node of the next level are tied when their labels agree but for the digit of that level. Cable `j` leaves the
/// child at port `parent digit + j * w`, and the parent at port `child digit + j * m`.
#[derive(Debug)]
pub(crate) struct FatTree {
    levels: Vec<FatTreeLevel>,
    /// Number of nodes of each level, the hosts first.
    nodes: Vec<u64>,
    /// First cable between each level and the next, then the number of all cables.
    first_cables: Vec<u64>,
    /// First numbers of the hosts and cables of this tree.
    offsets: FatTreeOffsets,
}

/// First host and cable number of a fat tree. SimGrid numbers the hosts and cables of all fat trees of a platform in
/// one sequence: a second tree has other cable names, and its routes choose other parents (FatTreeZone.cpp).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FatTreeOffsets {
    pub(crate) position: u64,
    pub(crate) cable: u64,
}

/// A node by its level and its position on the level.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Node {
    level: usize,
    position: u64,
}

impl FatTree {
    /// Makes a fat tree, or returns `None` without levels, with a zero in one, or with more nodes than fit in 64
    /// bits.
    pub(crate) fn try_new(levels: &[FatTreeLevel], origin: FatTreeOffsets) -> Option<Self> {
        let zero = |level: &FatTreeLevel| level.children == 0 || level.parents == 0 || level.cables == 0;
        if levels.is_empty() || levels.iter().any(zero) {
            return None;
        }
        let node_count = |level: usize| {
            let parents = levels[..level].iter().map(|below| below.parents);
            checked_product(parents.chain(levels[level..].iter().map(|above| above.children)))
        };
        let nodes: Vec<u64> = (0..=levels.len()).map(node_count).collect::<Option<_>>()?;
        let mut first_cables = vec![0_u64];
        for (level, count) in levels.iter().zip(&nodes) {
            let ports = checked_product([level.parents, level.cables])?;
            first_cables.push(first_cables[first_cables.len() - 1].checked_add(count.checked_mul(ports)?)?);
        }
        Some(Self { levels: levels.to_vec(), nodes, first_cables, offsets: origin })
    }

    /// Returns the stride of the digit `level` in a position: the product of the parents below it.
    fn stride(&self, level: usize) -> u64 {
        self.levels[..level].iter().map(|below| u64::from(below.parents)).product()
    }

    /// Returns the digits of a host's label from `level` upwards, as one number.
    fn host_label_from(&self, level: usize, host: u64) -> u64 {
        host / self.hosts_below_level(level)
    }

    fn is_above(&self, node: Node, host: u64) -> bool {
        node.level > 0 && node.position / self.stride(node.level) == self.host_label_from(node.level, host)
    }

    /// Returns the first host below a node, or the node itself if it is a host.
    fn host_below(&self, node: Node) -> u32 {
        let label = node.position / self.stride(node.level);
        (label * self.hosts_below_level(node.level)) as u32
    }

    /// Returns the number of hosts below a node of this level.
    fn hosts_below_level(&self, level: usize) -> u64 {
        self.levels[..level].iter().map(|below| u64::from(below.children)).product()
    }

    /// Returns the station of a node: hosts first, then the switches by level and position.
    fn station(&self, node: Node) -> u64 {
        self.nodes[..node.level].iter().sum::<u64>() + node.position
    }

    /// Returns the number of a node in the names of links. Those of switches count down from twice the number of
    /// hosts.
    fn name_number(&self, node: Node) -> i64 {
        let station = self.station(node) as i64;
        let hosts = self.nodes[0] as i64;
        if node.level == 0 { station } else { 3 * hosts - 1 - station }
    }

    /// Returns the parent at an upward port of a node, and the cable.
    fn parent(&self, node: Node, port: u64) -> (Node, u64) {
        let level = self.levels[node.level];
        let (children, parents) = (u64::from(level.children), u64::from(level.parents));
        let stride = self.stride(node.level);
        let (low, high) = (node.position % stride, node.position / stride / children);
        let (digit, parallel) = (port % parents, port / parents);
        let parent = Node { level: node.level + 1, position: low + (digit + high * parents) * stride };
        (parent, self.cable(node, digit, parallel))
    }

    /// Returns the child at a downward port of a node, and the cable.
    fn child(&self, node: Node, port: u64) -> (Node, u64) {
        let level = self.levels[node.level - 1];
        let (children, parents) = (u64::from(level.children), u64::from(level.parents));
        let stride = self.stride(node.level - 1);
        let (low, high) = (node.position % stride, node.position / stride / parents);
        let child =
            Node { level: node.level - 1, position: low + (port % children + high * children) * stride };
        (child, self.cable(child, node.position / stride % parents, port / children))
    }

    /// Returns the number of a cable: by child, then by the digit of the parent, then by parallel.
    fn cable(&self, child: Node, parent_digit: u64, parallel: u64) -> u64 {
        let level = self.levels[child.level];
        let parent = child.position * u64::from(level.parents) + parent_digit;
        self.first_cables[child.level] + parent * u64::from(level.cables) + parallel
    }

    /// Returns the number of upward ports of a node of this level.
    fn ports_up(&self, level: usize) -> u64 {
        u64::from(self.levels[level].parents) * u64::from(self.levels[level].cables)
    }

    /// Returns the level of the lowest switch above two hosts.
    fn top_level(&self, src: u64, dst: u64) -> usize {
        let is_common =
            |level: &usize| self.host_label_from(*level, src) == self.host_label_from(*level, dst);
        (1..=self.levels.len()).find(is_common).expect("the top is above all hosts")
    }

    /// Returns by how many upward ports a route of this number is beside the one of number 0 at a level.
    fn shift(&self, number: u64, level: usize) -> u64 {
        (0..level).fold(number, |number, below| number / self.ports_up(below)) % self.ports_up(level)
    }

    /// Appends the upward hops until the node is above the destination, choosing the port by the destination's number
    /// (D-mod-k), or at random, for the shortest route of this number.
    fn climb(&self, wiring: &Wiring, (src, dst): (u64, u64), number: u64, out: &mut Vec<LinkId>) -> Node {
        let mut node = Node { level: 0, position: src };
        while !self.is_above(node, dst) {
            let by_destination = (self.offsets.position + dst) / self.stride(node.level);
            let first = wiring.rule.random_choice(src, dst, node.level).unwrap_or(by_destination);
            let ports = self.ports_up(node.level);
            let port = (first % ports + self.shift(number, node.level)) % ports;
            let (parent, cable) = self.parent(node, port);
            wiring.push_limiter(self.station(node), out);
            out.push(wiring.up(cable));
            node = parent;
        }
        node
    }

    /// Appends the downward hops from a node to a host below it, choosing among parallel cables by the source's number, or at random, for
    /// the shortest route of this number.
    ///
    /// SimGrid's loop over the ports of a node (FatTreeZone.cpp) continues after a descent: the port number keeps growing
    /// and is tested against the ports of the node below. With parallel cables below the top this takes other cables than
    /// the first choice of each node would. The rule [`RoutingRule::Simgrid`] reproduces this on purpose.
    fn descend(
        &self,
        wiring: &Wiring,
        from: Node,
        (src, dst): (u64, u64),
        number: u64,
        out: &mut Vec<LinkId>,
    ) {
        let mut node = from;
        while node.level > 0 {
            let level = self.levels[node.level - 1];
            let random = wiring.rule.random_choice(dst, src, node.level);
            let first = random.unwrap_or(self.offsets.position + src) % u64::from(level.cables);
            // Routes over one parent take different cables there, too.
            let shift = self.shift(number, node.level - 1) / u64::from(level.parents);
            let parallel = (first + shift) % u64::from(level.cables);
            let mut port = parallel * u64::from(level.children);
            while node.level > 0 && port < self.ports_down(node) {
                let children = u64::from(self.levels[node.level - 1].children);
                if port % children == self.host_label_from(node.level - 1, dst) % children {
                    let (child, cable) = self.child(node, port);
                    out.push(wiring.down(cable));
                    wiring.push_limiter(self.station(node), out);
                    node = child;
                    if wiring.rule != RoutingRule::Simgrid {
                        break;
                    }
                }
                port += 1;
            }
        }
    }

    fn ports_down(&self, node: Node) -> u64 {
        let level = self.levels[node.level - 1];
        u64::from(level.children) * u64::from(level.cables)
    }
}

impl fmt::Display for FatTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |field: fn(&FatTreeLevel) -> u32| {
            let numbers: Vec<String> = self.levels.iter().map(|level| field(level).to_string()).collect();
            numbers.join(",")
        };
        let (children, parents) = (join(|level| level.children), join(|level| level.parents));
        write!(f, "fat tree {};{children};{parents};{}", self.levels.len(), join(|level| level.cables))
    }
}

impl Topology for FatTree {
    fn hosts(&self) -> u64 {
        self.nodes[0]
    }

    fn switch_numbers(&self) -> Vec<i64> {
        let switches: u64 = self.nodes[1..].iter().sum();
        (0..switches as i64).map(|switch| 2 * self.nodes[0] as i64 - 1 - switch).collect()
    }

    fn cable_count(&self) -> Option<u64> {
        self.first_cables.last().copied()
    }

    fn cables(&self, _cluster: &str) -> Vec<Cable> {
        let mut cables = Vec::new();
        for (level, ties) in self.levels.iter().enumerate() {
            for child in (0..self.nodes[level]).map(|position| Node { level, position }) {
                for digit in 0..u64::from(ties.parents) {
                    let (parent, _) = self.parent(child, digit);
                    let names = (self.name_number(child), self.name_number(parent));
                    for _ in 0..ties.cables {
                        let unique = self.offsets.cable + cables.len() as u64;
                        let name = format!("link_from_{}_{}_{unique}", names.0, names.1);
                        cables.push(Cable { name, bandwidth_multiple: Some(1) });
                    }
                }
            }
        }
        cables
    }

    fn shape(&self) -> NetworkShape {
        NetworkShape::FatTree { levels: self.levels.clone() }
    }

    fn cable_ends(&self) -> Vec<(u64, u64)> {
        let mut ends = Vec::new();
        for (level, ties) in self.levels.iter().enumerate() {
            for child in (0..self.nodes[level]).map(|position| Node { level, position }) {
                for digit in 0..u64::from(ties.parents) {
                    let pair = (self.station(child), self.station(self.parent(child, digit).0));
                    ends.extend(std::iter::repeat_n(pair, ties.cables as usize));
                }
            }
        }
        ends
    }

    fn route(&self, wiring: &Wiring, src: u32, dst: u32, out: &mut Vec<LinkId>) {
        self.route_among(wiring, (src, dst), 0, out);
    }

    fn shortest_routes(&self, src: u32, dst: u32) -> [u64; 2] {
        let mut ports = (0..self.top_level(src.into(), dst.into())).map(|level| self.ports_up(level));
        let first = ports.find(|&ports| ports > 1).unwrap_or(1);
        [first, ports.fold(1, u64::saturating_mul)]
    }

    fn route_among(&self, wiring: &Wiring, (src, dst): (u32, u32), number: u64, out: &mut Vec<LinkId>) {
        let ends = (src.into(), dst.into());
        let top = self.climb(wiring, ends, number, out);
        self.descend(wiring, top, ends, number, out);
        wiring.push_limiter(dst.into(), out);
    }

    fn cable_hosts(&self) -> Vec<u32> {
        let mut hosts = Vec::new();
        for (level, ties) in self.levels.iter().enumerate() {
            let strands = (ties.parents * ties.cables) as usize;
            let below = (0..self.nodes[level]).map(|position| self.host_below(Node { level, position }));
            hosts.extend(below.flat_map(|host| std::iter::repeat_n(host, strands)));
        }
        hosts
    }

    fn switch_hosts(&self) -> Vec<u32> {
        let level = |level: usize| (0..self.nodes[level]).map(move |position| Node { level, position });
        (1..self.nodes.len()).flat_map(level).map(|node| self.host_below(node)).collect()
    }

    /// Suggests the subtrees below the children of the top.
    fn blocks(&self, wanted: Option<u32>) -> Vec<u32> {
        let wanted = wanted.unwrap_or(self.levels.last().map_or(1, |top| top.children));
        let widths: Vec<u64> = (0..self.levels.len()).map(|level| self.hosts_below_level(level)).collect();
        contiguous_blocks(self.hosts(), wanted, &widths)
    }

    fn closest_pairs(&self) -> Vec<(u32, u32)> {
        consecutive_pairs(self.hosts()).collect()
    }

    /// Divides the hosts into halves that meet at the top only, if the top switches have an even number of children:
    /// traffic between the halves crosses half of the cables of every level, of which the level with the fewest
    /// counts.
    fn bisection(&self) -> Option<f64> {
        let counts = self.first_cables.windows(2).map(|pair| pair[1] - pair[0]);
        let fewest = counts.min()? as f64;
        (self.levels.last()?.children % 2 == 0).then_some(fewest / 2.0)
    }
}
