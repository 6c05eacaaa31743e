//! Packets in switches, from the input ports to the next nodes.

use netmodel::HostId;

use super::nodes::{Far, IDLE, Node, Port};
use super::{Fabric, FabricMessage, bits, picos};
use crate::machine::{MAX_WINDOW, OutputTable, Ways};
use crate::packet::{MessageKey, Packet};
use crate::parameters::Switching;

impl Fabric<'_, '_> {
    /// Forwards what arrives at a switch before `end`; returns the first arrival after that.
    pub(super) fn forward_all(&mut self, node: u32, now: u64, end: u64) -> u64 {
        let next = self.list_arrivals(node, now, end);
        self.order.sort_unstable();
        let order = std::mem::take(&mut self.order);
        self.counts.hops += order.len() as u64;
        let table = match &self.machine.ways {
            Ways::Shortest(tables) if self.is_plain => tables.always(),
            _ => None,
        };
        match table {
            Some(table) => self.forward_by_table(node, &order, table),
            None => self.forward_in_order(node, &order),
        }
        self.order = order;
        next
    }

    /// Forwards listed packets.
    fn forward_in_order(&mut self, node: u32, order: &[u64]) {
        for &key in order {
            let input = key as u32;
            let mut packet = self.take_arrival(node, input);
            let tail = self.tail_of(&packet, input);
            if packet.message.communicator().is_some() {
                self.counts.hops -= 1;
                self.forward_in_tree(node, &packet, tail, None);
                continue;
            }
            let port = self.route(node, &mut packet, None);
            self.send(port, &packet, (packet.at, packet.path), tail);
        }
    }

    /// Forwards listed packets whose outputs are in a table, where only queues delay them.
    fn forward_by_table(&mut self, node: u32, order: &[u64], table: &OutputTable) {
        let outputs = table.at_node(self.first_node + node);
        for &key in order {
            let packet = self.take_arrival(node, key as u32);
            if packet.message.communicator().is_some() {
                self.counts.hops -= 1;
                self.forward_in_tree(node, &packet, None, None);
                continue;
            }
            let ports = outputs.toward(packet.message.dst);
            let port = match *ports.0 {
                [port] => port,
                _ => self.choose(ports, node, &packet, None),
            };
            self.send(port - self.first_port, &packet, (packet.at, packet.path + 1), None);
        }
    }

    /// Lists the packets that reach a node before `end`, by time and input port; returns the first arrival after that.
    pub(super) fn list_arrivals(&mut self, node: u32, now: u64, end: u64) -> u64 {
        let Node { first_input, inputs, first_word, .. } = self.nodes[node as usize];
        let Self { order, rings, occupied, .. } = self;
        order.clear();
        let base = now.saturating_sub(MAX_WINDOW);
        let mut next = IDLE;
        for word in 0..inputs.div_ceil(u64::BITS) {
            for bit in bits(occupied[(first_word + word) as usize]) {
                let input = first_input + word * u64::BITS + bit;
                let ring = &rings[input as usize];
                // Most have few packets, for which an iterator takes longer than places do.
                for packet in (0..).map_while(|place| ring.get(place)) {
                    if packet.at >= end {
                        next = next.min(packet.at);
                        break;
                    }
                    order.push((packet.at - base) << 32 | u64::from(input));
                }
            }
        }
        next
    }

    /// Takes the first packet of an input port.
    #[inline(always)]
    pub(super) fn take_arrival(&mut self, node: u32, input: u32) -> Packet {
        let ring = &mut self.rings[input as usize];
        let packet = ring.pop().expect("it is listed");
        if ring.is_empty() {
            let Node { first_input, first_word, .. } = self.nodes[node as usize];
            let place = input - first_input;
            self.occupied[(first_word + place / u64::BITS) as usize] &= !(1 << (place % u64::BITS));
        }
        packet
    }

