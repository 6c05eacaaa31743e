//! Cost of a route: latency, penalty, rate bound and link weights of its flows.

use pdes_core::Bytes;

use crate::{HostId, LinkId, NetworkParameters, Platform, RouteError, Sharing};

/// Part of a flow's rate that each link of the reverse route carries, for acknowledgements (network_cm02.cpp).
const CROSS_TRAFFIC: f64 = 0.05;

/// Latency, penalty, rate bound and link weights of the messages from one host to another, before factors for their
/// size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RouteCost {
    /// Sum of the latencies of the route [s].
    pub(crate) latency: f64,
    /// Part of a flow's penalty beside its latency: the sum over the links of `weight_s` over bandwidth [s].
    pub(crate) resistance: f64,
    /// Upper bound on the rate: the least bandwidth of the route, or the TCP window over twice the latency [B/s].
    pub(crate) rate_bound: f64,
    /// Load of each link per unit of a flow's rate: one for each time that the route crosses it and 0.05 for each
    /// time that the reverse route does. On fat pipes the largest counts. The first link of the route comes first,
    /// then the others by growing number.
    pub(crate) weights: Vec<(LinkId, f64)>,
}

impl RouteCost {
    /// Looks up the route and the reverse route. `O(n log n)` in the length of the route.
    ///
    /// # Errors
    /// If there is no such route. A reverse route that the platform does not list carries no cross traffic.
    pub(crate) fn new(
        parameters: &NetworkParameters,
        platform: &Platform,
        src: HostId,
        dst: HostId,
    ) -> Result<Self, RouteError> {
        let mut route = Vec::new();
        platform.route(src, dst, &mut route)?;
        let links = || route.iter().map(|&link| platform.link(link));
        let latency: f64 = links().map(|link| link.latency).sum();
        let resistance = links().map(|link| parameters.weight_s / link.bandwidth).sum();
        let mut bound = links().map(|link| link.bandwidth).fold(f64::INFINITY, f64::min);
        if parameters.tcp_gamma > 0.0 && latency > 0.0 {
            bound = bound.min(parameters.tcp_gamma / (2.0 * latency));
        }
        let mut reverse_route = Vec::new();
        if parameters.cross_traffic {
            match platform.route(dst, src, &mut reverse_route) {
                Ok(()) | Err(RouteError::Missing(_) | RouteError::Empty { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self {
            latency,
            resistance,
            rate_bound: bound,
            weights: weights(platform, &route, &reverse_route),
        })
    }
}

impl RouteCost {
    /// Returns the sum of the latencies of a route [s].
    ///
    /// # Errors
    /// If there is no such route.
    pub(crate) fn latency(platform: &Platform, src: HostId, dst: HostId) -> Result<f64, RouteError> {
        let mut route = Vec::new();
        platform.route(src, dst, &mut route)?;
        Ok(route.iter().map(|&link| platform.link(link).latency).sum())
    }
}

fn weights(platform: &Platform, route: &[LinkId], reverse_route: &[LinkId]) -> Vec<(LinkId, f64)> {
    let there = route.iter().map(|&link| (link, 1.0));
    let back = reverse_route.iter().map(|&link| (link, CROSS_TRAFFIC));
    let mut crossings: Vec<(LinkId, f64)> = there.chain(back).collect();
    // The sort is stable: weights of the route come before those of the reverse route, so that sums have one order.
    crossings.sort_by_key(|&(link, _)| link);
    let of_link = |crossings: &[(LinkId, f64)]| {
        let link = crossings[0].0;
        let weights = crossings.iter().map(|&(_, weight)| weight);
        let weight = match platform.link(link).sharing {
            Sharing::Shared => weights.sum(),
            Sharing::FatPipe => weights.fold(0.0, f64::max),
        };
        (link, weight)
    };
    let mut weights: Vec<(LinkId, f64)> =
        crossings.chunk_by(|one, other| one.0 == other.0).map(of_link).collect();
    if let Some(first) = weights.iter().position(|&(link, _)| link == route[0]) {
        // The scope `Marked` treats the first link of a route specially (`maxmin/scope.rs`).
        weights[..=first].rotate_right(1);
    }
    weights
}

/// Latency and bandwidth factors by message size, looked up together.
#[derive(Clone, Debug)]
pub(crate) struct SizeFactors {
    /// Largest size of each section but the last, in growing order.
    ends: Box<[u64]>,
    sections: Box<[Factors]>,
}

/// Factors of one message size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factors {
    /// Factor of the latency.
    pub(crate) latency: f64,
    /// Factor of the time per byte: the inverse of the bandwidth factor.
    pub(crate) time_per_byte: f64,
}

impl SizeFactors {
    pub(crate) fn new(parameters: &NetworkParameters) -> Self {
        let (latency, bandwidth) = (&parameters.latency_factor, &parameters.bandwidth_factor);
        let mut ends: Vec<u64> = latency.section_starts().chain(bandwidth.section_starts()).collect();
        ends.sort_unstable();
        ends.dedup();
        let factors = |size: u64| Factors {
            latency: latency.factor(Bytes::new(size)),
            time_per_byte: 1.0 / bandwidth.factor(Bytes::new(size)),
        };
        let sections = ends.iter().copied().chain([u64::MAX]).map(factors).collect();
        Self { ends: ends.into(), sections }
    }

    #[inline]
    pub(crate) fn of(&self, size: Bytes) -> Factors {
        // Counting instead of searching: the sum over a dozen sections has no branch to mispredict.
        let index: usize = self.ends.iter().map(|&end| usize::from(size.get() > end)).sum();
        self.sections[index]
    }
}
