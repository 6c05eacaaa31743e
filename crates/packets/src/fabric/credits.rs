//! Switches with input buffers and credits.
//!
//! A packet waits in the buffer of its input port and virtual channel. The first one of a buffer requests its output, which grants one
//! request at a time: when the output is free, and the buffer at the other end has room. When the last byte has left, the buffer here has
//! room again, and the sender learns of it a latency later. So does a host that takes in a packet.
//!
//! At one instant packets arrive first, by input port; then buffers and outputs that were busy are free; then outputs grant, by port.
//! Nothing that a node does reaches another one within a latency. So a switch does all of a window at once, as with output queues, and a
//! host follows behind time. What a node waits for besides packets are its own wakes.

mod sleeper;
mod state;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use serde::{Deserialize, Serialize};

use super::nodes::{Far, IDLE, Node, Port};
use super::{Fabric, FabricMessage, Report, ReportKind};
use crate::machine::{MAX_WINDOW, PacketMachine};
use crate::packet::Packet;
use crate::parameters::{Arbitration, Crossbar, PacketRouting};
use sleeper::{PackedSleeper, Sleeper};

/// The input buffers of a region, and what its outputs know of the buffers at the other end.
#[derive(Debug)]
pub(super) struct Buffers {
    channels: u32,
    /// Bytes of a buffer.
    capacity: u64,
    arbitration: Arbitration,
    /// By input port and channel.
    queues: Vec<Queue>,
    outputs: Vec<Output>,
    /// By output port and channel.
    rooms: Vec<Room>,
    /// Wakes of the messages that wait at ports of hosts.
    injection_wakes: Vec<u64>,
    /// Node of each output port.
    nodes: Vec<u32>,
    /// Wakes of each node. One is valid if it is that of whom it wakes.
    wakes: Vec<BinaryHeap<Reverse<(u64, PackedSleeper)>>>,
    /// Outputs that may grant a request at this instant.
    touched: Vec<u32>,
    /// Room for those that are being asked.
    granting: Vec<u32>,
    published: Option<Published>,
}

/// What waited for outputs at aligned instants, whole multiples of a period, which is no shorter than a window: a node that looks at the
/// one before the last knows all of them, in any order of nodes.
#[derive(Debug)]
struct Published {
    /// \[ps\]
    period: u64,
    /// Last aligned instant of each node \[ps\].
    instants: Vec<u64>,
    /// Bytes before each output then, and at the two instants before, the last one first.
    backlogs: Vec<[u64; 3]>,
}

/// An input buffer.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Queue {
    packets: VecDeque<Waiting>,
    /// Instant until which the first packet has to wait for the one before it \[ps\].
    busy_until: u64,
    /// Instant at which the first packet requests its output \[ps\]; [`IDLE`] if it has, or there is none.
    wake: u64,
}

/// A packet in a buffer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Waiting {
    packet: Packet,
    /// Instant at which the last byte is there, with cut-through \[ps\].
    tail: u64,
    output: u32,
    /// Channel of the link behind the output.
    channel: u32,
}

/// An output.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Output {
    requests: Vec<Request>,
    /// Bytes in buffers of the node that wait for the output.
    waiting: u64,
    /// The source whose turn it is.
    turn: u32,
    /// Instant at which it may grant a request \[ps\]; [`IDLE`] if there is none to grant.
    wake: u64,
}

/// The first packet of a buffer, or of the messages of a host, waits for an output.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Request {
    /// Since when the packet is on its way, if that decides \[ps\].
    age: u64,
    /// Number of the buffer, or of the port of a host and [`INJECTION`].
    source: u32,
    bytes: u32,
    channel: u32,
}

/// Bit of the sources of requests that are ports of hosts: they come after buffers.
const INJECTION: u32 = 1 << 31;

/// Room in a buffer at the other end of a link.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Room {
    bytes: u64,
    /// Credits that come back: instants \[ps\], in order, and bytes.
    credits: VecDeque<(u64, u32)>,
}

