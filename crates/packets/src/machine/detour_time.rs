//! The time of detours, by which messages have their limits in flight.

use netmodel::HostId;

use super::{PacketMachine, Ways};
use crate::fabric::transmission;

impl PacketMachine<'_> {
    /// Returns a bound on the time of a full packet on the links between two hosts that a routing may take over a third node, without the
    /// cables of hosts that forward nothing \[ps\]; `None` if all packets of the two take the route of the platform.
    pub(crate) fn detour_time(&self, src: HostId, dst: HostId) -> Option<u64> {
        let Ways::Detours(table) = &self.ways else { return None };
        table.may_detour(src, dst).then_some(self.detour_time)
    }

    /// Returns as many times the time of a full packet on the slowest link between switches as the longest detour has such links: no way
    /// has to be followed.
    pub(super) fn bound_detour_time(&self) -> u64 {
        let Ways::Detours(table) = &self.ways else { return 0 };
        let (links, hosts_forward) = (table.longest_detour(), self.routes_at_hosts);
        let is_between = |node| hosts_forward || self.host(node).is_none();
        let times = (0..).zip(&self.nodes).filter(|&(place, _)| is_between(place)).flat_map(|(_, node)| {
            let ports = &self.ports[node.first_port as usize..(node.first_port + node.outputs) as usize];
            ports.iter().filter(|port| is_between(self.input_nodes[port.input as usize]))
        });
        let times = times
            .map(|port| port.latency.saturating_add(transmission(self.packet_size(), port.picos_per_byte)));
        u64::from(links).saturating_mul(times.max().unwrap_or(0))
    }
}
