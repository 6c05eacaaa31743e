//! Ways that the configuration gives.

use std::collections::BTreeMap;

use netmodel::{HostId, NetworkGraph, NodeId, Platform};
use rustc_hash::FxHashMap;

use super::given_routes::{channels_by_name, table_entries};
use crate::parameters::TableEntry;
use crate::{PacketError, PacketParameters};

/// Outputs of nodes on the ways to those hosts that the table of the configuration names.
#[derive(Debug, Default)]
pub(super) struct GivenWays(BTreeMap<HostId, WaysToHost>);

/// Outputs on the ways to a host.
#[derive(Debug, Default)]
pub(super) struct WaysToHost {
    outputs: FxHashMap<NodeId, Vec<Output>>,
    /// Links of the longest way.
    pub(super) longest: u32,
}

/// A channel that leaves a node, and its weight.
#[derive(Clone, Copy, Debug)]
struct Output {
    channel: u32,
    weight: f64,
}

impl GivenWays {
    /// Takes in the table. `rates` has what is left of the bandwidth of each link.
    ///
    /// # Errors
    /// If it names what the platform does not have, and if a way ends before the destination or goes in a circle.
    pub(super) fn new(
        (platform, graph, rates): (&Platform, &NetworkGraph, &[f64]),
        parameters: &PacketParameters,
    ) -> Result<Self, PacketError> {
        let mut ways = Self::default();
        if !parameters.has_table() {
            return Ok(ways);
        }
        let channels = channels_by_name(platform, graph);
        for (place, TableEntry { to, links, weights }) in table_entries(parameters)? {
            let unknown =
                |name: &String| PacketError::UnknownInTable { place: place.clone(), name: name.clone() };
            let host = platform.host_by_name(&to).ok_or_else(|| unknown(&to))?;
            let outputs = &mut ways.0.entry(host).or_default().outputs;
            let has_weights = weights.len() == links.len() && weights.iter().all(|weight| *weight > 0.0);
            if !weights.is_empty() && !has_weights {
                return Err(PacketError::BadWeights { place, found: weights.len(), links: links.len() });
            }
            for (number, name) in links.iter().enumerate() {
                let channel = *channels.get(name.as_str()).ok_or_else(|| unknown(name))?;
                let link = graph.channel(channel).link;
                if rates[link.index()] == 0.0 {
                    return Err(PacketError::FailedInTable { place, link: name.clone() });
                }
                let weight = weights.get(number).copied().unwrap_or(1.0);
                outputs.entry(graph.channel(channel).from).or_default().push(Output { channel, weight });
            }
        }
        for (&dst, ways) in &mut ways.0 {
            ways.complete(graph, dst);
            ways.longest = ways.check(platform, graph, dst)?;
        }
        Ok(ways)
    }

    /// Returns the ways to a node, if it is a host of the table.
    pub(super) fn to_node(&self, graph: &NetworkGraph, node: NodeId) -> Option<&WaysToHost> {
        let is_host = node.index() < graph.hosts() as usize;
        self.0.get(&HostId::new(node.index() as u32)).filter(|_| is_host)
    }

    /// Returns whether outputs have different weights.
    pub(super) fn has_weights(&self) -> bool {
        let outputs = self.0.values().flat_map(|ways| ways.outputs.values().flatten());
        outputs.into_iter().any(|output| output.weight != 1.0)
    }

    /// Returns whether the table says nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl WaysToHost {
    fn outputs(&self, node: NodeId) -> &[Output] {
        self.outputs.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Returns the weight of a channel that leaves a node, if it is on a way.
    pub(super) fn weight(&self, node: NodeId, channel: u32) -> Option<f64> {
        self.outputs(node).iter().find(|output| output.channel == channel).map(|output| output.weight)
    }

    /// Adds what needs no entry: the cable to the host, and the one of a host that has no other.
    fn complete(&mut self, graph: &NetworkGraph, dst: HostId) {
        for &channel in graph.inputs(dst.into()) {
            let outputs = self.outputs.entry(graph.channel(channel).from).or_default();
            if outputs.is_empty() {
                outputs.push(Output { channel, weight: 1.0 });
            }
        }
        for host in (0..graph.hosts()).map(NodeId::new).filter(|&host| host != dst.into()) {
            if let [channel] = *graph.outputs(host) {
                self.outputs.entry(host).or_insert_with(|| vec![Output { channel, weight: 1.0 }]);
            }
        }
    }

    /// Follows all ways from all hosts; returns the number of links of the longest one.
    fn check(&self, platform: &Platform, graph: &NetworkGraph, dst: HostId) -> Result<u32, PacketError> {
        let to = || platform.host(dst).name.clone();
        let name = |channel: u32| platform.link(graph.channel(channel).link).name.clone();
        // Links that are left from each node whose ways have been followed.
        let mut links_left: FxHashMap<NodeId, u32> = FxHashMap::from_iter([(dst.into(), 0)]);
        for src in (0..graph.hosts()).map(HostId::new) {
            // The way from a host: nodes, the channel to each, and the number of their outputs that have been followed.
            let mut way: Vec<(NodeId, Option<u32>, usize)> = vec![(src.into(), None, 0)];
            while let Some(&mut (node, by, ref mut followed)) = way.last_mut() {
                if links_left.contains_key(&node) {
                    way.pop();
                    continue;
                }
                let outputs = self.outputs(node);
                if outputs.is_empty() {
                    let at = by.map_or_else(|| platform.host(src).name.clone(), name);
                    return Err(PacketError::HoleInTable { to: to(), at });
                }
                let Some(output) = outputs.get(*followed) else {
                    let left = outputs.iter().map(|output| links_left[&graph.channel(output.channel).to]);
                    links_left.insert(node, left.max().unwrap_or(0) + 1);
                    way.pop();
                    continue;
                };
                *followed += 1;
                let next = graph.channel(output.channel).to;
                if let Some(place) = way.iter().position(|(known, ..)| *known == next) {
                    let circle = way[place + 1..].iter().filter_map(|(_, by, _)| *by);
                    let links = circle.chain([output.channel]).map(name).collect();
                    return Err(PacketError::LoopInTable { to: to(), links });
                }
                way.push((next, Some(output.channel), 0));
            }
        }
        Ok(links_left.values().copied().max().unwrap_or(0))
    }
}
