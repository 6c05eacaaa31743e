//! Outputs of nodes that lie on shortest ways to each host.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

use netmodel::{HostId, NetworkGraph, NodeId, Platform};
use rustc_hash::FxHashMap;

use super::NodeEntry;
use super::changes::{Outage, outages};
use super::table::GivenWays;
use crate::parameters::Weights;
use crate::{PacketError, PacketParameters};

/// Largest number of entries of a table: half a gigabyte.
const MAX_ENTRIES: u64 = 1 << 28;

/// Output ports, and the upper ends of their shares in the range of hashes, unless they are alike.
pub(crate) type WeightedPorts<'a> = (&'a [u32], &'a [u32]);

/// Outputs on shortest ways over time: when links fail or return, all nodes know it at once.
#[derive(Debug)]
pub(crate) struct OutputTables {
    /// Instants from which on the tables after the first one hold \[ps\].
    begins: Box<[u64]>,
    tables: Box<[OutputTable]>,
}

/// Outputs on shortest ways, by node and target. Hosts with one cable share the target of their switch.
#[derive(Debug)]
pub(crate) struct OutputTable {
    /// Target of each host.
    targets: Box<[Target]>,
    target_count: usize,
    longest_way: u32,
    /// Number of the set of outputs among those of the node, by node and target.
    sets: Box<[u16]>,
    /// First set of each node.
    first_sets: Box<[u32]>,
    set_ports: Box<[Range<u32>]>,
    ports: Box<[u32]>,
    /// Upper ends of the shares of the ports of a set in the range of hashes, by port; none if all are alike.
    shares: Box<[u32]>,
}

/// Outputs of one node on shortest ways.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeOutputs<'a> {
    table: &'a OutputTable,
    node: u32,
    /// Number of the set of outputs, by target.
    sets: &'a [u16],
    /// Sets from the first one of the node on.
    set_ports: &'a [Range<u32>],
}

/// Where the shortest ways to a host lead.
#[derive(Clone, Copy, Debug)]
struct Target {
    number: u32,
    /// The switch that delivers to the host, and its port, if that is the target.
    delivery: Option<(u32, u32)>,
}

/// Sets of outputs of a node, with the shares of each.
#[derive(Clone, Default)]
struct KnownSets {
    sets: Vec<(Vec<u32>, Vec<u32>)>,
    numbers: FxHashMap<(Vec<u32>, Vec<u32>), u16>,
    /// The set that was looked for last.
    last: u16,
}

impl KnownSets {
    /// Returns the number of a set. Most often it is that of the target before.
    fn number(&mut self, outputs: &[u32], shares: &[u32]) -> u16 {
        let is_last = |set: &(Vec<u32>, Vec<u32>)| set.0 == outputs && set.1 == shares;
        if !self.sets.get(usize::from(self.last)).is_some_and(is_last) {
            let (set, next) = ((outputs.to_vec(), shares.to_vec()), self.sets.len() as u16);
            self.last = *self.numbers.entry(set.clone()).or_insert(next);
            if self.last == next {
                self.sets.push(set);
            }
        }
        self.last
    }
}

impl OutputTables {
    /// Makes the tables of ways that avoid failed links. `rates` has what is left of the bandwidth of each link, `places` the place of each
    /// node among `nodes`.
    pub(super) fn new(
        (platform, graph, rates): (&Platform, &NetworkGraph, &[f64]),
        parameters: &PacketParameters,
        places: &[u32],
        nodes: &[NodeEntry],
    ) -> Result<Self, PacketError> {
        let given = GivenWays::new((platform, graph, rates), parameters)?;
        let outages = outages(platform, graph)?;
        let begins = outages[1..].iter().map(|outage| outage.from).collect();
        let most = MAX_ENTRIES / outages.len() as u64;
        let table = |outage| {
            OutputTable::new((platform, graph, rates), (outage, &given, most), parameters, places, nodes)
        };
        let tables = outages.iter().map(table).collect::<Result<Box<[_]>, _>>()?;
        let has_choice = tables.len() > 1 || tables[0].set_ports.iter().any(|set| set.len() > 1);
        if !has_choice
            && given.is_empty()
            && outages[0].off.is_empty()
            && rates.iter().all(|&rate| rate > 0.0)
        {
            return Err(PacketError::NoChoice { routing: parameters.routing.name().to_owned() });
        }
        Ok(Self { begins, tables })
    }

    /// Returns the table, if it holds at all times.
    #[inline]
    pub(crate) fn always(&self) -> Option<&OutputTable> {
        match &*self.tables {
            [always] => Some(always),
            _ => None,
        }
    }

    /// Returns the table that holds at an instant \[ps\].
    #[inline]
    pub(crate) fn at(&self, at: u64) -> &OutputTable {
        &self.tables[self.begins.partition_point(|&begin| begin <= at)]
    }

    /// Lists the tables that hold after an instant, each from an instant on \[ps\].
    #[inline]
    pub(crate) fn after(&self, at: u64) -> impl Iterator<Item = (u64, &OutputTable)> {
        let begun = self.begins.partition_point(|&begin| begin <= at);
        self.begins[begun..].iter().copied().zip(&self.tables[begun + 1..])
    }

