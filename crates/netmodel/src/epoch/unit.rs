//! Integer units of the epoch model.
//!
//! | quantity | unit | type |
//! |---|---|---|
//! | instant, duration | 1 ps | `u64` |
//! | rate | 2^-40 B/ps, about 0.9 B/s | `u64` |
//! | volume | 2^-40 B | `u128` |
//! | weight of a flow on a link | 1/20 | `u32` |
//! | load and capacity of a link | 2^-40 B/ps / 20 | `u64` |
//! | share: rate of a flow per level, the inverse of its penalty | 2^-32 of the largest of the platform | `u64` |
//! | level: a rate over a share | 2^-40 B/ps | `u64` |
//!
//! Parameters are doubles and are rounded once, when a network or a route is made; all later arithmetic is exact.

use pdes_core::{Bytes, SimDuration, SimTime, StateVisitor};

use crate::{LinkId, NetworkParameters, Platform, Resource};

/// Fraction bits of rates and volumes.
const RATE_BITS: u32 = 40;

/// Fraction bits of shares and factors.
pub(super) const SHARE_BITS: u32 = 32;

/// Weight of a link that carries the whole rate of a flow.
pub(super) const FULL_WEIGHT: u32 = 20;

/// Capacity beyond the bandwidth [rate units]: a flow alone, whose limit is the bandwidth, leaves its link with room
/// for one more level, so that the link is not full.
const CAPACITY_MARGIN: u64 = 2;

/// Level of flows and links without a bottleneck.
pub(super) const UNLIMITED: u64 = u64::MAX;

/// Rounds a rate [B/s] to rate units, at least one.
pub(super) fn rate(bytes_per_second: f64) -> u64 {
    ((bytes_per_second * (1_u64 << RATE_BITS) as f64 / 1e12).round() as u64).max(1)
}

/// Returns the capacity, in units of load, of a link of a bandwidth [B/s].
pub(super) fn capacity(bandwidth: f64) -> u64 {
    (rate(bandwidth) + CAPACITY_MARGIN).saturating_mul(u64::from(FULL_WEIGHT))
}

/// Returns the rate of a flow of this share at a level: at least one unit, so that no flow starves.
#[inline]
pub(super) fn rate_at(level: u64, share: u64, bound: u64) -> u64 {
    let rate = (u128::from(level) * u128::from(share)) >> SHARE_BITS;
    u64::try_from(rate).unwrap_or(u64::MAX).clamp(1, bound)
}

/// Returns the least level at which a flow of this share has this rate.
pub(super) fn level_of(rate: u64, share: u64) -> u64 {
    let level = (u128::from(rate) << SHARE_BITS).div_ceil(u128::from(share));
    u64::try_from(level).unwrap_or(UNLIMITED)
}

/// Returns the level at which flows of these shares, each times its weight, fill what is left of a link.
#[inline]
pub(super) fn filling_level(room: u64, shares: u64) -> u64 {
    let level = (u128::from(room) << SHARE_BITS) / u128::from(shares.max(1));
    u64::try_from(level).unwrap_or(UNLIMITED).min(UNLIMITED - 1)
}

/// Returns the time of a volume at a rate, rounded up.
#[inline]
pub(super) fn duration(volume: u128, rate: u64) -> SimDuration {
    let picos = match u64::try_from(volume) {
        Ok(volume) => volume.div_ceil(rate),
        Err(_) => u64::try_from(volume.div_ceil(u128::from(rate))).unwrap_or(u64::MAX),
    };
    SimDuration::from_picos(picos)
}

/// Returns the volume that passes in a time at a rate.
#[inline]
pub(super) fn volume(rate: u64, from: SimTime, to: SimTime) -> u128 {
    u128::from(rate) * u128::from((to - from).as_picos())
}

/// Returns the mean rate at which a volume passes in a time that is not zero [ps].
#[inline]
pub(super) fn mean_rate(volume: u128, picos: u64) -> u64 {
    match u64::try_from(volume) {
        Ok(volume) => volume / picos,
        Err(_) => u64::try_from(volume / u128::from(picos)).unwrap_or(u64::MAX),
    }
}

