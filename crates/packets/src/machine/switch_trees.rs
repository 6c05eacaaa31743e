//! Trees of the switches that carry out the operations of communicators.
//!
//! The root is a switch above all hosts of the communicator, as low as possible; of several, a hash of the communicator chooses. The tree
//! has the shortest ways down from there.

use std::collections::VecDeque;

use netmodel::HostId;
use pdes_core::{GOLDEN_GAMMA, mix};
use rustc_hash::FxHashMap;

use super::PacketMachine;
use crate::PacketError;
use crate::packet::below;

/// The tree of the switches of a communicator, with its hosts as leaves.
#[derive(Debug)]
pub(crate) struct SwitchTree {
    /// Node of each host of the communicator.
    members: FxHashMap<HostId, u32>,
    branches: FxHashMap<u32, Branch>,
}

/// A node of a tree.
#[derive(Debug, Default)]
pub(crate) struct Branch {
    /// Cable to the node above, which the root has not.
    above: Option<Cable>,
    /// Output ports to the nodes below, in ascending order.
    pub(crate) below: Vec<u32>,
}

/// A cable by its upper node, and the output ports at its ends.
#[derive(Clone, Copy, Debug)]
struct Cable {
    node: u32,
    up: u32,
    down: u32,
}

impl SwitchTree {
    /// Returns the branches at a node.
    pub(crate) fn at(&self, node: u32) -> &Branch {
        &self.branches[&node]
    }

    /// Returns the output port by which a host sends.
    pub(crate) fn port_of(&self, host: HostId) -> u32 {
        self.at(self.members[&host]).up().expect("a switch is above each host")
    }

    /// Returns the output port of a node on the way down to a host; `None` if the node is not above it.
    pub(crate) fn toward(&self, node: u32, host: HostId) -> Option<u32> {
        let mut cable = self.at(self.members[&host]).above?;
        while cable.node != node {
            cable = self.at(cable.node).above?;
        }
        Some(cable.down)
    }
}

impl Branch {
    /// Returns the output port to the node above, which the root has not.
    pub(crate) fn up(&self) -> Option<u32> {
        self.above.map(|cable| cable.up)
    }
}

/// Finds the trees of communicators. Each costs the links below its root.
///
/// # Errors
/// If output queues have credits, and if no switch is above all hosts of a communicator.
pub(super) fn find(
    machine: &PacketMachine<'_>,
    communicators: impl IntoIterator<Item = (u32, Vec<HostId>)>,
) -> Result<FxHashMap<u32, SwitchTree>, PacketError> {
    let mut communicators = communicators.into_iter().peekable();
    if communicators.peek().is_none() {
        return Ok(FxHashMap::default());
    }
    let network = Levels::of(machine);
    let trees = communicators.map(|(communicator, hosts)| {
        let tree = network.tree(communicator, &hosts).ok_or_else(|| PacketError::NoSwitchAbove {
            first: machine.platform.host(hosts[0]).name.clone(),
            others: hosts.len() - 1,
        })?;
        Ok((communicator, tree))
    });
    trees.collect()
}

/// Nodes of a network by their numbers of links from the nearest host, over links that work.
struct Levels<'a, 'p> {
    machine: &'a PacketMachine<'p>,
    /// Node of each host.
    hosts: FxHashMap<HostId, u32>,
    /// Level of each node; `None` if no host reaches it.
    levels: Vec<Option<u32>>,
}

impl<'a, 'p> Levels<'a, 'p> {
    fn of(machine: &'a PacketMachine<'p>) -> Self {
        let hosts: FxHashMap<HostId, u32> = (0..machine.nodes.len() as u32)
            .filter_map(|node| machine.host(node).map(|host| (host, node)))
            .collect();
        let mut network = Self { machine, hosts, levels: vec![None; machine.nodes.len()] };
        let mut next: VecDeque<(u32, u32)> = network.hosts.values().map(|&node| (node, 0)).collect();
        while let Some((node, level)) = next.pop_front() {
            if network.levels[node as usize].is_none() {
                network.levels[node as usize] = Some(level);
                next.extend(network.outputs(node).map(|(_, to)| (to, level + 1)));
            }
        }
        network
    }

