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

use pdes_core::{Bytes, SimDuration, SimTime};

use crate::change::serve;
use crate::route_cost::{Resources, RouteCost, RoutePath, SizeFactors};
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

/// A route of messages that share it with no other.
#[derive(Clone, Copy, Debug)]
pub enum UncontendedRoute {
    /// Its links do not change.
    Constant(PathCost),
    /// A link of it, or of its reverse route, changes in a run.
    Changing {
        /// The host that sends.
        src: HostId,
        /// The host that receives.
        dst: HostId,
    },
}

const _: () = assert!(size_of::<UncontendedRoute>() == 16, "there are millions of them");
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

    /// Returns the route from one host to another.
    ///
    /// # Errors
    /// If there is no such route.
    pub fn route(
        &self,
        platform: &Platform,
        src: HostId,
        dst: HostId,
    ) -> Result<UncontendedRoute, RouteError> {
        let cost = self.route_cost(platform, (src, dst), SimTime::ZERO)?;
        let is_changing = Resources::of(platform).any_changes(&cost.weights) || platform.may_detour(src, dst);
        Ok(match is_changing {
            true => UncontendedRoute::Changing { src, dst },
            false => UncontendedRoute::Constant(Self::cost_at(platform, &cost, SimTime::ZERO)),
        })
    }

    /// Returns the cost of the route from one host to another at the begin of a run.
    ///
    /// `O(n log n)` in the length of the route: worth caching for each pair of hosts that communicate.
    ///
    /// # Errors
    /// If there is no such route. A reverse route that the platform does not list carries no cross traffic.
    pub fn path_cost(&self, platform: &Platform, src: HostId, dst: HostId) -> Result<PathCost, RouteError> {
        let cost = self.route_cost(platform, (src, dst), SimTime::ZERO)?;
        Ok(Self::cost_at(platform, &cost, SimTime::ZERO))
    }

    fn route_cost(
        &self,
        platform: &Platform,
        ends: (HostId, HostId),
        sent: SimTime,
    ) -> Result<RouteCost, RouteError> {
        RouteCost::new(&self.parameters, Resources::of(platform), ends, sent)
    }

    /// Returns a cost with the bandwidths of an instant.
    fn cost_at(platform: &Platform, cost: &RouteCost, now: SimTime) -> PathCost {
        let rate = |&(link, weight): &(_, f64)| Resources::of(platform).bandwidth(link, now) / weight;
        // SimGrid's bound of a flow, the least bandwidth of the route, matters on routes of fat pipes, and after changes.
        let bandwidth = cost.weights.iter().map(rate).fold(cost.rate_bound(), f64::min);
        PathCost { latency: cost.latency * PICOS, gap: TimePerByte::new(PICOS / bandwidth) }
    }

    /// Returns the time from the start at an instant of a flow on a route of the platform to the arrival of its last byte; `None` where it
    /// exceeds 106 days. A flow that spans a change is served at both rates.
    ///
    /// The size is that on the wire. Takes a few nanoseconds on a constant route, as [`ContentionFree::route`] on another one.
    #[inline]
    pub fn transfer(
        &self,
        platform: &Platform,
        route: UncontendedRoute,
        size: Bytes,
        begin: SimTime,
    ) -> Option<SimDuration> {
        match route {
            UncontendedRoute::Constant(cost) => self.try_duration(cost, size),
            UncontendedRoute::Changing { src, dst } => {
                self.changing_transfer(platform, (src, dst), size, begin)
            }
        }
    }

    /// Returns the latency part of the same time.
    pub fn latency_at(
        &self,
        platform: &Platform,
        route: UncontendedRoute,
        size: Bytes,
        begin: SimTime,
    ) -> Option<SimDuration> {
        match route {
            UncontendedRoute::Constant(cost) => self.latency(cost, size),
            UncontendedRoute::Changing { src, dst } => {
                let cost = self.route_cost(platform, (src, dst), begin).ok()?;
                self.latency(Self::cost_at(platform, &cost, begin), size)
            }
        }
    }

    #[cold]
    fn changing_transfer(
        &self,
        platform: &Platform,
        ends: (HostId, HostId),
        size: Bytes,
        begin: SimTime,
    ) -> Option<SimDuration> {
        let (resources, factors) = (Resources::of(platform), self.factors.of(size));
        let path = RoutePath::new(&self.parameters, platform, ends, begin).ok()?;
        let sent = RouteCost::of(&self.parameters, resources, &path, begin);
        let has_detours = platform.has_detours();
        let picos_per_byte = |now| {
            let cost = match has_detours && path.is_cut(resources, now) {
                true => self.route_cost(platform, ends, now).expect("the route is known"),
                false => {
                    let mut cost = sent.clone();
                    cost.follow(&self.parameters, resources, (begin, now));
                    cost
                }
            };
            Self::cost_at(platform, &cost, now).gap.picos() * factors.time_per_byte
        };
        let latency = sent.latency * PICOS * factors.latency;
        let next_change = |after| match has_detours {
            true => resources.changes.next_instant(after),
            false => resources.next_change(&sent.weights, after),
        };
        serve(begin, latency, size.get() as f64, picos_per_byte, next_change)
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
