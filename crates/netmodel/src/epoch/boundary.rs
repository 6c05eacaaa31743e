//! Exchanges of a region with others at a boundary.
//!
//! 1. Each region announces the flows that begin in the epoch and concern others ([`RegionState::announce`]).
//! 2. Each offers the others the rate at which its links let these begin ([`RegionState::offer_rates`]); the least counts.
//! 3. In *rounds*, until no region has sent a message, each solves its links for the levels that the others have
//!    advertised, and advertises its changed levels of common flows ([`RegionState::solve`], [`RegionState::receive_advert`]).
//! 4. Each begins the epoch on its own ([`RegionState::begin_epoch`]).
//!
//! Distributed max-min fair rates by advertised levels go back to Charny, Clark and Jain, "Congestion Control with Explicit
//! Rate Indication", ICC 1995.

use std::cmp::Reverse;

use pdes_core::SimTime;

use super::forecast::Arrival;
use super::message::{FlowKey, FlowUpdate, MessageSpec, Outbox};
use super::region::{CrossRegionState, LinkArrival, RegionState, Transfer};
use super::reserve::min_offer;
use super::route::{NetworkContext, RegionRoute, RegionUsage};
use super::solver::Bottleneck;
use super::unit::{self, UNLIMITED};
use crate::region::RegionId;

impl<T: Copy> RegionState<T> {
    /// Solves the links, and advertises changed levels of flows that concern other regions.
    pub(super) fn solve(&mut self, now: SimTime, outbox: &mut Outbox<T>) {
        self.solver.now = now;
        if self.prepared.replace(now) != Some(now) {
            self.prepare(now);
        }
        let mut to_advertise = std::mem::take(&mut self.to_advertise);
        // A flow that ended at the boundary may have left its number to one which has not begun yet.
        let is_fresh = |&flow: &u32| self.solver.flows[flow as usize].bottleneck == Bottleneck::New;
        let new_flows = self.solver.new_flows.iter().copied().filter(is_fresh);
        to_advertise.extend(new_flows.filter(|&flow| self.transfers[flow as usize].is_cross_region));
        self.solver.solve();
        to_advertise.drain(..).for_each(|flow| self.advertise(flow, outbox));
        self.to_advertise = to_advertise;
        let mut changed = std::mem::take(&mut self.solver.changed_links);
        for link in changed.drain(..) {
            self.solver.links[link as usize].has_changed = false;
            for place in 0..self.solver.links[link as usize].members.len() {
                let flow = self.solver.links[link as usize].members[place].flow;
                if self.transfers[flow as usize].is_cross_region {
                    self.advertise(flow, outbox);
                }
            }
        }
        self.solver.changed_links = changed;
    }

    /// Advertises the level that this region allows a flow to the other regions of the flow, unless they know it.
    fn advertise(&mut self, flow: u32, outbox: &mut Outbox<T>) {
        let Transfer { key, is_over, .. } = self.transfers[flow as usize];
        let found = &self.solver.flows[flow as usize];
        if is_over || found.bottleneck == Bottleneck::Ending {
            return;
        }
        let state = &mut self.cross_region_states[flow as usize];
        let allowed = found.uses.iter().map(|used| self.solver.links[used.link as usize].level).min();
        let level = allowed.unwrap_or(UNLIMITED);
        // A level above that of the flow, now and in the last advert, does not hold the flow back and matters to no
        // region.
        let matters = level.min(state.advertised) <= found.level;
        if matters && std::mem::replace(&mut state.advertised, level) != level {
            let from = self.id;
            let advert = |&(to, _): &(_, u64)| (to, FlowUpdate::Advert { flow: key, from, level });
            outbox.extend(state.adverts.iter().map(advert));
        }
    }

    /// Receives the level that another region allows a flow.
    pub(super) fn receive_advert(&mut self, key: FlowKey, from: RegionId, level: u64) {
        let flow = self.flow_of(key);
        let others = &mut self.cross_region_states[flow as usize].adverts;
        others.iter_mut().filter(|advert| advert.0 == from).for_each(|advert| advert.1 = level);
        let cap = others.iter().map(|advert| advert.1).min().unwrap_or(UNLIMITED);
        self.solver.set_cap(flow, cap);
        self.to_advertise.push(flow);
    }

    /// Announces the flows of the coming epoch to the regions that they concern.
    pub(super) fn announce(&mut self, context: &NetworkContext<'_>, now: SimTime, outbox: &mut Outbox<T>) {
        self.apply_changes(context, now);
        let end = now.saturating_add(self.epoch);
        while let Some((key, route, spec)) = self.pop_unannounced(end) {
            self.add_announced(context, key, route, spec);
            let others = self.routes.regions_of(route).iter().filter(|&&region| region != self.id);
            outbox.extend(others.map(|&to| (to, FlowUpdate::Announcement { flow: key, spec })));
        }
    }

