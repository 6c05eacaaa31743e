//! Ways through a dragonfly, over a third group or not.

use netmodel::{DragonflyShape, HostId, NetworkGraph};
use rustc_hash::FxHashMap;

use super::{NodeEntry, PacketMachine};
use crate::PacketError;
use crate::detours::{Crossing, Detours};
use crate::packet::below;
use crate::parameters::PacketRouting;

/// Ports on the ways within groups and between them: to a router of another group by the cable that joins both groups.
#[derive(Debug)]
pub(super) struct GroupTable {
    routing: PacketRouting,
    groups: u32,
    /// Routers of a group.
    size: u32,
    /// Router that each node is; hosts are none.
    routers: Box<[Option<u32>]>,
    /// First router of each node that is a host, and the port there that leads to the host.
    hosts: Box<[(u32, u32)]>,
    /// Port of a router on the way to another one of its group, and the number of links, by router and place in the group.
    local: Box<[(u32, u32)]>,
    /// By group and other group.
    gateways: Box<[Gateway]>,
}

/// A cable from one group to another.
#[derive(Clone, Copy, Debug, Default)]
struct Gateway {
    router: u32,
    port: u32,
    /// Router at the other end.
    far: u32,
}

/// Where a packet is on its way.
///
/// | bits | |
/// |---|---|
/// | 0 to 7 | virtual channel of the last link |
/// | 8 | the last link joins groups |
/// | 9 | whether it goes over a third group is decided |
/// | 10 | the last link joins routers |
/// | from 11 | the third group and 1, until it is reached |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct GroupWay(u32);

const BETWEEN_GROUPS: u32 = 1 << 8;
const DECIDED: u32 = 1 << 9;
const BETWEEN_ROUTERS: u32 = 1 << 10;
const VIA: u32 = 11;

impl GroupWay {
    /// Returns the virtual channel of the last link.
    #[inline]
    fn channel(self) -> u32 {
        self.0 & 0xff
    }

    fn via(self) -> Option<u32> {
        (self.0 >> VIA).checked_sub(1)
    }

    /// Decides for a third group, or for now against one.
    fn decide(self, via: Option<u32>, is_final: bool) -> Self {
        match via {
            // Links of the group behind it and those before it have different channels.
            Some(via) => {
                let channel = u32::from(self.0 & BETWEEN_ROUTERS != 0);
                Self((self.0 | DECIDED | (via + 1) << VIA) + channel)
            }
            None if is_final => Self(self.0 | DECIDED),
            None => self,
        }
    }
}

/// Largest number of groups whose numbers a packet can carry.
const MAX_GROUPS: u32 = (1 << (u32::BITS - VIA)) - 2;

impl GroupTable {
    /// Makes the table of a dragonfly of three groups or more; `None` for others. `places` has the place of each node among `nodes`.
    pub(super) fn new(
        shape: &DragonflyShape,
        graph: &NetworkGraph,
        routing: PacketRouting,
        (places, nodes): (&[u32], &[NodeEntry]),
    ) -> Option<Self> {
        let DragonflyShape { groups, chassis, blades, .. } = *shape;
        if !(3..=MAX_GROUPS).contains(&groups) {
            return None;
        }
        let (hosts, size) = (graph.hosts(), chassis * blades);
        let mut routers = vec![None; nodes.len()];
        let mut table = Self {
            routing,
            groups,
            size,
            routers: Box::default(),
            hosts: vec![(0, 0); hosts as usize].into(),
            local: vec![(0, u32::MAX); (groups * size * size) as usize].into(),
            gateways: vec![Gateway::default(); (groups * groups) as usize].into(),
        };
        for router in 0..groups * size {
            let node = netmodel::NodeId::new(hosts + router);
            let place = places[node.index()] as usize;
            routers[place] = Some(router);
            table.local[(router * size + router % size) as usize] = (0, 0);
            for (port, &channel) in (nodes[place].first_port..).zip(graph.outputs(node)) {
                let to = graph.channel(channel).to.index() as u32;
                let Some(far) = to.checked_sub(hosts) else {
                    table.hosts[to as usize] = (router, port);
                    continue;
                };
                let (group, other) = (router / size, far / size);
                if group == other {
                    table.local[(router * size + far % size) as usize] = (port, 1);
                } else {
                    table.gateways[(group * groups + other) as usize] = Gateway { router, port, far };
                }
            }
        }
        // Between chassis: first to the blade, then to the chassis.
        for router in 0..groups * size {
            for to in 0..size {
                let corner = router % size / blades * blades + to % blades;
                if table.local[(router * size + to) as usize].1 > 1 {
                    let (port, _) = table.local[(router * size + corner) as usize];
                    table.local[(router * size + to) as usize] = (port, 2);
                }
            }
        }
        table.routers = routers.into();
        Some(table)
    }

    /// Returns the group of a packet's source and that of its destination, if it is still to be decided at a node whether a packet goes
    /// over a third one.
    fn undecided(&self, node: u32, way: GroupWay, (src, dst): (HostId, HostId)) -> Option<(u32, u32)> {
        let group = self.routers[node as usize]? / self.size;
        let [from, to] = [src, dst].map(|host| self.hosts[host.index()].0 / self.size);
        (way.0 & DECIDED == 0 && group == from && from != to).then_some((from, to))
    }

