//! Routes of messages, looked up once for each pair of hosts.

use std::ops::Range;

use pdes_core::{SimTime, StateVisitor};
use rustc_hash::FxHashMap;

use crate::change::ChangeCursor;
use crate::maxmin::{FlowIndex, LinkIndex};
use crate::route_cost::{Resources, RouteCost};
use crate::{
    FatPipes, HostId, LinkId, MaxMin, NetworkParameters, Platform, ResourceChange, RouteError, Sharing, Usage,
};

/// Cache of the routes between the pairs of hosts that have communicated so far, and of the solver's links on these.
#[derive(Debug)]
pub(super) struct RouteCache<'p> {
    resources: Resources<'p>,
    /// Changes of resources so far.
    changes: ChangeCursor,
    parameters: NetworkParameters,
    of_pair: FxHashMap<(HostId, HostId), u32>,
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
    /// Sum of the link latencies [s].
    latency: f64,
    terms: FlowTerms,
    usages: Range<usize>,
    /// A link may change, and with it all of these.
    is_changing: bool,
}

/// What a flow takes of its route.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowTerms {
    pub(super) penalty: f64,
    /// Upper bound on the rate.
    bound: f64,
}

impl<'p> RouteCache<'p> {
    pub(super) fn new(platform: &'p Platform, parameters: &NetworkParameters) -> Self {
        let mut changes = ChangeCursor::new(platform.changes());
        changes.pass(platform, platform.changes(), SimTime::ZERO);
        Self {
            resources: Resources::of(platform),
            changes,
            parameters: parameters.clone(),
            of_pair: FxHashMap::default(),
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
            None => self.add(src, dst, sharing),
        }
    }

    #[cold]
    fn add(&mut self, src: HostId, dst: HostId, sharing: &mut MaxMin) -> Result<u32, RouteError> {
        let ends = (src, dst);
        let cost = RouteCost::new(&self.parameters, self.resources, ends, SimTime::ZERO)?;
        let first = self.usages.len();
        for &(link, weight) in &cost.weights {
            let link = self.link(link, sharing);
            self.usages.push(Usage { link, weight });
        }
        let usages = first..self.usages.len();
        let is_changing = self.resources.any_changes(&cost.weights);
        let (latency, terms) = (cost.latency, self.terms_of(&cost, SimTime::ZERO));
        self.routes.push(Route { ends, latency, terms, usages, is_changing });
        let route = self.routes.len() as u32 - 1;
        self.of_pair.insert((src, dst), route);
        Ok(route)
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
        self.changes.pass(self.resources.platform, self.resources.changes, until)
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

    /// Saves routes by their ends, in the order of their numbers, and finds them again: links get their indices in this order.
    pub(super) fn visit(&mut self, sharing: &mut MaxMin, visitor: &mut StateVisitor<'_>) {
        self.resources.changes.compare_next(visitor);
        self.changes.visit(self.resources.changes, visitor);
        let mut all_ends: Vec<(HostId, HostId)> = self.routes.iter().map(|route| route.ends).collect();
        visitor.saved(&mut all_ends);
        let hosts = self.platform().hosts().len();
        for (number, (src, dst)) in (0..).zip(all_ends) {
            let is_known = src.index() < hosts && dst.index() < hosts;
            if !is_known || self.find(src, dst, sharing).ok() != Some(number) {
                visitor.refuse();
            }
        }
    }

    /// Returns the latency of a route for a message that is sent at an instant [s].
    #[inline]
    pub(super) fn latency(&self, route: u32, sent: SimTime) -> f64 {
        let Route { ends, latency, is_changing, .. } = self.routes[route as usize];
        if is_changing {
            self.resources.route_latency(ends, sent).expect("the route is known")
        } else {
            latency
        }
    }

    /// Returns what the flow of a message takes of a route at an instant.
    #[inline]
    pub(super) fn terms(&self, route: u32, sent: SimTime, now: SimTime) -> FlowTerms {
        let Route { terms, is_changing, .. } = self.routes[route as usize];
        if is_changing { self.changed_terms(route, sent, now) } else { terms }
    }

    #[cold]
    fn changed_terms(&self, route: u32, sent: SimTime, now: SimTime) -> FlowTerms {
        let ends = self.routes[route as usize].ends;
        // Within the precision changes come early.
        let now = now.max(self.changes.last());
        let cost = RouteCost::new(&self.parameters, self.resources, ends, sent);
        let mut cost = cost.expect("the route is known");
        cost.follow(&self.parameters, self.resources, (sent, now));
        self.terms_of(&cost, now)
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