    /// Allocates an announced flow.
    fn add_announced(
        &mut self,
        context: &NetworkContext<'_>,
        key: FlowKey,
        route: u32,
        spec: MessageSpec<T>,
    ) {
        self.catch_up(context, key.begin);
        let is_here = |host| context.regions.of_host(host) == self.id;
        let is_told = is_here(spec.dst) || self.reports_both_ends && is_here(spec.src);
        let is_crossing = !self.routes.route(route).is_local();
        let flow = self.add_flow(key, route, spec, is_told, is_crossing);
        self.transfers[flow as usize].is_announced = true;
        if self.cross_region_states.len() <= flow as usize {
            self.cross_region_states.resize_with(flow as usize + 1, CrossRegionState::default);
        }
        let state = &mut self.cross_region_states[flow as usize];
        state.adverts.clear();
        (state.advertised, state.offer) = (UNLIMITED, self.routes.route(route).bound);
        self.arrivals.push((key, flow));
    }

    /// Indexes a flow that concerns other regions by its key, for the exchanges of later boundaries.
    pub(super) fn index_cross_region(&mut self, flow: u32) {
        let Transfer { key, route, .. } = self.transfers[flow as usize];
        let state = &mut self.cross_region_states[flow as usize];
        state.adverts.clear();
        let others = self.routes.regions_of(route).iter().filter(|&&region| region != self.id);
        state.adverts.extend(others.map(|&region| (region, UNLIMITED)));
        state.advertised = UNLIMITED;
        self.cross_region_flows.insert(key, flow);
    }

    /// Receives a message of another region.
    pub(super) fn receive(&mut self, context: &NetworkContext<'_>, message: FlowUpdate<T>) {
        match message {
            FlowUpdate::Announcement { flow, spec } => {
                let route = self.find_route(context, spec.src, spec.dst);
                self.add_announced(context, flow, route, spec);
            }
            FlowUpdate::Offer { flow, rate } => {
                // This region has sorted its arrivals for its own offers.
                let place = self.arrivals.binary_search_by_key(&flow, |&(key, _)| key);
                let (_, flow) = self.arrivals[place.expect("an offer is for a flow that was announced")];
                let offer = &mut self.cross_region_states[flow as usize].offer;
                *offer = rate.min(*offer);
            }
            FlowUpdate::Advert { flow, from, level } => self.receive_advert(flow, from, level),
        }
    }

    fn flow_of(&self, key: FlowKey) -> u32 {
        *self
            .cross_region_flows
            .get(&key)
            .expect("a flow begins before it is advertised, and ends in all regions at once")
    }

    /// Sends the rates at which the links of the region let the announced flows begin, if these are less than the
    /// flows' own limits.
    pub(super) fn offer_rates(&mut self, now: SimTime, outbox: &mut Outbox<T>) {
        if self.arrivals.is_empty() {
            return;
        }
        self.arrivals.sort_unstable();
        self.find_ending(now);
        for place in 0..self.ending.len() {
            let (.., flow) = self.ending[place];
            self.solver.expect_end(flow, self.mean_remaining(now, flow));
        }
        // Backwards, so that each list is in order of begin.
        for &(_, flow) in self.arrivals.iter().rev() {
            for &RegionUsage { link, weight } in self.routes.usages(self.transfers[flow as usize].route) {
                let first = &mut self.solver.links[link as usize].first_arrival;
                if first.is_none() {
                    self.arrival_links.push(link);
                }
                let next = first.replace(self.link_arrivals.len() as u32);
                self.link_arrivals.push(LinkArrival { flow, weight, next });
            }
        }
        while let Some(link) = self.arrival_links.pop() {
            self.offer_on_link(now, link);
        }
        self.link_arrivals.clear();
        for &(key, flow) in &self.arrivals {
            let (route, rate) =
                (self.transfers[flow as usize].route, self.cross_region_states[flow as usize].offer);
            if rate < self.routes.route(route).bound {
                let others = self.routes.regions_of(route).iter().filter(|&&region| region != self.id);
                outbox.extend(others.map(|&to| (to, FlowUpdate::Offer { flow: key, rate })));
            }
        }
    }

