//! What the regions of a machine share: the graph in the order of regions, and the ways through it.

mod changes;
mod channels;
mod circular_wait;
mod degraded;
mod detour_time;
mod given_routes;
mod groups;
mod outputs;
mod switch_regions;
mod switch_trees;
mod switches;
mod table;
mod torus;

use std::ops::Range;

use netmodel::{
    DragonflyShape, HostId, Layout, LinkId, NetworkGraph, NetworkShape, NodeId, Platform, RouteError,
};
use pdes_core::SimDuration;
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::detours::Detours;
use crate::region::PacketRegion;
use crate::{Congestion, InFlight, PacketError, PacketParameters, PacketRouting, Queues};
use channels::Channels;
use given_routes::GivenRoutes;
pub use given_routes::TablePlace;
use groups::GroupTable;
pub(crate) use outputs::OutputTable;
use outputs::OutputTables;
pub(crate) use switch_trees::SwitchTree;
use switches::SwitchTable;
use torus::TorusTable;

/// A machine whose messages are packets. Its regions are groups of hosts and switches.
#[derive(Debug)]
pub struct PacketMachine<'p> {
    pub(crate) platform: &'p Platform,
    pub(crate) parameters: PacketParameters,
    /// Region of each host.
    pub(crate) homes: Box<[u32]>,
    /// Nodes, region by region; in a region hosts come first.
    pub(crate) nodes: Vec<NodeEntry>,
    /// First node of each region, and the number of all.
    first_nodes: Vec<u32>,
    /// Output ports, node by node.
    pub(crate) ports: Vec<PortEntry>,
    /// Node of each input port; input ports are numbered node by node.
    pub(crate) input_nodes: Vec<u32>,
    /// Output port at the other end of each input port.
    pub(crate) input_ports: Vec<u32>,
    /// Output port of each link; `None` for links that join no nodes.
    link_ports: Vec<Option<u32>>,
    /// Bandwidths of links change.
    pub(crate) has_changes: bool,
    pub(crate) ways: Ways,
    /// A host chooses an output for each packet, and not for a message.
    pub(crate) routes_at_hosts: bool,
    /// Bound on the time of a full packet on the links of a detour between switches, or in a torus between hosts \[ps\].
    detour_time: u64,
    given_routes: GivenRoutes,
    /// Trees of the switches that carry out operations, by the numbers of communicators.
    pub(crate) trees: FxHashMap<u32, SwitchTree>,
    pub(crate) channels: Channels,
    /// Longest pause within a flowlet \[ps\].
    pub(crate) flowlet_gap: u64,
    /// Length of the windows in which switches are independent \[ps\].
    pub(crate) lookahead: u64,
    /// Length of the spans in which regions are independent.
    span: SimDuration,
}

/// The ways among which a routing chooses.
#[derive(Debug)]
pub(crate) enum Ways {
    /// The routes of the platform.
    Routes,
    /// All shortest ones.
    Shortest(OutputTables),
    /// Those over a third place, or not.
    Detours(Box<dyn Detours>),
}

/// A node of the graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeEntry {
    pub(crate) node: NodeId,
    pub(crate) first_port: u32,
    pub(crate) outputs: u32,
    pub(crate) first_input: u32,
    pub(crate) inputs: u32,
}

/// An output port, and the channel that leaves it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortEntry {
    pub(crate) picos_per_byte: f64,
    /// \[ps\]
    pub(crate) latency: u64,
    /// Input port at the other end.
    pub(crate) input: u32,
    pub(crate) link: LinkId,
}

/// Number of routes of each host that are checked before a run.
const CHECKED_ROUTES: u32 = 16;

/// Largest length of a window \[ps\]: instants in it, and in the one before, are sorted in 32 bits.
pub(crate) const MAX_WINDOW: u64 = 1 << 31;

impl Ways {
    /// Finds the ways of a routing. `places` has the place of each node among `nodes`.
    fn new(
        platform: &Platform,
        graph: &NetworkGraph,
        (parameters, rates): (&PacketParameters, &[f64]),
        (places, nodes): (&[u32], &[NodeEntry]),
        link_ports: &[Option<u32>],
    ) -> Result<Self, PacketError> {
        let routing = parameters.routing;
        let name = || routing.name().to_owned();
        if parameters.has_table() && !routing.avoids_links() {
            return Err(PacketError::UnusedTable { routing: name() });
        }
        if routing == PacketRouting::Minimal {
            return Ok(Self::Routes);
        }
        if routing.avoids_links() {
            return OutputTables::new((platform, graph, rates), parameters, places, nodes)
                .map(Self::Shortest);
        }
        if routing != PacketRouting::Valiant && parameters.queues == Queues::Fifo {
            return Err(PacketError::BlindRouting { routing: name() });
        }
        let layout = Layout::of_bare(platform);
        let table = match layout.as_ref().map(|layout| &layout.shape) {
            Some(NetworkShape::Dragonfly(shape)) => {
                GroupTable::new(shape, graph, routing, (places, nodes)).map(Self::over)
            }
            Some(NetworkShape::Torus { .. }) if routing == PacketRouting::Valiant => {
                layout.as_ref().and_then(|layout| TorusTable::new(layout, link_ports)).map(Self::over)
            }
            Some(NetworkShape::Switches(shape)) if routing != PacketRouting::Par => {
                SwitchTable::new(shape, (platform, graph, rates), parameters, (places, nodes))?
                    .map(Self::over)
            }
            _ => None,
        };
        table.ok_or_else(|| match platform.accelerators().next() {
            Some(_) => PacketError::Accelerators { routing: name() },
            None => PacketError::NoGroups { routing: name() },
        })
    }

