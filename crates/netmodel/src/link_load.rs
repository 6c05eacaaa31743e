//! Loads of links over time.

pub(crate) mod bandwidths;
pub(crate) mod bins;
pub(crate) mod load_integrator;
pub(crate) mod recorder;
mod watched_period;

use std::borrow::Cow;

use pdes_core::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};

use crate::{LinkId, Platform, Sharing};
use bandwidths::AmountsByBandwidth;
use bins::Bins;

/// Loads of the links of a platform in a run. Fat pipes are apart, because flows do not slow each other down there.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkLoads {
    /// Length of a bin.
    pub bin: SimDuration,
    /// Loads of the shared links that carried anything, in the order of the links.
    pub links: Vec<LinkLoad>,
    /// The same of the fat pipes whose [power](crate::Power) depends on their load, which is that of their most demanding flow.
    pub fat_pipes: Vec<LinkLoad>,
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
    /// Load as a fraction of the capacity of each instant, integrated over the run \[s\].
    pub full_time_s: f64,
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
    /// Parts of that at other capacities.
    pub(crate) by_bandwidth: Cow<'a, AmountsByBandwidth>,
}

impl LinkLoads {
    /// Combines the totals of links, up to the end of a run. A link that several parts of a network use has the sum of their totals, in
    /// their order.
    ///
    /// # Panics
    /// If the platform lacks a link.
    pub fn new<'a>(
        platform: &Platform,
        end: SimTime,
        all_totals: impl IntoIterator<Item = LinkTotals<'a>>,
    ) -> Self {
        let mut all_totals: Vec<LinkTotals<'_>> = all_totals.into_iter().collect();
        all_totals.sort_by_key(|totals| totals.link);
        all_totals.dedup_by(|later, totals| {
            let is_same = later.link == totals.link;
            if is_same {
                totals.merge(later);
            }
            is_same
        });
        all_totals.retain(|totals| totals.is_reported(platform));
        let scales = all_totals.iter().map(|totals| totals.bins.scale());
        let scale = scales.fold(bins::scale_of(end.as_picos()), u32::max);
        let loads = all_totals.iter().map(|totals| totals.load(platform, scale, end.as_picos()));
        let is_shared = |load: &LinkLoad| platform.link(load.link).sharing == Sharing::Shared;
        let (links, fat_pipes) = loads.partition(is_shared);
        Self { bin: SimDuration::from_picos(1 << scale), links, fat_pipes }
    }
}

impl LinkTotals<'_> {
    /// Returns whether the link carried anything and is shared, or a fat pipe whose power depends on its load.
    pub(crate) fn is_reported(&self, platform: &Platform) -> bool {
        let is_shared = platform.link(self.link).sharing == Sharing::Shared;
        self.bins.is_used() && (is_shared || platform.power().depends_on_load(self.link))
    }

    /// Adds what the link carried in another part of the run.
    fn merge(&mut self, other: &LinkTotals<'_>) {
        self.bytes += other.bytes;
        self.saturated += other.saturated;
        self.bins.to_mut().merge(&other.bins);
        self.by_bandwidth.to_mut().merge(&other.by_bandwidth);
    }

    /// Copies the bins out of the region that holds them.
    pub fn into_owned(self) -> LinkTotals<'static> {
        let by_bandwidth = Cow::Owned(self.by_bandwidth.into_owned());
        LinkTotals { bins: Cow::Owned(self.bins.into_owned()), by_bandwidth, ..self }
    }

    fn load(&self, platform: &Platform, scale: u32, end: u64) -> LinkLoad {
        let Self { link, bytes, saturated, capacity, ref bins, ref by_bandwidth } = *self;
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
            full_time_s: by_bandwidth.full_time(total, capacity) / 1e12,
            series: (0..).zip(&sums).map(part_of_bin).collect(),
        }
    }
}
