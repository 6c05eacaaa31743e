//! Switches with input buffers and credits.
//!
//! A packet waits in the buffer of its input port and virtual channel. The first one of a buffer requests its output, which grants one
//! request at a time: when the output is free, and the buffer at the other end has room. When the last byte has left, the buffer here has
//! room again, and the sender learns of it a latency later. So does a host that takes in a packet, and a switch that takes one of an operation
//! into its memory, where the packets that go on from there wait for each output as in one more buffer.
//!
//! At one instant packets arrive first, by input port; then buffers and outputs that were busy are free; then outputs grant, by port.
//! Nothing that a node does reaches another one within a latency. So a switch does all of a window at once, as with output queues, and a
//! host follows behind time. What a node waits for besides packets are its own wakes.

mod buffers;
mod port_set;
mod sleeper;
mod state;

use std::ops::Range;

use super::nodes::{Far, IDLE, Node, Port};
use super::{Fabric, FabricMessage, Report, ReportKind};
use crate::machine::MAX_WINDOW;
use crate::packet::Packet;
use crate::parameters::{Arbitration, Crossbar, InFlight};
pub(crate) use buffers::Buffers;
use buffers::{INJECTION, Queue, Request, Waiting};
use sleeper::Sleeper;

impl Fabric<'_, '_> {
    /// Does all that happens at a node before `end`; returns the next instant at which something happens there. Instants are counted in
    /// the window from `now` on, or the one before.
    pub(super) fn forward_with_credits(
        &mut self,
        buffers: &mut Buffers,
        node: u32,
        now: u64,
        end: u64,
    ) -> u64 {
        let next = self.list_arrivals(node, now, end);
        self.order.sort_unstable();
        let order = std::mem::take(&mut self.order);
        let base = now.saturating_sub(MAX_WINDOW);
        let Node { first_port, outputs, .. } = self.nodes[node as usize];
        let ports = first_port..first_port + outputs;
        let publishes = buffers.published.is_some();
        let may_wait = node < self.hosts && self.machine.parameters.in_flight() == InFlight::Loop;
        buffers.touched.first = first_port;
        let mut arrivals = order.iter();
        let mut next_arrival = || arrivals.next().map_or((IDLE, 0), |key| (base + (key >> 32), *key as u32));
        let (mut arrival, mut input) = next_arrival();
        loop {
            let wake = buffers.next_wake(node);
            let at = arrival.min(wake);
            if may_wait && self.resume_with_credits(buffers, ports.clone(), (at, end)) {
                continue;
            }
            if at >= end {
                break;
            }
            if publishes {
                buffers.publish(node, ports.clone(), at);
            }
            while arrival == at {
                self.enqueue(buffers, node, input, at);
                (arrival, input) = next_arrival();
            }
            // Nothing that arrives wakes anybody at once.
            while wake == at
                && let Some(sleeper) = buffers.take_wake(node, at)
            {
                match sleeper {
                    Sleeper::Queue(queue) => self.request(buffers, node, queue, at),
                    Sleeper::Injection(port) => self.request_injection(buffers, node, port, at),
                    Sleeper::Output(port) => buffers.touched.insert(port),
                }
            }
            // Behind a packet that begins to leave the next one may request its output at once.
            while !buffers.touched.is_empty {
                buffers.granting.take_all(&mut buffers.touched);
                for word in 0..buffers.granting.words() {
                    for port in buffers.granting.take(word) {
                        self.arbitrate(buffers, node, port, at);
                    }
                }
            }
        }
        self.order = order;
        next.min(buffers.next_wake(node))
    }

    /// Lets the messages of a host continue that have waited until the first of all instants, if that is not after `at` and before `end`;
    /// returns whether there are any.
    fn resume_with_credits(
        &mut self,
        buffers: &mut Buffers,
        ports: Range<u32>,
        (at, end): (u64, u64),
    ) -> bool {
        let next = |port: u32| self.injections[port as usize].next_resume();
        let first = ports.clone().map(next).min().unwrap_or(IDLE);
        if first > at || first >= end {
            return false;
        }
        for port in ports {
            while self.injections[port as usize].next_resume() == first {
                self.resume(Some(buffers), port);
            }
        }
        true
    }

    /// Puts the next packet of an input port, which arrives now, into its buffer.
    fn enqueue(&mut self, buffers: &mut Buffers, node: u32, input: u32, at: u64) {
        let mut packet = self.take_arrival(node, input);
        let tail = self.tail_of(&packet, input);
        if packet.message.communicator().is_some() {
            self.give_credit_back(buffers, input * buffers.channels, packet.bytes, tail.unwrap_or(at));
            return self.forward_in_tree(node, &packet, tail, Some(buffers));
        }
        let tail = tail.unwrap_or(0);
        let queue = input * buffers.channels + self.channel_among(buffers.channels, &packet);
        let output = self.route(node, &mut packet, Some(buffers));
        let channel = self.channel_among(buffers.channels, &packet);
        buffers.outputs[output as usize].waiting += u64::from(packet.bytes);
        let packets = &mut buffers.queues[queue as usize].packets;
        packet.at = tail;
        packets.push_back(Waiting { packet, output, channel });
        if packets.len() == 1 {
            self.request(buffers, node, queue, at);
        }
    }

