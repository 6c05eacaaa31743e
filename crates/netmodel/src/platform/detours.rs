//! Ways around links that are off.

use std::collections::VecDeque;

use pdes_core::SimTime;

use crate::{GraphError, HostId, LinkId, NetworkGraph, NodeId, Platform, Resource, RouteError, RoutingRule};

impl Platform {
    /// Lets messages go around links that are off: by a shortest way in the graph of the network, each pair of hosts by its own random one among
    /// these, always the same. Other hosts are passed only where there are no switches. Where there is no way around, messages wait.
    ///
    /// # Errors
    /// If the links form no graph ([`NetworkGraph::of`]): messages wait then.
    pub fn add_detours(&mut self) -> Result<(), GraphError> {
        self.detours = Some(NetworkGraph::of(self)?);
        Ok(())
    }

    /// Returns whether messages go around links that are off.
    #[inline]
    pub fn has_detours(&self) -> bool {
        self.detours.is_some()
    }

    /// Writes the links from one host to another that a message crosses which is sent at an instant into `out`.
    ///
    /// Costs as [`Platform::route`]; with a link that is off in addition `O(links)`.
    ///
    /// # Errors
    /// As [`Platform::route`].
    pub fn route_at(
        &self,
        src: HostId,
        dst: HostId,
        at: SimTime,
        out: &mut Vec<LinkId>,
    ) -> Result<(), RouteError> {
        self.route(src, dst, out)?;
        let Some(graph) = &self.detours else { return Ok(()) };
        let is_off = |link| self.changes().value(Resource::Bandwidth(link), at) == Some(0.0);
        if out.iter().any(|&link| is_off(link))
            && let Some(way) = shortest_way(graph, src, dst, |link| !is_off(link))
        {
            *out = way;
        }
        Ok(())
    }

    /// Returns whether messages between two hosts may have to go around a link of their route, or of the reverse one.
    pub(crate) fn may_detour(&self, src: HostId, dst: HostId) -> bool {
        let mut links = Vec::new();
        let mut changes = |src, dst| {
            let is_changing = |&link: &LinkId| self.changes().includes(Resource::Bandwidth(link));
            self.route(src, dst, &mut links).is_ok() && links.iter().any(is_changing)
        };
        self.has_detours() && (changes(src, dst) || changes(dst, src))
    }
}

/// Returns a shortest way between two hosts by links that are on: at each node one of the next ones, by a hash of the hosts.
fn shortest_way(
    graph: &NetworkGraph,
    src: HostId,
    dst: HostId,
    is_on: impl Fn(LinkId) -> bool,
) -> Option<Vec<LinkId>> {
    let (begin, end) = (NodeId::from(src), NodeId::from(dst));
    let has_switches = graph.nodes() > graph.hosts();
    let mut distances: Vec<Option<u32>> = vec![None; graph.nodes() as usize];
    let mut reached = VecDeque::from([end]);
    distances[end.index()] = Some(0);
    while let Some(node) = reached.pop_front() {
        if node != end && has_switches && node.index() < graph.hosts() as usize {
            continue;
        }
        let farther = distances[node.index()].map(|distance| distance + 1);
        for channel in graph.inputs(node).iter().map(|&channel| graph.channel(channel)) {
            let distance = &mut distances[channel.from.index()];
            if distance.is_none() && is_on(channel.link) {
                *distance = farther;
                reached.push_back(channel.from);
            }
        }
    }
    let (mut node, mut way) = (begin, Vec::new());
    for left in (0..distances[begin.index()]?).rev() {
        let outputs = graph.outputs(node).iter().map(|&channel| graph.channel(channel));
        let next: Vec<_> = outputs
            .filter(|channel| distances[channel.to.index()] == Some(left) && is_on(channel.link))
            .collect();
        let [from, to] = [src, dst].map(|host| u64::from(host.get()));
        let hash = RoutingRule::Random.random_choice(from, to, left as usize).unwrap_or_default();
        let channel = next[(hash % next.len() as u64) as usize];
        way.push(channel.link);
        node = channel.to;
    }
    Some(way)
}

