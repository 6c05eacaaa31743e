//! Networks of switches whose routes follow from their cables: HyperX, Slim Fly, PolarFly, Jellyfish, dragonfly+ and rail-optimised
//! fabrics. To add one, add a variant of [`SwitchShape`] with its cables.

mod finite_field;
mod jellyfish;
mod plan;
mod shape;

use std::collections::VecDeque;
use std::fmt;
use std::sync::OnceLock;

use super::{
    Cable, Topology, Wiring, consecutive_pairs, contiguous_blocks, default_block_count, third_number,
};
use crate::LinkId;
use crate::layout::NetworkShape;
use plan::SwitchCable;
pub use shape::SwitchShape;

/// Switches, the cables between them, and shortest routes. A route takes at each switch a cable to a switch that is nearer to the
/// destination: of those of the lowest dimension the one that the number of the destination selects, or its hash under
/// [`RoutingRule::Random`](super::RoutingRule). A cable's upward direction leads to the larger station.
///
/// Hosts are numbered switch by switch. The cables of hosts come first, those of a host in succession.
#[derive(Debug)]
pub(crate) struct SwitchGraph {
    shape: SwitchShape,
    switches: u32,
    cables: Vec<SwitchCable>,
    /// Ports between switches, switch by switch.
    ports: Vec<Port>,
    /// First port of each switch, and the number of all.
    first_ports: Vec<u32>,
    /// First switch with cables to others.
    first_joined: u32,
    /// Number of cables between two switches that are joined, by the number of the destination, then that of the source. Made when first
    /// needed: drawings need cables only.
    distances: OnceLock<Box<[u8]>>,
}

/// A port of a switch, and the cable behind it.
#[derive(Clone, Copy, Debug)]
struct Port {
    switch: u32,
    cable: u32,
    dimension: u8,
}

/// Distance of switches without a way between them.
const NO_WAY: u8 = u8::MAX;

impl SwitchGraph {
    /// Makes the network, or returns `None` unless the sizes are [as expected](SwitchShape::expected).
    pub(crate) fn try_new(shape: &SwitchShape) -> Option<Self> {
        let switches = shape.checked_switches()?;
        let cables = shape.switch_cables()?;
        let mut ends = Vec::with_capacity(2 * cables.len());
        for (cable, &SwitchCable { lower, upper, dimension }) in (0..).zip(&cables) {
            ends.push((lower, Port { switch: upper, cable, dimension }));
            ends.push((upper, Port { switch: lower, cable, dimension }));
        }
        ends.sort_by_key(|&(switch, port)| (switch, port.dimension));
        let first_ports =
            (0..=switches).map(|switch| ends.partition_point(|&(of, _)| of < switch) as u32).collect();
        let ports = ends.into_iter().map(|(_, port)| port).collect();
        let (first_joined, distances) = (shape.alone()? as u32, OnceLock::new());
        Some(Self { shape: shape.clone(), switches, cables, ports, first_ports, first_joined, distances })
    }

    fn ports(&self, switch: u32) -> &[Port] {
        let [first, end] = [switch, switch + 1].map(|switch| self.first_ports[switch as usize] as usize);
        &self.ports[first..end]
    }

    fn station(&self, switch: u32) -> u64 {
        self.hosts() + u64::from(switch)
    }

    /// Returns the cable of a host to the switch at this place among its [switches](SwitchShape::switches_of).
    fn host_cable(&self, host: u32, place: usize) -> u64 {
        u64::from(host) * self.shape.host_ports() as u64 + place as u64
    }

    fn host_cables(&self) -> u64 {
        self.hosts() * self.shape.host_ports() as u64
    }

    fn distance(&self, from: u32, to: u32) -> u8 {
        let joined = || self.first_joined..self.switches;
        let (Some(from), Some(to)) = (from.checked_sub(self.first_joined), to.checked_sub(self.first_joined))
        else {
            return if from == to { 0 } else { NO_WAY };
        };
        let distances =
            self.distances.get_or_init(|| joined().flat_map(|to| self.distances_to(to)).collect());
        distances[to as usize * joined().len() + from as usize]
    }