    /// Puts a packet of an operation of switches, which may leave by an output from an instant on, into the memory of the switch.
    pub(super) fn remember(&mut self, buffers: &mut Buffers, output: u32, packet: Packet, at: u64) {
        let queue = buffers.first_memory + output;
        buffers.outputs[output as usize].waiting += u64::from(packet.bytes);
        let packets = &mut buffers.queues[queue as usize].packets;
        packets.push_back(Waiting { packet, output, channel: 0 });
        if packets.len() == 1 {
            self.request(buffers, buffers.nodes[output as usize], queue, at);
        }
    }

    /// Returns the virtual channel of the last link of a packet, of so many.
    #[inline(always)]
    fn channel_among(&self, channels: u32, packet: &Packet) -> u32 {
        if channels == 1 { 0 } else { self.channel_of(packet) }
    }

    /// Lets the first packet of a buffer request its output as soon as it may leave.
    #[inline(always)]
    fn request(&mut self, buffers: &mut Buffers, node: u32, queue: u32, at: u64) {
        let Queue { packets, busy_until, .. } = &buffers.queues[queue as usize];
        let Some(&Waiting { packet: Packet { at: tail, born, bytes, .. }, output, channel }) =
            packets.front()
        else {
            return;
        };
        let port = self.ports[output as usize];
        // A faster output has to wait, so that the last byte is there in time.
        let begin = match tail {
            0 => 0,
            _ => tail.saturating_sub(port.time(bytes, self.machine.packet_size())),
        };
        let ready = begin.max(*busy_until);
        if ready > at {
            buffers.wake(node, ready, Sleeper::Queue(queue));
        } else {
            let request = Request { age: born, source: queue, bytes, channel };
            if buffers.request((node, output), request, port.free_at, at) {
                self.contend(output, at..port.free_at);
            }
        }
    }

    /// Lets the next packet of a host's own messages request its output.
    fn request_injection(&mut self, buffers: &mut Buffers, node: u32, port: u32, at: u64) {
        let injection = &self.injections[port as usize];
        let Some(&place) = injection.queue.front() else { return };
        let age = self.age(injection.free_at);
        let stream = &self.streams[place as usize];
        let bytes = stream.next_bytes(&self.machine.parameters);
        let (output, channel) = if self.machine.routes_at_hosts {
            let mut next = Packet::new(at, stream.message, stream.sent, false, bytes);
            let output = self.route(node, &mut next, Some(buffers));
            (output, self.channel_of(&next))
        } else {
            (port, 0)
        };
        let request = Request { age, source: INJECTION | port, bytes, channel };
        let free_at = self.ports[output as usize].free_at;
        if buffers.request((node, output), request, free_at, at) {
            self.contend(output, at..free_at);
        }
    }

    /// Returns the age of a packet that can leave its host from an instant on; 0 if it makes no difference.
    fn age(&self, since: u64) -> u64 {
        if self.machine.parameters.arbitration == Arbitration::Age { since } else { 0 }
    }

    /// Lets an output grant one of its requests, if it can.
    fn arbitrate(&mut self, buffers: &mut Buffers, node: u32, output: u32, at: u64) {
        if buffers.outputs[output as usize].requests.is_empty() {
            return;
        }
        let Port { free_at, latency, far, .. } = self.ports[output as usize];
        if free_at > at {
            // A request that came before has been granted now.
            buffers.wake(node, free_at, Sleeper::Output(output));
            self.contend(output, at..free_at);
            return;
        }
        let place = match buffers.choose(output, at) {
            Ok(place) => place,
            Err(IDLE) => return,
            Err(room_at) => {
                buffers.wake(node, room_at, Sleeper::Output(output));
                return;
            }
        };
        let entry = &mut buffers.outputs[output as usize];
        let Request { source, bytes, channel, .. } = entry.requests.swap_remove(place);
        entry.turn = source.wrapping_add(1);
        let room = (output * buffers.channels + channel) as usize;
        buffers.rooms[room].bytes -= u64::from(bytes);
        let mut own = None;
        let packet = if source & INJECTION == 0 {
            entry.waiting -= u64::from(bytes);
            let first = buffers.queues[source as usize].packets.front();
            &first.expect("it has requested the output").packet
        } else {
            &*own.insert(self.take_requested(buffers, node, source & !INJECTION, at))
        };
        let left = self.send(output, packet, (at, packet.path), None);
        let is_at_host = self.ends_behind(far, packet);
        match own {
            None => {
                let Queue { packets, busy_until, .. } = &mut buffers.queues[source as usize];
                packets.pop_front();
                if self.machine.parameters.crossbar == Crossbar::Serial {
                    *busy_until = left;
                }
                if source < buffers.first_memory {
                    self.give_credit_back(buffers, source, bytes, left);
                }
                self.request(buffers, node, source, at);
            }
            Some(packet) => {
                let port = source & !INJECTION;
                self.inject_next(buffers, port, &packet, left);
                if !self.injections[port as usize].queue.is_empty() {
                    self.contend(output, at..left);
                }
            }
        }
        self.counts.hops += 1;
        if is_at_host {
            // A host takes in what has arrived.
            buffers.rooms[room].add(left.saturating_add(2 * latency), bytes);
        }
        if !buffers.outputs[output as usize].requests.is_empty() {
            buffers.wake(node, left, Sleeper::Output(output));
            self.contend(output, at..left);
        }
    }

