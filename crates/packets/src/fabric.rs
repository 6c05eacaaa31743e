//! The switches, links and network interfaces of a region.
//!
//! There is no queue of events. A packet that is sent is put into the ring of the input port at the other end, with the instant of its
//! arrival; since an output is a queue of packets, that instant is known at once. What reaches a switch in a window of the least latency
//! of a link was sent before the window. So in each window, each switch that has arrivals gathers them from its inputs, sorts them by
//! time and input port, and sends them on: one step for each hop of a packet, and an order that depends on nothing but the switch.
//!
//! Hosts act within windows, and a host can send at any instant. Its own output queue follows *behind* time: packets that leave a host
//! before an instant are sent when that instant has come, at the latest a window after they leave. So do messages that wait: they resume
//! in the order of time among these packets.

mod construction;
mod control;
mod credits;
mod delivery;
mod flowlets;
mod forwarding;
mod hosts;
mod injection;
mod loads;
mod nodes;
mod operations;
mod pacing;
mod ring;
mod routes;
mod state;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::detours::{Crossing, Detours};
use crate::machine::{OutputTable, PacketMachine, Ways};
use crate::packet::{MessageKey, Packet, below, choice};
use crate::parameters::PacketRouting;
pub(crate) use credits::Buffers;
use delivery::Partial;
use flowlets::Flowlets;
use injection::{Answer, Injection, Stream};
use loads::Loads;
use nodes::{IDLE, Node, NodeQueue, Port};
use operations::{Combination, CombinationKey};
use pacing::Pacing;
use ring::Ring;
use routes::StaticRoutes;
pub(crate) use state::visit_by_message;

/// The network of a region.
#[derive(Debug)]
pub(crate) struct Fabric<'m, 'p> {
    machine: &'m PacketMachine<'p>,
    region: u32,
    /// First node, output port and input port of the region: numbers in it count from there.
    first_node: u32,
    first_port: u32,
    first_input: u32,
    /// Number of the nodes that are hosts; they come first.
    hosts: u32,
    /// Instant from which spans are counted \[ps\].
    origin: u64,
    nodes: Vec<Node>,
    ports: Vec<Port>,
    /// Packets on their way to each input port, in the order of their arrivals.
    rings: Vec<Ring>,
    /// Picoseconds per byte of the channel to each input port, which cut-through needs.
    input_rates: Vec<f64>,
    /// A bit for each input port whose ring is not empty, in words of each node.
    occupied: Vec<u64>,
    /// First arrivals at switches.
    arrivals: NodeQueue,
    /// Instants at which hosts have to be caught up with.
    deadlines: NodeQueue,
    /// Messages that hosts send, by the output ports of hosts, which come first.
    injections: Vec<Injection>,
    streams: Vec<Stream>,
    free_streams: Vec<u32>,
    /// Place of each message among the streams.
    stream_places: FxHashMap<MessageKey, u32>,
    routes: StaticRoutes,
    /// Packets of messages that have arrived in part, where packets overtake each other.
    partial: FxHashMap<MessageKey, Partial>,
    /// Packets of operations that wait in switches for those of other hosts.
    combinations: BTreeMap<CombinationKey, Combination>,
    /// What happens at hosts, for the region to take.
    pub(crate) reports: Vec<Report>,
    /// Messages to other regions.
    pub(crate) outgoing: Vec<(u32, FabricMessage)>,
    pub(crate) counts: FabricCounts,
    /// All arrivals of packets at hosts, if they are recorded.
    pub(crate) recorded: Option<Vec<PacketArrival>>,
    /// What links carry, if it is recorded.
    pub(crate) loads: Option<Box<Loads>>,
    /// Packets are marked that meet long queues.
    marks: bool,
    /// Only queues delay packets, which are stored and forwarded at constant rates, and neither marked nor recorded.
    is_plain: bool,
    /// Credits of the receivers, if they hand out some.
    pacing: Option<Box<Pacing>>,
    /// Ways of flowlets, if packets are routed by them.
    flowlets: Option<Box<Flowlets>>,
    /// With credits.
    buffers: Option<Box<Buffers>>,
    /// Packets that leave a node now, by time and input port.
    order: Vec<u64>,
    /// Packets that a host sends itself, with their output ports.
    injected: Vec<(Packet, u32)>,
    due: Vec<u32>,
}

/// Work of the switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FabricCounts {
    /// Packets that arrived at hosts.
    pub(crate) packets: u64,
    /// Links that packets crossed.
    pub(crate) hops: u64,
}