    /// Returns the distances of the joined switches to one of them.
    fn distances_to(&self, to: u32) -> Vec<u8> {
        let mut distances = vec![NO_WAY; self.switches as usize];
        distances[to as usize] = 0;
        let mut queue = VecDeque::from([to]);
        while let Some(switch) = queue.pop_front() {
            for port in self.ports(switch) {
                if distances[port.switch as usize] == NO_WAY {
                    distances[port.switch as usize] = distances[switch as usize] + 1;
                    queue.push_back(port.switch);
                }
            }
        }
        distances.split_off(self.first_joined as usize)
    }

    /// Returns the nearest switches of two hosts, each with the place of the cable to it among those of the host.
    fn switches_between(&self, src: u32, dst: u32) -> ((usize, u32), (usize, u32)) {
        let first = self.shape.switches_of(src).enumerate();
        let ends =
            first.flat_map(|first| self.shape.switches_of(dst).enumerate().map(move |last| (first, last)));
        let nearest = ends.min_by_key(|&((_, first), (_, last))| self.distance(first, last));
        nearest.expect("hosts have switches")
    }

    /// Lists the ports of a switch that lead nearer to another one, in the first dimension in which some do.
    fn nearer(&self, switch: u32, last: u32) -> impl Iterator<Item = &Port> + Clone {
        let left = self.distance(switch, last);
        let is_nearer = move |port: &&Port| self.distance(port.switch, last) + 1 == left;
        // The ports of a switch are in the order of dimensions.
        let nearer = self.ports(switch).iter().filter(is_nearer);
        let dimension = nearer.clone().next().map(|port| port.dimension);
        nearer.take_while(move |port| Some(port.dimension) == dimension)
    }

    /// Returns the next port on the way from one switch to another for the messages between two hosts, on the shortest route of this
    /// number; `level` is the number of ports before.
    fn next(
        &self,
        wiring: &Wiring,
        (switch, last): (u32, u32),
        (src, dst): (u32, u32),
        (number, level): (u64, usize),
    ) -> Port {
        let mut choices = self.nearer(switch, last);
        let count = choices.clone().count() as u64;
        // Hosts of one rail have numbers alike modulo their number in a server.
        let by_destination = u64::from(dst / self.shape.host_stride());
        let first = wiring.rule.random_choice(src.into(), dst.into(), level).unwrap_or(by_destination);
        let choice = (first % count + number % count) % count;
        *choices.nth(choice as usize).expect("every two hosts have switches with a way between them")
    }

    /// Returns the first host at a switch, or at the first one beside it that has some.
    fn near_host(&self, switch: u32) -> u32 {
        let beside = self.ports(switch).iter().map(|port| port.switch);
        let mut hosts =
            std::iter::once(switch).chain(beside).filter_map(|switch| self.shape.hosts_of(switch).next());
        hosts.next().unwrap_or(0)
    }
}

impl fmt::Display for SwitchGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shape.fmt(f)
    }
}

impl Topology for SwitchGraph {
    fn hosts(&self) -> u64 {
        self.shape.hosts().unwrap_or_default()
    }

    fn switch_numbers(&self) -> Vec<i64> {
        (0..self.switches).map(|switch| self.station(switch) as i64).collect()
    }

    fn cable_count(&self) -> Option<u64> {
        self.host_cables().checked_add(self.cables.len() as u64)
    }

    fn cables(&self, cluster: &str) -> Vec<Cable> {
        let of_host =
            |cable: u64| self.shape.multiple_of_host_cable(cable as usize % self.shape.host_ports());
        let names = (0..).zip(self.cable_ends());
        let cables = names.map(|(cable, (lower, upper))| Cable {
            // Two switches may have several cables.
            name: format!("{cluster}_link_{cable}_from_{lower}_to_{upper}"),
            bandwidth_multiple: Some(if cable < self.host_cables() { of_host(cable) } else { 1 }),
        });
        cables.collect()
    }

