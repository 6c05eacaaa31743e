//! The pairs of hosts between which messages go: their routes and what follows from these.

use netmodel::{HostId, RouteError};
use pdes_core::SimDuration;
use rustc_hash::FxHashMap;

use crate::machine::{PacketMachine, Ways};
use crate::packet::MessageKey;
use crate::parameters::{InFlight, PacketRouting};

/// Output ports of the static routes that packets of a region take, as numbers in the region.
#[derive(Debug, Default)]
pub(super) struct StaticRoutes {
    pub(super) pairs: FxHashMap<(HostId, HostId), Pair>,
    ports: Vec<u32>,
    /// Virtual channels of the links behind the ports, with credits.
    channels: Vec<u8>,
    /// Latencies between hosts, of those that were asked for.
    latencies: FxHashMap<(HostId, HostId), SimDuration>,
}

/// A pair of hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// Place of the first port of the route; 0 if nodes choose.
    pub(super) path: u32,
    /// Most packets of a message that may be on their way.
    pub(super) limit: Option<u32>,
    /// Time of an acknowledgement \[ps\].
    pub(super) back: u64,
    /// Time from a packet's begin until its acknowledgement is back, if nothing is in the way \[ps\]; 0 without a limit.
    pub(super) round_trip: u64,
    /// Number of messages so far.
    pub(super) messages: u32,
}

impl StaticRoutes {
    /// Returns the output port at a place of a path.
    #[inline]
    pub(super) fn port(&self, place: u32) -> u32 {
        self.ports[place as usize]
    }

    /// Returns the virtual channel of the link behind the port at a place of a path.
    #[inline]
    pub(super) fn channel(&self, place: u32) -> u32 {
        self.channels[place as usize].into()
    }

    /// Returns a pair of hosts, which is looked up on first use.
    pub(super) fn pair(
        &mut self,
        machine: &PacketMachine<'_>,
        first_port: u32,
        (src, dst): (HostId, HostId),
    ) -> Result<&mut Pair, RouteError> {
        if !self.pairs.contains_key(&(src, dst)) {
            let (mut there, mut back) = (Vec::new(), Vec::new());
            machine.route(src, dst, &mut there)?;
            machine.check_route(src, dst, &there)?;
            let mut path = 0;
            if matches!(machine.ways, Ways::Routes) {
                path = self.ports.len() as u32;
                // Ports of other regions are never asked for.
                if machine.has_credits() {
                    machine.channels.of_route(&there, &mut self.channels);
                }
                self.ports.extend(there.iter().map(|&link| machine.port_of(link).wrapping_sub(first_port)));
            }
            machine.route(dst, src, &mut back)?;
            let latency = |links: &[netmodel::LinkId]| -> u64 {
                links.iter().map(|&link| machine.ports[machine.port_of(link) as usize].latency).sum()
            };
            let back = latency(&back);
            let round_trip_and_limit = (machine.parameters.in_flight() == InFlight::Loop).then(|| {
                let time = |&link| {
                    let rate = machine.ports[machine.port_of(link) as usize].picos_per_byte;
                    // Packets go around a link that has failed, on links as fast as it was, and with `reps` around slow ones.
                    let is_left = rate.is_infinite() || machine.parameters.routing == PacketRouting::Reps;
                    let usual = 1e12 / machine.platform.link(link).bandwidth;
                    super::transmission(machine.packet_size(), if is_left { usual } else { rate })
                };
                let usual_delay = there.iter().map(time).sum::<u64>() + latency(&there);
                // On a detour a packet takes the same cables of hosts, if hosts forward nothing.
                let detour_delay = machine.detour_time(src, dst).map_or(0, |detour| {
                    let cables = if machine.routes_at_hosts { &[][..] } else { &there };
                    let cables = cables.first().into_iter().chain(cables.last());
                    let cables = cables.map(|link| time(link) + latency(std::slice::from_ref(link)));
                    detour.saturating_add(cables.sum())
                });
                let delay = usual_delay.max(detour_delay).saturating_add(back);
                let narrowest = there.iter().map(time).max().unwrap_or(1);
                (delay, u32::try_from(delay.div_ceil(narrowest)).unwrap_or(u32::MAX))
            });
            let (round_trip, limit) = round_trip_and_limit.unzip();
            let round_trip = round_trip.unwrap_or(0);
            self.pairs.insert((src, dst), Pair { path, limit, back, round_trip, messages: 0 });
        }
        Ok(self.pairs.get_mut(&(src, dst)).expect("it is known now"))
    }

    /// Returns a pair that was looked up before.
    pub(super) fn known_pair(&self, MessageKey { src, dst, .. }: MessageKey) -> &Pair {
        &self.pairs[&(src, dst)]
    }

    /// Returns the latency of the way from one host to another, within which nothing that one does reaches the other.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn latency(
        &mut self,
        machine: &PacketMachine<'_>,
        (src, dst): (HostId, HostId),
    ) -> Result<SimDuration, RouteError> {
        if let Some(&latency) = self.latencies.get(&(src, dst)) {
            return Ok(latency);
        }
        let mut links = Vec::new();
        machine.route(src, dst, &mut links)?;
        machine.check_route(src, dst, &links)?;
        let latencies = links.iter().map(|&link| machine.ports[machine.port_of(link) as usize].latency);
        let latency = SimDuration::from_picos(latencies.sum());
        self.latencies.insert((src, dst), latency);
        Ok(latency)
    }
}
