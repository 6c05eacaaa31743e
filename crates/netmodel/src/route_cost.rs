//! Cost of a route: latency, penalty, rate bound and link weights of its flows.

use pdes_core::{Bytes, SimTime};

use crate::platform::OtherRoute;
use crate::{HostId, LinkId, NetworkParameters, Platform, Resource, ResourceChanges, RouteError, Sharing};

/// Part of a flow's rate that each link of the reverse route carries, for acknowledgements (network_cm02.cpp).
const CROSS_TRAFFIC: f64 = 0.05;

/// Latency, penalty, rate bound and link weights of the messages from one host to another, before factors for their
/// size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RouteCost {
    /// Sum of the latencies of the route [s].
    pub(crate) latency: f64,
    /// Part of a flow's penalty beside its latency: the sum over the links of `weight_s` over bandwidth [s].
    resistance: f64,
    /// Least bandwidth of the route [B/s].
    least_bandwidth: f64,
    /// TCP window [B], if it limits rates.
    tcp_window: Option<f64>,
    /// A link has changed since the message began.
    has_changed: bool,
    /// Load of each link per unit of a flow's rate: one for each time that the route crosses it and 0.05 for each
    /// time that the reverse route does. On fat pipes the largest counts. The first link of the route comes first,
    /// then the others by growing number.
    pub(crate) weights: Vec<(LinkId, f64)>,
}

/// The links of a route and, with cross traffic, of the reverse route.
#[derive(Clone, Debug)]
pub(crate) struct RoutePath {
    route: Vec<LinkId>,
    reverse_route: Vec<LinkId>,
}