    /// Sends a packet on a channel when the channel is free, from the instant on at which it may leave, with the path from there; `tail` is
    /// the arrival of its last byte, if that is later. Returns the instant at which the last byte has left.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        port: u32,
        packet: &Packet,
        (at, path): (u64, u32),
        tail: Option<u64>,
    ) -> u64 {
        if !self.is_plain {
            return self.send_in_general(port, packet.moved((at, path)), tail);
        }
        let full = self.machine.packet_size();
        let entry = &mut self.ports[port as usize];
        let left = at.max(entry.free_at).saturating_add(entry.time(packet.bytes, full));
        entry.free_at = left;
        let (far, arrival) = (entry.far, left.saturating_add(entry.latency));
        self.hand_over(far, packet, (arrival, path), arrival);
        left
    }

    /// Sends a packet where it may be marked or cut through, and rates may change or loads be recorded.
    #[inline(never)]
    fn send_in_general(&mut self, port: u32, mut packet: Packet, tail: Option<u64>) -> u64 {
        let time = self.ports[port as usize].time(packet.bytes, self.machine.packet_size());
        let Port { free_at: was_free_at, picos_per_byte, latency, far, .. } = self.ports[port as usize];
        if self.marks {
            let queued = was_free_at.saturating_sub(packet.at) as f64;
            if queued > f64::from(self.machine.parameters.mark_bytes) * picos_per_byte {
                packet.mark();
            }
        }
        let mut start = packet.at.max(was_free_at);
        if let Some(tail) = tail {
            start = start.max(tail.saturating_sub(time));
        }
        let left = if self.machine.has_changes {
            self.machine.transmit(self.first_port + port, start, packet.bytes, |_, _| {})
        } else {
            start.saturating_add(time)
        };
        self.ports[port as usize].free_at = left;
        let arrival = left.saturating_add(latency);
        if self.loads.is_some() {
            self.load(port, packet.bytes, start..left);
            self.contend(port, packet.at..was_free_at);
        }
        let at = self.cut_through_header().map_or(arrival, |header| {
            let head = picos(f64::from(header.min(packet.bytes)) * picos_per_byte);
            start.saturating_add(head.max(1)).saturating_add(latency)
        });
        self.hand_over(far, &packet, (at, packet.path), arrival);
        left
    }

    /// Lets the other end of a channel have a packet at an instant, with the path from there; its last byte arrives at another one.
    #[inline(always)]
    fn hand_over(&mut self, far: Far, packet: &Packet, (at, path): (u64, u32), arrival: u64) {
        match far {
            Far::Host { host, .. } if self.ends_at(host, packet.message, path) => {
                self.deliver(host, &packet.moved((at, path)), arrival);
            }
            Far::Switch { node, ring } | Far::Host { node, ring, .. } => {
                if self.push(node, ring, packet, (at, path)) {
                    self.set_arrival(node, at);
                }
            }
            Far::Remote { region, input } => {
                let mut packet = packet.moved((at, path));
                if let Ways::Routes = self.machine.ways
                    && packet.message.communicator().is_none()
                {
                    packet.path -= self.routes.known_pair(packet.message).path;
                }
                self.outgoing.push((region, FabricMessage::Packet { input, packet, tail: arrival }));
            }
        }
    }

    /// Returns whether a packet that reaches a host does not go on from there, as none does in an operation of switches.
    #[inline(always)]
    pub(super) fn ends_at(&self, host: HostId, message: MessageKey, path: u32) -> bool {
        (host == message.dst && self.machine.ends_at(path, host)) || message.communicator().is_some()
    }

    /// Takes in that the first packet on its way to a node reaches it at an instant.
    pub(super) fn set_arrival(&mut self, node: u32, at: u64) {
        if node < self.hosts {
            let deadline = self.deadline(node, at);
            self.deadlines.set(&mut self.nodes, node, deadline);
        } else {
            self.arrivals.set(&mut self.nodes, node, at);
        }
    }

    /// Puts a packet into a ring, with its arrival and path; returns whether it is the only one there.
    #[inline(always)]
    pub(super) fn push(&mut self, node: u32, ring: u32, packet: &Packet, (at, path): (u64, u32)) -> bool {
        let packets = &mut self.rings[ring as usize];
        let was_empty = packets.is_empty();
        packets.push(packet, (at, path));
        if was_empty {
            let Node { first_input, first_word, .. } = self.nodes[node as usize];
            let input = ring - first_input;
            self.occupied[(first_word + input / u64::BITS) as usize] |= 1 << (input % u64::BITS);
        }
        was_empty
    }

    /// Returns the number of bytes of a header, with cut-through.
    #[inline]
    pub(super) fn cut_through_header(&self) -> Option<u32> {
        let parameters = &self.machine.parameters;
        (parameters.switching == Switching::CutThrough).then_some(parameters.header_bytes)
    }

    /// Returns the instant at which the last byte of a packet is there whose header comes now by an input port, with cut-through.
    #[inline]
    pub(super) fn tail_of(&self, packet: &Packet, input: u32) -> Option<u64> {
        let header = self.cut_through_header()?;
        let rest = f64::from(packet.bytes - header.min(packet.bytes));
        Some(packet.at + picos(rest * self.input_rates[input as usize]))
    }
}
