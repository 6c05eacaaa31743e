//! Input buffers, what outputs know of the buffers at the other end of their links, and what nodes wait for.

use std::collections::VecDeque;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::super::nodes::{IDLE, Node};
use super::port_set::PortSet;
use super::sleeper::{PackedSleeper, Sleeper};
use crate::machine::PacketMachine;
use crate::packet::Packet;
use crate::parameters::{Arbitration, PacketRouting};

/// The input buffers of a region, and what its outputs know of the buffers at the other end.
#[derive(Debug)]
pub(crate) struct Buffers {
    pub(super) channels: u32,
    /// Bytes of a buffer.
    pub(super) capacity: u64,
    pub(super) arbitration: Arbitration,
    /// By input port and channel; behind them the memory of operations by output port, if switches carry out any.
    pub(super) queues: Vec<Queue>,
    /// Number of the first queue that is memory of operations.
    pub(super) first_memory: u32,
    pub(super) outputs: Vec<Output>,
    /// By output port and channel.
    pub(super) rooms: Vec<Room>,
    /// Wakes of the messages that wait at ports of hosts.
    pub(super) injection_wakes: Vec<u64>,
    /// Node of each output port.
    pub(super) nodes: Vec<u32>,
    /// Wakes of each node, in the order of time.
    pub(super) wakes: Vec<VecDeque<(u64, PackedSleeper)>>,
    /// Outputs of the node at work that may grant a request at this instant.
    pub(super) touched: PortSet,
    /// Room for those that are being asked.
    pub(super) granting: PortSet,
    pub(super) published: Option<Published>,
}

/// Bytes before outputs at aligned instants, the multiples of a period. The period is no shorter than a window, so that a node knows those of
/// all other nodes at the instant before the last one, in any order of nodes.
#[derive(Debug)]
pub(super) struct Published {
    /// \[ps\]
    pub(super) period: u64,
    /// Last aligned instant of each node \[ps\].
    pub(super) instants: Vec<u64>,
    /// Bytes before each output then, and at the two instants before, the last one first.
    pub(super) backlogs: Vec<[u64; 3]>,
}

/// An input buffer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Queue {
    pub(super) packets: VecDeque<Waiting>,
    /// Instant until which the first packet has to wait for the one before it \[ps\].
    pub(super) busy_until: u64,
    /// Instant at which the first packet requests its output \[ps\]; [`IDLE`] if it has, or there is none.
    pub(super) wake: u64,
}

/// A packet in a buffer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Waiting {
    /// With the instant at which its last byte is there, with cut-through, or 0.
    pub(super) packet: Packet,
    pub(super) output: u32,
    /// Channel of the link behind the output.
    pub(super) channel: u32,
}

/// An output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Output {
    pub(super) requests: Vec<Request>,
    /// Bytes in buffers of the node that wait for the output.
    pub(super) waiting: u64,
    /// The source whose turn it is.
    pub(super) turn: u32,
    /// Instant at which it may grant a request \[ps\]; [`IDLE`] if there is none to grant.
    pub(super) wake: u64,
}

/// The first packet of a buffer, or of the messages of a host, waits for an output.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Request {
    /// Instant at which the packet could leave its host \[ps\]; 0 if it makes no difference.
    pub(super) age: u64,
    /// Number of the buffer, or of the port of a host and [`INJECTION`].
    pub(super) source: u32,
    pub(super) bytes: u32,
    pub(super) channel: u32,
}

/// Bit of the sources of requests that are ports of hosts: they come after buffers.
pub(super) const INJECTION: u32 = 1 << 31;

/// Room in a buffer at the other end of a link.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Room {
    pub(super) bytes: u64,
    /// Credits that come back: instants \[ps\], in order, and bytes.
    pub(super) credits: VecDeque<(u64, u32)>,
}

impl Room {
    /// Adds a credit. Those for packets that a node forwards can come before those for earlier ones, which it took in.
    #[inline]
    pub(super) fn add(&mut self, back: u64, bytes: u32) {
        insert_in_order(&mut self.credits, (back, bytes));
    }

