//! The cost of a message that shares its route with no other.
//!
//! This is SimGrid's flow model (network_cm02.cpp) with every flow alone. A flow of `s` bytes takes
//!
//! `L * latency_factor(s) + s / (bandwidth_factor(s) * min(min_l(b_l / w_l), gamma / (2 L)))`
//!
//! where `L` is the sum of the latencies of the route, `b_l` the bandwidth of link `l`, and `w_l` the share of the
//! flow's rate that the link carries: 1 for each time that the route crosses it and, with cross traffic, 0.05 for each
//! time that the way back does. On a shared link these add up, on a fat pipe the largest counts. The name is that of
//! the parameters: latency, overhead and gap per byte are step functions of the message size, as in LogGPS.

use pdes_core::{Bytes, SimDuration};

use crate::{HostId, LinkId, NetworkParameters, Platform, RouteError, Sharing};

/// What a flow takes from each link of the way back, in units of its rate (network_cm02.cpp).
const CROSS_TRAFFIC: f64 = 0.05;

/// Picoseconds in a second.
const PICOS: f64 = 1e12;

/// The model: what a message costs, from its size and what its route costs.
#[derive(Clone, Debug)]
pub struct LogGps {
    /// The largest size of each section but the last, in growing order.
    ends: Box<[u64]>,
    sections: Box<[Section]>,
    tcp_gamma: f64,
    cross_traffic: bool,
}

/// The factors of the sizes of one section.
#[derive(Clone, Copy, Debug)]
struct Section {
    latency_factor: f64,
    /// The inverse of the bandwidth factor.
    gap_factor: f64,
}

/// What a route costs a message, before the factors for its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathCost {
    /// The latency of the route in picoseconds.
    latency: f64,
    /// The time per byte [ps/B].
    gap: f64,
}

const _: () = assert!(size_of::<PathCost>() == 16);

impl PathCost {
    /// Returns the sum of the latencies of the route in seconds.
    pub fn latency(self) -> f64 {
        self.latency / PICOS
    }

    /// Returns the rate of a lone flow on the route before its factor [B/s]: the bandwidth of the bottleneck over the
    /// flow's share of it, or the limit by the TCP window.
    pub fn bandwidth(self) -> f64 {
        PICOS / self.gap
    }
}

impl LogGps {
    /// Makes the model with these parameters.
    pub fn new(parameters: &NetworkParameters) -> Self {
        let (latency, bandwidth) = (&parameters.latency_factor, &parameters.bandwidth_factor);
        let mut ends: Vec<u64> = latency.steps().chain(bandwidth.steps()).collect();
        ends.sort_unstable();
        ends.dedup();
        let section = |size: u64| Section {
            latency_factor: latency.factor(Bytes::new(size)),
            gap_factor: 1.0 / bandwidth.factor(Bytes::new(size)),
        };
        let sections = ends.iter().copied().chain([u64::MAX]).map(section).collect();
        let (tcp_gamma, cross_traffic) = (parameters.tcp_gamma, parameters.cross_traffic);
        Self { ends: ends.into(), sections, tcp_gamma, cross_traffic }
    }

    /// Returns what the route from one host to another costs.
    ///
    /// `O(n log n)` in the length of the route: worth keeping for each pair of hosts that talk.
    ///
    /// # Errors
    /// Where there is no such route. A way back that the platform does not list carries no cross traffic.
    pub fn path(&self, platform: &Platform, src: HostId, dst: HostId) -> Result<PathCost, RouteError> {
        let mut route = Vec::new();
        platform.route(src, dst, &mut route)?;
        let latency: f64 = route.iter().map(|&link| platform.link(link).latency).sum();
        let way_back = self.way_back(platform, src, dst)?;
        let mut bandwidth = bottleneck(platform, &route, &way_back);
        if self.tcp_gamma > 0.0 && latency > 0.0 {
            bandwidth = bandwidth.min(self.tcp_gamma / (2.0 * latency));
        }
        Ok(PathCost { latency: latency * PICOS, gap: PICOS / bandwidth })
    }

    /// Returns the time from the start of a flow to the arrival of its last byte.
    ///
    /// The size is that on the wire: what a protocol adds to the payload is the caller's to add. A few nanoseconds; only
    /// multiplications and additions, so that every machine computes the same bits.
    ///
    /// # Panics
    /// Where the time exceeds 106 days.
    #[inline]
    pub fn duration(&self, path: PathCost, size_on_the_wire: Bytes) -> SimDuration {
        SimDuration::from_picos_f64(self.picos(path, size_on_the_wire))
    }

    /// Returns the same as [`LogGps::duration`], or `None` where the time exceeds 106 days.
    #[inline]
    pub fn try_duration(&self, path: PathCost, size_on_the_wire: Bytes) -> Option<SimDuration> {
        SimDuration::try_from_picos_f64(self.picos(path, size_on_the_wire))
    }

    #[inline]
    fn picos(&self, path: PathCost, size_on_the_wire: Bytes) -> f64 {
        let size = size_on_the_wire.get();
        // Counting, not searching: the sum over a dozen sections has no branch to mispredict.
        let index: usize = self.ends.iter().map(|&end| usize::from(size > end)).sum();
        let Section { latency_factor, gap_factor } = self.sections[index];
        path.latency * latency_factor + size as f64 * (path.gap * gap_factor)
    }

    fn way_back(&self, platform: &Platform, src: HostId, dst: HostId) -> Result<Vec<LinkId>, RouteError> {
        let mut links = Vec::new();
        if !self.cross_traffic {
            return Ok(links);
        }
        match platform.route(dst, src, &mut links) {
            Ok(()) | Err(RouteError::Missing { .. }) => Ok(links),
            Err(error) => Err(error),
        }
    }
}

/// Returns the largest rate of a lone flow that no link of its route and way back is too narrow for [B/s].
fn bottleneck(platform: &Platform, route: &[LinkId], way_back: &[LinkId]) -> f64 {
    let there = route.iter().map(|&link| (link, 1.0));
    let back = way_back.iter().map(|&link| (link, CROSS_TRAFFIC));
    let mut shares: Vec<(LinkId, f64)> = there.chain(back).collect();
    // The sort is stable: whole shares come before fractions, so that sums have one order.
    shares.sort_by_key(|&(link, _)| link);
    let rate = |shares: &[(LinkId, f64)]| {
        let link = platform.link(shares[0].0);
        let shares = shares.iter().map(|&(_, share)| share);
        let share = match link.sharing {
            Sharing::Shared => shares.sum(),
            Sharing::FatPipe => shares.fold(0.0, f64::max),
        };
        link.bandwidth / share
    };
    let rates = shares.chunk_by(|one, other| one.0 == other.0).map(rate);
    // The user bound of SimGrid's flows, the least bandwidth of the route, binds where a route crosses fat pipes only.
    rates.chain(route.iter().map(|&link| platform.link(link).bandwidth)).fold(f64::INFINITY, f64::min)
}
