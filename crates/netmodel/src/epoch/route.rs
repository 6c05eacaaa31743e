//! Routes as one region sees them, and the context that all regions share.

use std::ops::Range;

use pdes_core::SimTime;
use rustc_hash::FxHashMap;

use super::unit::{self, FULL_WEIGHT, ShareScale};
use crate::region::RegionId;
use crate::route_cost::{Resources, RouteCost};
use crate::{
    FatPipes, HostId, Link, NetworkParameters, Platform, Regions, ResourceChanges, RouteError, Sharing,
};

/// Network context: platform, parameters, regions and scale of shares, common to all regions.
#[derive(Debug)]
pub(super) struct NetworkContext<'p> {
    pub(super) platform: &'p Platform,
    pub(super) parameters: NetworkParameters,
    pub(super) regions: Regions,
    pub(super) scale: ShareScale,
    /// Changes of resources, at boundaries.
    pub(super) changes: ResourceChanges,
}

impl NetworkContext<'_> {
    fn resources(&self) -> Resources<'_> {
        Resources { platform: self.platform, changes: &self.changes }
    }

    /// Returns whether each flow has the whole capacity of a link.
    fn is_separate(&self, link: &Link) -> bool {
        link.sharing == Sharing::FatPipe && self.parameters.fat_pipes == FatPipes::Separate
    }
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
    /// Boundary of the last change of resources; the begin of the run if there was none.
    last_change: SimTime,
}

/// A route as a region sees it.
#[derive(Clone, Debug)]
pub(super) struct RegionRoute {
    ends: (HostId, HostId),
    /// A link may change, and with it what follows; a flow that begins now takes the present values.
    pub(super) is_changing: bool,
    /// Sum of the link latencies [s].
    latency: f64,
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
    /// Returns the route with what a flow takes of it at a cost, and of separate links at an instant.
    fn with_cost(self, context: &NetworkContext<'_>, cost: &RouteCost, now: SimTime) -> Self {
        let separate =
            cost.weights.iter().filter(|&&(link, _)| context.is_separate(context.platform.link(link)));
        let bounds = separate.map(|&(link, weight)| context.resources().bandwidth_before(link, now) / weight);
        let (share, bound) =
            (context.scale.share(cost.penalty()), unit::rate(bounds.fold(cost.rate_bound(), f64::min)));
        Self { latency: cost.latency, share, bound, ceiling: unit::level_of(bound, share), ..self }
    }

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
        let now = self.last_change;
        let cost = RouteCost::new(&context.parameters, context.resources(), (src, dst), now)?;
        let (first, first_region) = (self.usages.len(), self.regions.len());
        self.regions.extend([context.regions.of_host(src), context.regions.of_host(dst)]);
        for &(id, weight) in &cost.weights {
            let link = context.platform.link(id);
            if context.is_separate(link) {
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
        let is_changing = context.resources().any_changes(&cost.weights);
        let route = RegionRoute {
            ends: (src, dst),
            is_changing,
            latency: 0.0,
            share: 0,
            bound: 0,
            ceiling: 0,
            usages: first..self.usages.len(),
            regions: first_region..self.regions.len(),
        };
        self.routes.push(route.with_cost(context, &cost, now));
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

    /// Returns the latency of a route for a message that is sent at an instant [s].
    #[inline]
    pub(super) fn latency(&self, context: &NetworkContext<'_>, route: u32, sent: SimTime) -> f64 {
        let RegionRoute { ends, is_changing, latency, .. } = self.routes[route as usize];
        if is_changing {
            context.resources().route_latency(ends, sent).expect("the route is known")
        } else {
            latency
        }
    }

    /// Returns a route as a flow sees it at a boundary that has begun at an instant.
    pub(super) fn terms(
        &self,
        context: &NetworkContext<'_>,
        route: u32,
        (begin, now): (SimTime, SimTime),
    ) -> RegionRoute {
        let route = &self.routes[route as usize];
        let cost = RouteCost::new(&context.parameters, context.resources(), route.ends, begin);
        let mut cost = cost.expect("the route is known");
        cost.follow(&context.parameters, context.resources(), (begin, now));
        route.clone().with_cost(context, &cost, now)
    }

    /// Returns whether resources change at this boundary.
    pub(super) fn has_changed(&self, now: SimTime) -> bool {
        self.last_change == now && now > SimTime::ZERO
    }

    /// Follows the changes of resources until an instant.
    pub(super) fn change(&mut self, context: &NetworkContext<'_>, now: SimTime) {
        self.last_change = now;
        for route in
            (0..self.routes.len() as u32).filter(|&route| self.route(route).is_changing).collect::<Vec<_>>()
        {
            self.routes[route as usize] = self.terms(context, route, (now, now));
        }
    }
}
