//! Choices of routes: a message takes that of the platform or, when it begins, another one over a third group, switch or host, or several.
//!
//! The other routes are random, by the seed, the pair of hosts and the number of the message between these, so that they depend on
//! nothing else. The number is taken modulo [`TURNS`]: states recur, and the routes of a pair are few.

use pdes_core::{GOLDEN_GAMMA, State, StateVisitor, mix};

use super::route::RouteCache;
use crate::maxmin::LinkIndex;
use crate::platform::OtherRoute;
use crate::{MaxMin, MessageRouting, NetworkParameters, Platform};

/// Number of random choices of a pair of hosts, which its messages make in turn.
const TURNS: u8 = 8;

/// Choices of routes, and what they depend on.
#[derive(Debug)]
pub(super) struct RouteChoices {
    routing: MessageRouting,
    seed: u64,
    /// Number of parts of a message that takes several routes.
    parts: u8,
    /// Number of the next message, by the number of the platform's route.
    turns: Vec<u8>,
    /// Messages under way on each link, by its number in the solver: also those whose latency phase is not over. With UGAL.
    loads: Vec<u32>,
}

impl RouteChoices {
    /// Messages that go around links that are off have no other choice.
    pub(super) fn new(platform: &Platform, parameters: &NetworkParameters) -> Self {
        let routing = if platform.has_detours() { MessageRouting::Minimal } else { parameters.routing };
        let NetworkParameters { routing_seed, routing_parts, .. } = *parameters;
        Self { routing, seed: routing_seed, parts: routing_parts, turns: Vec::new(), loads: Vec::new() }
    }

    /// Returns the route of a message that begins now, for that of the platform.
    pub(super) fn choose(&mut self, route: u32, routes: &mut RouteCache<'_>, sharing: &mut MaxMin) -> u32 {
        match self.routing {
            MessageRouting::Minimal | MessageRouting::Spray => route,
            MessageRouting::Valiant | MessageRouting::Ugal => self.choose_other(route, routes, sharing),
        }
    }

    /// Returns whether all messages take the route of the platform.
    #[inline]
    pub(super) fn are_minimal(&self) -> bool {
        self.routing == MessageRouting::Minimal
    }

    /// Returns the routes of the other parts of a message that begins now on a route and has so many bytes; none unless it is sprayed.
    pub(super) fn choose_parts(
        &mut self,
        route: u32,
        bytes: u64,
        routes: &mut RouteCache<'_>,
        sharing: &mut MaxMin,
    ) -> Vec<u32> {
        let most = u64::from(self.parts).min(bytes).saturating_sub(1);
        if self.routing != MessageRouting::Spray || most == 0 {
            return Vec::new();
        }
        let (ends, random) = (routes.ends(route), self.next_random(route, routes));
        let others = routes.platform().other_routes(ends, most, random);
        others.into_iter().filter_map(|other| routes.find_other(ends, other, sharing).ok()).collect()
    }

    fn choose_other(&mut self, route: u32, routes: &mut RouteCache<'_>, sharing: &mut MaxMin) -> u32 {
        let other = self.next_other(route, routes, sharing);
        if self.routing == MessageRouting::Valiant {
            return other;
        }
        self.loads.resize(sharing.links(), 0);
        let cost = |route, other| self.cost((route, other), routes, sharing);
        let chosen = if cost(other, route) < cost(route, other) { other } else { route };
        routes.forward_links(chosen).for_each(|link| self.loads[link.index()] += 1);
        chosen
    }

    /// Returns the next way over a third one; the platform's route if there is none.
    fn next_other(&mut self, route: u32, routes: &mut RouteCache<'_>, sharing: &mut MaxMin) -> u32 {
        let (src, dst) = routes.ends(route);
        let number = self.next_random(route, routes);
        let via = routes.platform().third_host(src, dst, number).map(OtherRoute::Over);
        // Where a way is missing, that of the platform is none either.
        via.and_then(|via| routes.find_other((src, dst), via, sharing).ok()).unwrap_or(route)
    }

    /// Returns the random number of the next message of the hosts at the ends of a route.
    fn next_random(&mut self, route: u32, routes: &RouteCache<'_>) -> u64 {
        if self.turns.len() <= route as usize {
            self.turns.resize(route as usize + 1, 0);
        }
        let turn = &mut self.turns[route as usize];
        let (src, dst) = routes.ends(route);
        let random = [self.seed, u64::from(src.get()) << 32 | u64::from(dst.get()), (*turn).into()]
            .into_iter()
            .fold(0, |state, word| mix((state ^ word).wrapping_add(GOLDEN_GAMMA)));
        *turn = (*turn + 1) % TURNS;
        random
    }

    /// Returns the product of links and messages for each unit of bandwidth, this one included, on the links of a route that are not on
    /// another one.
    fn cost(&self, (route, other): (u32, u32), routes: &RouteCache<'_>, sharing: &MaxMin) -> f64 {
        let is_own = |link: &LinkIndex| routes.forward_links(other).all(|shared| shared != *link);
        let own = routes.forward_links(route).filter(is_own);
        let load = |link: LinkIndex| f64::from(self.loads[link.index()] + 1) / sharing.capacity(link);
        own.clone().map(load).fold(0.0, f64::max) * own.count() as f64
    }

    /// Releases the links of a message that has arrived, or is dropped.
    #[inline]
    pub(super) fn release(&mut self, route: u32, routes: &RouteCache<'_>) {
        if self.routing == MessageRouting::Ugal {
            let loads = &mut self.loads;
            routes.forward_links(route).for_each(|link| {
                // A damaged checkpoint may lack some.
                if let Some(load) = loads.get_mut(link.index()) {
                    *load = load.saturating_sub(1);
                }
            });
        }
    }
}

impl State for RouteChoices {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { routing: _, seed: _, parts: _, turns, loads } = self;
        visitor.plain(turns);
        // They follow from the routes of the messages under way.
        visitor.saved(loads);
    }
}
