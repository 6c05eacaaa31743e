//! The flat cluster: every host on its own cable to a switch that never blocks, or to a backbone.

use std::fmt;

use super::{Cable, Topology, Wiring, consecutive_pairs, contiguous_blocks, default_block_count};
use crate::LinkId;
use crate::layout::NetworkShape;

/// A star of hosts. A route is limiter, up, backbone, down, limiter. The station after the last host is the router:
/// it sits in the middle, so that a route to it ends with the backbone and a route from it begins there.
///
/// No link appears twice on a route, as in SimGrid (StarZone.cpp): its backbone is in the list of both ends but
/// counts once, and a host without loopback link that sends to itself crosses its own cable up and down, its limiter
/// once.
#[derive(Debug)]
pub(crate) struct Star {
    numbers: Vec<u32>,
}

impl Star {
    /// Makes the star of hosts with these numbers in their names.
    pub(crate) fn new(numbers: Vec<u32>) -> Self {
        Self { numbers }
    }
}

impl fmt::Display for Star {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flat cluster of {}", self.numbers.len())
    }
}

impl Topology for Star {
    fn hosts(&self) -> u64 {
        self.numbers.len() as u64
    }

    fn switch_numbers(&self) -> Vec<i64> {
        Vec::new()
    }

    fn cable_count(&self) -> Option<u64> {
        Some(self.hosts())
    }

    fn cables(&self, cluster: &str) -> Vec<Cable> {
        let cable = |number| Cable { name: format!("{cluster}_link_{number}"), bandwidth_multiple: Some(1) };
        self.numbers.iter().map(cable).collect()
    }

    fn shape(&self) -> NetworkShape {
        NetworkShape::Star { hosts: self.numbers.len() as u32 }
    }

    fn cable_ends(&self) -> Vec<(u64, u64)> {
        (0..self.hosts()).map(|host| (host, self.hosts())).collect()
    }

    fn route(&self, wiring: &Wiring, src: u32, dst: u32, out: &mut Vec<LinkId>) {
        let is_host = |station: u32| (station as usize) < self.numbers.len();
        if is_host(src) {
            wiring.push_limiter(src.into(), out);
            out.push(wiring.up(src.into()));
        }
        if is_host(src) || is_host(dst) {
            out.extend(wiring.backbone);
        }
        if is_host(dst) && (src != dst || wiring.duplex) {
            out.push(wiring.down(dst.into()));
        }
        if is_host(dst) && src != dst {
            wiring.push_limiter(dst.into(), out);
        }
    }

    fn cable_hosts(&self) -> Vec<u32> {
        (0..self.hosts() as u32).collect()
    }

    fn switch_hosts(&self) -> Vec<u32> {
        Vec::new()
    }

    fn blocks(&self, wanted: Option<u32>) -> Vec<u32> {
        contiguous_blocks(self.hosts(), wanted.unwrap_or(default_block_count(self.hosts())), &[1])
    }

    fn closest_pairs(&self) -> Vec<(u32, u32)> {
        consecutive_pairs(self.hosts()).collect()
    }

    /// Counts the cables of half of the hosts. [`crate::measures`] accounts for the backbone.
    fn bisection(&self) -> Option<f64> {
        (self.hosts() > 1).then_some((self.hosts() / 2) as f64)
    }
}
