//! Construction of the network of a region.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::credits::Buffers;
use super::flowlets::Flowlets;
use super::injection::Injection;
use super::nodes::{Far, IDLE, Node, NodeQueue, Port};
use super::pacing::Pacing;
use super::ring::Ring;
use super::routes::StaticRoutes;
use super::{Fabric, FabricCounts};
use crate::machine::{NodeEntry, PacketMachine};
use crate::parameters::Switching;
use crate::{Congestion, PacketRouting};

impl<'m, 'p> Fabric<'m, 'p> {
    /// Makes the idle network of a region.
    pub(crate) fn new(machine: &'m PacketMachine<'p>, region: u32) -> Self {
        let range = machine.nodes_of(region);
        let entries = &machine.nodes[range.start as usize..range.end as usize];
        let (first_node, empty) = (range.start, (0, 0));
        let (first_port, first_input) =
            entries.first().map_or(empty, |entry| (entry.first_port, entry.first_input));
        let mut words = 0;
        let node = |entry: &NodeEntry| {
            let first_word = words;
            words += entry.inputs.div_ceil(u64::BITS);
            Node {
                first_port: entry.first_port - first_port,
                outputs: entry.outputs,
                first_input: entry.first_input - first_input,
                inputs: entry.inputs,
                first_word,
                is_at_border: false,
                number: entry.node.index() as u32,
                next: IDLE,
            }
        };
        let mut nodes: Vec<Node> = entries.iter().map(node).collect();
        let hosts = range.clone().filter(|&node| machine.host(node).is_some()).count() as u32;
        let ports = entries.iter().flat_map(|entry| {
            &machine.ports[entry.first_port as usize..(entry.first_port + entry.outputs) as usize]
        });
        let ports = ports.map(|port| {
            let node = machine.input_nodes[port.input as usize];
            let far = if !range.contains(&node) {
                Far::Remote { region: machine.region_of(node), input: port.input }
            } else {
                let (ring, place) = (port.input - first_input, node - first_node);
                match machine.host(node) {
                    Some(host) => Far::Host { host, node: place, ring },
                    None => Far::Switch { node: place, ring },
                }
            };
            let (picos_per_byte, latency) = (port.picos_per_byte, port.latency);
            let packet_time = super::transmission(machine.packet_size(), picos_per_byte);
            Port { free_at: 0, picos_per_byte, packet_time, latency, far }
        });
        let ports: Vec<Port> = ports.collect();
        for node in &mut nodes {
            let own = &ports[node.first_port as usize..(node.first_port + node.outputs) as usize];
            node.is_at_border = own.iter().any(|port| matches!(port.far, Far::Remote { .. }));
        }
        let inputs: u32 = entries.iter().map(|entry| entry.inputs).sum();
        let mut input_rates = vec![0.0; inputs as usize];
        for port in &machine.ports {
            if let Some(rate) =
                port.input.checked_sub(first_input).and_then(|ring| input_rates.get_mut(ring as usize))
            {
                *rate = port.picos_per_byte;
            }
        }
        let pacing = (machine.parameters.congestion == Congestion::ReceiverCredits)
            .then(|| Box::new(Pacing::new(machine, &nodes[..hosts as usize], &input_rates)));
        let hosts_and_outputs = (0..hosts).zip(&nodes).map(|(host, node)| (host, node.outputs as usize));
        let injections: Vec<_> = hosts_and_outputs
            .flat_map(|(host, outputs)| std::iter::repeat_n(Injection::new(host), outputs))
            .collect();
        let host_ports = injections.len() as u32;
        let buffers =
            machine.has_credits().then(|| Box::new(Buffers::new(machine, &nodes, inputs, host_ports)));
        let marks = matches!(machine.parameters.congestion, Congestion::Dctcp | Congestion::Dcqcn)
            || machine.parameters.routing == PacketRouting::Reps;
        Self {
            machine,
            region,
            first_node,
            first_port,
            first_input,
            hosts,
            origin: 0,
            nodes,
            ports,
            rings: vec![Ring::default(); inputs as usize],
            input_rates,
            occupied: vec![0; words as usize],
            arrivals: NodeQueue::default(),
            deadlines: NodeQueue::default(),
            injections,
            streams: Vec::new(),
            free_streams: Vec::new(),
            stream_places: FxHashMap::default(),
            routes: StaticRoutes::default(),
            partial: FxHashMap::default(),
            combinations: BTreeMap::new(),
            reports: Vec::new(),
            outgoing: Vec::new(),
            counts: FabricCounts::default(),
            recorded: None,
            loads: None,
            marks,
            is_plain: !marks && !machine.has_changes && machine.parameters.switching != Switching::CutThrough,
            pacing,
            flowlets: (machine.parameters.routing == PacketRouting::Flowlets)
                .then(|| Box::new(Flowlets::new(machine))),
            buffers,
            order: Vec::new(),
            injected: Vec::new(),
            due: Vec::new(),
        }
    }
}