#[cfg(test)]
mod tests {
    use pdes_core::SimDuration;

    use super::*;
    use crate::{Profile, ResourceChange};

    const OFF: SimTime = SimTime::from_picos(10);

    /// Takes the platform of a topology, in which the links of a list are off from an instant on.
    fn platform(topology: &str, off: &[u32]) -> Platform {
        let text =
            format!("topology = {{ {topology}, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }}");
        let mut platform = Platform::from_toml(&text, "test").unwrap();
        platform.add_detours().unwrap();
        let change =
            |&link| ResourceChange { at: OFF, resource: Resource::Bandwidth(LinkId::new(link)), value: 0.0 };
        platform.set_changes(off.iter().map(change)).unwrap();
        platform
    }

    fn route(platform: &Platform, at: SimTime, src: u32, dst: u32) -> Vec<u32> {
        let mut links = Vec::new();
        platform.route_at(HostId::new(src), HostId::new(dst), at, &mut links).unwrap();
        links.into_iter().map(LinkId::get).collect()
    }

    #[test]
    fn messages_go_around_a_cable_of_a_torus_and_of_a_fat_tree() {
        let before = SimTime::ZERO;
        let ring = "kind = 'torus', dims = [5]";
        let there = route(&platform(ring, &[]), before, 0, 1);
        assert_eq!(there.len(), 1);
        let cut = platform(ring, &there);
        assert_eq!(route(&cut, before, 0, 1), there);
        assert_eq!(route(&cut, OFF, 0, 1).len(), 4);
        assert!(
            cut.may_detour(HostId::new(1), HostId::new(0)) && !cut.may_detour(HostId::new(3), HostId::new(4))
        );
        let tree =
            "kind = 'fat_tree', levels = [{ children = 4, parents = 1 }, { children = 2, parents = 4 }]";
        let there = route(&platform(tree, &[]), before, 0, 4);
        let cut = platform(tree, &there[1..2]);
        let around = route(&cut, OFF, 0, 4);
        assert_eq!((around.len(), around[0], around[3]), (4, there[0], there[3]));
        assert!(around[1] != there[1] && around[2] != there[2], "{around:?}, not {there:?}");
        // Pairs of hosts spread over the ways that are left.
        let ways: std::collections::BTreeSet<u32> = (0..4)
            .flat_map(|src| (4..8).map(move |dst| (src, dst)))
            .map(|(src, dst)| route(&cut, OFF, src, dst)[1])
            .collect();
        assert_eq!(ways.len(), 3);
    }

    /// A host has one cable: messages keep their route, and wait.
    #[test]
    fn where_there_is_no_way_around_routes_stay() {
        let star = "kind = 'cluster', hosts = 3";
        let there = route(&platform(star, &[]), SimTime::ZERO, 0, 1);
        assert_eq!(route(&platform(star, &there[..1]), OFF, 0, 1), there);
    }

    #[test]
    fn routes_return_with_their_links() {
        let mut ring = platform("kind = 'torus', dims = [5]", &[]);
        let there = route(&ring, SimTime::ZERO, 0, 1);
        let points = vec![(OFF, 0.0), (OFF + SimDuration::from_picos(5), 1.0)];
        let spec = crate::ProfileSpec {
            is_of_hosts: false,
            name: ring.link(LinkId::new(there[0])).name.clone(),
            quantity: crate::ProfiledQuantity::State,
            is_relative: false,
            profile: Profile::new(points, None).unwrap(),
        };
        ring.add_profiles(&[spec]).unwrap();
        assert_eq!(route(&ring, SimTime::from_picos(14), 0, 1).len(), 4);
        assert_eq!(route(&ring, SimTime::from_picos(15), 0, 1), there);
    }
}
