//! The switches, links and network interfaces of a region.
//!
//! There is no queue of events. A packet that is sent is put into the ring of the input port at the other end, with the instant of its
//! arrival; since an output is a queue of packets, that instant is known at once. What reaches a switch in a window of the least latency
//! of a link was sent before the window. So in each window, each switch that has arrivals gathers them from its inputs, sorts them by
//! time and input port, and sends them on: one step for each hop of a packet, and an order that depends on nothing but the switch.
//!
//! Hosts act within windows, and a host can send at any instant. Its own output queue follows *behind* time: packets that leave a host
//! before an instant are sent when that instant has come, at the latest a window after they leave.

mod hosts;
mod injection;
mod routes;
mod state;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use netmodel::{HostId, RouteError};
use rustc_hash::FxHashMap;

use crate::machine::{MAX_WINDOW, PacketMachine};
use crate::packet::{MessageKey, Packet, below, choice};
use crate::parameters::{PacketRouting, Switching};
use injection::{Injection, Stream};
use routes::StaticRoutes;
pub(crate) use routes::latency;
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
    rings: Vec<VecDeque<Packet>>,
    /// Picoseconds per byte of the channel to each input port, which cut-through needs.
    input_rates: Vec<f64>,
    /// A bit for each input port whose ring is not empty, in words of each node.
    occupied: Vec<u64>,
    /// First arrivals at switches.
    arrivals: Agenda,
    /// Instants at which hosts have to be caught up with.
    deadlines: Agenda,
    /// Messages that hosts send, by the output ports of hosts, which come first.
    injections: Vec<Injection>,
    streams: Vec<Stream>,
    free_streams: Vec<u32>,
    /// Place of each message among the streams.
    stream_places: FxHashMap<MessageKey, u32>,
    routes: StaticRoutes,
    /// Packets of messages that have arrived in part, where packets overtake each other.
    partial: FxHashMap<MessageKey, Partial>,
    /// What happens at hosts, for the region to take.
    pub(crate) reports: Vec<Report>,
    /// Messages to other regions.
    pub(crate) outgoing: Vec<(u32, FabricMessage)>,
    pub(crate) counts: FabricCounts,
    /// All arrivals of packets at hosts, if they are recorded.
    pub(crate) recorded: Option<Vec<PacketArrival>>,
    gathered: Vec<Packet>,
    /// Instants at which the last bytes of gathered packets are there, with cut-through.
    tails: Vec<u64>,
    /// Order of the gathered packets.
    order: Vec<u64>,
    /// Output ports of the gathered packets that hosts send themselves.
    injected: Vec<u32>,
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
    /// An acknowledgement lets the message continue.
    Resumed,
}

/// What one region sends to the network of another.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum FabricMessage {
    /// A packet reaches an input port; `tail` is the arrival of its last byte.
    Packet { input: u32, packet: Packet, tail: u64 },
    /// A packet of a message has arrived.
    Acknowledgement { at: u64, message: MessageKey },
}

#[derive(Clone, Copy, Debug)]
struct Node {
    first_port: u32,
    outputs: u32,
    first_input: u32,
    inputs: u32,
    /// First word of `occupied`.
    first_word: u32,
    /// A channel leads to another region.
    is_at_border: bool,
    /// Number in the graph, which hashes are of.
    number: u32,
    /// Instant in the agenda; [`IDLE`] if there is none.
    next: u64,
}

const IDLE: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct Port {
    /// \[ps\]
    free_at: u64,
    picos_per_byte: f64,
    latency: u64,
    far: Far,
}

/// Other end of a channel.
#[derive(Clone, Copy, Debug)]
enum Far {
    Switch {
        node: u32,
        ring: u32,
    },
    Host {
        host: HostId,
        node: u32,
        ring: u32,
    },
    /// A node of another region; the input port as the machine counts.
    Remote {
        region: u32,
        input: u32,
    },
}

/// What has arrived of a message.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Partial {
    packets: u32,
    /// Number of all packets, once the last one is there.
    all: Option<u32>,
    /// Latest arrival so far.
    latest: u64,
}

