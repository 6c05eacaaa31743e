//! Routes of messages, looked up once for each pair of hosts.

use std::ops::Range;

use pdes_core::{SimDuration, SimTime, StateVisitor};
use rustc_hash::FxHashMap;

use crate::change::ChangeCursor;
use crate::maxmin::{FlowIndex, LinkIndex};
use crate::platform::OtherRoute;
use crate::route_cost::{Resources, RouteCost, RoutePath};
use crate::{
    FatPipes, HostId, LinkId, MaxMin, NetworkParameters, Platform, Resource, ResourceChange, RouteError,
    Sharing, Usage,
};

/// Cache of the routes between the pairs of hosts that have communicated so far, and of the solver's links on these.
#[derive(Debug)]
pub(super) struct RouteCache<'p> {
    resources: Resources<'p>,
    /// Changes of resources so far.
    changes: ChangeCursor,
    parameters: NetworkParameters,
    /// The route of each pair since `since`.
    of_pair: FxHashMap<(HostId, HostId), u32>,
    /// The other routes of pairs.
    others: FxHashMap<(HostId, HostId, OtherRoute), u32>,
    /// Last change of a link after which messages may take other routes.
    since: SimTime,
    routes: Vec<Route>,
    usages: Vec<Usage>,
    /// Solver links of the platform's links; `None` for links not in use.
    links: Vec<Option<LinkIndex>>,
    /// Some fat pipe is metered.
    has_metered_pipes: bool,
}

#[derive(Debug)]
struct Route {
    ends: (HostId, HostId),
    /// Which one it is beside that of the platform.
    other: Option<OtherRoute>,
    /// Instant from which on messages take it.
    since: SimTime,
    /// Sum of the link latencies [s].
    latency: f64,
    terms: FlowTerms,
    usages: Range<usize>,
    /// The links, if one of them may change, and with it latency and terms, or the route.
    path: Option<Box<RoutePath>>,
}

/// What a flow takes of its route.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowTerms {
    pub(super) penalty: f64,
    /// Upper bound on the rate.
    bound: f64,
}

impl<'p> RouteCache<'p> {
    /// Returns the shortest latency phase of a message between two hosts; the longest time if there is one host.
    pub(super) fn lookahead(&self) -> SimDuration {
        let longest = SimDuration::from_picos(u64::MAX);
        self.platform().min_latency_phase(&self.parameters).unwrap_or(longest)
    }

    pub(super) fn new(platform: &'p Platform, parameters: &NetworkParameters) -> Self {
        let mut changes = ChangeCursor::new(platform.changes());
        changes.pass(platform, platform.changes(), SimTime::ZERO);
        Self {
            resources: Resources::of(platform),
            changes,
            parameters: parameters.clone(),
            of_pair: FxHashMap::default(),
            others: FxHashMap::default(),
            since: SimTime::ZERO,
            routes: Vec::new(),
            usages: Vec::new(),
            links: vec![None; platform.links().len()],
            has_metered_pipes: platform.power().links.keys().any(|&link| is_metered_pipe(platform, link)),
        }
    }

    /// Returns whether any fat pipe is metered.
    #[inline]
    pub(super) fn has_metered_pipes(&self) -> bool {
        self.has_metered_pipes
    }

    /// Returns whether a link is a fat pipe whose power depends on its load.
    pub(super) fn is_metered_pipe(&self, link: LinkId) -> bool {
        is_metered_pipe(self.platform(), link)
    }

    /// Returns the number of the route from one host to another.
    #[inline]
    pub(super) fn find(&mut self, src: HostId, dst: HostId, sharing: &mut MaxMin) -> Result<u32, RouteError> {
        match self.of_pair.get(&(src, dst)) {
            Some(&route) => Ok(route),
            None => self.add((src, dst), None, sharing),
        }
    }

    /// Returns the number of a route from one host to another beside that of the platform.
    pub(super) fn find_other(
        &mut self,
        (src, dst): (HostId, HostId),
        other: OtherRoute,
        sharing: &mut MaxMin,
    ) -> Result<u32, RouteError> {
        match self.others.get(&(src, dst, other)) {
            Some(&route) => Ok(route),
            None => self.add((src, dst), Some(other), sharing),
        }
    }

