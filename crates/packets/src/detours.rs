//! Routings over a third place: a group of a dragonfly, a host of a torus, a switch of another network.

use std::fmt;

use netmodel::HostId;

use crate::PacketError;
use crate::fabric::Buffers;
use crate::machine::PacketMachine;
use crate::packet::{MessageKey, Packet, choice};
use crate::parameters::PacketRouting;

/// A routing over third places, with what it knows of the network. A packet carries the state of its way as a path, 32 bits that are 0 at
/// first, the lowest of which have the virtual channel of the last link.
///
/// Ports and nodes have the numbers of the [machine](PacketMachine).
pub(crate) trait Detours: fmt::Debug + Send + Sync {
    /// Returns the output port that a packet takes at a node, and its path from there; `None` at a host that has one cable.
    fn route(&self, crossing: &Crossing<'_, '_>) -> Option<(u32, u32)>;

    /// Lists all that `route` may return at a node, for any packet with a path between two hosts; nothing at a host that has one cable.
    fn steps(&self, machine: &PacketMachine<'_>, at: (u32, u32), ends: (HostId, HostId)) -> Vec<(u32, u32)>;

    /// Returns the bits of a path that have the virtual channel.
    fn channel_mask(&self) -> u32 {
        0xff
    }

    /// Returns the number of virtual channels that packets need.
    fn channels(&self) -> u32;

    /// Returns whether packets between two hosts can go over a third place.
    fn may_detour(&self, src: HostId, dst: HostId) -> bool;

    /// Returns a bound on the number of links of a way over a third place, without the cables of hosts that forward nothing.
    fn longest_detour(&self) -> u32;

    /// Returns whether hosts forward packets: they choose an output for each packet, and not for a message.
    fn routes_at_hosts(&self) -> bool {
        false
    }

    /// Returns whether a packet with a path that reaches its destination stays there.
    fn ends_at(&self, _path: u32, _dst: HostId) -> bool {
        true
    }

    /// Checks that nodes which tell each other their loads, with `ugal-g`, are in one region.
    fn check_regions(&self, _region_of: &dyn Fn(u32) -> u32) -> Result<(), PacketError> {
        Ok(())
    }
}

/// A packet at a node, and what the node knows.
pub(crate) struct Crossing<'a, 'p> {
    pub(crate) machine: &'a PacketMachine<'p>,
    pub(crate) node: u32,
    pub(crate) packet: &'a Packet,
    /// With credits, the buffers of the region, and its first port.
    pub(crate) loads: Option<(&'a Buffers, u32)>,
}

impl Crossing<'_, '_> {
    /// Returns both ends of the message.
    pub(crate) fn ends(&self) -> (HostId, HostId) {
        let MessageKey { src, dst, .. } = self.packet.message;
        (src, dst)
    }

    /// Returns the hash by which the packet chooses at a node.
    pub(crate) fn hash_at(&self, node: u32) -> u64 {
        let Self { machine, packet, .. } = self;
        let number = machine.nodes[node as usize].node.index() as u32;
        choice(machine.parameters.seed, packet.message, packet.number(), number)
    }

    /// Returns the bytes before an output of the node; `None` without credits.
    pub(crate) fn backlog(&self, port: u32) -> Option<u64> {
        self.loads.map(|(buffers, first_port)| buffers.backlog(port - first_port, self.packet.at))
    }

    /// Returns the bytes before an output of any node of the region that were published last; `None` without credits.
    pub(crate) fn published_backlog(&self, port: u32) -> Option<u64> {
        self.loads.map(|(buffers, first_port)| buffers.published_backlog(port - first_port, self.packet.at))
    }

    /// Returns whether the packet goes over a third place, and not on a shortest way, by the costs of both.
    pub(crate) fn takes_detour<V>(&self, via: V, cost: impl Fn(Option<V>) -> Option<u64>) -> bool {
        self.machine.parameters.routing == PacketRouting::Valiant || cost(Some(via)) < cost(None)
    }
}