impl Room {
    /// Adds a credit. Those for packets that a node forwards can come before those for earlier ones, which it took in.
    fn add(&mut self, back: u64, bytes: u32) {
        if self.credits.back().is_none_or(|&(last, _)| last <= back) {
            self.credits.push_back((back, bytes));
            return;
        }
        let place = self.credits.partition_point(|&(known, _)| known <= back);
        self.credits.insert(place, (back, bytes));
    }

    /// Returns the instant from `at` on at which there is room for a packet; [`IDLE`] if that is not known yet.
    fn instant(&mut self, bytes: u32, at: u64) -> u64 {
        while let Some(&(_, returned)) = self.credits.front().filter(|(back, _)| *back <= at) {
            self.bytes += u64::from(returned);
            self.credits.pop_front();
        }
        let (mut room, mut instant) = (self.bytes, at);
        let mut credits = self.credits.iter();
        while room < bytes.into() {
            let Some(&(back, returned)) = credits.next() else { return IDLE };
            room += u64::from(returned);
            instant = back;
        }
        instant
    }
}

impl Buffers {
    /// Makes empty buffers for nodes with so many input ports, and hosts with so many output ports.
    pub(super) fn new(machine: &PacketMachine<'_>, nodes: &[Node], inputs: u32, host_ports: u32) -> Self {
        let (channels, capacity) = (machine.channels.count, u64::from(machine.parameters.buffer_bytes));
        let of_ports: Vec<u32> = (0..)
            .zip(nodes)
            .flat_map(|(place, node)| std::iter::repeat_n(place, node.outputs as usize))
            .collect();
        let queue = Queue { packets: VecDeque::new(), busy_until: 0, wake: IDLE };
        let output = Output { requests: Vec::new(), waiting: 0, turn: 0, wake: IDLE };
        let room = Room { bytes: capacity, credits: VecDeque::new() };
        Self {
            channels,
            capacity,
            arbitration: machine.parameters.arbitration,
            queues: vec![queue; (inputs * channels) as usize],
            outputs: vec![output; of_ports.len()],
            rooms: vec![room; of_ports.len() * channels as usize],
            injection_wakes: vec![IDLE; host_ports as usize],
            wakes: vec![BinaryHeap::new(); nodes.len()],
            published: (machine.parameters.routing == PacketRouting::UgalG).then(|| Published {
                period: machine.lookahead,
                instants: vec![0; nodes.len()],
                backlogs: vec![[0; 3]; of_ports.len()],
            }),
            nodes: of_ports,
            touched: Vec::new(),
            granting: Vec::new(),
        }
    }

    /// Publishes what waits for the outputs of a node, if something happens there for the first time since an aligned instant.
    fn publish(&mut self, node: u32, ports: std::ops::Range<u32>, at: u64) {
        let Some(Published { period, instants, .. }) = &mut self.published else { return };
        let (period, latest) = (*period, at / *period * *period);
        let last = instants[node as usize];
        instants[node as usize] = last.max(latest);
        let first = (last + period).max(latest.saturating_sub(2 * period));
        for instant in (first..=latest).step_by(period as usize) {
            for port in ports.clone() {
                let backlog = self.backlog(port, instant);
                if let Some(Published { backlogs, .. }) = &mut self.published {
                    let [last, before, _] = backlogs[port as usize];
                    backlogs[port as usize] = [backlog, last, before];
                }
            }
        }
    }

    /// Returns what waited for an output of any node of the region at the aligned instant before the last one.
    pub(super) fn published_backlog(&self, port: u32, at: u64) -> u64 {
        let Some(Published { period, instants, backlogs }) = &self.published else { return 0 };
        let Some(instant) = (at / period).checked_sub(1).map(|number| number * period) else { return 0 };
        match instants[self.nodes[port as usize] as usize].checked_sub(instant) {
            Some(since) => backlogs[port as usize][(since / period) as usize],
            // Nothing has happened there since.
            None => self.backlog(port, instant),
        }
    }

    fn wake_of(&mut self, sleeper: Sleeper) -> &mut u64 {
        match sleeper {
            Sleeper::Queue(queue) => &mut self.queues[queue as usize].wake,
            Sleeper::Injection(port) => &mut self.injection_wakes[port as usize],
            Sleeper::Output(port) => &mut self.outputs[port as usize].wake,
        }
    }