/// A queue of nodes by an instant of each. A node has a valid entry if it is that of its `next`.
#[derive(Debug, Default)]
struct Agenda(BinaryHeap<Reverse<(u64, u32)>>);

impl Agenda {
    /// Moves the instant of a node forward, if it is later.
    #[inline]
    fn set(&mut self, nodes: &mut [Node], node: u32, at: u64) {
        if at < nodes[node as usize].next {
            nodes[node as usize].next = at;
            self.0.push(Reverse((at, node)));
        }
    }

    /// Returns the first instant.
    #[inline]
    fn next(&mut self, nodes: &[Node]) -> u64 {
        while let Some(&Reverse((at, node))) = self.0.peek() {
            if nodes[node as usize].next == at {
                return at;
            }
            self.0.pop();
        }
        IDLE
    }

    /// Takes the nodes of instants before `end`, in the order of nodes.
    fn take_before(&mut self, nodes: &mut [Node], end: u64, due: &mut Vec<u32>) {
        due.clear();
        while let Some(&Reverse((at, node))) = self.0.peek()
            && at < end
        {
            self.0.pop();
            let next = &mut nodes[node as usize].next;
            if *next == at {
                *next = IDLE;
                due.push(node);
            }
        }
        due.sort_unstable();
    }
}

impl<'m, 'p> Fabric<'m, 'p> {
    /// Makes the idle network of a region.
    pub(crate) fn new(machine: &'m PacketMachine<'p>, region: u32) -> Self {
        let range = machine.nodes_of(region);
        let entries = &machine.nodes[range.start as usize..range.end as usize];
        let (first_node, empty) = (range.start, (0, 0));
        let (first_port, first_input) =
            entries.first().map_or(empty, |entry| (entry.first_port, entry.first_input));
        let mut words = 0;
        let node = |entry: &crate::machine::NodeEntry| {
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
            Port { free_at: 0, picos_per_byte: port.picos_per_byte, latency: port.latency, far }
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
        let host_ports = nodes[..hosts as usize].iter().map(|node| node.outputs).sum::<u32>();
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
            rings: vec![VecDeque::new(); inputs as usize],
            input_rates,
            occupied: vec![0; words as usize],
            arrivals: Agenda::default(),
            deadlines: Agenda::default(),
            injections: vec![Injection::default(); host_ports as usize],
            streams: Vec::new(),
            free_streams: Vec::new(),
            stream_places: FxHashMap::default(),
            routes: StaticRoutes::default(),
            partial: FxHashMap::default(),
            reports: Vec::new(),
            outgoing: Vec::new(),
            counts: FabricCounts::default(),
            recorded: None,
            gathered: Vec::new(),
            tails: Vec::new(),
            order: Vec::new(),
            injected: Vec::new(),
            due: Vec::new(),
        }
    }

    /// Returns the instant at which [`Fabric::advance`] has something to do \[ps\].
    pub(crate) fn next_event(&mut self) -> Option<u64> {
        let next = self.arrivals.next(&self.nodes).min(self.deadlines.next(&self.nodes));
        (next != IDLE).then_some(next)
    }

    /// Counts spans from an instant at which none is in progress, and sends what leaves hosts before it.
    pub(crate) fn count_spans_from(&mut self, origin: u64) {
        self.origin = origin;
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
        let end = now.saturating_add(self.machine.lookahead).min(self.span_end(now));
        let is_window = self.arrivals.next(&self.nodes) <= now;
        // A host's packet that leaves before now arrives before the end of the window at the earliest if its deadline is before that.
        let due_before = if is_window { now.saturating_add(self.machine.lookahead) } else { now + 1 };
        self.catch_up(now, due_before);
        if is_window {
            let mut due = std::mem::take(&mut self.due);
            self.arrivals.take_before(&mut self.nodes, end, &mut due);
            for &node in &due {
                self.forward_all(node, now, end);
            }
            self.due = due;
        }
    }

    /// Forwards what arrives at a switch before `end`.
    fn forward_all(&mut self, node: u32, now: u64, end: u64) {
        let next = self.gather(node, now, end);
        self.order.sort_unstable();
        let order = std::mem::take(&mut self.order);
        for &key in &order {
            let place = key as u32 as usize;
            let packet = self.gathered[place];
            let (port, packet) = self.route(node, packet);
            let tail = self.tails.get(place).copied();
            self.send(port, packet, tail);
        }
        self.counts.hops += order.len() as u64;
        self.order = order;
        self.arrivals.set(&mut self.nodes, node, next);
    }

