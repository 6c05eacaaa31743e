//! Routes as one region sees them, and the context that all regions share.

use std::ops::Range;

use pdes_core::SimDuration;
use rustc_hash::FxHashMap;

use super::unit::{self, ShareScale, WHOLE};
use crate::region::RegionId;
use crate::route_cost::RouteCost;
use crate::{FatPipes, HostId, NetworkParameters, Platform, Regions, RouteError, Sharing};

/// Network context: platform, parameters, regions and scale of shares, common to all regions.
#[derive(Debug)]
pub(super) struct Ground<'p> {
    pub(super) platform: &'p Platform,
    pub(super) parameters: NetworkParameters,
    pub(super) regions: Regions,
    pub(super) scale: ShareScale,
}

/// Use of a link of the region by a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    /// Number of the link in the region.
    pub(super) link: u32,
    /// Load of the link in 1/20 of the flow's rate.
    pub(super) weight: u32,
}

/// Cache of the routes that concern a region, looked up once for each pair of hosts.
#[derive(Debug, Default)]
pub(super) struct Ways {
    of_pair: FxHashMap<(HostId, HostId), u32>,
    ways: Vec<Way>,
    usages: Vec<Usage>,
    concerned: Vec<RegionId>,
}

/// A route as a region sees it.
#[derive(Clone, Debug)]
pub(super) struct Way {
    /// Sum of the link latencies [s].
    pub(super) latency: f64,
    pub(super) share: u64,
    /// Upper bound on the rate of a flow.
    pub(super) bound: u64,
    /// Level at which the bound is reached.
    pub(super) ceiling: u64,
    usages: Range<usize>,
    /// Regions of the ends and of the links.
    concerned: Range<usize>,
}

impl Way {
    /// Returns whether the route concerns one region only.
    pub(super) fn is_local(&self) -> bool {
        self.concerned.len() == 1
    }
}

impl Ways {
    /// Returns the number of the route from one host to another.
    #[inline]
    pub(super) fn find(
        &mut self,
        ground: &Ground<'_>,
        region: RegionId,
        src: HostId,
        dst: HostId,
    ) -> Result<u32, RouteError> {
        match self.of_pair.get(&(src, dst)) {
            Some(&way) => Ok(way),
            None => self.add(ground, region, src, dst),
        }
    }

    #[cold]
    fn add(
        &mut self,
        ground: &Ground<'_>,
        region: RegionId,
        src: HostId,
        dst: HostId,
    ) -> Result<u32, RouteError> {
        let cost = RouteCost::new(&ground.parameters, ground.platform, src, dst)?;
        let (first, first_region) = (self.usages.len(), self.concerned.len());
        let mut bound = cost.bound;
        self.concerned.extend([ground.regions.of_host(src), ground.regions.of_host(dst)]);
        for (id, weight) in cost.weights {
            let link = ground.platform.link(id);
            if link.sharing == Sharing::FatPipe && ground.parameters.fat_pipes == FatPipes::Separate {
                bound = bound.min(link.bandwidth / weight);
                continue;
            }
            let member = ground.regions.link(id);
            self.concerned.push(member.region);
            if member.region == region {
                let weight = (weight * f64::from(WHOLE)).round() as u32;
                self.usages.push(Usage { link: member.slot, weight });
            }
        }
        self.concerned[first_region..].sort_unstable();
        let mut last = None;
        let mut regions = self.concerned.split_off(first_region);
        regions.retain(|&region| last.replace(region) != Some(region));
        self.concerned.append(&mut regions);
        // Without latency the penalty is one, not the sum of the weights (network_cm02.cpp:393-405).
        let penalty = if cost.latency > 0.0 { cost.latency + cost.resistance } else { 1.0 };
        let (share, bound) = (ground.scale.share(penalty), unit::rate(bound));
        self.ways.push(Way {
            latency: cost.latency,
            share,
            bound,
            ceiling: unit::level_of(bound, share),
            usages: first..self.usages.len(),
            concerned: first_region..self.concerned.len(),
        });
        let way = self.ways.len() as u32 - 1;
        self.of_pair.insert((src, dst), way);
        Ok(way)
    }

    #[inline]
    pub(super) fn way(&self, way: u32) -> &Way {
        &self.ways[way as usize]
    }

    /// Returns the usages of this region's links.
    #[inline]
    pub(super) fn usages(&self, way: u32) -> &[Usage] {
        &self.usages[self.ways[way as usize].usages.clone()]
    }

    /// Returns the regions that the route concerns, by growing number.
    pub(super) fn concerned(&self, way: u32) -> &[RegionId] {
        &self.concerned[self.ways[way as usize].concerned.clone()]
    }

    /// Returns the latency phase of a message on a route.
    #[inline]
    pub(super) fn phase(&self, way: u32, factor: unit::LatencyFactor) -> SimDuration {
        factor.of(self.ways[way as usize].latency)
    }
}
