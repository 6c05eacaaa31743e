//! Operations that switches carry out: they combine the packets of hosts on their way up the tree of a communicator, and copy what goes down.
//!
//! | packet | at a switch |
//! |---|---|
//! | combined | waits until those of its number have come from all nodes below; then one goes up, and from the root down |
//! | copied | goes up, and down to all nodes below but the one from which it came |
//! | down | goes down to all nodes below, or to the one on the way to the host that gets the result |
//!
//! With credits a packet leaves its input buffer when it comes: the switch has memory for it, and for the packets that go on, which wait there
//! for the output of each. So no packet of an operation keeps a buffer from others, and none waits in a circle.

use std::collections::BTreeMap;

use netmodel::{HostId, SwitchOperationKind};
use pdes_core::StateVisitor;
use serde::{Deserialize, Serialize};

use super::Fabric;
use super::credits::Buffers;
use super::injection::Stream;
use crate::packet::{MessageKey, Packet, visit_picos};

/// A packet that a switch combines: the node, the operation with the host 0, and the number of the packet.
pub(super) type CombinationKey = (u32, MessageKey, u32);

/// The part of a combined packet that has come to a switch.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Combination {
    /// Number of nodes from which it has come.
    arrived: u32,
    /// Latest arrival of a last byte \[ps\]; 0 without cut-through.
    tail: u64,
}

/// Way of a packet through a tree: its direction in two bits, above them the number of the host that gets the result plus one, or 0.
#[derive(Clone, Copy)]
struct TreeWay(u32);

/// Direction of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Combined = 0,
    Copied = 1,
    Down = 2,
}

impl TreeWay {
    fn of(kind: SwitchOperationKind) -> Self {
        match kind {
            SwitchOperationKind::Allreduce => Self(Direction::Combined as u32),
            SwitchOperationKind::Reduce { to } => Self((to.get() + 1) << 2 | Direction::Combined as u32),
            SwitchOperationKind::Bcast { .. } => Self(Direction::Copied as u32),
        }
    }

    fn direction(self) -> Direction {
        match self.0 & 3 {
            0 => Direction::Combined,
            1 => Direction::Copied,
            _ => Direction::Down,
        }
    }

    fn down(self) -> Self {
        Self(self.0 & !3 | Direction::Down as u32)
    }

    /// Returns the host that gets the result, if not all do.
    fn only_to(self) -> Option<HostId> {
        (self.0 >> 2).checked_sub(1).map(HostId::new)
    }
}

impl Fabric<'_, '_> {
    /// Begins to send the vector of a host in an operation of switches. All that leaves the host before this instant may be sent.
    ///
    /// # Panics
    /// If the vector has more than 2^29 packets.
    pub(crate) fn begin_operation(
        &mut self,
        at: u64,
        message: MessageKey,
        kind: SwitchOperationKind,
        bytes: u64,
    ) {
        let (packets, last) = self.packets_of(bytes);
        let communicator = message.communicator().expect("the message is part of an operation");
        let port = self.machine.trees[&communicator].port_of(message.src) - self.first_port;
        let node = self.node_of(message.src);
        self.catch_up_with(node, at);
        // Each link has as many packets on their way as come from one host.
        let stream = Stream::new(message, packets, last, (port, TreeWay::of(kind).0), None);
        self.start(stream, at);
    }

    /// Forwards a packet of an operation at a switch, at once or, with credits, by way of its memory.
    #[inline(never)]
    pub(super) fn forward_in_tree(
        &mut self,
        node: u32,
        packet: &Packet,
        tail: Option<u64>,
        mut buffers: Option<&mut Buffers>,
    ) {
        let (machine, node) = (self.machine, self.first_node + node);
        let communicator = packet.message.communicator().expect("the packet is part of an operation");
        let tree = &machine.trees[&communicator];
        let branch = tree.at(node);
        let way = TreeWay(packet.path);
        let is_combined = way.direction() == Direction::Combined;
        let tail = match is_combined {
            true => match self.combine(node, packet, tail, branch.below.len() as u32) {
                Some(tail) => tail,
                None => return,
            },
            false => tail,
        };
        let up = branch.up().filter(|_| way.direction() != Direction::Down);
        if let Some(port) = up {
            self.send_copy(port, packet, way, tail, buffers.as_deref_mut());
        }
        let came_from = match way.direction() {
            Direction::Copied => tree.toward(node, packet.message.src),
            _ => None,
        };
        let only = way.only_to().and_then(|host| tree.toward(node, host));
        if up.is_none() || !is_combined {
            let below = branch.below.iter().copied();
            for port in below.filter(|&port| Some(port) != came_from && only.is_none_or(|only| only == port))
            {
                self.send_copy(port, packet, way.down(), tail, buffers.as_deref_mut());
            }
        }
    }

    /// Takes in a packet that a switch combines with those of other nodes; returns the arrival of the last byte if all have come.
    fn combine(&mut self, node: u32, packet: &Packet, tail: Option<u64>, all: u32) -> Option<Option<u64>> {
        let key = (node, MessageKey { src: HostId::new(0), ..packet.message }, packet.number());
        let combination = self.combinations.entry(key).or_default();
        combination.arrived += 1;
        combination.tail = combination.tail.max(tail.unwrap_or(0));
        let Combination { arrived, tail: latest } = *combination;
        (arrived == all).then(|| {
            self.combinations.remove(&key);
            tail.map(|_| latest)
        })
    }

    fn send_copy(
        &mut self,
        port: u32,
        packet: &Packet,
        way: TreeWay,
        tail: Option<u64>,
        buffers: Option<&mut Buffers>,
    ) {
        let output = port - self.first_port;
        match buffers {
            Some(buffers) => {
                self.remember(buffers, output, packet.moved((tail.unwrap_or(0), way.0)), packet.at)
            }
            None => {
                self.send(output, packet, (packet.at, way.0), tail);
                self.counts.hops += 1;
            }
        }
    }
}

/// Visits the packets that switches combine. Nodes have the same numbers in all states of a region.
pub(super) fn visit(
    combinations: &mut BTreeMap<CombinationKey, Combination>,
    visitor: &mut StateVisitor<'_>,
) {
    if visitor.saves_whole(combinations) {
        return;
    }
    visitor.compare(&combinations.len());
    for (&(node, mut message, packet), Combination { arrived, tail }) in combinations {
        visitor.compare(&(node, packet, &*arrived, *tail > 0));
        message.visit(visitor);
        if *tail > 0 {
            visit_picos(tail, visitor);
        }
    }
}
