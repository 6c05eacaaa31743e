//! Exchanges of a region with others at a boundary.
//!
//! 1. Each region announces the flows that begin in the epoch and concern others ([`Region::announce`]).
//! 2. Each offers the others the rate at which its links let these begin ([`Region::offer_rates`]); the least counts.
//! 3. In *rounds*, until no region has sent a message, each solves its links for the levels that the others have
//!    advertised, and advertises its changed levels of common flows ([`Region::solve`], [`Region::receive_advert`]).
//! 4. Each begins the epoch on its own ([`Region::begin_epoch`]).
//!
//! Distributed max-min fair rates by advertised levels go back to Charny, Clark and Jain, "Congestion Control with Explicit
//! Rate Indication", ICC 1995.

use std::cmp::Reverse;

use pdes_core::SimTime;

use super::forecast::Arrival;
use super::message::{Departure, FlowKey, Message, Outbox};
use super::region::{Crossed, Crossing, Region, Transfer};
use super::reserve::least_offer;
use super::sharing::Home;
use super::unit::{self, FREE};
use super::way::{Ground, Usage, Way};
use crate::region::RegionId;

impl<T: Copy> Region<T> {
    /// Solves the links, and advertises changed levels of flows that concern other regions.
    pub(super) fn settle(&mut self, now: SimTime, outbox: &mut Outbox<T>) {
        self.sharing.now = now;
        if self.prepared.replace(now) != Some(now) {
            self.prepare(now);
        }
        let mut newcomers = std::mem::take(&mut self.newcomers);
        // A flow that ended at the boundary may have left its number to one which has not begun yet.
        let is_fresh = |&flow: &u32| self.sharing.flows[flow as usize].home == Home::Fresh;
        let fresh = self.sharing.fresh.iter().copied().filter(is_fresh);
        newcomers.extend(fresh.filter(|&flow| self.transfers[flow as usize].is_crossing));
        self.sharing.settle();
        newcomers.drain(..).for_each(|flow| self.tell(flow, outbox));
        self.newcomers = newcomers;
        let mut changed = std::mem::take(&mut self.sharing.changed_links);
        for link in changed.drain(..) {
            self.sharing.links[link as usize].has_changed = false;
            for place in 0..self.sharing.links[link as usize].members.len() {
                let flow = self.sharing.links[link as usize].members[place].flow;
                if self.transfers[flow as usize].is_crossing {
                    self.tell(flow, outbox);
                }
            }
        }
        self.sharing.changed_links = changed;
    }

    /// Advertises the level that this region allows a flow to the other regions of the flow, unless they know it.
    fn tell(&mut self, flow: u32, outbox: &mut Outbox<T>) {
        let Transfer { key, is_over, .. } = self.transfers[flow as usize];
        let found = &self.sharing.flows[flow as usize];
        if is_over || found.home == Home::Leaving {
            return;
        }
        let crossing = &mut self.crossings[flow as usize];
        let allowed = found.uses.iter().map(|used| self.sharing.links[used.link as usize].level).min();
        let level = allowed.unwrap_or(FREE);
        // A level above that of the flow, now and in the last advert, does not hold the flow back and matters to no
        // region.
        let matters = level.min(crossing.told) <= found.level;
        if matters && std::mem::replace(&mut crossing.told, level) != level {
            let from = self.id;
            let advert = |&(to, _): &(_, u64)| (to, Message::Advert { flow: key, from, level });
            outbox.extend(crossing.adverts.iter().map(advert));
        }
    }

    /// Receives the level that another region allows a flow.
    pub(super) fn hear(&mut self, key: FlowKey, from: RegionId, level: u64) {
        let flow = self.number_of(key);
        let others = &mut self.crossings[flow as usize].adverts;
        others.iter_mut().filter(|advert| advert.0 == from).for_each(|advert| advert.1 = level);
        let cap = others.iter().map(|advert| advert.1).min().unwrap_or(FREE);
        self.sharing.set_cap(flow, cap);
        self.newcomers.push(flow);
    }

    /// Announces the flows of the coming epoch to the regions that they concern.
    pub(super) fn announce(&mut self, ground: &Ground<'_>, now: SimTime, outbox: &mut Outbox<T>) {
        let end = now.saturating_add(self.epoch);
        while let Some((key, way, departure)) = self.take_outgoing(end) {
            self.admit(ground, key, way, departure);
            let others = self.ways.concerned(way).iter().filter(|&&region| region != self.id);
            outbox.extend(others.map(|&to| (to, Message::Announcement { flow: key, departure })));
        }
    }