    /// Returns the number of links of the longest of the shortest ways.
    pub(super) fn longest_way(&self) -> u32 {
        self.tables.iter().map(|table| table.longest_way).max().unwrap_or(0)
    }
}

impl OutputTable {
    /// Makes the table of all shortest ways.
    pub(super) fn of_shortest(
        (platform, graph, rates): (&Platform, &NetworkGraph, &[f64]),
        parameters: &PacketParameters,
        places: &[u32],
        nodes: &[NodeEntry],
    ) -> Result<Self, PacketError> {
        let given = GivenWays::new((platform, graph, rates), parameters)?;
        let outage = Outage { from: 0, off: Vec::new() };
        Self::new((platform, graph, rates), (&outage, &given, MAX_ENTRIES), parameters, places, nodes)
    }

    /// Makes the table of given ways, and for other hosts those that avoid the links of an outage and those that have failed for good. Packets that an outage cuts off wait at
    /// a link that is off, on a way that is shortest without the outage.
    fn new(
        (platform, graph, rates): (&Platform, &NetworkGraph, &[f64]),
        (outage, given, most): (&Outage, &GivenWays, u64),
        PacketParameters { routing, weights, .. }: &PacketParameters,
        places: &[u32],
        nodes: &[NodeEntry],
    ) -> Result<Self, PacketError> {
        let hosts = graph.hosts();
        let is_host = |node: NodeId| node.index() < hosts as usize;
        // Between switches hosts do not forward.
        let forwards = graph.channels().iter().any(|channel| is_host(channel.from) && is_host(channel.to));
        let rate = |channel: u32| {
            let link = graph.channel(channel).link;
            platform.link(link).bandwidth * rates[link.index()]
        };
        let is_whole = |channel: u32| rate(channel) > 0.0;
        let up: Vec<bool> = (0..graph.channels().len() as u32)
            .map(|channel| is_whole(channel) && !outage.off.contains(&graph.channel(channel).link))
            .collect();
        let is_up = |channel: u32| up[channel as usize];
        let mut numbers: FxHashMap<NodeId, u32> = FxHashMap::default();
        let mut target_nodes = Vec::new();
        let mut number = |node| {
            *numbers.entry(node).or_insert_with(|| {
                target_nodes.push(node);
                target_nodes.len() as u32 - 1
            })
        };
        let target = |host: u32| {
            let node = NodeId::from(HostId::new(host));
            let is_own = given.to_node(graph, node).is_some() || forwards;
            match *graph.inputs(node) {
                [channel] if !is_own && !is_host(graph.channel(channel).from) && is_whole(channel) => {
                    let switch = graph.channel(channel).from;
                    let output = graph.outputs(switch).iter().position(|&output| output == channel);
                    let place = places[switch.index()];
                    let port = output.map(|output| nodes[place as usize].first_port + output as u32);
                    Target { number: number(switch), delivery: port.map(|port| (place, port)) }
                }
                _ => Target { number: number(node), delivery: None },
            }
        };
        let targets: Box<[_]> = (0..hosts).map(target).collect();
        let target_count = target_nodes.len();
        let entries = nodes.len() as u64 * target_count as u64;
        if entries > most {
            return Err(PacketError::LargeTable { routing: routing.name().to_owned(), entries, most });
        }
        let has_shares = *weights == Weights::Capacity || given.has_weights();
        let mut known = vec![KnownSets::default(); nodes.len()];
        let (mut ports_of_node, mut rates_of_node) = (Vec::new(), Vec::new());
        // A host with one cable has one way to all, which is its first set.
        let has_one_way = |place: &usize| {
            let node = nodes[*place].node;
            !forwards && given.is_empty() && is_host(node) && graph.outputs(node).len() == 1
        };
        let (ends, inner): (Vec<_>, Vec<_>) = (0..nodes.len()).partition(has_one_way);
        for place in ends {
            known[place].number(&[nodes[place].first_port], if has_shares { &[u32::MAX] } else { &[] });
        }
        let (mut sets, mut longest_way) = (vec![0_u16; entries as usize], 0);
        for (target, &node) in target_nodes.iter().enumerate() {
            let forwards = |node| forwards || !is_host(node);
            let distances = distances_to(graph, node, forwards, is_whole);
            if let Some(src) = distances[..hosts as usize].iter().position(Option::is_none) {
                let name = |host: usize| platform.host(HostId::new(host as u32)).name.clone();
                let dst = targets.iter().position(|known| known.number == target as u32).unwrap_or(src);
                return Err(PacketError::Disconnected { src: name(src), dst: name(dst) });
            }
            let around = match outage.off[..] {
                [] => Cow::Borrowed(&distances),
                _ => Cow::Owned(distances_to(graph, node, forwards, is_up)),
            };
            // The link to a host with one cable comes after its switch.
            let last = if is_host(node) { 0 } else { 1 };
            let of_hosts = around[..hosts as usize].iter().flatten().map(|distance| distance + last);
            let given = given.to_node(graph, node);
            longest_way =
                given.map_or_else(|| of_hosts.fold(0, u32::max), |ways| ways.longest).max(longest_way);
            let mut order = inner.clone();
            order.sort_by_key(|&place| around[nodes[place].node.index()]);
            // What nodes can send toward the target.
            let mut capacities = vec![f64::INFINITY; graph.nodes() as usize];
            for place in order {
                let NodeEntry { node, first_port, .. } = nodes[place];
                let is_cut_off = around[node.index()].is_none();
                let distances = if is_cut_off { &distances } else { &*around };
                let shortest = |output: u32| {
                    let to = graph.channel(output).to;
                    let is_nearer = |left| distances[node.index()] == Some(left + 1);
                    let is_taken = (is_cut_off && is_whole(output) || is_up(output))
                        && distances[to.index()].is_some_and(is_nearer);
                    is_taken.then(|| rate(output).min(capacities[to.index()]))
                };
                let outputs = (first_port..).zip(graph.outputs(node)).filter_map(|(port, &output)| {
                    let weight = match given {
                        Some(ways) => ways.weight(node, output),
                        None => shortest(output),
                    };
                    Some((port, weight?))
                });
                let (ports, rates) = (&mut ports_of_node, &mut rates_of_node);
                ports.clear();
                rates.clear();
                for (port, rate) in outputs {
                    ports.push(port);
                    rates.push(rate);
                }
                if !ports.is_empty() {
                    capacities[node.index()] = rates.iter().sum();
                }
                let shares = match has_shares {
                    true if given.is_some() || *weights == Weights::Capacity => shares(rates),
                    true => shares(&vec![1.0; ports.len()]),
                    false => Vec::new(),
                };
                sets[place * target_count + target] = known[place].number(ports, &shares);
            }
        }
        let (mut first_sets, mut set_ports, mut ports, mut shares) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for known in known {
            first_sets.push(set_ports.len() as u32);
            for (outputs, of_outputs) in known.sets {
                set_ports.push(ports.len() as u32..(ports.len() + outputs.len()) as u32);
                ports.extend(outputs);
                shares.extend(of_outputs);
            }
        }
        let [first_sets, ports, shares] = [first_sets, ports, shares].map(Vec::into_boxed_slice);
        let (sets, set_ports) = (sets.into(), set_ports.into());
        Ok(Self { targets, target_count, longest_way, sets, first_sets, set_ports, ports, shares })
    }