    /// Returns the number of groups that a packet between two groups can go over.
    fn third_groups(&self) -> u32 {
        self.groups - 2
    }

    /// Returns one of the groups that a packet between two groups can go over.
    fn third_group(&self, (from, to): (u32, u32), number: u32) -> u32 {
        let (low, high) = (from.min(to), from.max(to));
        let number = number + u32::from(number >= low);
        number + u32::from(number >= high)
    }

    /// Returns the output port that a packet takes at a node, and its way from there; `None` at a host.
    #[inline]
    fn step(&self, node: u32, way: GroupWay, dst: HostId) -> Option<(u32, GroupWay)> {
        let router = self.routers[node as usize]?;
        let (last, delivery) = self.hosts[dst.index()];
        let group = router / self.size;
        let via = way.via().filter(|&via| via != group);
        let target = via.unwrap_or(last / self.size);
        let to =
            if target == group { None } else { Some(self.gateways[(group * self.groups + target) as usize]) };
        let local = |to: u32| (self.local[(router * self.size + to % self.size) as usize].0, BETWEEN_ROUTERS);
        let (port, kind) = match to {
            None if router == last => (delivery, 0),
            None => local(last),
            Some(gateway) if gateway.router == router => (gateway.port, BETWEEN_ROUTERS | BETWEEN_GROUPS),
            Some(gateway) => local(gateway.router),
        };
        let channel = way.channel() + u32::from(way.0 & BETWEEN_GROUPS != 0);
        let via = via.map_or(0, |via| (via + 1) << VIA);
        Some((port, GroupWay(via | way.0 & DECIDED | kind | channel)))
    }

    /// Returns the number of links between routers that are left from a node to a host, over a third group or not.
    fn links(&self, node: u32, via: Option<u32>, dst: HostId) -> u32 {
        let Some(mut router) = self.routers[node as usize] else { return 0 };
        let (last, _) = self.hosts[dst.index()];
        let local = |from: u32, to: u32| self.local[(from * self.size + to % self.size) as usize].1;
        let mut links = 0;
        for target in via.into_iter().chain([last / self.size]) {
            let group = router / self.size;
            if group != target {
                let gateway = self.gateways[(group * self.groups + target) as usize];
                links += local(router, gateway.router) + 1;
                router = gateway.far;
            }
        }
        links + local(router, last)
    }
}

impl Detours for GroupTable {
    fn route(&self, crossing: &Crossing<'_, '_>) -> Option<(u32, u32)> {
        let Crossing { node, packet, .. } = *crossing;
        let (ends, dst) = (crossing.ends(), packet.message.dst);
        let mut way = GroupWay(packet.path);
        if let Some((from, to)) = self.undecided(node, way, ends) {
            let number = below(self.third_groups() as usize, crossing.hash_at(node)) as u32;
            let via = self.third_group((from, to), number);
            let cost = |via: Option<u32>| {
                let backlog = if self.routing == PacketRouting::UgalG {
                    let cable = self.gateways[(from * self.groups + via.unwrap_or(to)) as usize];
                    crossing.published_backlog(cable.port)?
                } else {
                    let (port, _) = self.step(node, way.decide(via, true), dst)?;
                    crossing.backlog(port)?
                };
                Some(backlog.saturating_mul(self.links(node, via, dst).into()))
            };
            let is_taken = crossing.takes_detour(via, cost);
            way = way.decide(is_taken.then_some(via), self.routing != PacketRouting::Par);
        }
        self.step(node, way, dst).map(|(port, way)| (port, way.0))
    }

    fn steps(
        &self,
        _: &PacketMachine<'_>,
        (node, path): (u32, u32),
        ends: (HostId, HostId),
    ) -> Vec<(u32, u32)> {
        let way = GroupWay(path);
        let ways = match self.undecided(node, way, ends) {
            None => vec![way],
            Some(groups) => {
                let minimal = way.decide(None, self.routing != PacketRouting::Par);
                let minimal = (self.routing != PacketRouting::Valiant).then_some(minimal);
                let vias = (0..self.third_groups()).map(|number| self.third_group(groups, number));
                minimal.into_iter().chain(vias.map(|via| way.decide(Some(via), true))).collect()
            }
        };
        let steps = ways.into_iter().filter_map(|way| self.step(node, way, ends.1));
        steps.map(|(port, way)| (port, way.0)).collect()
    }

    /// Returns one more than packets change them: at two cables between groups, and as they change their mind in the source's group.
    fn channels(&self) -> u32 {
        if self.routing == PacketRouting::Par { 4 } else { 3 }
    }

    fn may_detour(&self, src: HostId, dst: HostId) -> bool {
        let [from, to] = [src, dst].map(|host| self.hosts[host.index()].0 / self.size);
        from != to
    }

    /// Returns the number of links of the longest way within each group, and of two cables between groups.
    fn longest_detour(&self) -> u32 {
        3 * self.local.iter().map(|&(_, links)| links).max().unwrap_or(0) + 2
    }

    fn check_regions(&self, region_of: &dyn Fn(u32) -> u32) -> Result<(), PacketError> {
        let mut regions = FxHashMap::default();
        for (node, router) in (0..).zip(&self.routers) {
            if let Some(group) = router.map(|router| router / self.size)
                && *regions.entry(group).or_insert(region_of(node)) != region_of(node)
            {
                return Err(PacketError::DividedGroup { group });
            }
        }
        Ok(())
    }
}