    /// Wakes a part of a node at an instant, unless it wakes before; returns whether it does not.
    fn wake(&mut self, node: u32, at: u64, sleeper: Sleeper) -> bool {
        let wake = self.wake_of(sleeper);
        let is_first = at < *wake;
        if is_first {
            *wake = at;
            self.wakes[node as usize].push(Reverse((at, sleeper.pack())));
        }
        is_first
    }

    /// Wakes the messages that wait at a port of a host.
    pub(super) fn wake_injection(&mut self, port: u32, at: u64) {
        self.wake(self.nodes[port as usize], at, Sleeper::Injection(port));
    }

    /// Returns the first instant at which a part of a node wakes.
    pub(super) fn next_wake(&mut self, node: u32) -> u64 {
        while let Some(&Reverse((at, sleeper))) = self.wakes[node as usize].peek() {
            if *self.wake_of(Sleeper::unpack(sleeper)) == at {
                return at;
            }
            self.wakes[node as usize].pop();
        }
        IDLE
    }

    /// Wakes one part of a node, if one wakes at an instant.
    fn take_wake(&mut self, node: u32, at: u64) -> Option<Sleeper> {
        if self.next_wake(node) != at {
            return None;
        }
        let Reverse((_, sleeper)) = self.wakes[node as usize].pop()?;
        let sleeper = Sleeper::unpack(sleeper);
        *self.wake_of(sleeper) = IDLE;
        Some(sleeper)
    }

    /// Adds a request to those of an output that is free from an instant on.
    fn request(&mut self, output: u32, request: Request, free_at: u64, at: u64) {
        let Output { requests, turn, .. } = &mut self.outputs[output as usize];
        // An output that was idle has forgotten whose turn it was, so that what happens again is the same.
        if requests.is_empty() && free_at < at {
            *turn = 0;
        }
        requests.push(request);
        self.touched.push(output);
    }

    /// Returns the place of the request that an output grants at an instant, or the instant at which one has room.
    fn choose(&mut self, output: u32, at: u64) -> Result<usize, u64> {
        let Self { channels, arbitration, outputs, rooms, .. } = self;
        let Output { requests, turn, .. } = &outputs[output as usize];
        let turn = match arbitration {
            Arbitration::Age => 0,
            Arbitration::RoundRobin => *turn,
        };
        let (mut first, mut least, mut instant) = (None, (u64::MAX, u32::MAX), IDLE);
        // Most requests are for as much room as the one before.
        let (mut known, mut room_at) = ((u32::MAX, u32::MAX), IDLE);
        for (place, &Request { age, source, bytes, channel }) in requests.iter().enumerate() {
            if known != (bytes, channel) {
                known = (bytes, channel);
                room_at = rooms[(output * *channels + channel) as usize].instant(bytes, at);
            }
            let key = (age, source.wrapping_sub(turn));
            if room_at > at {
                instant = instant.min(room_at);
            } else if first.is_none() || key < least {
                (first, least) = (Some(place), key);
            }
        }
        first.ok_or(instant)
    }

    /// Returns the bytes that wait for an output, here or in the buffers at its other end.
    pub(super) fn backlog(&self, output: u32, at: u64) -> u64 {
        let rooms = &self.rooms[(output * self.channels) as usize..((output + 1) * self.channels) as usize];
        let taken = rooms.iter().map(|room| {
            let back = room.credits.iter().take_while(|(back, _)| *back <= at);
            self.capacity - room.bytes - back.map(|&(_, bytes)| u64::from(bytes)).sum::<u64>()
        });
        self.outputs[output as usize].waiting + taken.sum::<u64>()
    }

