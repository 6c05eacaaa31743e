//! Accelerators of hosts: each host of another topology has some, on cables of their own.

use std::fmt;

use super::{Cable, Topology, Wiring};
use crate::LinkId;
use crate::layout::NetworkShape;

/// A topology whose hosts have accelerators. These are hosts too, numbered after all others: first those of host 0. Their cables
/// follow those of the topology. A route leads through their hosts.
#[derive(Debug)]
pub(crate) struct WithAccelerators {
    inner: Box<dyn Topology>,
    /// Number of accelerators of each host, at least 1.
    each: u32,
    /// Number of cables of the inner topology.
    inner_cables: u64,
}

impl WithAccelerators {
    /// Gives each host of a topology so many accelerators. `O(cables)`.
    pub(crate) fn new(inner: Box<dyn Topology>, each: u32) -> Self {
        let inner_cables = inner.cable_ends().len() as u64;
        Self { inner, each, inner_cables }
    }

    fn accelerators(&self) -> u64 {
        self.inner.hosts() * u64::from(self.each)
    }

    /// Returns the host of an accelerator.
    fn host_of(&self, accelerator: u64) -> u64 {
        accelerator / u64::from(self.each)
    }

    /// Lists the accelerators, as stations, each with its host: the ends of their cables.
    fn own_ends(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..self.accelerators()).map(|number| (self.inner.hosts() + number, self.host_of(number)))
    }

    /// Returns the number of an accelerator, if a station is one.
    fn accelerator(&self, station: u32) -> Option<u32> {
        let number = station.checked_sub(self.inner.hosts() as u32)?;
        (u64::from(number) < self.accelerators()).then_some(number)
    }

    /// Returns the station in the inner topology of a host, the host of an accelerator, or a switch.
    fn inner_station(&self, station: u32) -> u32 {
        match self.accelerator(station) {
            Some(number) => self.host_of(number.into()) as u32,
            None if u64::from(station) < self.inner.hosts() => station,
            None => station - self.accelerators() as u32,
        }
    }

    /// Returns the station of a station of the inner topology, whose switches follow the accelerators.
    fn outer_station(&self, station: u64) -> u64 {
        if station < self.inner.hosts() { station } else { station + self.accelerators() }
    }

    /// Returns the number of the cable of an accelerator.
    fn cable(&self, accelerator: u32) -> u64 {
        self.inner_cables + u64::from(accelerator)
    }
}

impl fmt::Display for WithAccelerators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inner, each, .. } = self;
        write!(f, "{inner}, each host with {each} accelerator{}", if *each == 1 { "" } else { "s" })
    }
}

impl Topology for WithAccelerators {
    fn hosts(&self) -> u64 {
        self.inner.hosts() + self.accelerators()
    }

    fn accelerators_each(&self) -> u32 {
        self.each
    }

    fn switch_numbers(&self) -> Vec<i64> {
        self.inner.switch_numbers()
    }

    fn cable_count(&self) -> Option<u64> {
        Some(self.inner_cables + self.accelerators())
    }

    fn cables(&self, cluster: &str) -> Vec<Cable> {
        let own = (0..self.accelerators()).map(|number| {
            let (host, number) = (self.host_of(number), number % u64::from(self.each));
            Cable { name: format!("{cluster}_accelerator_link_{host}_{number}"), bandwidth_multiple: None }
        });
        self.inner.cables(cluster).into_iter().chain(own).collect()
    }

    fn shape(&self) -> NetworkShape {
        self.inner.shape()
    }

    fn cable_ends(&self) -> Vec<(u64, u64)> {
        let inner = self.inner.cable_ends().into_iter();
        let inner = inner.map(|(lower, upper)| (self.outer_station(lower), self.outer_station(upper)));
        inner.chain(self.own_ends()).collect()
    }

    fn route(&self, wiring: &Wiring, src: u32, dst: u32, out: &mut Vec<LinkId>) {
        self.route_among(wiring, (src, dst), 0, out);
    }

    fn shortest_routes(&self, src: u32, dst: u32) -> [u64; 2] {
        let (from, to) = (self.inner_station(src), self.inner_station(dst));
        if from == to { [1, 1] } else { self.inner.shortest_routes(from, to) }
    }

    fn route_among(&self, wiring: &Wiring, (src, dst): (u32, u32), route: u64, out: &mut Vec<LinkId>) {
        if let Some(number) = self.accelerator(src) {
            out.push(wiring.up(self.cable(number)));
        }
        let (from, to) = (self.inner_station(src), self.inner_station(dst));
        // Between a host and its own accelerators there is nothing else; a message of an accelerator to itself goes to the host and back.
        if from != to || src == dst && self.accelerator(src).is_none() {
            self.inner.route_among(wiring, (from, to), route, out);
        }
        if let Some(number) = self.accelerator(dst) {
            out.push(wiring.down(self.cable(number)));
        }
    }

    fn third_host(&self, src: u32, dst: u32, number: u64) -> Option<u32> {
        let (from, to) = (self.inner_station(src), self.inner_station(dst));
        if from == to { None } else { self.inner.third_host(from, to, number) }
    }

    fn cable_hosts(&self) -> Vec<u32> {
        let hosts = self.inner.hosts() as u32;
        let own = (0..self.accelerators() as u32).map(|number| hosts + number);
        self.inner.cable_hosts().into_iter().chain(own).collect()
    }

    fn switch_hosts(&self) -> Vec<u32> {
        self.inner.switch_hosts()
    }

    fn blocks(&self, wanted: Option<u32>) -> Vec<u32> {
        let mut blocks = self.inner.blocks(wanted);
        let hosts = blocks.len();
        blocks.reserve(self.accelerators() as usize);
        for host in 0..hosts {
            blocks.extend(std::iter::repeat_n(blocks[host], self.each as usize));
        }
        blocks
    }

    fn closest_pairs(&self) -> Vec<(u32, u32)> {
        let own = self.own_ends().map(|(accelerator, host)| (host as u32, accelerator as u32));
        self.inner.closest_pairs().into_iter().chain(own).collect()
    }

    fn bisection(&self) -> Option<f64> {
        self.inner.bisection()
    }
}