    /// Lists the output ports of a node over links that work, and the nodes behind them.
    fn outputs(&self, node: u32) -> impl Iterator<Item = (u32, u32)> {
        let entry = self.machine.nodes[node as usize];
        let ports = entry.first_port..entry.first_port + entry.outputs;
        let behind = ports.map(|port| (port, self.machine.ports[port as usize]));
        let behind = behind.filter(|(_, entry)| entry.picos_per_byte.is_finite());
        behind.map(|(port, entry)| (port, self.machine.input_nodes[entry.input as usize]))
    }

    /// Lists the outputs of a node to those a level higher, or lower.
    fn neighbors(&self, node: u32, is_up: bool) -> impl Iterator<Item = (u32, u32)> {
        let level = self.levels[node as usize];
        let next = level.and_then(|level| if is_up { Some(level + 1) } else { level.checked_sub(1) });
        self.outputs(node).filter(move |&(_, to)| next.is_some() && self.levels[to as usize] == next)
    }

    /// Returns the hash by which a communicator chooses at a node, of which all regions know the number.
    fn hash(&self, communicator: u32, node: u32) -> u64 {
        let number = self.machine.nodes[node as usize].node.index() as u64;
        mix(mix(u64::from(communicator) ^ self.machine.parameters.seed.wrapping_mul(GOLDEN_GAMMA)) ^ number)
    }

    /// Finds the tree of a communicator.
    fn tree(&self, communicator: u32, hosts: &[HostId]) -> Option<SwitchTree> {
        let mut candidates = vec![self.hosts[hosts.first()?]];
        loop {
            candidates =
                candidates.iter().flat_map(|&node| self.neighbors(node, true)).map(|(_, to)| to).collect();
            candidates.sort_unstable_by_key(|&node| (self.hash(communicator, node), node));
            candidates.dedup();
            if candidates.is_empty() {
                return None;
            }
            let tree = candidates.iter().find_map(|&root| self.tree_below(root, communicator, hosts));
            if tree.is_some() {
                return tree;
            }
        }
    }

    /// Finds the tree below a root; `None` if it does not reach all hosts.
    fn tree_below(&self, root: u32, communicator: u32, hosts: &[HostId]) -> Option<SwitchTree> {
        let mut above: FxHashMap<u32, u32> = FxHashMap::default();
        let mut next = VecDeque::from([root]);
        while let Some(node) = next.pop_front() {
            for (_, to) in self.neighbors(node, false) {
                above.entry(to).or_insert_with(|| {
                    next.push_back(to);
                    node
                });
            }
        }
        let members: FxHashMap<HostId, u32> = hosts.iter().map(|&host| (host, self.hosts[&host])).collect();
        let mut branches: FxHashMap<u32, Branch> = FxHashMap::default();
        for &host in hosts {
            let mut node = members[&host];
            while node != root && !branches.contains_key(&node) {
                let cable = self.cable(node, *above.get(&node)?, communicator)?;
                branches.insert(node, Branch { above: Some(cable), below: Vec::new() });
                node = cable.node;
            }
        }
        let cables: Vec<Cable> = branches.values().filter_map(|branch| branch.above).collect();
        cables.iter().for_each(|cable| branches.entry(cable.node).or_default().below.push(cable.down));
        branches.values_mut().for_each(|branch| branch.below.sort_unstable());
        Some(SwitchTree { members, branches })
    }

    /// Returns the cable between two nodes that a communicator takes.
    fn cable(&self, node: u32, above: u32, communicator: u32) -> Option<Cable> {
        let ports = |from: u32, to: u32| -> Vec<u32> {
            self.outputs(from).filter(|&(_, behind)| behind == to).map(|(port, _)| port).collect()
        };
        let (up, down) = (ports(node, above), ports(above, node));
        let choice = below(up.len().min(down.len()), self.hash(communicator, node));
        Some(Cable { node: above, up: *up.get(choice)?, down: *down.get(choice)? })
    }
}
