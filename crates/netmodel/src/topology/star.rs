//! The flat cluster: every host on its own cable to a switch that never blocks, or to a backbone.

use std::fmt;

use super::{Cable, Topology, Wiring};
use crate::LinkId;

/// A star of hosts. A route is limiter, up, backbone, down, limiter.
///
/// No link appears twice on a route, as in SimGrid (StarZone.cpp): its backbone is in the list of both ends but counts
/// once, and a host without loopback link that sends to itself crosses its own cable up and down, its limiter once.
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
        let cable = |number| Cable { name: format!("{cluster}_link_{number}"), multiple: 1 };
        self.numbers.iter().map(cable).collect()
    }

    fn route(&self, wiring: &Wiring, src: u32, dst: u32, out: &mut Vec<LinkId>) {
        wiring.limit(src.into(), out);
        out.push(wiring.up(src.into()));
        out.extend(wiring.backbone);
        if src != dst {
            out.push(wiring.down(dst.into()));
            wiring.limit(dst.into(), out);
        } else if wiring.duplex {
            out.push(wiring.down(dst.into()));
        }
    }

    /// Half of the hosts send on their own cables. The backbone is the platform's to count.
    fn bisection(&self) -> Option<f64> {
        (self.hosts() > 1).then_some((self.hosts() / 2) as f64)
    }
}