    #[cold]
    fn add(
        &mut self,
        (src, dst): (HostId, HostId),
        other: Option<OtherRoute>,
        sharing: &mut MaxMin,
    ) -> Result<u32, RouteError> {
        let (ends, since) = ((src, dst), self.since);
        let path = match other {
            None => RoutePath::new(&self.parameters, self.platform(), ends, since)?,
            Some(other) => RoutePath::other(&self.parameters, self.platform(), ends, other)?,
        };
        let cost = RouteCost::of(&self.parameters, self.resources, &path, SimTime::ZERO);
        let first = self.usages.len();
        for &(link, weight) in &cost.weights {
            let link = self.link(link, sharing);
            self.usages.push(Usage { link, weight });
        }
        let usages = first..self.usages.len();
        let is_changing = self.resources.any_changes(&cost.weights) || self.platform().may_detour(src, dst);
        let (latency, terms) = (cost.latency, self.terms_of(&cost, SimTime::ZERO));
        let path = is_changing.then(|| Box::new(path));
        self.routes.push(Route { ends, other, since, latency, terms, usages, path });
        let route = self.routes.len() as u32 - 1;
        match other {
            None => self.of_pair.insert((src, dst), route),
            Some(other) => self.others.insert((src, dst, other), route),
        };
        Ok(route)
    }

    /// Returns the route that a message takes now which was sent on a route.
    #[inline]
    pub(super) fn current(&mut self, route: u32, sharing: &mut MaxMin) -> u32 {
        if self.routes[route as usize].since == self.since { route } else { self.find_anew(route, sharing) }
    }

    #[cold]
    fn find_anew(&mut self, route: u32, sharing: &mut MaxMin) -> u32 {
        let (src, dst) = self.ends(route);
        self.find(src, dst, sharing).expect("the route is known")
    }

    /// Returns the route around a link of a route that is off now, if there is one.
    pub(super) fn around(&mut self, route: u32, sharing: &mut MaxMin) -> Option<u32> {
        let (resources, now) = (self.resources, self.changes.last());
        let is_cut = |routes: &[Route], route: u32| {
            routes[route as usize].path.as_ref().is_some_and(|path| path.is_cut(resources, now))
        };
        if !self.platform().has_detours() || !is_cut(&self.routes, route) {
            return None;
        }
        let current = self.current(route, sharing);
        (!is_cut(&self.routes, current)).then_some(current)
    }

    /// Returns what a flow takes of a route of this cost, of which separate links have their bandwidths at an instant.
    fn terms_of(&self, cost: &RouteCost, now: SimTime) -> FlowTerms {
        let separate = cost.weights.iter().filter(|&&(link, _)| self.is_separate(link));
        let bounds = separate.map(|&(link, weight)| self.resources.bandwidth_before(link, now) / weight);
        FlowTerms { penalty: cost.penalty(), bound: bounds.fold(cost.rate_bound(), f64::min) }
    }

    /// Returns whether each flow has the whole capacity of the link.
    fn is_separate(&self, link: LinkId) -> bool {
        self.parameters.fat_pipes == FatPipes::Separate
            && self.platform().link(link).sharing == Sharing::FatPipe
    }

    fn link(&mut self, id: LinkId, sharing: &mut MaxMin) -> LinkIndex {
        let known = self.links[id.index()];
        known.unwrap_or_else(|| {
            let sharing_of_link = self.platform().link(id).sharing;
            let link = sharing.add_numbered_link(id.get(), self.capacity(id), sharing_of_link);
            self.links[id.index()] = Some(link);
            link
        })
    }

    /// Returns the capacity of a link after the changes so far.
    pub(super) fn capacity(&self, link: LinkId) -> f64 {
        let bandwidth = self.resources.bandwidth(link, self.changes.last());
        if bandwidth > 0.0 && self.is_separate(link) { f64::INFINITY } else { bandwidth }
    }

