//! Ways through a torus over a third host.

use netmodel::{HostId, Layout, NetworkShape};

use super::PacketMachine;
use crate::detours::{Crossing, Detours};
use crate::packet::below;

/// Ports of the hosts of a torus, which takes packets to a third host first and then to their destinations, dimension by dimension.
#[derive(Debug)]
pub(super) struct TorusTable {
    /// Sizes of the dimensions.
    dims: Box<[u32]>,
    /// Ports in the direction of growing coordinates and in the other one, by host and dimension.
    ports: Box<[[u32; 2]]>,
}

/// Where a packet is on its way.
///
/// | bits | |
/// |---|---|
/// | 0 | the packet has crossed the cable that closes the ring in which it is |
/// | 1 | it goes to its destination |
/// | 2 | the last link closes a ring |
/// | 3 to 7 | dimension of the last link and 1 |
/// | from 8 | the third host and 1, until it is reached |
///
/// The first two are the virtual channel of the last link: two for each part of the way, each part with a dateline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TorusWay(u32);

const CHANNEL: u32 = 3;
const CLOSES: u32 = 1 << 2;
const DIMENSION: u32 = 3;
const VIA: u32 = 8;
/// Largest number of dimensions and of hosts that a way can name.
const MAX_DIMENSIONS: usize = 31;
const MAX_HOSTS: u32 = (1 << (u32::BITS - VIA)) - 1;

impl TorusWay {
    /// Returns the way of a packet that begins to go over a third host.
    fn over(via: u32) -> Self {
        Self((via + 1) << VIA)
    }
}

impl TorusTable {
    /// Makes the table of a torus; `None` for other platforms, and for one with too many hosts or dimensions.
    pub(super) fn new(layout: &Layout, link_ports: &[Option<u32>]) -> Option<Self> {
        let NetworkShape::Torus { dims } = &layout.shape else { return None };
        let hosts = dims.iter().product::<u32>();
        if dims.len() > MAX_DIMENSIONS || hosts > MAX_HOSTS {
            return None;
        }
        let mut ports = vec![[0; 2]; hosts as usize * dims.len()];
        for (cable, ends) in layout.cables()?.into_iter().enumerate() {
            let dimension = cable % dims.len();
            ports[ends.lower as usize * dims.len() + dimension][0] = link_ports[ends.up.index()]?;
            ports[ends.upper as usize * dims.len() + dimension][1] = link_ports[ends.down.index()]?;
        }
        Some(Self { dims: dims.as_slice().into(), ports: ports.into() })
    }

    /// Returns the number of hosts, each of which may be a third one.
    fn hosts(&self) -> u32 {
        (self.ports.len() / self.dims.len()) as u32
    }

    /// Returns the output port that a packet takes at a host before its destination, and its way from there. Half around a ring both
    /// directions are as long: `goes_up` decides.
    #[inline]
    fn step(&self, host: u32, way: TorusWay, dst: u32, goes_up: bool) -> (u32, TorusWay) {
        let via = (way.0 >> VIA).checked_sub(1).filter(|&via| via != host);
        let (target, part) = via.map_or((dst, 2), |via| (via, 0));
        let mut stride = 1;
        for (dimension, &size) in self.dims.iter().enumerate() {
            let [from, to] = [host, target].map(|host| host / stride % size);
            stride *= size;
            if from == to {
                continue;
            }
            let ahead = (to + size - from) % size;
            let is_up = if 2 * ahead == size { goes_up } else { 2 * ahead < size };
            let closes = from == if is_up { size - 1 } else { 0 };
            let last = (dimension as u32 + 1) << DIMENSION;
            let is_same_ring = way.0 & 2 == part && way.0 & (0x1f << DIMENSION) == last;
            let crossed = u32::from(is_same_ring && way.0 & (1 | CLOSES) != 0);
            let via = via.map_or(0, |via| (via + 1) << VIA);
            let way = via | last | if closes { CLOSES } else { 0 } | part | crossed;
            let port = self.ports[host as usize * self.dims.len() + dimension][usize::from(!is_up)];
            return (port, TorusWay(way));
        }
        unreachable!("a packet at its destination has arrived")
    }
}

impl Detours for TorusTable {
    fn route(&self, crossing: &Crossing<'_, '_>) -> Option<(u32, u32)> {
        let Crossing { machine, node, packet, .. } = *crossing;
        let (host, hash) = (machine.nodes[node as usize].node.index() as u32, crossing.hash_at(node));
        let way = match packet.path {
            0 => TorusWay::over(below(self.hosts() as usize, hash) as u32),
            path => TorusWay(path),
        };
        let (port, way) = self.step(host, way, packet.message.dst.get(), hash & 1 == 0);
        Some((port, way.0))
    }

    fn steps(
        &self,
        machine: &PacketMachine<'_>,
        (node, path): (u32, u32),
        (_, dst): (HostId, HostId),
    ) -> Vec<(u32, u32)> {
        let host = machine.nodes[node as usize].node.index() as u32;
        let vias = (0..self.hosts()).map(TorusWay::over);
        let ways: Vec<TorusWay> = if path == 0 { vias.collect() } else { vec![TorusWay(path)] };
        let step = |(&way, goes_up)| self.step(host, way, dst.get(), goes_up);
        let steps = ways.iter().flat_map(|way| [(way, false), (way, true)]).map(step);
        steps.map(|(port, way)| (port, way.0)).collect()
    }

    fn channel_mask(&self) -> u32 {
        CHANNEL
    }

    fn channels(&self) -> u32 {
        CHANNEL + 1
    }

    fn may_detour(&self, _src: HostId, _dst: HostId) -> bool {
        true
    }

    /// Returns the number of links half around each ring, twice.
    fn longest_detour(&self) -> u32 {
        self.dims.iter().map(|size| size / 2 * 2).sum()
    }

    fn routes_at_hosts(&self) -> bool {
        true
    }

    /// Returns whether the packet has been at the third host.
    fn ends_at(&self, path: u32, dst: HostId) -> bool {
        (path >> VIA).checked_sub(1).is_none_or(|via| via == dst.get())
    }
}
