//! Routes as one region sees them, and the context that all regions share.

use std::ops::Range;

use pdes_core::SimDuration;
use rustc_hash::FxHashMap;

use super::unit::{self, FULL_WEIGHT, ShareScale};
use crate::region::RegionId;
use crate::route_cost::RouteCost;
use crate::{FatPipes, HostId, NetworkParameters, Platform, Regions, RouteError, Sharing};

/// Network context: platform, parameters, regions and scale of shares, common to all regions.
#[derive(Debug)]
pub(super) struct NetworkContext<'p> {
    pub(super) platform: &'p Platform,
    pub(super) parameters: NetworkParameters,
    pub(super) regions: Regions,
    pub(super) scale: ShareScale,
}

/// Use of a link of the region by a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RegionUsage {
    /// Number of the link in the region.
    pub(super) link: u32,
    /// Load of the link in 1/20 of the flow's rate.
    pub(super) weight: u32,
}

/// Cache of the routes that concern a region, looked up once for each pair of hosts.
#[derive(Debug, Default)]
pub(super) struct RouteCache {
    of_pair: FxHashMap<(HostId, HostId), u32>,
    routes: Vec<RegionRoute>,
    usages: Vec<RegionUsage>,
    regions: Vec<RegionId>,
}

/// A route as a region sees it.
#[derive(Clone, Debug)]
pub(super) struct RegionRoute {
    /// Sum of the link latencies [s].
    pub(super) latency: f64,
    pub(super) share: u64,
    /// Upper bound on the rate of a flow.
    pub(super) bound: u64,
    /// Level at which the bound is reached.
    pub(super) ceiling: u64,
    usages: Range<usize>,
    /// Regions of the ends and of the links.
    regions: Range<usize>,
}

impl RegionRoute {
    /// Returns whether the route concerns one region only.
    pub(super) fn is_local(&self) -> bool {
        self.regions.len() == 1
    }
}

impl RouteCache {
    /// Returns the number of the route from one host to another.
    #[inline]
    pub(super) fn find(
        &mut self,
        context: &NetworkContext<'_>,
        region: RegionId,
        src: HostId,
        dst: HostId,
    ) -> Result<u32, RouteError> {
        match self.of_pair.get(&(src, dst)) {
            Some(&route) => Ok(route),
            None => self.add(context, region, src, dst),
        }
    }

    #[cold]
    fn add(
        &mut self,
        context: &NetworkContext<'_>,
        region: RegionId,
        src: HostId,
        dst: HostId,
    ) -> Result<u32, RouteError> {
        let cost = RouteCost::new(&context.parameters, context.platform, src, dst)?;
        let (first, first_region) = (self.usages.len(), self.regions.len());
        let mut bound = cost.rate_bound;
        self.regions.extend([context.regions.of_host(src), context.regions.of_host(dst)]);
        for (id, weight) in cost.weights {
            let link = context.platform.link(id);
            if link.sharing == Sharing::FatPipe && context.parameters.fat_pipes == FatPipes::Separate {
                bound = bound.min(link.bandwidth / weight);
                continue;
            }
            let member = context.regions.link_slot(id);
            self.regions.push(member.region);
            if member.region == region {
                let weight = (weight * f64::from(FULL_WEIGHT)).round() as u32;
                self.usages.push(RegionUsage { link: member.slot, weight });
            }
        }
        self.regions[first_region..].sort_unstable();
        let mut last = None;
        let mut regions = self.regions.split_off(first_region);
        regions.retain(|&region| last.replace(region) != Some(region));
        self.regions.append(&mut regions);
        // Without latency the penalty is one, not the sum of the weights (network_cm02.cpp:393-405).
        let penalty = if cost.latency > 0.0 { cost.latency + cost.resistance } else { 1.0 };
        let (share, bound) = (context.scale.share(penalty), unit::rate(bound));
        self.routes.push(RegionRoute {
            latency: cost.latency,
            share,
            bound,
            ceiling: unit::level_of(bound, share),
            usages: first..self.usages.len(),
            regions: first_region..self.regions.len(),
        });
        let route = self.routes.len() as u32 - 1;
        self.of_pair.insert((src, dst), route);
        Ok(route)
    }

    /// Returns the ends of all routes, in the order of their numbers.
    pub(super) fn all_ends(&self) -> Vec<(HostId, HostId)> {
        let mut ends: Vec<_> = self.of_pair.iter().map(|(&ends, &route)| (route, ends)).collect();
        ends.sort_unstable();
        ends.into_iter().map(|(_, ends)| ends).collect()
    }

    /// Returns whether there is a route with a number.
    pub(super) fn has(&self, route: u32) -> bool {
        (route as usize) < self.routes.len()
    }

    #[inline]
    pub(super) fn route(&self, route: u32) -> &RegionRoute {
        &self.routes[route as usize]
    }

    /// Returns the usages of this region's links.
    #[inline]
    pub(super) fn usages(&self, route: u32) -> &[RegionUsage] {
        &self.usages[self.routes[route as usize].usages.clone()]
    }

    /// Returns the regions that the route concerns, by growing number.
    pub(super) fn regions_of(&self, route: u32) -> &[RegionId] {
        &self.regions[self.routes[route as usize].regions.clone()]
    }

    /// Returns the latency phase of a message on a route.
    #[inline]
    pub(super) fn latency_phase(&self, route: u32, factor: unit::LatencyFactor) -> SimDuration {
        factor.of(self.routes[route as usize].latency)
    }
}