    fn over(table: impl Detours + 'static) -> Self {
        Self::Detours(Box::new(table))
    }
}

impl<'p> PacketMachine<'p> {
    /// Makes an idle machine; `homes` has the region of each host, below `regions`.
    ///
    /// Rates and latencies are those of the platform.
    ///
    /// # Errors
    /// If the links of the platform form no graph, if one has no latency, and if parameters make no sense on it.
    ///
    /// # Panics
    /// If a host has no home.
    pub fn new(
        platform: &'p Platform,
        parameters: &PacketParameters,
        (homes, regions): (&[u32], u32),
    ) -> Result<Self, PacketError> {
        assert!(homes.len() == platform.hosts().len() && homes.iter().all(|&home| home < regions));
        let PacketParameters { packet_bytes, header_bytes, .. } = *parameters;
        if packet_bytes == 0 {
            return Err(PacketError::EmptyPackets);
        }
        let longest = u64::from(packet_bytes) + u64::from(header_bytes);
        if longest > u64::from(u32::MAX) {
            return Err(PacketError::LongPackets { found: longest });
        }
        if parameters.queues == Queues::Credits && longest > parameters.buffer_bytes.into() {
            let (found, packet) = (parameters.buffer_bytes, longest as u32);
            return Err(PacketError::SmallBuffers { found, packet });
        }
        let flowlet_gap = SimDuration::try_from_secs_f64(parameters.flowlet_gap)
            .ok_or_else(|| PacketError::BadGap { found: parameters.flowlet_gap.to_string() })?;
        let is_unlimited = parameters.in_flight() == InFlight::Unlimited;
        match parameters.congestion {
            congestion @ (Congestion::Dctcp | Congestion::Dcqcn)
                if is_unlimited || parameters.queues == Queues::Credits =>
            {
                return Err(PacketError::NoMarks { congestion: congestion.name() });
            }
            Congestion::ReceiverCredits if is_unlimited => return Err(PacketError::NoFirstWindow),
            congestion if parameters.routing == PacketRouting::Reps => {
                let answers_are_credits = congestion == Congestion::ReceiverCredits;
                if is_unlimited || answers_are_credits || parameters.queues == Queues::Credits {
                    return Err(PacketError::NoFeedback);
                }
            }
            _ => {}
        }
        let graph = NetworkGraph::of(platform)?;
        let rates = degraded::rates(platform, &graph, parameters)?;
        let has_changes = changes::check(platform, &graph, parameters)?;
        let region_of = switch_regions::assign(&graph, homes);
        let mut order: Vec<u32> = (0..graph.nodes()).collect();
        order.sort_by_key(|&node| region_of[node as usize]);
        let mut places = vec![0; order.len()];
        (0..).zip(&order).for_each(|(place, &node)| places[node as usize] = place);
        let mut first_nodes = vec![0; regions as usize + 1];
        region_of.iter().for_each(|&region| first_nodes[region as usize + 1] += 1);
        (0..regions as usize).for_each(|region| first_nodes[region + 1] += first_nodes[region]);

        let (mut nodes, mut input_nodes) = (Vec::new(), Vec::new());
        let mut channel_inputs = vec![0; graph.channels().len()];
        let mut first_port = 0;
        for (place, &node) in (0..).zip(&order) {
            let node = NodeId::new(node);
            let [outputs, inputs] = [graph.outputs(node), graph.inputs(node)];
            let first_input = input_nodes.len() as u32;
            for (input, &channel) in (first_input..).zip(inputs) {
                channel_inputs[channel as usize] = input;
                input_nodes.push(place);
            }
            let [outputs, inputs] = [outputs, inputs].map(|channels| channels.len() as u32);
            nodes.push(NodeEntry { node, first_port, outputs, first_input, inputs });
            first_port += outputs;
        }
        let mut link_ports = vec![None; platform.links().len()];
        let mut ports = Vec::with_capacity(graph.channels().len());
        let (mut lookahead, mut span) = (MAX_WINDOW, SimDuration::from_picos(MAX_WINDOW));
        for NodeEntry { node, .. } in &nodes {
            for &number in graph.outputs(*node) {
                let channel = graph.channel(number);
                let link = platform.link(channel.link);
                let latency = SimDuration::try_from_secs_f64(link.latency);
                let Some(latency) = latency.filter(|&latency| latency > SimDuration::ZERO) else {
                    return Err(PacketError::NoLatency { link: link.name.clone() });
                };
                lookahead = lookahead.min(latency.as_picos());
                if region_of[channel.from.index()] != region_of[channel.to.index()] {
                    span = span.min(latency);
                }
                link_ports[channel.link.index()] = Some(ports.len() as u32);
                ports.push(PortEntry {
                    picos_per_byte: 1e12 / (link.bandwidth * rates[channel.link.index()]),
                    latency: latency.as_picos(),
                    input: channel_inputs[number as usize],
                    link: channel.link,
                });
            }
        }
        let ways = Ways::new(platform, &graph, (parameters, &rates), (&places, &nodes), &link_ports)?;
        let given_routes = GivenRoutes::new((platform, &graph, &rates), parameters)?;
        let mut input_ports = vec![0; input_nodes.len()];
        (0..)
            .zip(&ports)
            .for_each(|(port, entry): (u32, &PortEntry)| input_ports[entry.input as usize] = port);
        let mut machine = Self {
            platform,
            parameters: parameters.clone(),
            homes: homes.into(),
            nodes,
            first_nodes,
            ports,
            input_nodes,
            input_ports,
            link_ports,
            has_changes,
            routes_at_hosts: matches!(&ways, Ways::Detours(table) if table.routes_at_hosts()),
            ways,
            detour_time: 0,
            given_routes,
            trees: FxHashMap::default(),
            channels: Channels::NONE,
            flowlet_gap: flowlet_gap.as_picos(),
            lookahead,
            span,
        };
        machine.check_some_routes()?;
        machine.detour_time = machine.bound_detour_time();
        machine.channels = Channels::new(&machine)?;
        if let (Ways::Detours(table), PacketRouting::UgalG) = (&machine.ways, parameters.routing) {
            table.check_regions(&|node| machine.region_of(node))?;
        }
        Ok(machine)
    }

