//! Proof that buffers cannot wait for each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use netmodel::{HostId, LinkId, RouteError};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{PacketMachine, Ways};

/// A virtual channel of a link: the output port of the link, and the channel.
type PortChannel = (u32, u32);

impl PacketMachine<'_> {
    /// Finds links, each with its virtual channel, whose packets can wait for each other in a circle; `None` if there are none, and the
    /// routing is free of deadlocks (Dally and Seitz, "Deadlock-Free Message Routing in Multiprocessor Interconnection Networks", 1987).
    /// With FIFO queues, which do not wait, links have one channel.
    ///
    /// Follows all ways between any two switches that have hosts, so it is for hundreds of switches.
    ///
    /// # Errors
    /// If there is no route between two hosts.
    pub fn find_circular_wait(&self) -> Result<Option<Vec<(LinkId, u32)>>, RouteError> {
        let hosts = self.representatives();
        let mut waits: BTreeMap<PortChannel, BTreeSet<PortChannel>> = BTreeMap::new();
        for &src in &hosts {
            for &dst in hosts.iter().filter(|&&dst| dst != src) {
                self.add_waits((src, dst), &mut waits)?;
            }
        }
        let Some(circle) = find_circle(&waits) else { return Ok(None) };
        Ok(Some(
            circle.into_iter().map(|(port, channel)| (self.ports[port as usize].link, channel)).collect(),
        ))
    }

    /// Lists two hosts of each switch, and all hosts that have several cables: packets of others wait as theirs do.
    pub fn representatives(&self) -> Vec<HostId> {
        let mut of_switches: FxHashMap<u32, u32> = FxHashMap::default();
        let mut hosts: Vec<HostId> = Vec::new();
        for (place, node) in (0..).zip(&self.nodes) {
            let Some(host) = self.host(place) else { continue };
            let switch = self.input_nodes[self.ports[node.first_port as usize].input as usize];
            let known = of_switches.entry(switch).or_default();
            if node.outputs > 1 || *known < 2 {
                hosts.push(host);
            }
            *known += 1;
        }
        hosts
    }

    /// Adds what packets from one host to another wait for: with a channel, for the next one on any of their ways.
    fn add_waits(
        &self,
        (src, dst): (HostId, HostId),
        waits: &mut BTreeMap<PortChannel, BTreeSet<PortChannel>>,
    ) -> Result<(), RouteError> {
        if let Ways::Routes = self.ways {
            let (mut links, mut channels) = (Vec::new(), Vec::new());
            self.route(src, dst, &mut links)?;
            self.check_route(src, dst, &links)?;
            self.channels.of_route(&links, &mut channels);
            let steps: Vec<PortChannel> = links
                .iter()
                .zip(channels)
                .map(|(&link, channel)| (self.port_of(link), channel.into()))
                .collect();
            for pair in steps.windows(2) {
                waits.entry(pair[0]).or_default().insert(pair[1]);
            }
            return Ok(());
        }
        let source = (0..).zip(&self.nodes).find(|(place, _)| self.host(*place) == Some(src));
        let Some((source, _)) = source else { return Ok(()) };
        let mut left: Vec<(u32, u32)> = self.next_steps(source, 0, (src, dst));
        let mut known: FxHashSet<(u32, u32)> = left.iter().copied().collect();
        while let Some((port, path)) = left.pop() {
            let node = self.input_nodes[self.ports[port as usize].input as usize];
            if self.host(node) == Some(dst) && self.ends_at(path, dst) {
                continue;
            }
            for (next, next_path) in self.next_steps(node, path, (src, dst)) {
                let step = (next, self.channels.of_path(next_path));
                waits.entry((port, self.channels.of_path(path))).or_default().insert(step);
                if known.insert((next, next_path)) {
                    left.push((next, next_path));
                }
            }
        }
        Ok(())
    }

    /// Lists the output ports that a packet can take at a node, each with its path from there, where nodes choose.
    fn next_steps(&self, node: u32, path: u32, (src, dst): (HostId, HostId)) -> Vec<(u32, u32)> {
        match &self.ways {
            Ways::Routes => Vec::new(),
            Ways::Shortest(outputs) => {
                outputs.at(0).at_node(node).toward(dst).0.iter().map(|&port| (port, path + 1)).collect()
            }
            Ways::Detours(table) => match table.steps(self, (node, path), (src, dst)) {
                none if none.is_empty() => vec![(self.nodes[node as usize].first_port, path)],
                steps => steps,
            },
        }
    }
}

/// Finds a circle in a graph: its vertices in order.
fn find_circle(edges: &BTreeMap<PortChannel, BTreeSet<PortChannel>>) -> Option<Vec<PortChannel>> {
    let mut done: FxHashSet<PortChannel> = FxHashSet::default();
    for &first in edges.keys() {
        // The way from `first`: vertices with what is left of their edges.
        let mut way = vec![(first, edges[&first].iter())];
        while let Some((vertex, next)) = way.last_mut() {
            let Some(&to) = next.next() else {
                done.insert(*vertex);
                way.pop();
                continue;
            };
            if let Some(place) = way.iter().position(|&(vertex, _)| vertex == to) {
                return Some(way[place..].iter().map(|&(vertex, _)| vertex).collect());
            }
            if !done.contains(&to)
                && let Some(next) = edges.get(&to)
            {
                way.push((to, next.iter()));
            }
        }
    }
    None
}
