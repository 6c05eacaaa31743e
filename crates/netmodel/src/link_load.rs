//! Loads of links over time.

pub(crate) mod bins;
pub(crate) mod load_integrator;
pub(crate) mod recorder;
mod watched_period;

use std::borrow::Cow;

use pdes_core::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};

use crate::{LinkId, Platform, Sharing};
use bins::Bins;

/// Loads of the shared links of a platform in a run. Fat pipes are left out, because flows do not slow each other
/// down there.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkLoads {
    /// Length of a bin.
    pub bin: SimDuration,
    /// Loads of the links that carried anything, in the order of the links.
    pub links: Vec<LinkLoad>,
}

/// Load of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkLoad {
    /// The link.
    pub link: LinkId,
    /// Bytes on the wire of the messages whose routes cross it.
    pub bytes: u64,
    /// Time during which the link was full, and the bottleneck of some message, which would have been faster otherwise. The link carries
    /// its capacity in that time: times the capacity, it is at most the integral of the load.
    pub saturated: SimDuration,
    /// Mean load as a fraction of its capacity.
    pub utilisation: f64,
    /// Mean load as a fraction of the capacity in each bin, the last of which may be incomplete.
    pub series: Vec<f64>,
}

/// Totals of a link at the end of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct LinkTotals<'a> {
    pub(crate) link: LinkId,
    pub(crate) bytes: u64,
    /// Time during which the link was a bottleneck [ps].
    pub(crate) saturated: u64,
    /// Capacity in units of the load, before any change.
    pub(crate) capacity: f64,
    /// Load integrated over time, by bins [load times ps].
    pub(crate) bins: Cow<'a, Bins>,
}

impl LinkLoads {
    /// Combines the totals of links, up to the end of a run.
    pub(crate) fn new<'a>(
        platform: &Platform,
        end: SimTime,
        all_totals: impl Iterator<Item = LinkTotals<'a>>,
    ) -> Self {
        let mut all_totals: Vec<LinkTotals<'_>> =
            all_totals.filter(|totals| totals.is_reported(platform)).collect();
        all_totals.sort_by_key(|totals| totals.link);
        let scales = all_totals.iter().map(|totals| totals.bins.scale());
        let scale = scales.fold(bins::scale_of(end.as_picos()), u32::max);
        let links = all_totals.iter().map(|totals| totals.load(platform, scale, end.as_picos()));
        Self { bin: SimDuration::from_picos(1 << scale), links: links.collect() }
    }
}

impl LinkTotals<'_> {
    /// Returns whether the link carried anything and is shared, not a fat pipe.
    pub(crate) fn is_reported(&self, platform: &Platform) -> bool {
        self.bins.is_used() && platform.link(self.link).sharing == Sharing::Shared
    }

    /// Adds what the link carried in another part of the run.
    pub(crate) fn merge(&mut self, other: &LinkTotals<'_>) {
        self.bytes += other.bytes;
        self.saturated += other.saturated;
        self.bins.to_mut().merge(&other.bins);
    }

    /// Copies the bins out of the region that holds them.
    pub(crate) fn into_owned(self) -> LinkTotals<'static> {
        LinkTotals { bins: Cow::Owned(self.bins.into_owned()), ..self }
    }

    fn load(&self, platform: &Platform, scale: u32, end: u64) -> LinkLoad {
        let Self { link, bytes, saturated, capacity, ref bins } = *self;
        let sums = bins.coarsened(scale, end);
        let total: f64 = sums.iter().sum();
        let part = |sum: f64, from: u64, until: u64| {
            if sum == 0.0 || from >= until {
                return 0.0;
            }
            let time = SimTime::from_picos(from)..SimTime::from_picos(until);
            sum / (capacity * platform.relative_bandwidth(link, time) * (until - from) as f64)
        };
        let part_of_bin = |(bin, &sum): (u64, &f64)| part(sum, bin << scale, ((bin + 1) << scale).min(end));
        LinkLoad {
            link,
            bytes,
            saturated: SimDuration::from_picos(saturated),
            utilisation: part(total, 0, end),
            series: (0..).zip(&sums).map(part_of_bin).collect(),
        }
    }
}