    /// Takes the packet of a host's own messages that has requested an output.
    fn take_requested(&mut self, buffers: &Buffers, node: u32, port: u32, at: u64) -> Packet {
        let born = self.age(self.injections[port as usize].free_at);
        let mut packet = self.take_injected(port, at).expect("it has requested the output");
        if self.machine.routes_at_hosts {
            self.route(node, &mut packet, Some(buffers));
        }
        packet.born = born;
        packet
    }

    /// Lets the next packet of a host's own messages follow one whose last byte leaves at an instant.
    fn inject_next(&mut self, buffers: &mut Buffers, port: u32, packet: &Packet, left: u64) {
        self.injections[port as usize].free_at = left;
        if packet.is_last() {
            self.reports.push(Report { at: left, message: packet.message, kind: ReportKind::Left });
        }
        buffers.wake_injection(port, left);
    }

    /// Returns whether a packet goes no further than the other end of a link.
    #[inline]
    fn ends_behind(&self, far: Far, packet: &Packet) -> bool {
        match far {
            Far::Switch { .. } => false,
            Far::Host { host, .. } => self.ends_at(host, packet.message, packet.path),
            Far::Remote { input, .. } => {
                let host = self.machine.host(self.machine.input_nodes[input as usize]);
                host.is_some_and(|host| self.ends_at(host, packet.message, packet.path))
            }
        }
    }

    /// Tells the sender of a link that a buffer here has room again when the last byte of a packet has left.
    fn give_credit_back(&mut self, buffers: &mut Buffers, queue: u32, bytes: u32, left: u64) {
        let (input, channel) = (self.first_input + queue / buffers.channels, queue % buffers.channels);
        let port = self.machine.input_ports[input as usize];
        let own = port.checked_sub(self.first_port);
        match own.and_then(|own| Some((own, self.ports.get(own as usize)?.latency))) {
            Some((port, latency)) => {
                self.add_credit(buffers, port, channel, (left.saturating_add(latency), bytes));
            }
            None => {
                let back = left.saturating_add(self.machine.ports[port as usize].latency);
                let region = self.machine.region_of_port(port);
                self.outgoing.push((region, FabricMessage::Credit { port, channel, back, bytes }));
            }
        }
    }

    /// Takes in a credit that comes back to an output at an instant.
    #[inline(always)]
    pub(super) fn add_credit(
        &mut self,
        buffers: &mut Buffers,
        port: u32,
        channel: u32,
        (back, bytes): (u64, u32),
    ) {
        buffers.rooms[(port * buffers.channels + channel) as usize].add(back, bytes);
        let node = buffers.nodes[port as usize];
        if buffers.outputs[port as usize].requests.is_empty() {
            return;
        }
        // It grants nothing before it is free.
        let at = back.max(self.ports[port as usize].free_at);
        if buffers.wake(node, at, Sleeper::Output(port)) {
            if node < self.hosts {
                self.set_credit_deadline(buffers, node);
            } else {
                self.arrivals.set(&mut self.nodes, node, at);
            }
        }
    }

    /// Sets the instant at which a host has to be caught up with: before what it sends can arrive, and just after one of its messages
    /// sends its last packet.
    pub(super) fn set_credit_deadline(&mut self, buffers: &mut Buffers, node: u32) {
        let Node { first_port, outputs, first_input, inputs, .. } = self.nodes[node as usize];
        let rings = &self.rings[first_input as usize..(first_input + inputs) as usize];
        let forwarded = rings.iter().filter_map(|ring| ring.front()).map(|packet| packet.at).min();
        let ports = first_port..first_port + outputs;
        let resumes = ports.clone().map(|port| self.injections[port as usize].next_resume());
        let others = [forwarded, resumes.min()].into_iter().flatten();
        let first = others.fold(buffers.next_wake(node), u64::min);
        if first == IDLE {
            return;
        }
        let latest = self.deadline(node, first);
        let own = ports.map(|port| {
            let time = self.least_packet_time(port);
            self.injections[port as usize].deadline(&self.streams, (first, time), latest)
        });
        let deadline = own.fold(latest, u64::min);
        self.deadlines.set(&mut self.nodes, node, deadline);
    }
}