    /// Allocates an announced flow.
    fn admit(&mut self, ground: &Ground<'_>, key: FlowKey, way: u32, departure: Departure<T>) {
        let is_here = |host| ground.regions.of_host(host) == self.id;
        let is_told = is_here(departure.dst) || self.tells_both_ends && is_here(departure.src);
        let is_crossing = !self.ways.way(way).is_local();
        let flow = self.register(key, way, departure, is_told, is_crossing);
        self.transfers[flow as usize].is_known = true;
        if self.crossings.len() <= flow as usize {
            self.crossings.resize_with(flow as usize + 1, Crossing::default);
        }
        self.crossings[flow as usize].offer = self.ways.way(way).bound;
        self.arrivals.push((key, flow));
    }

    /// Indexes a flow that concerns other regions by its key, for the exchanges of later boundaries.
    pub(super) fn share(&mut self, flow: u32) {
        let Transfer { key, way, .. } = self.transfers[flow as usize];
        let crossing = &mut self.crossings[flow as usize];
        crossing.adverts.clear();
        let others = self.ways.concerned(way).iter().filter(|&&region| region != self.id);
        crossing.adverts.extend(others.map(|&region| (region, FREE)));
        crossing.told = FREE;
        self.shared.insert(key, flow);
    }

    /// Receives a message of another region.
    pub(super) fn receive(&mut self, ground: &Ground<'_>, message: Message<T>) {
        match message {
            Message::Announcement { flow: key, departure } => {
                let way = self.find(ground, departure.src, departure.dst);
                self.admit(ground, key, way, departure);
            }
            Message::Offer { flow, rate } => {
                // This region has sorted its arrivals for its own offers.
                let place = self.arrivals.binary_search_by_key(&flow, |&(key, _)| key);
                let (_, flow) = self.arrivals[place.expect("an offer is for a flow that was announced")];
                let offer = &mut self.crossings[flow as usize].offer;
                *offer = rate.min(*offer);
            }
            Message::Advert { flow, from, level } => self.hear(flow, from, level),
        }
    }

    fn number_of(&self, key: FlowKey) -> u32 {
        *self.shared.get(&key).expect("a flow begins before it is advertised, and ends in all regions at once")
    }

    /// Sends the rates at which the links of the region let the announced flows begin, if these are less than the
    /// flows' own limits.
    pub(super) fn offer(&mut self, now: SimTime, outbox: &mut Outbox<T>) {
        if self.arrivals.is_empty() {
            return;
        }
        self.arrivals.sort_unstable();
        self.find_leaving(now);
        for place in 0..self.leaving.len() {
            let (.., flow) = self.leaving[place];
            self.sharing.foresee(flow, self.mean_left(now, flow));
        }
        // Backwards, so that each list is in order of begin.
        for &(_, flow) in self.arrivals.iter().rev() {
            for &Usage { link, weight } in self.ways.usages(self.transfers[flow as usize].way) {
                let first = &mut self.sharing.links[link as usize].first_arrival;
                if first.is_none() {
                    self.crossed_links.push(link);
                }
                let next = first.replace(self.crossed.len() as u32);
                self.crossed.push(Crossed { flow, weight, next });
            }
        }
        while let Some(link) = self.crossed_links.pop() {
            self.forecast(now, link);
        }
        self.crossed.clear();
        for &(key, flow) in &self.arrivals {
            let (way, rate) = (self.transfers[flow as usize].way, self.crossings[flow as usize].offer);
            if rate < self.ways.way(way).bound {
                let others = self.ways.concerned(way).iter().filter(|&&region| region != self.id);
                outbox.extend(others.map(|&to| (to, Message::Offer { flow: key, rate })));
            }
        }
    }