    /// Lets switches carry out the operations of communicators, which have numbers below 2^31 and are on two hosts or more.
    ///
    /// # Errors
    /// If output queues have credits, and if no switch is above all hosts of a communicator.
    pub fn with_communicators(
        mut self,
        communicators: impl IntoIterator<Item = (u32, Vec<HostId>)>,
    ) -> Result<Self, PacketError> {
        self.trees = switch_trees::find(&self, communicators)?;
        Ok(self)
    }

    /// Returns whether a packet with a path that reaches its destination stays there.
    #[inline]
    pub(crate) fn ends_at(&self, path: u32, dst: HostId) -> bool {
        !self.routes_at_hosts || matches!(&self.ways, Ways::Detours(table) if table.ends_at(path, dst))
    }

    /// Returns whether hosts forward packets of others, as in a torus.
    fn hosts_forward(&self) -> bool {
        let is_host = |node| self.host(node).is_some();
        self.nodes.iter().enumerate().filter(|(place, _)| is_host(*place as u32)).any(|(_, node)| {
            let ports = &self.ports[node.first_port as usize..(node.first_port + node.outputs) as usize];
            ports.iter().any(|port| is_host(self.input_nodes[port.input as usize]))
        })
    }

    /// Returns the number of links of the longest way that packets take.
    fn longest_way(&self) -> u32 {
        if let Ways::Shortest(outputs) = &self.ways {
            return outputs.longest_way();
        }
        let (mut links, mut longest) = (Vec::new(), 0);
        let hosts: Vec<HostId> = match Layout::of_bare(self.platform).map(|layout| layout.shape) {
            Some(NetworkShape::Switches(shape)) => shape.representative_hosts().map(HostId::new).collect(),
            _ => (0..self.homes.len() as u32).map(HostId::new).collect(),
        };
        for &src in &hosts {
            for &dst in hosts.iter().filter(|&&dst| dst != src) {
                if self.route(src, dst, &mut links).is_ok() {
                    longest = longest.max(links.len());
                }
            }
        }
        longest.max(self.given_routes.longest()) as u32
    }

