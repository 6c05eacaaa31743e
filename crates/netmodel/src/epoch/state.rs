//! The state of regions, and of all of them with one clock.
//!
//! A state recurs after a number of epochs: rates change at their boundaries. Numbers of flows and of events only name them: before a
//! state is observed they get those of their order, and all lists of them follow from the flows.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::mem::take;

use pdes_core::{SimDuration, SimTime, State, StateVisitor};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::event_store::{EventSlot, RegionEvent};
use super::message::MESSAGES_SENT;
use super::parallel::{EpochRegion, PendingRequest};
use super::region::{CrossRegionState, RegionState, Transfer, tell_busy};
use super::route::{NetworkContext, RouteCache};
use super::solver::{Bottleneck, Flow, Link, Member, RegionSolver, Use};
use super::unit::UNLIMITED;
use super::{EpochCounts, EpochNetwork};
use crate::{HostId, Message, NetworkObserver};

/// Compares where in its epoch the present lies.
fn compare_phase(visitor: &mut StateVisitor<'_>, epoch: SimDuration) {
    let now = visitor.now().as_picos();
    visitor.compare(&(now % epoch.as_picos()));
}

/// Visits the instant of the last event: whether it is the present matters alone, because what is to begin then begins at once.
fn visit_last_event(last: &mut SimTime, visitor: &mut StateVisitor<'_>) {
    match visitor.is_observing() {
        true => visitor.compare(&(*last == visitor.now())),
        false => last.visit(visitor),
    }
}

impl RegionSolver {
    /// Finds the lists that follow from flows and links.
    fn index(&mut self) {
        let flows = || (0..).zip(&self.flows);
        self.free_slots = flows().filter(|(_, flow)| !flow.is_alive).map(|(number, _)| number).collect();
        let is_new = |flow: &&Flow| flow.is_alive && flow.bottleneck == Bottleneck::New;
        self.new_alive = self.flows.iter().filter(is_new).count() as u32;
        let links = || (0..).zip(&self.links);
        self.full_links = links().filter(|(_, link)| link.level != UNLIMITED).count() as u32;
        let is_dirty = |(_, link): &(u32, &Link)| link.dirty_from != UNLIMITED;
        let dirty = links().filter(is_dirty).map(|(number, link)| Reverse((link.dirty_from, number)));
        self.dirty_links = dirty.collect();
        let reserves = links().filter(|(_, link)| link.has_reserve_entry);
        self.reserve_links = reserves.map(|(number, _)| number).collect();
    }

    /// Gives one form to states with one future. `order` lists the flows that have not ended, `numbers` has their numbers in this list.
    fn settle(&mut self, now: SimTime, order: &[u32], numbers: &[u32]) {
        let mut is_seen = vec![false; self.flows.len()];
        let flows = &self.flows;
        self.new_flows.retain(|&flow| {
            let Flow { is_alive, bottleneck, .. } = flows[flow as usize];
            let is_first = !std::mem::replace(&mut is_seen[flow as usize], true);
            is_first && is_alive && bottleneck == Bottleneck::New
        });
        self.new_flows.iter_mut().for_each(|flow| *flow = numbers[*flow as usize]);
        let mut flows: Vec<Option<Flow>> = take(&mut self.flows).into_iter().map(Some).collect();
        self.flows = order.iter().filter_map(|&flow| flows[flow as usize].take()).collect();
        for link in &mut self.links {
            // Nothing is measured on fat pipes.
            let load = if link.is_fat_pipe { 0 } else { link.load };
            link.meter.settle(load, link.capacity, now, self.epoch);
            link.members.iter_mut().for_each(|member| member.flow = numbers[member.flow as usize]);
        }
        self.index();
    }