    pub(super) fn platform(&self) -> &'p Platform {
        self.resources.platform
    }

    /// Passes the changes of resources until an instant, and returns them.
    pub(super) fn pass_changes(&mut self, until: SimTime) -> Vec<ResourceChange> {
        let passed = self.changes.pass(self.resources.platform, self.resources.changes, until);
        let changes_routes = |change: &&ResourceChange| matches!(change.resource, Resource::Bandwidth(_));
        if self.platform().has_detours()
            && let Some(last) = passed.iter().rfind(changes_routes)
        {
            self.since = last.at;
            self.of_pair.retain(|_, route| self.routes[*route as usize].path.is_none());
        }
        passed
    }

    /// Returns the present values of the resources that have changed so far.
    pub(super) fn past_changes(&self) -> Vec<ResourceChange> {
        self.changes.past(self.resources.changes)
    }

    /// Returns the instant of the next change of a resource.
    #[inline]
    pub(super) fn next_change(&self) -> Option<SimTime> {
        self.changes.next()
    }

    /// Returns whether a resource without bandwidth or speed gets some later.
    pub(super) fn any_returns(&self) -> bool {
        self.resources.changes.any_returns(self.changes.last())
    }

    /// Returns the hosts at the ends of a route.
    #[inline]
    pub(super) fn ends(&self, route: u32) -> (HostId, HostId) {
        self.routes[route as usize].ends
    }

    /// Saves routes by their ends and the instants from which on they are taken, in the order of their numbers, and finds them again: links
    /// get their indices in this order.
    pub(super) fn visit(&mut self, sharing: &mut MaxMin, visitor: &mut StateVisitor<'_>) {
        self.resources.changes.compare_next(visitor);
        self.changes.visit(self.resources.changes, visitor);
        let ends = |route: &Route| (route.ends, route.other, route.since);
        let mut all: (SimTime, Vec<_>) = (self.since, self.routes.iter().map(ends).collect());
        visitor.saved(&mut all);
        let (last, all) = all;
        let hosts = self.platform().hosts().len();
        for (number, route) in (0_u32..).zip(all) {
            let ((src, dst), other, since) = route;
            let is_found = match self.routes.get(number as usize) {
                Some(known) => ends(known) == route,
                None => {
                    self.since = since;
                    let via = other.and_then(OtherRoute::via);
                    let mut all = [src, dst].into_iter().chain(via);
                    all.all(|host| host.index() < hosts)
                        && self.add((src, dst), other, sharing).ok() == Some(number)
                }
            };
            if !is_found {
                visitor.refuse();
            }
        }
        self.since = last;
        let is_current = |route: &Route| route.path.is_none() || route.since == last;
        self.of_pair.retain(|_, route| is_current(&self.routes[*route as usize]));
    }

    /// Returns the latency of a route for a message that is sent at an instant [s].
    #[inline]
    pub(super) fn latency(&self, route: u32, sent: SimTime) -> f64 {
        let Route { latency, path, .. } = &self.routes[route as usize];
        path.as_ref().map_or(*latency, |path| path.latency(self.resources, sent))
    }

    /// Returns what the flow of a message takes of a route at an instant.
    #[inline]
    pub(super) fn terms(&self, route: u32, sent: SimTime, now: SimTime) -> FlowTerms {
        let Route { terms, path, .. } = &self.routes[route as usize];
        path.as_ref().map_or(*terms, |path| self.changed_terms(path, sent, now))
    }

    #[cold]
    fn changed_terms(&self, path: &RoutePath, sent: SimTime, now: SimTime) -> FlowTerms {
        // Within the precision changes come early.
        let now = now.max(self.changes.last());
        let mut cost = RouteCost::of(&self.parameters, self.resources, path, sent);
        cost.follow(&self.parameters, self.resources, (sent, now));
        self.terms_of(&cost, now)
    }

    /// Returns the link usages of a flow on a route.
    pub(super) fn usages(&self, route: u32) -> &[Usage] {
        &self.usages[self.routes[route as usize].usages.clone()]
    }

    /// Returns the links of a route, without those of the reverse route.
    pub(super) fn forward_links(&self, route: u32) -> impl Iterator<Item = LinkIndex> + Clone + '_ {
        self.usages(route).iter().filter(|usage| usage.weight >= 1.0).map(|usage| usage.link)
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
    pub(super) fn add_flow(&self, route: u32, terms: FlowTerms, sharing: &mut MaxMin) -> FlowIndex {
        sharing.add_flow(self.usages(route), terms.penalty, terms.bound)
    }

    /// Changes what a flow takes of its route.
    pub(super) fn change_flow(&self, flow: FlowIndex, route: u32, terms: FlowTerms, sharing: &mut MaxMin) {
        sharing.change_flow(flow, self.usages(route), terms.penalty, terms.bound);
    }
}

fn is_metered_pipe(platform: &Platform, link: LinkId) -> bool {
    platform.link(link).sharing == Sharing::FatPipe && platform.power().depends_on_load(link)
}