    fn shape(&self) -> NetworkShape {
        NetworkShape::Switches(self.shape.clone())
    }

    fn cable_ends(&self) -> Vec<(u64, u64)> {
        let of_host =
            |host: u32| self.shape.switches_of(host).map(move |switch| (host.into(), self.station(switch)));
        let between = self.cables.iter().map(|cable| (self.station(cable.lower), self.station(cable.upper)));
        (0..self.hosts() as u32).flat_map(of_host).chain(between).collect()
    }

    fn route(&self, wiring: &Wiring, src: u32, dst: u32, out: &mut Vec<LinkId>) {
        self.route_among(wiring, (src, dst), 0, out);
    }

    /// One for each first cable of a rail-optimised fabric. Other networks have few shortest routes, and [`Topology::third_host`].
    fn shortest_routes(&self, src: u32, dst: u32) -> [u64; 2] {
        let ((_, first), (_, last)) = self.switches_between(src, dst);
        let has_detours = self.shape.units_of_detours().is_some();
        [if has_detours || first == last { 1 } else { self.nearer(first, last).count() as u64 }, 1]
    }

    fn route_among(&self, wiring: &Wiring, (src, dst): (u32, u32), number: u64, out: &mut Vec<LinkId>) {
        let ((first_place, first), (last_place, last)) = self.switches_between(src, dst);
        wiring.push_limiter(src.into(), out);
        out.push(wiring.up(self.host_cable(src, first_place)));
        let mut current = first;
        for level in 0..usize::from(self.distance(first, last)) {
            wiring.push_limiter(self.station(current), out);
            let port = self.next(wiring, (current, last), (src, dst), (number, level));
            let cable = self.host_cables() + u64::from(port.cable);
            out.push(if port.switch > current { wiring.up(cable) } else { wiring.down(cable) });
            current = port.switch;
        }
        wiring.push_limiter(self.station(last), out);
        out.push(wiring.down(self.host_cable(dst, last_place)));
        wiring.push_limiter(dst.into(), out);
    }

    fn third_host(&self, src: u32, dst: u32, number: u64) -> Option<u32> {
        let [nodes, size, units] = self.shape.units_of_detours()?.map(u64::from);
        let [from, to] = [src, dst].map(|host| u64::from(host) / nodes / size);
        let third = third_number(units, (from, to), number / size)?;
        Some(((third * size + number % size) * nodes) as u32)
    }

    fn cable_hosts(&self) -> Vec<u32> {
        let of_host =
            (0..self.hosts() as u32).flat_map(|host| std::iter::repeat_n(host, self.shape.host_ports()));
        of_host.chain(self.cables.iter().map(|cable| self.near_host(cable.lower))).collect()
    }

    fn switch_hosts(&self) -> Vec<u32> {
        (0..self.switches).map(|switch| self.near_host(switch)).collect()
    }

    /// Suggests groups of a dragonfly+ and units of a rail-optimised fabric.
    fn blocks(&self, wanted: Option<u32>) -> Vec<u32> {
        let units = self.shape.units();
        let suggested =
            units.get(2).map_or(default_block_count(self.hosts()), |unit| (self.hosts() / unit) as u32);
        contiguous_blocks(self.hosts(), wanted.unwrap_or(suggested), &units)
    }

    /// Lists successive hosts, those at a switch, and one of each of two switches with a cable between them.
    fn closest_pairs(&self) -> Vec<(u32, u32)> {
        let mut pairs: Vec<(u32, u32)> = consecutive_pairs(self.hosts()).collect();
        for switch in 0..self.switches {
            let hosts: Vec<u32> = self.shape.hosts_of(switch).collect();
            pairs.extend(hosts.windows(2).map(|pair| (pair[0], pair[1])));
        }
        let first = |switch| self.shape.hosts_of(switch).next();
        pairs.extend(self.cables.iter().filter_map(|cable| Some((first(cable.lower)?, first(cable.upper)?))));
        pairs
    }

    fn bisection(&self) -> Option<f64> {
        self.shape.bisection()
    }
}