    /// Lists the packets in buffers.
    pub(super) fn packets(&mut self) -> impl Iterator<Item = &mut Packet> {
        self.queues.iter_mut().flat_map(|queue| &mut queue.packets).map(|waiting| &mut waiting.packet)
    }
}

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
        let next = self.gather(node, now, end);
        self.order.sort_unstable();
        let order = std::mem::take(&mut self.order);
        let base = now.saturating_sub(MAX_WINDOW);
        let Node { first_port, outputs, .. } = self.nodes[node as usize];
        let ports = first_port..first_port + outputs;
        let mut touched = std::mem::take(&mut buffers.granting);
        let mut arrivals = order.iter().map(|key| (base + (key >> 32), *key as u32 as usize)).peekable();
        loop {
            let wake = buffers.next_wake(node);
            let at = arrivals.peek().map_or(IDLE, |&(at, _)| at).min(wake);
            if at >= end {
                break;
            }
            buffers.publish(node, ports.clone(), at);
            while let Some((_, place)) = arrivals.next_if(|&(arrival, _)| arrival == at) {
                self.enqueue(buffers, node, place, at);
            }
            // Nothing that arrives wakes anybody at once.
            while wake == at
                && let Some(sleeper) = buffers.take_wake(node, at)
            {
                match sleeper {
                    Sleeper::Queue(queue) => self.request(buffers, node, queue, at),
                    Sleeper::Injection(port) => self.request_injection(buffers, node, port, at),
                    Sleeper::Output(port) => buffers.touched.push(port),
                }
            }
            // Behind a packet that begins to leave the next one may request its output at once.
            while !buffers.touched.is_empty() {
                std::mem::swap(&mut buffers.touched, &mut touched);
                if touched.len() > 1 {
                    touched.sort_unstable();
                    touched.dedup();
                }
                touched.drain(..).for_each(|port| self.arbitrate(buffers, node, port, at));
            }
        }
        buffers.granting = touched;
        self.order = order;
        next.min(buffers.next_wake(node))
    }

    /// Puts a gathered packet, which arrives now, into its buffer.
    fn enqueue(&mut self, buffers: &mut Buffers, node: u32, place: usize, at: u64) {
        let mut packet = self.gathered[place];
        let queue = self.gathered_inputs[place] * buffers.channels + self.channel_of(&packet);
        let output = self.route(node, &mut packet, Some(buffers));
        let channel = self.channel_of(&packet);
        buffers.outputs[output as usize].waiting += u64::from(packet.bytes);
        let tail = self.tails.get(place).copied().unwrap_or(0);
        let packets = &mut buffers.queues[queue as usize].packets;
        packets.push_back(Waiting { packet, tail, output, channel });
        if packets.len() == 1 {
            self.request(buffers, node, queue, at);
        }
    }

    /// Lets the first packet of a buffer request its output as soon as it may leave.
    fn request(&mut self, buffers: &mut Buffers, node: u32, queue: u32, at: u64) {
        let Queue { packets, busy_until, .. } = &buffers.queues[queue as usize];
        let Some(&Waiting { packet, tail, output, channel }) = packets.front() else { return };
        let port = self.ports[output as usize];
        // A faster output has to wait, so that the last byte is there in time.
        let begin = match tail {
            0 => 0,
            _ => tail.saturating_sub(port.time(packet.bytes, self.machine.packet_size())),
        };
        let ready = begin.max(*busy_until);
        if ready > at {
            buffers.wake(node, ready, Sleeper::Queue(queue));
        } else {
            let request = Request { age: packet.born, source: queue, bytes: packet.bytes, channel };
            buffers.request(output, request, port.free_at, at);
        }
    }

    /// Lets the next packet of a host's own messages request its output.
    fn request_injection(&mut self, buffers: &mut Buffers, node: u32, port: u32, at: u64) {
        let injection = &self.injections[port as usize];
        let Some(&place) = injection.queue.front() else { return };
        let stream = &self.streams[place as usize];
        let bytes = stream.next_bytes(&self.machine.parameters);
        let (output, channel) = if self.machine.routes_at_hosts() {
            let mut next = Packet::new(at, stream.message, stream.sent, false, bytes);
            let output = self.route(node, &mut next, Some(buffers));
            (output, self.channel_of(&next))
        } else {
            (port, 0)
        };
        let age = self.age(injection.free_at);
        let request = Request { age, source: INJECTION | port, bytes, channel };
        buffers.request(output, request, self.ports[output as usize].free_at, at);
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
        let (packet, left) = if source & INJECTION == 0 {
            entry.waiting -= u64::from(bytes);
            let queue = &mut buffers.queues[source as usize];
            let waiting = queue.packets.pop_front().expect("it has requested the output");
            let mut packet = waiting.packet;
            packet.at = at;
            let left = self.send(output, &mut packet, None);
            if self.machine.parameters.crossbar == Crossbar::Serial {
                buffers.queues[source as usize].busy_until = left;
            }
            self.give_credit_back(buffers, source, bytes, left);
            self.request(buffers, node, source, at);
            (packet, left)
        } else {
            let port = source & !INJECTION;
            let born = self.age(self.injections[port as usize].free_at);
            let mut packet = self.take_injected(port, at).expect("it has requested the output");
            if self.machine.routes_at_hosts() {
                self.route(node, &mut packet, Some(buffers));
            }
            packet.born = born;
            let left = self.send(output, &mut packet, None);
            self.injections[port as usize].free_at = left;
            if packet.is_last() {
                self.reports.push(Report { at: left, message: packet.message, kind: ReportKind::Left });
            }
            buffers.wake_injection(port, left);
            if !self.injections[port as usize].queue.is_empty() {
                self.contend(output, at..left);
            }
            (packet, left)
        };
        self.counts.hops += 1;
        let is_at_host = match far {
            Far::Host { host, .. } => self.ends_at(host, &packet),
            Far::Remote { input, .. } => {
                let host = self.machine.host(self.machine.input_nodes[input as usize]);
                host.is_some_and(|host| self.ends_at(host, &packet))
            }
            Far::Switch { .. } => false,
        };
        if is_at_host {
            // A host takes in what has arrived.
            buffers.rooms[room].add(left.saturating_add(2 * latency), bytes);
        }
        if !buffers.outputs[output as usize].requests.is_empty() {
            buffers.wake(node, left, Sleeper::Output(output));
            self.contend(output, at..left);
        }
    }

    /// Tells the sender of a link that a buffer here has room again when the last byte of a packet has left.
    fn give_credit_back(&mut self, buffers: &mut Buffers, queue: u32, bytes: u32, left: u64) {
        let (input, channel) = (self.first_input + queue / buffers.channels, queue % buffers.channels);
        let port = self.machine.input_ports[input as usize];
        let back = left.saturating_add(self.machine.ports[port as usize].latency);
        match port.checked_sub(self.first_port).filter(|&port| (port as usize) < self.ports.len()) {
            Some(port) => self.add_credit(buffers, port, channel, (back, bytes)),
            None => {
                let region = self.machine.region_of_port(port);
                self.outgoing.push((region, FabricMessage::Credit { port, channel, back, bytes }));
            }
        }
    }

    /// Takes in a credit that comes back to an output at an instant.
    pub(super) fn add_credit(
        &mut self,
        buffers: &mut Buffers,
        port: u32,
        channel: u32,
        (back, bytes): (u64, u32),
    ) {
        buffers.rooms[(port * buffers.channels + channel) as usize].add(back, bytes);
        let node = buffers.nodes[port as usize];
        let is_wanted = !buffers.outputs[port as usize].requests.is_empty();
        if is_wanted && buffers.wake(node, back, Sleeper::Output(port)) {
            if node < self.hosts {
                self.set_credit_deadline(buffers, node);
            } else {
                self.arrivals.set(&mut self.nodes, node, back);
            }
        }
    }

    /// Sets the instant at which a host has to be caught up with: before what it sends can arrive, and just after one of its messages
    /// sends its last packet or has to wait.
    pub(super) fn set_credit_deadline(&mut self, buffers: &mut Buffers, node: u32) {
        let Node { first_port, outputs, first_input, inputs, .. } = self.nodes[node as usize];
        let rings = &self.rings[first_input as usize..(first_input + inputs) as usize];
        let forwarded = rings.iter().filter_map(|ring| ring.front()).map(|packet| packet.at);
        let first = forwarded.min().unwrap_or(IDLE).min(buffers.next_wake(node));
        if first == IDLE {
            return;
        }
        let latest = self.deadline(node, first);
        let own = (first_port..first_port + outputs).map(|port| {
            let time = self.least_packet_time(port);
            self.injections[port as usize].deadline_from(&self.streams, (first, time), latest)
        });
        let deadline = own.fold(latest, u64::min);
        self.deadlines.set(&mut self.nodes, node, deadline);
    }
}