    /// Lowers the offers to the announced flows of a link to the rates that it has for them.
    fn forecast(&mut self, now: SimTime, number: u32) {
        let (epoch, end) = (self.epoch.as_picos(), now.saturating_add(self.epoch));
        let link = &mut self.sharing.links[number as usize];
        let mut next = link.first_arrival.take();
        if let Some(place) = next
            && let Crossed { flow, weight, next: None } = self.crossed[place as usize]
        {
            let offer = &mut self.crossings[flow as usize].offer;
            let Transfer { key, way, left, .. } = self.transfers[flow as usize];
            // At most the present offer.
            *offer = link.offer(self.ways.way(way).share, weight, *offer);
            if let Some(load) = link.certain_load(now, epoch) {
                let time = (end - key.begin).as_picos();
                *offer = link.limit(*offer, weight, (left, time, epoch), load);
            }
            return;
        }
        self.on_link.clear();
        while let Some(place) = next {
            let Crossed { flow, weight, next: after } = self.crossed[place as usize];
            let Transfer { key, way, left, .. } = self.transfers[flow as usize];
            let &Way { share, bound, .. } = self.ways.way(way);
            let arrival = Arrival { flow, begin: key.begin, volume: left, share, weight, bound };
            self.on_link.push(arrival);
            next = after;
        }
        let crossings = &mut self.crossings;
        self.forecast.rates(link, &self.on_link, end, |flow, rate| {
            let offer = &mut crossings[flow as usize].offer;
            *offer = rate.min(*offer);
        });
        let Some(load) = link.certain_load(now, epoch) else { return };
        let means = self.on_link.iter().map(|arrival| {
            let offer = crossings[arrival.flow as usize].offer;
            let volume = unit::volume(offer, arrival.begin, end).min(arrival.volume);
            u128::from(unit::mean(volume, epoch)) * u128::from(arrival.weight)
        });
        let (all, room) = (means.sum::<u128>(), link.beside(load));
        if all > u128::from(room) {
            for arrival in &self.on_link {
                let offer = &mut crossings[arrival.flow as usize].offer;
                let part = u128::from(*offer) * u128::from(room) / all;
                *offer = least_offer(*offer).max(part as u64);
            }
        }
    }

    /// Prepares for the epoch: flows that end in it keep their rates, and links reserve capacity for flows that will
    /// begin.
    fn prepare(&mut self, now: SimTime) {
        self.find_leaving(now);
        for place in 0..self.leaving.len() {
            let (.., flow) = self.leaving[place];
            self.sharing.let_go(flow, self.mean_left(now, flow));
        }
        let end = now.saturating_add(self.epoch);
        for &(key, flow) in &self.arrivals {
            let Transfer { way, left, .. } = self.transfers[flow as usize];
            let offer = self.crossings[flow as usize].offer;
            let volume = unit::volume(offer, key.begin, end).min(left);
            let carried = unit::mean(volume, self.epoch.as_picos());
            let at_once = if key.begin == now { offer } else { 0 };
            self.sharing.expect(self.ways.usages(way), carried, at_once);
        }
        self.sharing.keep_reserves();
    }

    /// Finds the flows that end in the coming epoch at their present rates.
    fn find_leaving(&mut self, now: SimTime) {
        let end = now.saturating_add(self.epoch);
        while let Some((at, key, flow)) = self.next_end()
            && at < end
        {
            self.ends.pop();
            let is_known = self.transfers[flow as usize].is_known;
            if !is_known && self.sharing.flows[flow as usize].home == Home::Fresh {
                // Flows that began unannounced do not know of each other: together their rates may be too high.
                self.unsettled.push(Reverse((at, key, flow)));
            } else {
                self.transfers[flow as usize].is_leaving = true;
                self.leaving.push_back((at, key, flow));
            }
        }
        self.ends.extend(self.unsettled.drain(..));
    }

    /// Returns the mean rate over the coming epoch of a flow that ends in it.
    fn mean_left(&self, now: SimTime, flow: u32) -> u64 {
        let Transfer { speed, since, left, .. } = self.transfers[flow as usize];
        let left = left.saturating_sub(unit::volume(speed, since, now));
        unit::mean(left, self.epoch.as_picos())
    }

    /// Begins the epoch with the solved rates, and with those offered to the announced flows.
    pub(super) fn enter(&mut self, now: SimTime) {
        self.sharing.give_up_reserves();
        self.follow_all(now);
        debug_assert!(self.beginning.is_empty(), "flows begin in the epoch for which they were announced");
        self.filed_before = self.agenda.made();
        self.beginning.extend(self.arrivals.drain(..).map(|(key, flow)| (key.begin, flow)));
    }
}