    /// Lowers the offers to the announced flows of a link to the rates that it has for them.
    fn offer_on_link(&mut self, now: SimTime, number: u32) {
        let (epoch, end) = (self.epoch.as_picos(), now.saturating_add(self.epoch));
        let link = &mut self.solver.links[number as usize];
        let mut next = link.first_arrival.take();
        if let Some(place) = next
            && let LinkArrival { flow, weight, next: None } = self.link_arrivals[place as usize]
        {
            let offer = &mut self.cross_region_states[flow as usize].offer;
            let Transfer { key, route, left, .. } = self.transfers[flow as usize];
            // At most the present offer.
            *offer = link.offered_rate(self.routes.route(route).share, weight, *offer);
            if let Some(load) = link.expected_ending_load(now, epoch) {
                let time = (end - key.begin).as_picos();
                *offer = link.limit_rate(*offer, weight, (left, time, epoch), load);
            }
            return;
        }
        self.arrivals_on_link.clear();
        while let Some(place) = next {
            let LinkArrival { flow, weight, next: after } = self.link_arrivals[place as usize];
            let Transfer { key, route, left, .. } = self.transfers[flow as usize];
            let &RegionRoute { share, bound, .. } = self.routes.route(route);
            let arrival = Arrival { flow, begin: key.begin, volume: left, share, weight, bound };
            self.arrivals_on_link.push(arrival);
            next = after;
        }
        let cross_region_states = &mut self.cross_region_states;
        self.forecast.rates(link, &self.arrivals_on_link, end, |flow, rate| {
            let offer = &mut cross_region_states[flow as usize].offer;
            *offer = rate.min(*offer);
        });
        let Some(load) = link.expected_ending_load(now, epoch) else { return };
        let means = self.arrivals_on_link.iter().map(|arrival| {
            let offer = cross_region_states[arrival.flow as usize].offer;
            let volume = unit::volume(offer, arrival.begin, end).min(arrival.volume);
            u128::from(unit::mean_rate(volume, epoch)) * u128::from(arrival.weight)
        });
        let (all, room) = (means.sum::<u128>(), link.room_beside(load));
        if all > u128::from(room) {
            for arrival in &self.arrivals_on_link {
                let offer = &mut cross_region_states[arrival.flow as usize].offer;
                let part = u128::from(*offer) * u128::from(room) / all;
                *offer = min_offer(*offer).max(part as u64);
            }
        }
    }

    /// Prepares for the epoch: flows that end in it keep their rates, and links reserve capacity for flows that will
    /// begin.
    fn prepare(&mut self, now: SimTime) {
        self.find_ending(now);
        for place in 0..self.ending.len() {
            let (.., flow) = self.ending[place];
            self.solver.keep_rate_until_end(flow, self.mean_remaining(now, flow));
        }
        let end = now.saturating_add(self.epoch);
        for &(key, flow) in &self.arrivals {
            let Transfer { route, left, .. } = self.transfers[flow as usize];
            let offer = self.cross_region_states[flow as usize].offer;
            let volume = unit::volume(offer, key.begin, end).min(left);
            let carried = unit::mean_rate(volume, self.epoch.as_picos());
            let at_once = if key.begin == now { offer } else { 0 };
            self.solver.reserve_for(self.routes.usages(route), carried, at_once);
        }
        self.solver.set_reserves();
    }

    /// Finds the flows that end in the coming epoch at their present rates.
    fn find_ending(&mut self, now: SimTime) {
        let end = now.saturating_add(self.epoch);
        while let Some((at, key, flow)) = self.next_end()
            && at < end
        {
            self.ends.pop();
            // After a change no rate is known.
            let is_known = self.transfers[flow as usize].is_announced && !self.routes.has_changed(now);
            if !is_known && self.solver.flows[flow as usize].bottleneck == Bottleneck::New {
                // Flows that began unannounced do not know of each other: together their rates may be too high.
                self.unsettled.push(Reverse((at, key, flow)));
            } else {
                self.transfers[flow as usize].is_ending = true;
                self.ending.push_back((at, key, flow));
            }
        }
        self.ends.extend(self.unsettled.drain(..));
    }

    /// Returns the mean rate over the coming epoch of a flow that ends in it.
    fn mean_remaining(&self, now: SimTime, flow: u32) -> u64 {
        let Transfer { rate, since, left, .. } = self.transfers[flow as usize];
        let left = left.saturating_sub(unit::volume(rate, since, now));
        unit::mean_rate(left, self.epoch.as_picos())
    }

    /// Begins the epoch with the solved rates, and with those offered to the announced flows.
    pub(super) fn begin_epoch(&mut self, now: SimTime) {
        self.solver.release_reserves();
        self.apply_rates(now);
        debug_assert!(self.beginning.is_empty(), "flows begin in the epoch for which they were announced");
        self.events_before = self.events.added();
        self.beginning.extend(self.arrivals.drain(..).map(|(key, flow)| (key.begin, flow)));
    }
}
