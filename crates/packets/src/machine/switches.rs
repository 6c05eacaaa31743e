//! Ways through a network of switches, over a third one or not.

use netmodel::{HostId, NetworkGraph, Platform, SwitchShape};

use super::outputs::{OutputTable, WeightedPorts, distances_to};
use super::{NodeEntry, PacketMachine};
use crate::detours::{Crossing, Detours};
use crate::fabric::first_choice;
use crate::packet::below;
use crate::{PacketError, PacketParameters, PacketRouting};

/// Shortest ways between the switches of a HyperX, Slim Fly, PolarFly, Jellyfish or dragonfly+, which packets take to a switch of a third
/// unit first, or not. Units are the groups of a dragonfly+, and single switches of the others. Hosts are numbered switch by switch.
#[derive(Debug)]
pub(super) struct SwitchTable {
    routing: PacketRouting,
    outputs: OutputTable,
    /// Switch that each node is; hosts are none.
    switches: Box<[Option<u32>]>,
    /// Hosts of a switch that has some.
    nodes: u32,
    /// Switches of a unit that have hosts.
    size: u32,
    units: u32,
    /// Links between two switches with hosts, by the number of the destination, then that of the source.
    distances: Box<[u8]>,
    /// Shortest ways go up levels of switches and down again, and need one channel; others change it at each switch.
    has_levels: bool,
}

/// State of a packet on its way, in bits.
///
/// | bits | |
/// |---|---|
/// | 0 to 7 | virtual channel of the last link |
/// | 8 | whether it goes over a third switch is decided |
/// | 9 | the last link joins switches |
/// | from 10 | the first host of the third switch and 1, until it is reached |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SwitchWay(u32);

const DECIDED: u32 = 1 << 8;
const BETWEEN_SWITCHES: u32 = 1 << 9;
const VIA: u32 = 10;
/// Largest number of hosts that a way can name.
const MAX_HOSTS: u32 = (1 << (u32::BITS - VIA)) - 1;

impl SwitchWay {
    /// Returns the virtual channel of the last link.
    #[inline]
    fn channel(self) -> u32 {
        self.0 & 0xff
    }

    fn via(self) -> Option<HostId> {
        (self.0 >> VIA).checked_sub(1).map(HostId::new)
    }

    /// Decides for the switch of a host, or against one.
    fn decide(self, via: Option<HostId>) -> Self {
        Self(self.0 | DECIDED | via.map_or(0, |via| (via.get() + 1) << VIA))
    }
}

impl SwitchTable {
    /// Makes the table of a network of three units or more; `None` for others.
    ///
    /// # Errors
    /// If it would be too large.
    pub(super) fn new(
        shape: &SwitchShape,
        (platform, graph, rates): (&Platform, &NetworkGraph, &[f64]),
        parameters: &PacketParameters,
        (places, nodes): (&[u32], &[NodeEntry]),
    ) -> Result<Option<Self>, PacketError> {
        let Some([of_switch, size, units]) = shape.units_of_detours() else { return Ok(None) };
        let hosts = graph.hosts();
        if units < 3 || hosts > MAX_HOSTS {
            return Ok(None);
        }
        let outputs = OutputTable::of_shortest((platform, graph, rates), parameters, places, nodes)?;
        let mut switches = vec![None; nodes.len()];
        for switch in 0..graph.nodes() - hosts {
            switches[places[(hosts + switch) as usize] as usize] = Some(switch);
        }
        let with_hosts = hosts as usize..(hosts + size * units) as usize;
        let distances = with_hosts.clone().flat_map(|to| {
            let to = netmodel::NodeId::new(to as u32);
            let distances = distances_to(graph, to, |node| node.index() >= hosts as usize, |_| true);
            with_hosts.clone().map(move |from| distances[from].map_or(u8::MAX, |links| links as u8))
        });
        Ok(Some(Self {
            routing: parameters.routing,
            outputs,
            switches: switches.into(),
            nodes: of_switch,
            size,
            units,
            distances: distances.collect(),
            has_levels: shape.has_levels(),
        }))
    }

    fn switch_of(&self, host: HostId) -> u32 {
        host.get() / self.nodes
    }

    /// Returns the unit of a packet's source and that of its destination, if it is still to be decided at a node whether a packet goes over
    /// a third one.
    fn undecided(&self, node: u32, way: SwitchWay, (src, dst): (HostId, HostId)) -> Option<(u32, u32)> {
        let switch = self.switches[node as usize]?;
        let [from, to] = [src, dst].map(|host| self.switch_of(host) / self.size);
        (way.0 & DECIDED == 0 && switch == self.switch_of(src) && from != to).then_some((from, to))
    }

    fn longest_way(&self) -> u32 {
        self.distances.iter().copied().max().unwrap_or(1).into()
    }

    /// Returns the number of switches that a packet between two units can go over.
    fn third_switches(&self) -> u32 {
        (self.units - 2) * self.size
    }

    /// Returns the first host of one of the switches that a packet between two units can go over.
    fn third_switch(&self, (from, to): (u32, u32), number: u32) -> HostId {
        let (low, high) = (from.min(to), from.max(to));
        let unit = number / self.size;
        let unit = unit + u32::from(unit >= low);
        let unit = unit + u32::from(unit >= high);
        HostId::new((unit * self.size + number % self.size) * self.nodes)
    }