    /// Returns the instant from `at` on at which there is room for a packet; [`IDLE`] if that is not known yet.
    #[inline]
    pub(super) fn instant(&mut self, bytes: u32, at: u64) -> u64 {
        if self.bytes >= bytes.into() { at } else { self.instant_of_credit(bytes, at) }
    }

    /// Returns the instant from `at` on at which a credit makes room for a packet, and takes in those that are back by then.
    #[inline(never)]
    pub(super) fn instant_of_credit(&mut self, bytes: u32, at: u64) -> u64 {
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

/// Adds an entry to a queue in the order of time, after those of its instant.
#[inline]
fn insert_in_order<T>(queue: &mut VecDeque<(u64, T)>, entry: (u64, T)) {
    // Most are later than all others.
    if queue.back().is_none_or(|(last, _)| *last <= entry.0) {
        queue.push_back(entry);
    } else {
        insert_between(queue, entry);
    }
}

#[inline(never)]
fn insert_between<T>(queue: &mut VecDeque<(u64, T)>, entry: (u64, T)) {
    queue.insert(queue.partition_point(|(known, _)| *known <= entry.0), entry);
}

#[inline(never)]
fn forget(wakes: &mut VecDeque<(u64, PackedSleeper)>, wake: (u64, PackedSleeper)) {
    wakes.retain(|&known| known != wake);
}

impl Buffers {
    /// Makes empty buffers for nodes with so many input ports, and hosts with so many output ports.
    pub(in super::super) fn new(
        machine: &PacketMachine<'_>,
        nodes: &[Node],
        inputs: u32,
        host_ports: u32,
    ) -> Self {
        let (channels, capacity) = (machine.channels.count, u64::from(machine.parameters.buffer_bytes));
        let of_ports: Vec<u32> = (0..)
            .zip(nodes)
            .flat_map(|(place, node)| std::iter::repeat_n(place, node.outputs as usize))
            .collect();
        let memories = if machine.trees.is_empty() { 0 } else { of_ports.len() };
        let most_outputs = nodes.iter().map(|node| node.outputs).max().unwrap_or(0);
        let queue = Queue { packets: VecDeque::new(), busy_until: 0, wake: IDLE };
        let output = Output { requests: Vec::new(), waiting: 0, turn: 0, wake: IDLE };
        let room = Room { bytes: capacity, credits: VecDeque::new() };
        Self {
            channels,
            capacity,
            arbitration: machine.parameters.arbitration,
            queues: vec![queue; (inputs * channels) as usize + memories],
            first_memory: inputs * channels,
            outputs: vec![output; of_ports.len()],
            rooms: vec![room; of_ports.len() * channels as usize],
            injection_wakes: vec![IDLE; host_ports as usize],
            wakes: vec![VecDeque::new(); nodes.len()],
            published: (machine.parameters.routing == PacketRouting::UgalG).then(|| Published {
                period: machine.lookahead,
                instants: vec![0; nodes.len()],
                backlogs: vec![[0; 3]; of_ports.len()],
            }),
            nodes: of_ports,
            touched: PortSet::new(most_outputs),
            granting: PortSet::new(most_outputs),
        }
    }

    /// Publishes what waits for the outputs of a node, if something happens there for the first time since an aligned instant.
    pub(super) fn publish(&mut self, node: u32, ports: Range<u32>, at: u64) {
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
    pub(crate) fn published_backlog(&self, port: u32, at: u64) -> u64 {
        let Some(Published { period, instants, backlogs }) = &self.published else { return 0 };
        let Some(instant) = (at / period).checked_sub(1).map(|number| number * period) else { return 0 };
        match instants[self.nodes[port as usize] as usize].checked_sub(instant) {
            Some(since) => backlogs[port as usize][(since / period) as usize],
            // Nothing has happened there since.
            None => self.backlog(port, instant),
        }
    }

    pub(super) fn wake_of(&mut self, sleeper: Sleeper) -> &mut u64 {
        match sleeper {
            Sleeper::Queue(queue) => &mut self.queues[queue as usize].wake,
            Sleeper::Injection(port) => &mut self.injection_wakes[port as usize],
            Sleeper::Output(port) => &mut self.outputs[port as usize].wake,
        }
    }

    /// Wakes a part of a node at an instant, unless it wakes before; returns whether it does not.
    #[inline]
    pub(super) fn wake(&mut self, node: u32, at: u64, sleeper: Sleeper) -> bool {
        let wake = self.wake_of(sleeper);
        let before = *wake;
        if at >= before {
            return false;
        }
        *wake = at;
        let (wakes, sleeper) = (&mut self.wakes[node as usize], sleeper.pack());
        if before != IDLE {
            forget(wakes, (before, sleeper));
        }
        insert_in_order(wakes, (at, sleeper));
        true
    }

    /// Wakes the messages that wait at a port of a host.
    pub(in super::super) fn wake_injection(&mut self, port: u32, at: u64) {
        self.wake(self.nodes[port as usize], at, Sleeper::Injection(port));
    }

    /// Returns the first instant at which a part of a node wakes.
    #[inline]
    pub(in super::super) fn next_wake(&self, node: u32) -> u64 {
        self.wakes[node as usize].front().map_or(IDLE, |&(at, _)| at)
    }

    /// Wakes one part of a node, if one wakes at an instant.
    #[inline]
    pub(super) fn take_wake(&mut self, node: u32, at: u64) -> Option<Sleeper> {
        let wakes = &mut self.wakes[node as usize];
        let &(first, sleeper) = wakes.front()?;
        if first != at {
            return None;
        }
        wakes.pop_front();
        let sleeper = Sleeper::unpack(sleeper);
        *self.wake_of(sleeper) = IDLE;
        Some(sleeper)
    }

    /// Adds a request to those of an output of a node; returns whether the output is busy, and wakes when it is free.
    #[inline]
    pub(super) fn request(
        &mut self,
        (node, output): (u32, u32),
        request: Request,
        free_at: u64,
        at: u64,
    ) -> bool {
        let Output { requests, turn, .. } = &mut self.outputs[output as usize];
        // An output that was idle has forgotten whose turn it was, so that what happens again is the same.
        if requests.is_empty() && free_at < at {
            *turn = 0;
        }
        requests.push(request);
        let is_busy = free_at > at;
        if is_busy {
            self.wake(node, free_at, Sleeper::Output(output));
        } else {
            self.touched.insert(output);
        }
        is_busy
    }

    /// Returns the place of the request that an output grants at an instant, or the instant at which one has room.
    #[inline]
    pub(super) fn choose(&mut self, output: u32, at: u64) -> Result<usize, u64> {
        let Self { channels, arbitration, outputs, rooms, .. } = self;
        let Output { requests, turn, .. } = &outputs[output as usize];
        if let [Request { bytes, channel, .. }] = requests[..] {
            let instant = rooms[(output * *channels + channel) as usize].instant(bytes, at);
            return if instant > at { Err(instant) } else { Ok(0) };
        }
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
    pub(crate) fn backlog(&self, output: u32, at: u64) -> u64 {
        let rooms = &self.rooms[(output * self.channels) as usize..((output + 1) * self.channels) as usize];
        let taken = rooms.iter().map(|room| {
            let back = room.credits.iter().take_while(|(back, _)| *back <= at);
            self.capacity - room.bytes - back.map(|&(_, bytes)| u64::from(bytes)).sum::<u64>()
        });
        self.outputs[output as usize].waiting + taken.sum::<u64>()
    }

    /// Lists the packets in buffers.
    pub(in super::super) fn packets(&mut self) -> impl Iterator<Item = &mut Packet> {
        self.queues.iter_mut().flat_map(|queue| &mut queue.packets).map(|waiting| &mut waiting.packet)
    }
}
