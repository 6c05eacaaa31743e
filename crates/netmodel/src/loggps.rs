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

use std::fmt;
use std::num::NonZeroU64;

use pdes_core::{Bytes, SimDuration};

use crate::route_cost::{RouteCost, SizeFactors};
use crate::{HostId, NetworkParameters, Platform, RouteError};

/// Picoseconds in a second.
const PICOS: f64 = 1e12;

/// The model: what a message costs, from its size and what its route costs.
#[derive(Clone, Debug)]
pub struct LogGps {
    factors: SizeFactors,
    parameters: NetworkParameters,
}

/// What a route costs a message, before the factors for its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathCost {
    /// The latency of the route in picoseconds.
    latency: f64,
    gap: Gap,
}

const _: () = assert!(size_of::<Option<PathCost>>() == 16, "there are millions of them");

/// The time per byte [ps/B], by its bits, inverted: as it is no NaN, they are never zero.
#[derive(Clone, Copy, PartialEq)]
struct Gap(NonZeroU64);

impl Gap {
    fn new(picos: f64) -> Self {
        Self(NonZeroU64::new(!picos.to_bits()).expect("a time per byte is a number"))
    }

    #[inline]
    fn picos(self) -> f64 {
        f64::from_bits(!self.0.get())
    }
}

impl fmt::Debug for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.picos().fmt(f)
    }
}

impl PathCost {
    /// Returns the sum of the latencies of the route in seconds.
    pub fn latency(self) -> f64 {
        self.latency / PICOS
    }

    /// Returns the rate of a lone flow on the route before its factor [B/s]: the bandwidth of the bottleneck over the
    /// flow's share of it, or the limit by the TCP window.
    pub fn bandwidth(self) -> f64 {
        PICOS / self.gap.picos()
    }
}

impl LogGps {
    /// Makes the model with these parameters.
    pub fn new(parameters: &NetworkParameters) -> Self {
        Self { factors: SizeFactors::new(parameters), parameters: parameters.clone() }
    }

    /// Returns what the route from one host to another costs.
    ///
    /// `O(n log n)` in the length of the route: worth keeping for each pair of hosts that talk.
    ///
    /// # Errors
    /// Where there is no such route. A way back that the platform does not list carries no cross traffic.
    pub fn path(&self, platform: &Platform, src: HostId, dst: HostId) -> Result<PathCost, RouteError> {
        let cost = RouteCost::new(&self.parameters, platform, src, dst)?;
        let rate = |&(link, weight): &(_, f64)| platform.link(link).bandwidth / weight;
        // The bound of SimGrid's flows, the least bandwidth of the route, binds where a route crosses fat pipes only.
        let bandwidth = cost.weights.iter().map(rate).fold(cost.bound, f64::min);
        Ok(PathCost { latency: cost.latency * PICOS, gap: Gap::new(PICOS / bandwidth) })
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

    /// Returns the part of the time that does not depend on the bandwidth of the route, or `None` where it exceeds 106 days.
    pub fn latency(&self, path: PathCost, size_on_the_wire: Bytes) -> Option<SimDuration> {
        SimDuration::try_from_picos_f64(path.latency * self.factors.of(size_on_the_wire).latency)
    }

    #[inline]
    fn picos(&self, path: PathCost, size_on_the_wire: Bytes) -> f64 {
        let factors = self.factors.of(size_on_the_wire);
        path.latency * factors.latency + size_on_the_wire.get() as f64 * (path.gap.picos() * factors.gap)
    }
}
