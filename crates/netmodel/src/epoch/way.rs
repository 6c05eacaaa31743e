//! What a message takes from the links of one region on its way.

use std::ops::Range;

use pdes_core::SimDuration;
use rustc_hash::FxHashMap;

use super::unit::{self, ShareScale, WHOLE};
use crate::region::RegionId;
use crate::route_cost::RouteCost;
use crate::{FatPipes, HostId, NetworkParameters, Platform, Regions, RouteError, Sharing};

/// What all regions know of the machine.
#[derive(Debug)]
pub(super) struct Ground<'p> {
    pub(super) platform: &'p Platform,
    pub(super) parameters: NetworkParameters,
    pub(super) regions: Regions,
    pub(super) scale: ShareScale,
}

/// How much of a link of a region a flow takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    /// The number of the link in the region.
    pub(super) link: u32,
    /// In 1/20 of the flow's rate.
    pub(super) weight: u32,
}

/// The ways of the messages that concern a region, looked up once for each pair of hosts.
#[derive(Debug, Default)]
pub(super) struct Ways {
    of_pair: FxHashMap<(HostId, HostId), u32>,
    ways: Vec<Way>,
    usages: Vec<Usage>,
    concerned: Vec<RegionId>,
}

/// A way as a region sees it.
#[derive(Clone, Debug)]
pub(super) struct Way {
    /// In seconds.
    pub(super) latency: f64,
    pub(super) share: u64,
    /// The rate that no flow exceeds.
    pub(super) bound: u64,
    /// The level at which it is reached.
    pub(super) ceiling: u64,
    usages: Range<usize>,
    /// The regions of the ends and of the links.
    concerned: Range<usize>,
}

impl Way {
    /// Returns whether the way concerns one region only.
    pub(super) fn is_local(&self) -> bool {
        self.concerned.len() == 1
    }
}

impl Ways {
    /// Returns the number of the way from one host to another.
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
        // Without latency the penalty is not that of the weights, but one (network_cm02.cpp:393-405).
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

    /// Returns what the way takes from the links of this region.
    #[inline]
    pub(super) fn usages(&self, way: u32) -> &[Usage] {
        &self.usages[self.ways[way as usize].usages.clone()]
    }

    /// Returns the regions that the way concerns, by growing number.
    pub(super) fn concerned(&self, way: u32) -> &[RegionId] {
        &self.concerned[self.ways[way as usize].concerned.clone()]
    }

    /// Returns how long a message spends on the way before its data flow.
    #[inline]
    pub(super) fn phase(&self, way: u32, factor: unit::LatencyFactor) -> SimDuration {
        factor.of(self.ways[way as usize].latency)
    }
}