    /// Returns whether flows and links use each other, and no others.
    fn fits(&self) -> bool {
        let use_of =
            |Member { flow, place, .. }: Member| self.flows.get(flow as usize)?.uses.get(place as usize);
        let member_of =
            |Use { link, place, .. }: Use| self.links.get(link as usize)?.members.get(place as usize);
        let links = (0..).zip(&self.links);
        let are_used =
            links.flat_map(|(number, link)| (0..).zip(&link.members).map(move |member| (number, member)));
        let flows = (0..).zip(&self.flows);
        let are_members =
            flows.flat_map(|(number, flow)| (0..).zip(&flow.uses).map(move |used| (number, used)));
        let mut are_used = are_used.map(|(number, (place, &member))| (number, place, use_of(member)));
        let mut are_members = are_members.map(|(number, (place, &used))| (number, place, member_of(used)));
        are_used
            .all(|(link, place, found)| found.is_some_and(|found| (found.link, found.place) == (link, place)))
            && are_members.all(|(flow, place, found)| {
                found.is_some_and(|found| (found.flow, found.place) == (flow, place))
            })
            && self.new_flows.iter().all(|&flow| (flow as usize) < self.flows.len())
    }
}

impl State for RegionSolver {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self {
            links,
            flows,
            free_slots: _,
            new_flows,
            new_alive: _,
            full_links: _,
            dirty_links: _,
            changed_flows: _,
            changed_links: _,
            candidates: _,
            now,
            epoch,
            reserve_links: _,
            spare_links: _,
            evaluations,
        } = self;
        visitor.context(*epoch);
        let parameters = |link: &Link| (link.capacity, link.is_fat_pipe, link.integrator.is_some());
        links.iter().for_each(|link| visitor.context(parameters(link)));
        visitor.parts(links.iter_mut());
        // Each use of the solver sets its time.
        if !visitor.is_observing() {
            now.visit(visitor);
        }
        visitor.plain(flows);
        visitor.plain(new_flows);
        visitor.counter(evaluations);
    }
}

impl<T: Copy> RegionState<T> {
    /// Finds the lists that follow from the flows.
    fn index_flows(&mut self) {
        let Self { short_ends, ends, ending, beginning, cross_region_flows, .. } = self;
        (*short_ends, *ends) = Default::default();
        (*ending, *beginning, *cross_region_flows) = Default::default();
        let flows = (0..).zip(self.transfers.iter().zip(&self.solver.flows));
        for (number, (transfer, flow)) in flows.filter(|(_, (transfer, _))| !transfer.is_over) {
            let &Transfer { key, end, is_ending, is_cross_region, rate, .. } = transfer;
            match flow.bottleneck {
                _ if rate == 0 => beginning.push_back((key.begin, number)),
                Bottleneck::Short { .. } => short_ends.push(Reverse((end, key, number))),
                _ if is_ending => ending.push_back((end, key, number)),
                _ => ends.push(Reverse((end, key, number))),
            }
            if is_cross_region && rate > 0 && !matches!(flow.bottleneck, Bottleneck::Short { .. }) {
                cross_region_flows.insert(key, number);
            }
        }
        ending.make_contiguous().sort_unstable();
        let transfers = &self.transfers;
        beginning.make_contiguous().sort_unstable_by_key(|&(_, flow)| transfers[flow as usize].key);
    }

    /// Gives one form to states with one future.
    fn settle(&mut self, now: SimTime) {
        let mut order: Vec<u32> = (0..self.transfers.len() as u32).collect();
        order.retain(|&flow| !self.transfers[flow as usize].is_over);
        order.sort_unstable_by_key(|&flow| self.transfers[flow as usize].key);
        let mut numbers = vec![0; self.transfers.len()];
        (0..).zip(&order).for_each(|(number, &flow)| numbers[flow as usize] = number);
        self.cross_region_states.resize_with(self.transfers.len(), Default::default);
        let states = order.iter().map(|&flow| match self.transfers[flow as usize].is_announced {
            true => take(&mut self.cross_region_states[flow as usize]),
            false => CrossRegionState::default(),
        });
        self.cross_region_states = states.collect();
        self.transfers = order.iter().map(|&flow| self.transfers[flow as usize]).collect();
        self.solver.settle(now, &order, &numbers);
        self.index_flows();

        let mut unannounced = take(&mut self.unannounced).into_vec();
        unannounced.sort_unstable_by_key(|&Reverse((key, _))| key);
        let slots = self.events.in_order().copied();
        let slots: Vec<EventSlot> = slots.chain(unannounced.iter().map(|&Reverse((_, slot))| slot)).collect();
        let moved = self.event_store.reorder(&slots);
        self.events.for_each(|slot| *slot = moved[slot.index()]);
        unannounced.iter_mut().for_each(|Reverse((_, slot))| *slot = moved[slot.index()]);
        self.unannounced = unannounced.into();
    }

