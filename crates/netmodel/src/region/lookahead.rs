//! Lookahead between regions: the shortest latency phase of a message from one region to another.

use pdes_core::SimDuration;

use super::Regions;
use crate::epoch::unit::LatencyFactors;
use crate::route_cost::RouteCost;
use crate::{HostId, NetworkParameters, Platform};

/// Largest number of hosts of a platform without a regular shape for which all pairs are compared.
const ALL_PAIRS_LIMIT: u32 = 2048;

impl Regions {
    /// Returns the lookahead between regions: the shortest latency phase of a message between hosts of different
    /// regions. An event in one region cannot affect another one earlier. `None` if no message can go from one region
    /// to another.
    ///
    /// For a platform of several zones with more than 2048 hosts this is the least nonzero latency of a link, which
    /// is not longer. Costs a route for each cable of a cluster, for each pair of hosts otherwise.
    pub fn lookahead(&self, platform: &Platform, parameters: &NetworkParameters) -> Option<SimDuration> {
        if self.count == 1 {
            return None;
        }
        min_latency_phase(platform, parameters, |one, other| self.of_host(one) != self.of_host(other))
    }
}

impl Platform {
    /// Returns the shortest latency phase of a message between two hosts. `None` if there is one host.
    ///
    /// Approximations and costs are those of [`Regions::lookahead`].
    pub fn min_latency_phase(&self, parameters: &NetworkParameters) -> Option<SimDuration> {
        min_latency_phase(self, parameters, |_, _| true)
    }
}

/// Returns the shortest latency phase between pairs of hosts that `counts` accepts.
fn min_latency_phase(
    platform: &Platform,
    parameters: &NetworkParameters,
    counts: impl Fn(HostId, HostId) -> bool,
) -> Option<SimDuration> {
    let least_factor = LatencyFactors::new(parameters).least();
    let hosts = platform.hosts().len() as u32;
    let between = |(one, other): (u32, u32)| {
        let [one, other] = [one, other].map(HostId::new);
        let latency = |src, dst| RouteCost::least_latency(platform, src, dst).ok();
        counts(one, other)
            .then(|| latency(one, other).into_iter().chain(latency(other, one)).reduce(f64::min))?
    };
    let shortest = match platform.whole_cluster() {
        Some((topology, _)) => topology.closest_pairs().into_iter().filter_map(between).reduce(f64::min),
        None if hosts <= ALL_PAIRS_LIMIT => {
            let pairs = (0..hosts).flat_map(|one| (one + 1..hosts).map(move |other| (one, other)));
            pairs.filter_map(between).reduce(f64::min)
        }
        None => {
            let latencies = platform.links().iter().map(|link| link.latency);
            latencies.filter(|&latency| latency > 0.0).reduce(f64::min)
        }
    };
    shortest.map(|latency| least_factor.of(latency))
}