    /// Returns the outputs of a node.
    #[inline(always)]
    pub(crate) fn at_node(&self, node: u32) -> NodeOutputs<'_> {
        let sets = &self.sets[node as usize * self.target_count..][..self.target_count];
        NodeOutputs {
            table: self,
            node,
            sets,
            set_ports: &self.set_ports[self.first_sets[node as usize] as usize..],
        }
    }
}

impl<'a> NodeOutputs<'a> {
    /// Returns the output ports on shortest ways to a host, and the upper ends of their shares in the range of hashes, unless they are alike;
    /// no ports if there is no way.
    #[inline(always)]
    pub(crate) fn toward(&self, dst: HostId) -> WeightedPorts<'a> {
        let Self { table, node, sets, set_ports } = *self;
        let Target { number, delivery } = &table.targets[dst.index()];
        if let Some((switch, port)) = delivery
            && *switch == node
        {
            return (std::slice::from_ref(port), &[]);
        }
        let set = &set_ports[usize::from(sets[*number as usize])];
        let set = set.start as usize..set.end as usize;
        let shares = if table.shares.is_empty() { &[] } else { &table.shares[set.clone()] };
        (&table.ports[set], shares)
    }
}

/// Returns the upper ends of shares in the range of 32 bits.
fn shares(rates: &[f64]) -> Vec<u32> {
    let (all, range) = (rates.iter().sum::<f64>(), f64::from(u32::MAX));
    let mut sum = 0.0;
    let mut upper = |rate| {
        sum += rate;
        (sum / all * range) as u32
    };
    let mut shares: Vec<u32> = rates.iter().map(|&rate| upper(rate)).collect();
    shares.last_mut().into_iter().for_each(|last| *last = u32::MAX);
    shares
}

/// Returns the number of links from each node to another one, through nodes that forward and channels that are up.
pub(super) fn distances_to(
    graph: &NetworkGraph,
    to: NodeId,
    forwards: impl Fn(NodeId) -> bool,
    is_up: impl Fn(u32) -> bool,
) -> Vec<Option<u32>> {
    let mut distances = vec![None; graph.nodes() as usize];
    distances[to.index()] = Some(0);
    let mut queue = VecDeque::from([(to, 0)]);
    while let Some((node, distance)) = queue.pop_front() {
        for &channel in graph.inputs(node).iter().filter(|&&channel| is_up(channel)) {
            let from = graph.channel(channel).from;
            if distances[from.index()].is_none() {
                distances[from.index()] = Some(distance + 1);
                if forwards(from) {
                    queue.push_back((from, distance + 1));
                }
            }
        }
    }
    distances
}
