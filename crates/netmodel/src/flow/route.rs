//! Routes of messages, looked up once for each pair of hosts.

use std::ops::Range;

use pdes_core::StateVisitor;
use rustc_hash::FxHashMap;

use crate::maxmin::{FlowIndex, LinkIndex};
use crate::route_cost::RouteCost;
use crate::{FatPipes, HostId, LinkId, MaxMin, NetworkParameters, Platform, RouteError, Sharing, Usage};

/// Cache of the routes between the pairs of hosts that have communicated so far, and of the solver's links on these.
#[derive(Debug)]
pub(super) struct RouteCache<'p> {
    platform: &'p Platform,
    parameters: NetworkParameters,
    of_pair: FxHashMap<(HostId, HostId), u32>,
    routes: Vec<Route>,
    usages: Vec<Usage>,
    /// Solver links of the platform's links; `None` for links not in use.
    links: Vec<Option<LinkIndex>>,
}

#[derive(Debug)]
struct Route {
    ends: (HostId, HostId),
    /// Sum of the link latencies [s].
    latency: f64,
    penalty: f64,
    bound: f64,
    usages: Range<usize>,
}

impl<'p> RouteCache<'p> {
    pub(super) fn new(platform: &'p Platform, parameters: &NetworkParameters) -> Self {
        Self {
            platform,
            parameters: parameters.clone(),
            of_pair: FxHashMap::default(),
            routes: Vec::new(),
            usages: Vec::new(),
            links: vec![None; platform.links().len()],
        }
    }

    /// Returns the number of the route from one host to another.
    #[inline]
    pub(super) fn find(&mut self, src: HostId, dst: HostId, sharing: &mut MaxMin) -> Result<u32, RouteError> {
        match self.of_pair.get(&(src, dst)) {
            Some(&route) => Ok(route),
            None => self.add(src, dst, sharing),
        }
    }

    #[cold]
    fn add(&mut self, src: HostId, dst: HostId, sharing: &mut MaxMin) -> Result<u32, RouteError> {
        let cost = RouteCost::new(&self.parameters, self.platform, src, dst)?;
        let first = self.usages.len();
        let mut bound = cost.rate_bound;
        for (link, weight) in cost.weights {
            let separate = self.is_separate(link);
            if separate {
                bound = bound.min(self.platform.link(link).bandwidth / weight);
            }
            let link = self.link(link, separate, sharing);
            self.usages.push(Usage { link, weight });
        }
        // Without latency the penalty is one, not the sum of the weights (network_cm02.cpp:393-405).
        let penalty = if cost.latency > 0.0 { cost.latency + cost.resistance } else { 1.0 };
        let usages = first..self.usages.len();
        self.routes.push(Route { ends: (src, dst), latency: cost.latency, penalty, bound, usages });
        let route = self.routes.len() as u32 - 1;
        self.of_pair.insert((src, dst), route);
        Ok(route)
    }

    /// Returns whether each flow has the whole capacity of the link.
    fn is_separate(&self, link: LinkId) -> bool {
        self.parameters.fat_pipes == FatPipes::Separate
            && self.platform.link(link).sharing == Sharing::FatPipe
    }

    fn link(&mut self, id: LinkId, separate: bool, sharing: &mut MaxMin) -> LinkIndex {
        *self.links[id.index()].get_or_insert_with(|| {
            let link = self.platform.link(id);
            let capacity = if separate { f64::INFINITY } else { link.bandwidth };
            sharing.add_numbered_link(id.get(), capacity, link.sharing)
        })
    }

    pub(super) fn platform(&self) -> &'p Platform {
        self.platform
    }

    /// Returns the hosts at the ends of a route.
    #[inline]
    pub(super) fn ends(&self, route: u32) -> (HostId, HostId) {
        self.routes[route as usize].ends
    }

    /// Saves routes by their ends, in the order of their numbers, and finds them again: links get their indices in this order.
    pub(super) fn visit(&mut self, sharing: &mut MaxMin, visitor: &mut StateVisitor<'_>) {
        let mut all_ends: Vec<(HostId, HostId)> = self.routes.iter().map(|route| route.ends).collect();
        visitor.saved(&mut all_ends);
        let hosts = self.platform.hosts().len();
        for (number, (src, dst)) in (0..).zip(all_ends) {
            let is_known = src.index() < hosts && dst.index() < hosts;
            if !is_known || self.find(src, dst, sharing).ok() != Some(number) {
                visitor.refuse();
            }
        }
    }

    /// Returns the latency of a route [s].
    pub(super) fn latency(&self, route: u32) -> f64 {
        self.routes[route as usize].latency
    }

    /// Returns the penalty of a route.
    pub(super) fn penalty(&self, route: u32) -> f64 {
        self.routes[route as usize].penalty
    }

    /// Returns the link usages of a flow on a route.
    pub(super) fn usages(&self, route: u32) -> &[Usage] {
        &self.usages[self.routes[route as usize].usages.clone()]
    }

    /// Returns the solver's index of a link, if it is on a route of this cache.
    pub(super) fn index_of(&self, link: LinkId) -> Option<LinkIndex> {
        self.links[link.index()]
    }

    /// Returns the links of the platform that are in use.
    pub(super) fn links(&self) -> impl Iterator<Item = (LinkId, LinkIndex)> + '_ {
        let links = (0..).map(LinkId::new).zip(&self.links);
        links.filter_map(|(id, link)| Some((id, (*link)?)))
    }

    /// Announces a flow on a route.
    pub(super) fn announce(&self, route: u32, sharing: &mut MaxMin) {
        sharing.announce(self.usages(route));
    }

    /// Adds a flow on a route.
    pub(super) fn add_flow(&self, route: u32, sharing: &mut MaxMin) -> FlowIndex {
        let Route { penalty, bound, .. } = self.routes[route as usize];
        sharing.add_flow(self.usages(route), penalty, bound)
    }
}