    /// Announces that the period which begins now may be repeated so many times.
    pub(super) fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        self.cpus.tell(now, now, tell_busy(&mut self.hosts, &self.messages_sent));
        if let Some(hosts) = &mut self.hosts {
            hosts.watch_period(now, period, repetitions);
        }
        for link in &mut self.solver.links {
            link.record_load(now);
            link.integrator.iter_mut().for_each(|integrator| integrator.watch(now, period, repetitions));
        }
    }

    /// Adds the repetitions of the period that was announced last, and ends now, to the loads of links.
    pub(super) fn repeat_loads(&mut self, now: SimTime) {
        let after = self.hosts.as_ref().and_then(|hosts| hosts.after_repetitions(now)).unwrap_or(now);
        self.cpus.tell(now, after, tell_busy(&mut self.hosts, &self.messages_sent));
        if let Some(hosts) = &mut self.hosts {
            hosts.repeat_period(now);
        }
        for link in &mut self.solver.links {
            link.record_load(now);
            link.integrator.iter_mut().for_each(|integrator| integrator.repeat());
        }
    }

    /// Returns whether a message is sent by a host of the region, to one of the platform.
    fn knows(&self, context: &NetworkContext<'_>, src: HostId, dst: HostId) -> bool {
        let hosts = context.platform.hosts().len();
        src.index() < hosts && dst.index() < hosts && context.regions.of_host(src) == self.id
    }

    /// Returns whether a loaded state is one of this region.
    fn fits(&self, context: &NetworkContext<'_>) -> bool {
        let mut slots = BTreeSet::new();
        let mut is_scheduled = |slot: EventSlot| {
            slots.insert(slot)
                && self.event_store.get(slot).is_some_and(|event| match *event {
                    RegionEvent::Send(spec) => self.knows(context, spec.src, spec.dst),
                    RegionEvent::StartFlow(_, route, _) => self.routes.has(route),
                    RegionEvent::Compute(host, ..) => (host as usize) < self.messages_sent.len(),
                    RegionEvent::Announce(..) => false,
                })
        };
        let are_scheduled = self.events.iter().all(|&slot| is_scheduled(slot));
        let mut is_announcement = |slot: EventSlot| {
            let event = self.event_store.get(slot);
            slots.insert(slot)
                && matches!(event, Some(RegionEvent::Announce(route, _)) if self.routes.has(*route))
        };
        are_scheduled
            && self.unannounced.iter().all(|&Reverse((_, slot))| is_announcement(slot))
            && self.solver.fits()
            && self.transfers.len() == self.solver.flows.len()
            && (0..).zip(self.transfers.iter().zip(&self.solver.flows)).all(|(number, (transfer, flow))| {
                let &Transfer { route, is_announced, is_over, .. } = transfer;
                self.routes.has(route)
                    && is_over != flow.is_alive
                    && (is_over || !is_announced || number < self.cross_region_states.len())
            })
    }

    /// Visits the routes by their ends, in the order of their numbers, which they get for good when they are first used.
    fn visit_routes(&mut self, context: &NetworkContext<'_>, visitor: &mut StateVisitor<'_>) {
        let mut ends = self.routes.all_ends();
        visitor.saved(&mut ends);
        if visitor.is_loading() {
            self.routes = RouteCache::default();
            self.restore_changes(context);
            let hosts = context.platform.hosts().len();
            let are_known = (0..).zip(&ends).all(|(number, &(src, dst))| {
                let is_known = src.index() < hosts && dst.index() < hosts;
                is_known && self.routes.find(context, self.id, src, dst) == Ok(number)
            });
            if !are_known {
                visitor.refuse();
            }
        }
    }
}