    /// Takes the packets that arrive at a node before `end` from its inputs, with keys by time and input port; returns the first arrival
    /// that is left.
    fn gather(&mut self, node: u32, now: u64, end: u64) -> u64 {
        let Node { first_input, inputs, first_word, .. } = self.nodes[node as usize];
        self.gathered.clear();
        self.order.clear();
        self.tails.clear();
        let header = self.cut_through_header();
        let base = now.saturating_sub(MAX_WINDOW);
        let mut next = IDLE;
        for word in 0..inputs.div_ceil(u64::BITS) {
            let occupied = (first_word + word) as usize;
            let mut left = self.occupied[occupied];
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                let input = (first_input + word * u64::BITS + bit) as usize;
                let ring = &mut self.rings[input];
                while let Some(packet) = ring.front() {
                    if packet.at >= end {
                        next = next.min(packet.at);
                        break;
                    }
                    self.order.push((packet.at - base) << 32 | self.gathered.len() as u64);
                    if let Some(header) = header {
                        let rest = f64::from(packet.bytes - header.min(packet.bytes));
                        self.tails.push(packet.at + picos(rest * self.input_rates[input]));
                    }
                    self.gathered.push(*packet);
                    ring.pop_front();
                }
                if ring.is_empty() {
                    self.occupied[occupied] &= !(1 << bit);
                }
            }
        }
        next
    }

    /// Returns the output port that a packet takes at a node.
    #[inline]
    fn route(&self, node: u32, mut packet: Packet) -> (u32, Packet) {
        let Some(outputs) = &self.machine.outputs else {
            let port = self.routes.port(packet.path);
            packet.path += 1;
            return (port, packet);
        };
        packet.path += 1;
        let ports = outputs.toward(self.first_node + node, packet.message.dst);
        let port = match *ports {
            [port] => port,
            _ => self.choose(ports, node, &packet),
        };
        (port - self.first_port, packet)
    }

    /// Chooses among several output ports.
    fn choose(&self, ports: &[u32], node: u32, packet: &Packet) -> u32 {
        let Self { machine, nodes, .. } = self;
        let number = if machine.parameters.routing == PacketRouting::Ecmp { 0 } else { packet.number() };
        let hash = choice(machine.parameters.seed, packet.message, number, nodes[node as usize].number);
        let first = below(ports.len(), hash);
        if machine.parameters.routing != PacketRouting::Adaptive {
            return ports[first];
        }
        let free_at = |port: u32| self.ports[(port - self.first_port) as usize].free_at.max(packet.at);
        let (before, after) = ports.split_at(first);
        // The first of equal ones, from the hashed one on.
        after
            .iter()
            .chain(before)
            .copied()
            .min_by_key(|&port| free_at(port))
            .expect("there is a way to a host")
    }

    /// Sends a packet on a channel when it may leave and the channel is free; `tail` is the arrival of its last byte, if that is later than
    /// it may leave. Returns the instant at which the last byte has left.
    #[inline]
    fn send(&mut self, port: u32, mut packet: Packet, tail: Option<u64>) -> u64 {
        let header = self.cut_through_header();
        let Port { free_at, picos_per_byte, latency, far } = &mut self.ports[port as usize];
        let time = transmission(packet.bytes, *picos_per_byte);
        let mut start = packet.at.max(*free_at);
        if let Some(tail) = tail {
            start = start.max(tail.saturating_sub(time));
        }
        let left = start.saturating_add(time);
        *free_at = left;
        let arrival = left.saturating_add(*latency);
        packet.at = match header {
            None => arrival,
            Some(header) => {
                let head = picos(f64::from(header.min(packet.bytes)) * *picos_per_byte);
                start.saturating_add(head.max(1)).saturating_add(*latency)
            }
        };
        match *far {
            Far::Switch { node, ring } => {
                if self.push(node, ring, packet) {
                    self.arrivals.set(&mut self.nodes, node, packet.at);
                }
            }
            Far::Host { host, .. } if host == packet.message.dst => self.deliver(packet, arrival),
            Far::Host { node, ring, .. } => {
                if self.push(node, ring, packet) {
                    let deadline = self.deadline(node, packet.at);
                    self.deadlines.set(&mut self.nodes, node, deadline);
                }
            }
            Far::Remote { region, input } => {
                packet.path -= self.routes.known_pair(packet.message).path;
                self.outgoing.push((region, FabricMessage::Packet { input, packet, tail: arrival }));
            }
        }
        left
    }

    /// Puts a packet into a ring; returns whether it is the only one there.
    #[inline]
    fn push(&mut self, node: u32, ring: u32, packet: Packet) -> bool {
        let packets = &mut self.rings[ring as usize];
        let was_empty = packets.is_empty();
        packets.push_back(packet);
        if was_empty {
            let Node { first_input, first_word, .. } = self.nodes[node as usize];
            let input = ring - first_input;
            self.occupied[(first_word + input / u64::BITS) as usize] |= 1 << (input % u64::BITS);
        }
        was_empty
    }

    /// Takes in a packet whose last byte reaches its destination at an instant.
    fn deliver(&mut self, packet: Packet, at: u64) {
        let message = packet.message;
        self.counts.packets += 1;
        if let Some(recorded) = &mut self.recorded {
            recorded.push(PacketArrival { at, message, number: packet.number() });
        }
        if packet.is_acknowledged() {
            let region = self.machine.home(message.src);
            if region == self.region {
                self.acknowledge(message, at);
            } else {
                self.outgoing.push((region, FabricMessage::Acknowledgement { at, message }));
            }
        }
        if packet.is_last() && (packet.number() == 0 || self.machine.parameters.routing.keeps_order()) {
            self.reports.push(Report { at, message, kind: ReportKind::Arrived });
        } else if !self.machine.parameters.routing.keeps_order() {
            let partial = self.partial.entry(message).or_default();
            partial.packets += 1;
            partial.latest = partial.latest.max(at);
            if packet.is_last() {
                partial.all = Some(packet.number() + 1);
            }
            if partial.all == Some(partial.packets) {
                let at = partial.latest;
                self.partial.remove(&message);
                self.reports.push(Report { at, message, kind: ReportKind::Arrived });
            }
        }
    }

    /// Receives what another region sent.
    ///
    /// # Errors
    /// If there is no route for a packet, which its sender has found.
    pub(crate) fn receive(&mut self, message: FabricMessage) -> Result<(), RouteError> {
        match message {
            FabricMessage::Acknowledgement { at, message } => self.acknowledge(message, at),
            FabricMessage::Packet { input, mut packet, tail } => {
                let node = self.machine.input_nodes[input as usize];
                let (place, ring) = (node - self.first_node, input - self.first_input);
                let host = self.machine.host(node);
                if host == Some(packet.message.dst) {
                    self.deliver(packet, tail);
                    return Ok(());
                }
                let MessageKey { src, dst, .. } = packet.message;
                packet.path += self.routes.pair(self.machine, self.first_port, (src, dst))?.path;
                if self.push(place, ring, packet) {
                    match host {
                        None => self.arrivals.set(&mut self.nodes, place, packet.at),
                        Some(_) => {
                            let deadline = self.deadline(place, packet.at);
                            self.deadlines.set(&mut self.nodes, place, deadline);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the number of bytes of a header, with cut-through.
    #[inline]
    fn cut_through_header(&self) -> Option<u32> {
        let parameters = &self.machine.parameters;
        (parameters.switching == Switching::CutThrough).then_some(parameters.header_bytes)
    }
}

/// Returns the time for which a packet occupies a channel \[ps\]. One without bytes takes a picosecond, so that packets follow each other.
#[inline]
fn transmission(bytes: u32, picos_per_byte: f64) -> u64 {
    picos(f64::from(bytes) * picos_per_byte).max(1)
}

/// Rounds picoseconds to the nearest integer.
#[inline]
pub(crate) fn picos(picos: f64) -> u64 {
    (picos + 0.5) as u64
}
