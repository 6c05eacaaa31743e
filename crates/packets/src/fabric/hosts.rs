//! Hosts: their network interfaces, and what they forward.

use std::collections::VecDeque;

use netmodel::{HostId, RouteError};
use pdes_core::SimDuration;

use super::control::Control;
use super::credits::Buffers;
use super::injection::{Answer, Injection, Resume, Stream};
use super::nodes::{IDLE, Node};
use super::routes::Pair;
use super::{Fabric, Report, ReportKind};
use crate::machine::{MAX_WINDOW, Ways};
use crate::packet::{MAX_PACKETS, MessageKey, Packet};
use crate::{PacketParameters, PacketRouting};

/// Bit of the places in the order of those packets that the host sends itself, which follow what it forwards at one instant.
const INJECTED: u64 = 1 << 31;

impl Fabric<'_, '_> {
    /// Finds the route between two hosts.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn find_route(&mut self, src: HostId, dst: HostId) -> Result<(), RouteError> {
        self.routes.pair(self.machine, self.first_port, (src, dst)).map(drop)
    }

    /// Returns the latency of the way from one host of any region to another, within which nothing that one does reaches the other.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn latency(&mut self, src: HostId, dst: HostId) -> Result<SimDuration, RouteError> {
        self.routes.latency(self.machine, (src, dst))
    }

    /// Catches up with the hosts whose deadlines are before an instant: sends what leaves them before now.
    pub(crate) fn catch_up(&mut self, now: u64, due_before: u64) {
        let mut due = std::mem::take(&mut self.due);
        self.deadlines.take_before(&mut self.nodes, due_before, &mut due);
        for &node in &due {
            self.catch_up_with(node, now);
            self.set_deadline(node);
        }
        self.due = due;
    }

    /// Sends what leaves a host before now: packets that it forwards, by input port, and those of its own messages, by output port.
    pub(super) fn catch_up_with(&mut self, node: u32, now: u64) {
        if let Some(mut buffers) = self.buffers.take() {
            self.forward_with_credits(&mut buffers, node, now, now);
            self.buffers = Some(buffers);
            return;
        }
        self.list_arrivals(node, now, now);
        if self.order.is_empty() && self.is_plain && !self.machine.routes_at_hosts {
            return self.catch_up_plainly(node, now);
        }
        let mut sources = self.order.len();
        let Node { first_port, outputs, .. } = self.nodes[node as usize];
        let base = now.saturating_sub(MAX_WINDOW);
        self.injected.clear();
        self.collect_contentions();
        for port in first_port..first_port + outputs {
            let first = self.injected.len();
            self.inject(port, now);
            let injected = (first as u64..).zip(&self.injected[first..]);
            self.order
                .extend(injected.map(|(place, (packet, _))| (packet.at - base) << 32 | INJECTED | place));
            sources += usize::from(self.injected.len() > first);
        }
        if sources > 1 {
            self.order.sort_unstable();
        }
        let order = std::mem::take(&mut self.order);
        for &key in &order {
            let place = key as u32;
            if key & INJECTED == 0 {
                let mut packet = self.take_arrival(node, place);
                let tail = self.tail_of(&packet, place);
                let port = self.route(node, &mut packet, None);
                self.send(port, &packet, (packet.at, packet.path), tail);
                continue;
            }
            let (mut packet, mut port) = self.injected[(key & (INJECTED - 1)) as u32 as usize];
            if self.machine.routes_at_hosts {
                port = self.route(node, &mut packet, None);
            }
            // All of a packet is there when it leaves its host.
            let left = self.send(port, &packet, (packet.at, packet.path), Some(packet.at));
            if packet.is_last() {
                self.reports.push(Report { at: left, message: packet.message, kind: ReportKind::Left });
            }
        }
        self.record_contentions();
        self.counts.hops += order.len() as u64;
        self.order = order;
    }

    /// Sends the packets of a host's own messages that leave before now, where it forwards none before now, and only queues delay them. No
    /// output depends on another one.
    fn catch_up_plainly(&mut self, node: u32, now: u64) {
        let Node { first_port, outputs, .. } = self.nodes[node as usize];
        for port in first_port..first_port + outputs {
            while let Some(packet) = self.take_injected_before(port, now) {
                let at = packet.at;
                let time = self.ports[port as usize].time(packet.bytes, self.machine.packet_size());
                self.injections[port as usize].free_at = at.saturating_add(time);
                let left = self.send(port, &packet, (at, packet.path), None);
                self.counts.hops += 1;
                if packet.is_last() {
                    self.reports.push(Report { at: left, message: packet.message, kind: ReportKind::Left });
                }
            }
        }
    }

    /// Takes the packets that messages put into the output queue of a port before now.
    fn inject(&mut self, port: u32, now: u64) {
        while let Some(packet) = self.take_injected_before(port, now) {
            let at = packet.at;
            self.injected.push((packet, port));
            let left = if self.machine.has_changes {
                self.machine.transmit(self.first_port + port, at, packet.bytes, |_, _| {})
            } else {
                let time = self.ports[port as usize].time(packet.bytes, self.machine.packet_size());
                at.saturating_add(time)
            };
            self.injections[port as usize].free_at = left;
            if !self.injections[port as usize].queue.is_empty() {
                self.contend(port, at..left);
            }
        }
    }

    /// Takes the next packet of the messages of a port, if it leaves before now.
    #[inline]
    fn take_injected_before(&mut self, port: u32, now: u64) -> Option<Packet> {
        loop {
            let injection = &self.injections[port as usize];
            let at = injection.next();
            if at >= now {
                return None;
            }
            if injection.next_resume() > at {
                return self.take_injected(port, at);
            }
            self.resume(None, port);
        }
    }

    /// Takes the next packet of the messages of a port, which leaves at an instant; its message waits for its next turn.
    #[inline]
    pub(super) fn take_injected(&mut self, port: u32, at: u64) -> Option<Packet> {
        let Self { machine, ports, injections, streams, .. } = self;
        let injection = &mut injections[port as usize];
        let queue = &mut injection.queue;
        let place = *queue.front()?;
        let stream = &mut streams[place as usize];
        let packet = stream.next_packet(at, &machine.parameters);
        let message = packet.message;
        if stream.control.is_some() {
            let time = ports[port as usize].time(packet.bytes, machine.packet_size());
            stream.count_sent(at, packet.bytes, time);
        }
        if packet.is_last() {
            queue.pop_front();
            if stream.is_over() {
                self.stream_places.remove(&message);
                self.free_streams.push(place);
            }
        } else if stream.check_limit(at) {
            queue.pop_front();
            if let Some(at) = stream.waits.flatten() {
                injection.add_resume(Resume { at, message, place });
            }
        } else if queue.len() > 1 {
            queue.rotate_left(1);
        }
        Some(packet)
    }

    /// Sets the instant at which a host has to be caught up with.
    pub(super) fn set_deadline(&mut self, node: u32) {
        if let Some(mut buffers) = self.buffers.take() {
            self.set_credit_deadline(&mut buffers, node);
            self.buffers = Some(buffers);
            return;
        }
        let Node { first_port, outputs, first_input, inputs, .. } = self.nodes[node as usize];
        let rings = &self.rings[first_input as usize..(first_input + inputs) as usize];
        let forwarded = rings.iter().filter_map(|ring| ring.front()).map(|packet| packet.at).min();
        let forwarded = forwarded.map(|at| self.deadline(node, at));
        let own = (first_port..first_port + outputs).map(|port| {
            let injection = &self.injections[port as usize];
            match injection.next() {
                IDLE => IDLE,
                next => {
                    let packets = (injection.free_at, self.least_packet_time(port));
                    injection.deadline(&self.streams, packets, self.deadline(node, next))
                }
            }
        });
        let deadline = forwarded.into_iter().chain(own).min().unwrap_or(IDLE);
        self.deadlines.set(&mut self.nodes, node, deadline);
    }

    /// Returns the least time in which a full packet leaves by a port \[ps\].
    pub(super) fn least_packet_time(&self, port: u32) -> u64 {
        match self.machine.has_changes {
            true => self.machine.least_time(self.first_port + port, self.machine.packet_size()),
            false => self.ports[port as usize].packet_time,
        }
    }

    /// Returns the instant at which a host has to be caught up with because of a packet that leaves it: before the packet can arrive, and
    /// if it may go to another region, before that one begins the next span.
    pub(super) fn deadline(&self, node: u32, at: u64) -> u64 {
        let latest = at.saturating_add(self.machine.lookahead);
        if !self.nodes[node as usize].is_at_border {
            return latest;
        }
        latest.min(self.span_end(at) - 1).max(at.saturating_add(1))
    }

    /// Begins to send a message of `bytes` from a host of the region to another host. All that leaves the host before this instant may be
    /// sent.
    ///
    /// # Errors
    /// If there is no route.
    ///
    /// # Panics
    /// If the message has more than 2^29 packets.
    pub(crate) fn begin(
        &mut self,
        at: u64,
        (src, dst): (HostId, HostId),
        bytes: u64,
    ) -> Result<MessageKey, RouteError> {
        let pair = self.routes.pair(self.machine, self.first_port, (src, dst))?;
        let Pair { path, limit, back, messages, .. } = *pair;
        pair.messages = messages.wrapping_add(1);
        let message = MessageKey { src, dst, number: messages };
        let (packets, last) = self.packets_of(bytes);
        let node = self.node_of(src);
        self.catch_up_with(node, at);
        let mut first = Packet::new(at, message, 0, packets == 1, last);
        let (port, path) = if let Ways::Routes = self.machine.ways {
            (self.routes.port(path), path + 1)
        } else {
            let buffers = self.buffers.take();
            let port = self.route(node, &mut first, buffers.as_deref());
            self.buffers = buffers;
            (port, if self.machine.routes_at_hosts { 0 } else { first.path })
        };
        let mut stream = Stream::new(message, packets, last, (port, path), limit);
        stream.back = back;
        let PacketParameters { congestion, routing, .. } = self.machine.parameters;
        stream.control = stream.limit.and_then(|limit| Control::new(congestion, limit));
        stream.recycled = (routing == PacketRouting::Reps).then(VecDeque::new);
        if let Some(limit) = stream.limit.filter(|_| self.pacing.is_some()) {
            stream.answers -= limit;
        }
        self.start(stream, at);
        Ok(message)
    }

    /// Starts to send a message from a host, after the other messages of its port.
    pub(super) fn start(&mut self, stream: Stream, at: u64) {
        let (message, port) = (stream.message, stream.port);
        let place = match self.free_streams.pop() {
            Some(place) => {
                self.streams[place as usize] = stream;
                place
            }
            None => {
                self.streams.push(stream);
                self.streams.len() as u32 - 1
            }
        };
        self.stream_places.insert(message, place);
        let mut buffers = self.buffers.take();
        self.join(buffers.as_deref_mut(), place, at);
        self.buffers = buffers;
        self.set_deadline(self.injections[port as usize].node);
    }

    /// Returns the number of packets of a message, and the payload and header of the last one.
    ///
    /// # Panics
    /// If the message has more than 2^29 packets.
    pub(super) fn packets_of(&self, bytes: u64) -> (u32, u32) {
        let PacketParameters { packet_bytes, header_bytes, .. } = self.machine.parameters;
        let packets = self.machine.packets_of(bytes);
        assert!(
            packets <= MAX_PACKETS,
            "a message of {bytes} bytes has {packets} packets, expected at most 2^29"
        );
        (packets as u32, (bytes - (packets - 1) * u64::from(packet_bytes)) as u32 + header_bytes)
    }

    /// Lets the messages of a host continue that have waited until now. All that leaves the host before this instant may be sent.
    pub(crate) fn resume_until(&mut self, host: HostId, now: u64) {
        let node = self.node_of(host);
        self.catch_up_with(node, now);
        let Node { first_port, outputs, .. } = self.nodes[node as usize];
        let mut buffers = self.buffers.take();
        for port in first_port..first_port + outputs {
            while self.injections[port as usize].next_resume() <= now {
                self.resume(buffers.as_deref_mut(), port);
            }
        }
        self.buffers = buffers;
    }

    /// Ends the first wait of the messages of a port, unless the window has shrunk.
    pub(super) fn resume(&mut self, buffers: Option<&mut Buffers>, port: u32) {
        let injection = &mut self.injections[port as usize];
        let Some(Resume { at, message, place }) = injection.resumes.pop_front() else { return };
        let stream = &mut self.streams[place as usize];
        if !stream.check_limit(at) {
            self.join(buffers, place, at);
        } else if let Some(at) = stream.waits.flatten() {
            injection.add_resume(Resume { at, message, place });
        }
    }

    /// Lets a message send packets from now on, after the other messages of its port.
    fn join(&mut self, buffers: Option<&mut Buffers>, place: u32, at: u64) {
        let port = self.streams[place as usize].port;
        let Injection { queue, free_at, .. } = &mut self.injections[port as usize];
        let busy_until = *free_at;
        if queue.is_empty() {
            *free_at = at.max(*free_at);
            if let Some(buffers) = buffers {
                buffers.wake_injection(port, *free_at);
            }
        }
        queue.push_back(place);
        self.contend(port, at..busy_until);
    }

    /// Takes in that an acknowledgement or a credit for a message was sent at the instant of the answer.
    pub(super) fn acknowledge(&mut self, message: MessageKey, sent: Answer) {
        let place = self.stream_places[&message];
        let stream = &mut self.streams[place as usize];
        let at = sent.at.saturating_add(stream.back);
        let known = stream.waits.flatten();
        if stream.add_acknowledgement(Answer { at, ..sent }) {
            let port = stream.port;
            let injection = &mut self.injections[port as usize];
            if let Some(at) = known {
                injection.remove_resume(Resume { at, message, place });
            }
            injection.add_resume(Resume { at, message, place });
            let (node, first) = (injection.node, injection.free_at.max(at));
            let end = self.streams[place as usize].earliest_end(first, self.least_packet_time(port));
            let deadline = self.deadline(node, at).min(end);
            self.deadlines.set(&mut self.nodes, node, deadline);
        } else if stream.is_over() {
            self.stream_places.remove(&message);
            self.free_streams.push(place);
        }
    }

    /// Returns the place of the node that a host of the region is.
    pub(super) fn node_of(&self, host: HostId) -> u32 {
        let hosts = &self.nodes[..self.hosts as usize];
        hosts.partition_point(|node| node.number < host.get()) as u32
    }
}