impl<T: State + Copy + Serialize + DeserializeOwned> RegionState<T> {
    /// Visits the state, between two events and not during an exchange.
    fn visit(&mut self, context: &NetworkContext<'_>, visitor: &mut StateVisitor<'_>) {
        if visitor.is_observing() {
            self.settle(visitor.now());
        } else {
            self.changes.visit(&context.changes, visitor);
            self.visit_routes(context, visitor);
        }
        let Self {
            id: _,
            epoch: _,
            is_stale: _,
            reports_both_ends: _,
            routes: _,
            solver,
            transfers,
            short_ends: _,
            ends: _,
            ending: _,
            unsettled: _,
            prepared,
            events,
            event_store,
            cpus,
            hosts,
            unannounced,
            cross_region_flows: _,
            cross_region_states,
            arrivals,
            to_advertise: _,
            beginning,
            events_before,
            link_arrivals: _,
            arrival_links: _,
            arrivals_on_link: _,
            forecast: _,
            messages_sent,
            latency_factors: _,
            volumes: _,
            changes: _,
        } = self;
        context.changes.compare_next(visitor);
        debug_assert!(arrivals.is_empty(), "no exchange is in progress");
        // First, so that they are the bases of the numbers of messages.
        for (host, sent) in messages_sent {
            visitor.number_on((MESSAGES_SENT, host.get()), sent);
        }
        solver.visit(visitor);
        transfers.visit(visitor);
        visitor.plain(cross_region_states);
        events.visit(visitor);
        event_store.visit(visitor);
        unannounced.visit(visitor);
        cpus.visit(visitor);
        visitor.context(hosts.is_some());
        visitor.saved(hosts);
        visitor.saved(events_before);
        match visitor.is_observing() {
            // A boundary is crossed once.
            true if beginning.is_empty() => {}
            true => visitor.compare(&events.are_early(*events_before)),
            false => prepared.visit(visitor),
        }
        if visitor.is_loading() && (visitor.is_refused() || !self.fits(context)) {
            return visitor.refuse();
        }
        if visitor.is_loading() {
            self.solver.index();
        }
        if visitor.is_loading() || visitor.is_repeating() {
            self.index_flows();
        }
    }
}

impl State for EpochCounts {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { boundaries, rounds, messages, solves, evaluations } = self;
        for count in [boundaries, rounds, messages, solves, evaluations] {
            visitor.counter(count);
        }
    }
}

impl<T: State + Copy + Serialize + DeserializeOwned> EpochNetwork<'_, T> {
    /// Visits the state between two events.
    pub(super) fn visit_state(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { context, regions, timers, next_events: _, now, stale, due: _, outbox: _, counts } = self;
        regions.iter().take(1).for_each(|region| compare_phase(visitor, region.epoch));
        regions.iter_mut().for_each(|region| region.visit(context, visitor));
        timers.visit(visitor);
        visit_last_event(now, visitor);
        counts.visit(visitor);
        if !(visitor.is_saving() || visitor.is_refused()) {
            stale.clear();
            stale.extend(0..regions.len() as u32);
            regions.iter_mut().for_each(|region| region.is_stale = true);
        }
    }
}

impl<T: State + Copy + Send + Serialize + DeserializeOwned> EpochRegion<'_, '_, T> {
    /// Visits the state of the region, not during an exchange.
    pub(super) fn visit_state(&mut self, visitor: &mut StateVisitor<'_>) {
        if visitor.is_observing() {
            self.sort_requests();
        }
        let Self {
            machine,
            region,
            requests,
            first_request,
            timers,
            now,
            upcoming,
            done,
            outbox: _,
            messages: _,
            solves,
        } = self;
        let context = &machine.context;
        compare_phase(visitor, machine.epoch);
        region.visit(context, visitor);
        requests.visit(visitor);
        first_request.visit(visitor);
        timers.visit(visitor);
        visit_last_event(now, visitor);
        done.visit(visitor);
        visitor.counter(solves);
        *upcoming = None;
        let is_known = |PendingRequest { request: Message { src, dst, .. }, route, .. }: &PendingRequest<
            T,
        >| { region.routes.has(*route) && region.knows(context, *src, *dst) };
        if visitor.is_loading() && !requests.iter().all(is_known) {
            visitor.refuse();
        }
    }
}
