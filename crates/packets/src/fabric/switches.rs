//! Ways of packets through a network of switches.

use super::Fabric;
use super::credits::Buffers;
use crate::machine::{SwitchTable, SwitchWay};
use crate::packet::{MessageKey, Packet, below};
use crate::parameters::PacketRouting;

impl Fabric<'_, '_> {
    /// Returns the output port that a packet takes at a node, over a third switch or not.
    pub(super) fn route_through_switches(
        &self,
        table: &SwitchTable,
        node: u32,
        packet: &mut Packet,
        buffers: Option<&Buffers>,
    ) -> u32 {
        let place = self.first_node + node;
        let MessageKey { src, dst, .. } = packet.message;
        let mut way = SwitchWay(packet.path);
        if let Some(ends) = table.undecided(place, way, (src, dst)) {
            let number = below(table.third_switches() as usize, self.hash_at(place, packet)) as u32;
            let via = table.third_switch(ends, number);
            let is_taken = self.machine.parameters.routing == PacketRouting::Valiant || {
                let [over, minimal] = [Some(via), None].map(|via| {
                    let (way, links) = (way.decide(via), table.links(src, via, dst));
                    self.cost_through_switches(table, (place, way, links), packet, buffers)
                });
                over < minimal
            };
            way = way.decide(is_taken.then_some(via));
        }
        let Some((port, way)) = self.step_through_switches(table, place, way, packet) else {
            // A host has one cable.
            return self.nodes[node as usize].first_port;
        };
        packet.path = way.0;
        port - self.first_port
    }

    /// Returns the bytes before the first output of a way times its links, or with `ugal-g` those before all its outputs, as they were
    /// published; `None` without credits.
    fn cost_through_switches(
        &self,
        table: &SwitchTable,
        (mut place, mut way, links): (u32, SwitchWay, u32),
        packet: &Packet,
        buffers: Option<&Buffers>,
    ) -> Option<u64> {
        let buffers = buffers?;
        if self.machine.parameters.routing != PacketRouting::UgalG {
            let (port, _) = self.step_through_switches(table, place, way, packet)?;
            return Some(buffers.backlog(port - self.first_port, packet.at).saturating_mul(links.into()));
        }
        let mut backlog = 0;
        for _ in 0..links {
            let (port, next) = self.step_through_switches(table, place, way, packet)?;
            backlog += buffers.published_backlog(port - self.first_port, packet.at);
            place = self.machine.input_nodes[self.machine.ports[port as usize].input as usize];
            way = next;
        }
        Some(backlog)
    }

    /// Returns the output port that a packet takes on a way at a node, and its way from there; `None` at a host.
    fn step_through_switches(
        &self,
        table: &SwitchTable,
        place: u32,
        way: SwitchWay,
        packet: &Packet,
    ) -> Option<(u32, SwitchWay)> {
        let ((ports, shares), way) = table.step(place, way, packet.message.dst)?;
        let port = match *ports {
            [port] => port,
            _ => ports[super::first_choice((ports, shares), self.hash_at(place, packet))],
        };
        Some((port, way))
    }
}