/// Visits an instant [ps].
pub(crate) fn visit_instant(picos: &mut u64, visitor: &mut StateVisitor<'_>) {
    let mut at = SimTime::from_picos(*picos);
    visitor.time(&mut at);
    *picos = at.as_picos();
}

/// Rounds a factor to 2^-32.
fn factor(factor: f64) -> u64 {
    (factor * (1_u64 << SHARE_BITS) as f64).round() as u64
}

/// Factor of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LatencyFactor(u64);

impl LatencyFactor {
    /// Returns the latency phase of a message on a route of this latency [s].
    pub(crate) fn of(self, latency: f64) -> SimDuration {
        let latency = (latency * 1e12).round() as u64;
        let picos = (u128::from(latency) * u128::from(self.0)) >> SHARE_BITS;
        SimDuration::from_picos(u64::try_from(picos).unwrap_or(u64::MAX))
    }
}

/// Latency factors by message size.
#[derive(Clone, Debug)]
pub(crate) struct LatencyFactors(Steps);

impl LatencyFactors {
    pub(crate) fn new(parameters: &NetworkParameters) -> Self {
        let table = &parameters.latency_factor;
        Self(Steps::new(table.section_starts(), |size| factor(table.factor(Bytes::new(size)))))
    }

    /// Returns the least factor over all sizes.
    pub(crate) fn least(&self) -> LatencyFactor {
        LatencyFactor(self.0.values.iter().copied().min().unwrap_or(1 << SHARE_BITS))
    }

    #[inline]
    pub(super) fn of(&self, size: Bytes) -> LatencyFactor {
        LatencyFactor(self.0.of(size))
    }
}

/// Volumes of messages by their size.
#[derive(Clone, Debug)]
pub(super) struct WireVolumes(Steps);

impl WireVolumes {
    pub(super) fn new(parameters: &NetworkParameters) -> Self {
        let table = &parameters.bandwidth_factor;
        Self(Steps::new(table.section_starts(), |size| factor(1.0 / table.factor(Bytes::new(size)))))
    }

    /// Returns the volume of a message.
    #[inline]
    pub(super) fn of(&self, size: Bytes) -> u128 {
        (u128::from(size.get()) * u128::from(self.0.of(size))) << (RATE_BITS - SHARE_BITS)
    }
}

/// A step function of message sizes.
#[derive(Clone, Debug)]
struct Steps {
    /// Largest size of each section but the last, in growing order.
    ends: Box<[u64]>,
    values: Box<[u64]>,
}

impl Steps {
    fn new(ends: impl Iterator<Item = u64>, value: impl Fn(u64) -> u64) -> Self {
        let ends: Box<[u64]> = ends.collect();
        let values = ends.iter().copied().chain([u64::MAX]).map(value).collect();
        Self { ends, values }
    }

    #[inline]
    fn of(&self, size: Bytes) -> u64 {
        let index: usize = self.ends.iter().map(|&end| usize::from(size.get() > end)).sum();
        self.values[index]
    }
}

/// Scale of shares: the least penalty of a route over a link with latency [s].
#[derive(Clone, Copy, Debug)]
pub(super) struct ShareScale(f64);

impl ShareScale {
    pub(super) fn new(platform: &Platform, parameters: &NetworkParameters) -> Self {
        let changes = platform.changes();
        let penalties = (0..).map(LinkId::new).zip(platform.links()).map(|(id, link)| {
            let latency = changes.values(Resource::Latency(id)).fold(link.latency, f64::min);
            let bandwidth = changes.values(Resource::Bandwidth(id)).fold(link.bandwidth, f64::max);
            latency + parameters.weight_s / bandwidth
        });
        Self(penalties.filter(|&penalty| penalty > 0.0).fold(1.0, f64::min))
    }

    /// Returns the share of a flow of this penalty.
    pub(super) fn share(self, penalty: f64) -> u64 {
        ((self.0 / penalty * (1_u64 << SHARE_BITS) as f64).round() as u64).clamp(1, 1 << SHARE_BITS)
    }
}