/// An arrival of a packet at a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketArrival {
    /// Arrival of the last byte \[ps\].
    pub at: u64,
    /// The message.
    pub message: MessageKey,
    /// Number of the packet in the message.
    pub number: u32,
}

/// Something that happens at a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(crate) struct Report {
    /// \[ps\]
    pub(crate) at: u64,
    pub(crate) kind: ReportKind,
    pub(crate) message: MessageKey,
}

/// Kinds of reports, in the order in which those of one instant are dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(crate) enum ReportKind {
    /// The last byte has arrived.
    Arrived,
    /// The last byte has left.
    Left,
    /// A packet has arrived, and receivers hand out credits.
    Received,
    /// The receiver may hand out credits again.
    Granting,
}

/// What one region sends to the network of another.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum FabricMessage {
    /// A packet reaches an input port; `tail` is the arrival of its last byte.
    Packet { input: u32, packet: Packet, tail: u64 },
    /// A packet of a message has arrived.
    Acknowledgement { message: MessageKey, answer: Answer },
    /// The buffer of a channel behind an output port has room again, of which the port learns at an instant.
    Credit { port: u32, channel: u32, back: u64, bytes: u32 },
}

impl Fabric<'_, '_> {
    /// Returns the instant at which [`Fabric::advance`] has something to do \[ps\].
    pub(crate) fn next_event(&mut self) -> Option<u64> {
        let next = self.arrivals.next(&self.nodes).min(self.deadlines.next(&self.nodes));
        (next != IDLE).then_some(next)
    }

    /// Counts spans from an instant at which none is in progress, and sends what leaves hosts before it.
    pub(crate) fn count_spans_from(&mut self, origin: u64) {
        self.origin = origin;
        // What goes to other regions has to leave before the ends of other spans than until now.
        for node in 0..self.hosts {
            if self.nodes[node as usize].is_at_border {
                self.set_deadline(node);
            }
        }
        self.catch_up(origin, origin.saturating_add(self.machine.lookahead));
    }

    /// Returns the end of the span of an instant, until when all that other regions have sent is known.
    fn span_end(&self, at: u64) -> u64 {
        if self.machine.regions() == 1 {
            return u64::MAX;
        }
        let span = self.machine.span().as_picos();
        (self.origin + at.saturating_sub(self.origin) / span * span).saturating_add(span)
    }

    /// Does what is to be done now: catches up with hosts, and forwards what arrives at switches in the window that begins now. All that
    /// hosts send before this instant has been submitted.
    pub(crate) fn advance(&mut self, now: u64) {
        self.sample_loads(now);
        let end = now.saturating_add(self.machine.lookahead).min(self.span_end(now));
        let is_window = self.arrivals.next(&self.nodes) <= now;
        // A host's packet that leaves before now arrives before the end of the window at the earliest if its deadline is before that.
        let due_before = if is_window { now.saturating_add(self.machine.lookahead) } else { now + 1 };
        self.catch_up(now, due_before);
        if is_window {
            let mut due = std::mem::take(&mut self.due);
            self.arrivals.take_before(&mut self.nodes, end, &mut due);
            let mut buffers = self.buffers.take();
            for &node in &due {
                let next = match &mut buffers {
                    None => self.forward_all(node, now, end),
                    Some(buffers) => self.forward_with_credits(buffers, node, now, end),
                };
                self.arrivals.set(&mut self.nodes, node, next);
            }
            (self.due, self.buffers) = (due, buffers);
        }
    }

    /// Returns the output port that a packet takes at a node, and moves it on; with credits, adaptive routings look at the `buffers`.
    #[inline(always)]
    fn route(&mut self, node: u32, packet: &mut Packet, buffers: Option<&Buffers>) -> u32 {
        let machine = self.machine;
        let tables = match &machine.ways {
            Ways::Routes => {
                let port = self.routes.port(packet.path);
                packet.path += 1;
                return port;
            }
            Ways::Shortest(tables) => tables,
            Ways::Detours(table) => return self.route_over_third(&**table, node, packet, buffers),
        };
        packet.path += 1;
        if let Some(always) = tables.always() {
            return self.output(always, node, packet, buffers) - self.first_port;
        }
        let mut port = self.output(tables.at(packet.at), node, packet, buffers);
        // A packet that cannot leave before the link fails goes around it.
        for (begin, table) in tables.after(packet.at) {
            let start = packet.at.max(self.ports[(port - self.first_port) as usize].free_at);
            if machine.transmit(port, start, packet.bytes, |_, _| {}) <= begin {
                break;
            }
            if machine.is_off(port, begin) {
                port = self.output(table, node, packet, buffers);
            }
        }
        port - self.first_port
    }