    /// Checks routes that may be broken, so that a platform with such is refused before the run: those of a topology are whole, but for
    /// SimGrid's rule within the groups of dragonflies, which are alike; of other platforms some of each host.
    fn check_some_routes(&self) -> Result<(), RouteError> {
        let hosts = self.homes.len() as u32;
        let pairs: Vec<(u32, u32)> = match Layout::of_bare(self.platform).map(|layout| layout.shape) {
            Some(NetworkShape::Dragonfly(DragonflyShape { chassis, blades, nodes, .. })) => {
                let first_hosts = || (0..chassis * blades).map(|router| router * nodes);
                first_hosts().flat_map(|src| first_hosts().map(move |dst| (src, dst))).collect()
            }
            Some(_) => return Ok(()),
            None => {
                let steps = || (0..CHECKED_ROUTES).map(|number| 1 + number * hosts / CHECKED_ROUTES);
                (0..hosts).flat_map(|src| steps().map(move |step| (src, (src + step) % hosts))).collect()
            }
        };
        let mut links = Vec::new();
        for (src, dst) in pairs {
            let [src, dst] = [src, dst].map(HostId::new);
            if src != dst && self.route(src, dst, &mut links).is_ok() {
                self.check_route(src, dst, &links)?;
            }
        }
        Ok(())
    }

    /// Checks that each link of a route begins where the one before ends.
    pub(crate) fn check_route(&self, src: HostId, dst: HostId, links: &[LinkId]) -> Result<(), RouteError> {
        let ends = |link: LinkId| {
            let port = self.port_of(link);
            let from = self.nodes.partition_point(|node| node.first_port <= port) as u32 - 1;
            (from, self.input_nodes[self.ports[port as usize].input as usize])
        };
        for pair in links.windows(2) {
            if ends(pair[0]).1 != ends(pair[1]).0 {
                let [src, dst] = [src, dst].map(|host| self.platform.host(host).name.clone());
                let link = self.platform.link(pair[1]).name.clone();
                return Err(RouteError::Broken { src, dst, link });
            }
        }
        Ok(())
    }

    /// Lists the links of the route from one host to another.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn route(&self, src: HostId, dst: HostId, links: &mut Vec<LinkId>) -> Result<(), RouteError> {
        if let Some(given) = self.given_routes.links(src, dst) {
            links.clear();
            links.extend_from_slice(given);
            return Ok(());
        }
        self.platform.route(src, dst, links).map(drop)
    }

    /// Returns the number of regions.
    pub fn regions(&self) -> u32 {
        self.first_nodes.len() as u32 - 1
    }

    /// Returns the number of virtual channels of a link.
    pub fn virtual_channels(&self) -> u32 {
        self.channels.count
    }

    /// Returns the time in which regions do not depend on each other: the least latency of a link between two, or about two
    /// milliseconds if that is less.
    pub fn span(&self) -> SimDuration {
        self.span
    }

    /// Makes the idle regions of these numbers, in their order.
    pub fn make_regions<T: Copy + Send + Serialize + DeserializeOwned>(
        &self,
        numbers: impl Iterator<Item = u32>,
    ) -> Vec<PacketRegion<'_, 'p, T>> {
        numbers.map(|number| PacketRegion::new(self, number)).collect()
    }

    /// Returns the bytes of a packet that is not the last of its message.
    pub(crate) fn packet_size(&self) -> u32 {
        self.parameters.packet_bytes + self.parameters.header_bytes
    }

    /// Returns the number of packets of a message.
    pub(crate) fn packets_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.parameters.packet_bytes.into()).max(1)
    }

    /// Returns the nodes of a region.
    pub(crate) fn nodes_of(&self, region: u32) -> Range<u32> {
        self.first_nodes[region as usize]..self.first_nodes[region as usize + 1]
    }

    /// Returns the region of a node.
    pub(crate) fn region_of(&self, node: u32) -> u32 {
        self.first_nodes.partition_point(|&first| first <= node) as u32 - 1
    }

    /// Returns the region of an output port.
    pub(crate) fn region_of_port(&self, port: u32) -> u32 {
        self.region_of(self.nodes.partition_point(|node| node.first_port <= port) as u32 - 1)
    }

    /// Returns whether packets wait for credits.
    #[inline]
    pub(crate) fn has_credits(&self) -> bool {
        self.parameters.queues == Queues::Credits
    }

    /// Returns the region of a host.
    #[inline]
    pub(crate) fn home(&self, host: HostId) -> u32 {
        self.homes[host.index()]
    }

    /// Returns the host that a node is.
    #[inline]
    pub(crate) fn host(&self, node: u32) -> Option<HostId> {
        let number = self.nodes[node as usize].node.index();
        (number < self.homes.len()).then(|| HostId::new(number as u32))
    }

    /// Returns the output port of a link.
    ///
    /// # Panics
    /// If the link joins no nodes.
    pub(crate) fn port_of(&self, link: LinkId) -> u32 {
        self.link_ports[link.index()].expect("routes between hosts cross links between nodes")
    }
}
