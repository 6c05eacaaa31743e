//! Contention-free transfer times: the cost of a message that shares its route with no other.
//!
//! This is SimGrid's flow model (network_cm02.cpp) with every flow alone. A flow of `s` bytes takes
//!
//! `L * latency_factor(s) + s / (bandwidth_factor(s) * min(min_l(b_l / w_l), gamma / (2 L)))`
//!
//! where `L` is the sum of the latencies of the route, `b_l` the bandwidth of link `l`, and `w_l` the share of the
//! flow's rate that the link carries: 1 for each time that the route crosses it and, with cross traffic, 0.05 for each
//! time that the reverse route does. On a shared link these add up, on a fat pipe the largest counts. In terms of LogGP
//! (Alexandrov et al. 1995) and LogGPS (Ino et al. 2001), latency and gap per byte are step functions of the message size.

use std::fmt;
use std::num::NonZeroU64;

use pdes_core::{Bytes, SimDuration};

use crate::route_cost::{RouteCost, SizeFactors};
use crate::{HostId, NetworkParameters, Platform, RouteError};

/// Picoseconds in a second.
const PICOS: f64 = 1e12;

/// The contention-free model: transfer time from message size and path cost.
#[derive(Clone, Debug)]
pub struct ContentionFree {
    factors: SizeFactors,
    parameters: NetworkParameters,
}

/// Latency and time per byte of a route, before the factors for the message size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathCost {
    /// Latency of the route [ps].
    latency: f64,
    gap: TimePerByte,
}

const _: () = assert!(size_of::<Option<PathCost>>() == 16, "there are millions of them");

/// Time per byte [ps/B], stored as its inverted bits: they are never zero because the value is not NaN, so that
/// `Option<PathCost>` needs no tag.
#[derive(Clone, Copy, PartialEq)]
struct TimePerByte(NonZeroU64);

impl TimePerByte {
    fn new(picos: f64) -> Self {
        Self(NonZeroU64::new(!picos.to_bits()).expect("a time per byte is a number"))
    }

    #[inline]
    fn picos(self) -> f64 {
        f64::from_bits(!self.0.get())
    }
}

impl fmt::Debug for TimePerByte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.picos().fmt(f)
    }
}

impl PathCost {
    /// Returns the sum of the latencies of the route \[s\].
    pub fn latency(self) -> f64 {
        self.latency / PICOS
    }

    /// Returns the rate of a lone flow on the route before its bandwidth factor [B/s]: the least bandwidth over
    /// weight of its links, or the limit by the TCP window.
    pub fn bandwidth(self) -> f64 {
        PICOS / self.gap.picos()
    }
}

impl ContentionFree {
    /// Makes the model with these parameters.
    pub fn new(parameters: &NetworkParameters) -> Self {
        Self { factors: SizeFactors::new(parameters), parameters: parameters.clone() }
    }

    /// Returns the cost of the route from one host to another.
    ///
    /// `O(n log n)` in the length of the route: worth caching for each pair of hosts that communicate.
    ///
    /// # Errors
    /// If there is no such route. A reverse route that the platform does not list carries no cross traffic.
    pub fn path_cost(&self, platform: &Platform, src: HostId, dst: HostId) -> Result<PathCost, RouteError> {
        let cost = RouteCost::new(&self.parameters, platform, src, dst)?;
        let rate = |&(link, weight): &(_, f64)| platform.link(link).bandwidth / weight;
        // SimGrid's bound of a flow, the least bandwidth of the route, matters on routes of fat pipes only.
        let bandwidth = cost.weights.iter().map(rate).fold(cost.rate_bound, f64::min);
        Ok(PathCost { latency: cost.latency * PICOS, gap: TimePerByte::new(PICOS / bandwidth) })
    }

    /// Returns the time from the start of a flow to the arrival of its last byte.
    ///
    /// The size is that on the wire, protocol overhead included. Takes a few nanoseconds; uses multiplications and
    /// additions only, so that every machine computes the same bits.
    ///
    /// # Panics
    /// If the time exceeds 106 days.
    #[inline]
    pub fn duration(&self, path: PathCost, size_on_the_wire: Bytes) -> SimDuration {
        SimDuration::from_picos_f64(self.transfer_picos(path, size_on_the_wire))
    }

    /// Returns the same as [`ContentionFree::duration`], or `None` if the time exceeds 106 days.
    #[inline]
    pub fn try_duration(&self, path: PathCost, size_on_the_wire: Bytes) -> Option<SimDuration> {
        SimDuration::try_from_picos_f64(self.transfer_picos(path, size_on_the_wire))
    }

    /// Returns the latency part of the time, which does not depend on the bandwidth of the route, or `None` if it
    /// exceeds 106 days.
    pub fn latency(&self, path: PathCost, size_on_the_wire: Bytes) -> Option<SimDuration> {
        SimDuration::try_from_picos_f64(path.latency * self.factors.of(size_on_the_wire).latency)
    }

    #[inline]
    fn transfer_picos(&self, path: PathCost, size_on_the_wire: Bytes) -> f64 {
        let factors = self.factors.of(size_on_the_wire);
        path.latency * factors.latency
            + size_on_the_wire.get() as f64 * (path.gap.picos() * factors.time_per_byte)
    }
}