impl RoutePath {
    /// Looks up the routes that messages take at an instant.
    ///
    /// # Errors
    /// If there is no such route. A reverse route that the platform does not list carries no cross traffic.
    pub(crate) fn new(
        parameters: &NetworkParameters,
        platform: &Platform,
        (src, dst): (HostId, HostId),
        at: SimTime,
    ) -> Result<Self, RouteError> {
        let (mut route, mut reverse_route) = (Vec::new(), Vec::new());
        platform.route_at(src, dst, at, &mut route)?;
        if parameters.cross_traffic {
            match platform.route_at(dst, src, at, &mut reverse_route) {
                Ok(()) | Err(RouteError::Missing(_) | RouteError::Empty { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { route, reverse_route })
    }

    /// Looks up the routes beside those of the platform that messages take, there and back.
    ///
    /// # Errors
    /// If there is no such route.
    pub(crate) fn other(
        parameters: &NetworkParameters,
        platform: &Platform,
        (src, dst): (HostId, HostId),
        other: OtherRoute,
    ) -> Result<Self, RouteError> {
        let (mut route, mut reverse_route) = (Vec::new(), Vec::new());
        platform.write_other_route((src, dst), other, &mut route)?;
        if parameters.cross_traffic {
            platform.write_other_route((dst, src), other, &mut reverse_route)?;
        }
        Ok(Self { route, reverse_route })
    }

    /// Returns the sum of the latencies of the route at an instant \[s\].
    pub(crate) fn latency(&self, resources: Resources<'_>, at: SimTime) -> f64 {
        self.route.iter().map(|&link| resources.latency(link, at)).sum()
    }

    /// Returns whether a link of the route is off at an instant.
    pub(crate) fn is_cut(&self, resources: Resources<'_>, at: SimTime) -> bool {
        self.route.iter().any(|&link| resources.bandwidth(link, at) == 0.0)
    }
}

impl RouteCost {
    /// Looks up the route that messages take when they are sent at an instant, and the reverse route. `O(n log n)` in the length of the route.
    ///
    /// # Errors
    /// As [`RoutePath::new`].
    pub(crate) fn new(
        parameters: &NetworkParameters,
        resources: Resources<'_>,
        ends: (HostId, HostId),
        sent: SimTime,
    ) -> Result<Self, RouteError> {
        let path = RoutePath::new(parameters, resources.platform, ends, sent)?;
        Ok(Self::of(parameters, resources, &path, sent))
    }

    /// Returns the cost of a path for messages that are sent at an instant.
    pub(crate) fn of(
        parameters: &NetworkParameters,
        resources: Resources<'_>,
        path: &RoutePath,
        sent: SimTime,
    ) -> Self {
        let RoutePath { route, reverse_route } = path;
        let bandwidths = || route.iter().map(|&link| resources.bandwidth_before(link, sent));
        Self {
            latency: path.latency(resources, sent),
            resistance: bandwidths().map(|bandwidth| parameters.weight_s / bandwidth).sum(),
            least_bandwidth: bandwidths().fold(f64::INFINITY, f64::min),
            tcp_window: (parameters.tcp_gamma > 0.0).then_some(parameters.tcp_gamma),
            has_changed: false,
            weights: weights(resources.platform, route, reverse_route),
        }
    }
}

impl RouteCost {
    /// Returns the least sum of the latencies of a route in a run [s].
    ///
    /// # Errors
    /// If there is no such route.
    pub(crate) fn least_latency(platform: &Platform, src: HostId, dst: HostId) -> Result<f64, RouteError> {
        let mut route = Vec::new();
        platform.route(src, dst, &mut route)?;
        let least = |&link: &LinkId| {
            platform.changes().values(Resource::Latency(link)).fold(platform.link(link).latency, f64::min)
        };
        Ok(route.iter().map(least).sum())
    }

    /// Follows the changes of links from the begin of a message until an instant ([`crate::change`]).
    pub(crate) fn follow(
        &mut self,
        parameters: &NetworkParameters,
        resources: Resources<'_>,
        (sent, now): (SimTime, SimTime),
    ) {
        let next = |&(link, _): &(LinkId, f64)| resources.changes.next_change(of_link(link), sent);
        self.has_changed = self.weights.iter().filter_map(next).any(|at| at <= now);
        if !self.has_changed {
            return;
        }
        for &(link, _) in &self.weights {
            let resistance = |at| parameters.weight_s / resources.bandwidth_before(link, at);
            self.latency += resources.latency(link, now) - resources.latency(link, sent);
            self.resistance += resistance(now) - resistance(sent);
        }
        // Changes of the reverse route count, although the reverse route itself does not.
        (self.latency, self.resistance) = (self.latency.max(0.0), self.resistance.max(0.0));
    }

    /// Returns the penalty of the flow. Without latency it is one, not the sum of the weights, until a link changes
    /// (network_cm02.cpp:393-405).
    pub(crate) fn penalty(&self) -> f64 {
        let sum = self.latency + self.resistance;
        if self.latency > 0.0 || self.has_changed && sum > 0.0 { sum } else { 1.0 }
    }

    /// Returns the upper bound on the rate: the least bandwidth of the route, or the TCP window over twice the latency [B/s].
    pub(crate) fn rate_bound(&self) -> f64 {
        let window = self.tcp_window.filter(|_| self.latency > 0.0);
        window.map_or(self.least_bandwidth, |window| self.least_bandwidth.min(window / (2.0 * self.latency)))
    }
}

/// The quantities of a link that may change.
fn of_link(link: LinkId) -> [Resource; 2] {
    [Resource::Bandwidth(link), Resource::Latency(link)]
}

/// The links of a platform, and their changes at the instants at which a model applies them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resources<'p> {
    pub(crate) platform: &'p Platform,
    pub(crate) changes: &'p ResourceChanges,
}

impl<'p> Resources<'p> {
    /// The links of a platform, which change at their own instants.
    pub(crate) fn of(platform: &'p Platform) -> Self {
        Self { platform, changes: platform.changes() }
    }

    /// Returns the latency of a link at an instant [s].
    fn latency(self, link: LinkId, at: SimTime) -> f64 {
        self.changes.value(Resource::Latency(link), at).unwrap_or(self.platform.link(link).latency)
    }

    /// Returns the bandwidth of a link at an instant [B/s].
    pub(crate) fn bandwidth(self, link: LinkId, at: SimTime) -> f64 {
        self.changes.value(Resource::Bandwidth(link), at).unwrap_or(self.platform.link(link).bandwidth)
    }

    /// Returns the same or, where that is 0, the last bandwidth before.
    pub(crate) fn bandwidth_before(self, link: LinkId, at: SimTime) -> f64 {
        let known = self.changes.positive_value(Resource::Bandwidth(link), at);
        known.unwrap_or(self.platform.link(link).bandwidth)
    }

    /// Returns the sum of the latencies of a route at an instant [s].
    ///
    /// # Errors
    /// If there is no such route.
    pub(crate) fn route_latency(self, (src, dst): (HostId, HostId), at: SimTime) -> Result<f64, RouteError> {
        let mut route = Vec::new();
        self.platform.route(src, dst, &mut route)?;
        Ok(route.iter().map(|&link| self.latency(link, at)).sum())
    }

    /// Returns the first instant after another one at which a link of some weights changes.
    pub(crate) fn next_change(self, weights: &[(LinkId, f64)], after: SimTime) -> Option<SimTime> {
        self.changes.next_change(weights.iter().flat_map(|&(link, _)| of_link(link)), after)
    }

    /// Returns whether a link of some weights ever changes.
    pub(crate) fn any_changes(self, weights: &[(LinkId, f64)]) -> bool {
        let mut links = weights.iter().flat_map(|&(link, _)| of_link(link));
        !self.changes.is_empty() && links.any(|resource| self.changes.includes(resource))
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
        // In order: there are a dozen sections, most messages are in the first ones, and a program has few sizes.
        let index = self.ends.iter().take_while(|&&end| size.get() > end).count();
        self.sections[index]
    }
}