    /// Returns the output ports among which a packet chooses at a node, with their shares, and its way from there; `None` at a host.
    #[inline]
    fn ports(&self, node: u32, way: SwitchWay, dst: HostId) -> Option<(WeightedPorts<'_>, SwitchWay)> {
        let switch = self.switches[node as usize]?;
        let via = way.via().filter(|&via| self.switch_of(via) != switch);
        let target = via.unwrap_or(dst);
        let ports = self.outputs.at_node(node).toward(target);
        if self.switch_of(target) == switch {
            // Hosts take in what comes.
            return Some((ports, SwitchWay(way.0 & DECIDED)));
        }
        let changes = if self.has_levels { way.via() != via } else { way.0 & BETWEEN_SWITCHES != 0 };
        let channel = way.channel() + u32::from(changes);
        let via = via.map_or(0, |via| (via.get() + 1) << VIA);
        Some((ports, SwitchWay(via | way.0 & DECIDED | BETWEEN_SWITCHES | channel)))
    }

    /// Returns the number of links between switches from that of a host to that of another one, over a third one or not.
    fn links(&self, src: HostId, via: Option<HostId>, dst: HostId) -> u32 {
        let distance = |from, to| {
            let [from, to] = [from, to].map(|host| self.switch_of(host) as usize);
            u32::from(self.distances[to * (self.size * self.units) as usize + from])
        };
        via.map_or_else(|| distance(src, dst), |via| distance(src, via) + distance(via, dst))
    }

    /// Returns the output port that a packet takes at a node, and its way from there; `None` at a host.
    fn step(&self, crossing: &Crossing<'_, '_>, node: u32, way: SwitchWay) -> Option<(u32, SwitchWay)> {
        let ((ports, shares), way) = self.ports(node, way, crossing.packet.message.dst)?;
        let port = match *ports {
            [port] => port,
            _ => ports[first_choice((ports, shares), crossing.hash_at(node))],
        };
        Some((port, way))
    }

    /// Returns the bytes before the first output of a way times its links, or with `ugal-g` those before all its outputs, as they were
    /// published; `None` without credits.
    fn cost(&self, crossing: &Crossing<'_, '_>, mut way: SwitchWay, links: u32) -> Option<u64> {
        let Crossing { machine, mut node, .. } = *crossing;
        if self.routing != PacketRouting::UgalG {
            let (port, _) = self.step(crossing, node, way)?;
            return Some(crossing.backlog(port)?.saturating_mul(links.into()));
        }
        let mut backlog = 0;
        for _ in 0..links {
            let (port, next) = self.step(crossing, node, way)?;
            backlog += crossing.published_backlog(port)?;
            node = machine.input_nodes[machine.ports[port as usize].input as usize];
            way = next;
        }
        Some(backlog)
    }
}

impl Detours for SwitchTable {
    fn route(&self, crossing: &Crossing<'_, '_>) -> Option<(u32, u32)> {
        let Crossing { node, packet, .. } = *crossing;
        let (src, dst) = crossing.ends();
        let mut way = SwitchWay(packet.path);
        if let Some(units) = self.undecided(node, way, (src, dst)) {
            let number = below(self.third_switches() as usize, crossing.hash_at(node)) as u32;
            let via = self.third_switch(units, number);
            let cost = |via| self.cost(crossing, way.decide(via), self.links(src, via, dst));
            let is_taken = crossing.takes_detour(via, cost);
            way = way.decide(is_taken.then_some(via));
        }
        self.step(crossing, node, way).map(|(port, way)| (port, way.0))
    }

    fn steps(
        &self,
        _: &PacketMachine<'_>,
        (node, path): (u32, u32),
        ends: (HostId, HostId),
    ) -> Vec<(u32, u32)> {
        let way = SwitchWay(path);
        let ways = match self.undecided(node, way, ends) {
            None => vec![way],
            Some(units) => {
                let vias = (0..self.third_switches()).map(|number| self.third_switch(units, number));
                let minimal = (self.routing != PacketRouting::Valiant).then_some(None);
                minimal.into_iter().chain(vias.map(Some)).map(|via| way.decide(via)).collect()
            }
        };
        let steps = ways.into_iter().filter_map(|way| self.ports(node, way, ends.1));
        steps.flat_map(|((ports, _), way)| ports.iter().map(move |&port| (port, way.0))).collect()
    }

    /// Returns one for each part of a way, or as many as it has links between switches.
    fn channels(&self) -> u32 {
        2 * if self.has_levels { 1 } else { self.longest_way() }
    }

    fn may_detour(&self, src: HostId, dst: HostId) -> bool {
        let [from, to] = [src, dst].map(|host| self.switch_of(host) / self.size);
        from != to
    }

    /// Returns the number of links of two longest ways.
    fn longest_detour(&self) -> u32 {
        2 * self.longest_way()
    }

    fn check_regions(&self, region_of: &dyn Fn(u32) -> u32) -> Result<(), PacketError> {
        let nodes = (0..).zip(&self.switches).filter(|(_, switch)| switch.is_some());
        let mut regions = nodes.map(|(node, _)| region_of(node));
        let first = regions.next();
        let is_one = regions.all(|region| Some(region) == first);
        is_one.then_some(()).ok_or(PacketError::DividedSwitches)
    }
}