    /// Returns the output port of a table that a packet takes at a node.
    #[inline]
    fn output(&mut self, table: &OutputTable, node: u32, packet: &Packet, buffers: Option<&Buffers>) -> u32 {
        let outputs = table.at_node(self.first_node + node).toward(packet.message.dst);
        match *outputs.0 {
            [port] => port,
            _ => self.choose(outputs, node, packet, buffers),
        }
    }

    /// Returns the output port that a packet takes at a node, over a third place or not, and moves it on.
    fn route_over_third(
        &self,
        table: &dyn Detours,
        node: u32,
        packet: &mut Packet,
        buffers: Option<&Buffers>,
    ) -> u32 {
        let (machine, first_port) = (self.machine, self.first_port);
        let loads = buffers.map(|buffers| (buffers, first_port));
        let crossing = Crossing { machine, node: self.first_node + node, packet, loads };
        let only_cable = || (machine.nodes[crossing.node as usize].first_port, crossing.packet.path);
        let (port, path) = table.route(&crossing).unwrap_or_else(only_cable);
        packet.path = path;
        port - first_port
    }

    /// Returns the virtual channel of the link that a packet crosses or has crossed last.
    #[inline]
    fn channel_of(&self, packet: &Packet) -> u32 {
        match self.machine.ways {
            Ways::Routes => self.routes.channel(packet.path - 1),
            Ways::Shortest(_) | Ways::Detours(_) => self.machine.channels.of_path(packet.path),
        }
    }

    /// Chooses among several output ports.
    #[inline(always)]
    fn choose(
        &mut self,
        (ports, shares): (&[u32], &[u32]),
        node: u32,
        packet: &Packet,
        buffers: Option<&Buffers>,
    ) -> u32 {
        let Self { machine, nodes, .. } = &*self;
        let number = match machine.parameters.routing {
            PacketRouting::Ecmp => 0,
            PacketRouting::Reps => packet.entropy().into(),
            _ => packet.number(),
        };
        let hash = choice(machine.parameters.seed, packet.message, number, nodes[node as usize].number);
        let first = first_choice((ports, shares), hash);
        match machine.parameters.routing.chooses_by_load() {
            true => self.choose_by_load(ports, first, node, packet, buffers),
            false => ports[first],
        }
    }

    /// Chooses the output port of a flowlet, or the one with the least load; the first of equal ones, from one on.
    #[inline(never)]
    fn choose_by_load(
        &mut self,
        ports: &[u32],
        first: usize,
        node: u32,
        packet: &Packet,
        buffers: Option<&Buffers>,
    ) -> u32 {
        if let Some(flowlets) = &mut self.flowlets
            && let Some(port) = flowlets.continued(node, packet, ports)
        {
            return port;
        }
        let load = |port: u32| {
            let port = port - self.first_port;
            match buffers {
                None => self.ports[port as usize].free_at.max(packet.at),
                Some(buffers) => buffers.backlog(port, packet.at),
            }
        };
        let (before, after) = ports.split_at(first);
        let port = after.iter().chain(before).copied().min_by_key(|&port| load(port));
        let port = port.expect("there is a way to a host");
        if let Some(flowlets) = &mut self.flowlets {
            flowlets.begin(node, packet, port);
        }
        port
    }
}

/// Returns the places of the bits that are set in a word, in their order.
#[inline]
fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        let is_set = word != 0;
        word &= word.wrapping_sub(1);
        is_set.then_some(bit)
    })
}

/// Returns the place of the output port that a hash chooses, in shares or among alike ones.
#[inline]
pub(crate) fn first_choice((ports, shares): (&[u32], &[u32]), hash: u64) -> usize {
    match shares {
        [] => below(ports.len(), hash),
        _ => shares.partition_point(|&end| end < (hash >> 32) as u32),
    }
}

/// Returns the time for which a packet occupies a channel \[ps\]. One without bytes takes a picosecond, so that packets follow each other.
#[inline]
pub(crate) fn transmission(bytes: u32, picos_per_byte: f64) -> u64 {
    picos(f64::from(bytes) * picos_per_byte).max(1)
}

/// Rounds picoseconds to the nearest integer.
#[inline]
pub(crate) fn picos(picos: f64) -> u64 {
    (picos + 0.5) as u64
}
