//! What a region does at a boundary, between exchanges of messages with its neighbours.
//!
//! 1. *Rounds*, until no region has said anything: each settles its links for the levels that the others have told it,
//!    and tells them where what it allows a common flow has changed ([`Region::settle`], [`Region::hear`]).
//! 2. Each announces the flows to others that begin in the epoch ([`Region::announce`]).
//! 3. Each tells the others at what rate its links let these begin ([`Region::offer`]); the least counts.
//! 4. Each goes on alone ([`Region::enter`]).

use pdes_core::SimTime;

use super::forecast::Arrival;
use super::message::{FlowKey, Message, Outbox};
use super::region::{Crossing, Region, Transfer};
use super::unit::FREE;
use super::way::Ground;
use crate::region::RegionId;

impl<T: Copy> Region<T> {
    /// Settles the links, and says what has changed for flows that concern others.
    pub(super) fn settle(&mut self, now: SimTime, outbox: &mut Outbox<T>) {
        self.sharing.now = now;
        let mut newcomers = std::mem::take(&mut self.newcomers);
        let fresh = self.sharing.fresh.iter().copied();
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

    /// Tells the other regions that a flow concerns what this one allows it, if they do not know.
    fn tell(&mut self, flow: u32, outbox: &mut Outbox<T>) {
        let key = self.transfers[flow as usize].key;
        let Some(crossing) = self.crossings.get_mut(&key) else { return };
        let found = &self.sharing.flows[flow as usize];
        let allowed = found.uses.iter().map(|used| self.sharing.links[used.link as usize].level).min();
        let level = allowed.unwrap_or(FREE);
        // What does not hold the flow back, and is not thought to, matters to nobody.
        let matters = level.min(crossing.told) <= found.level;
        if matters && std::mem::replace(&mut crossing.told, level) != level {
            let from = self.id;
            let advert = |&(to, _): &(_, u64)| (to, Message::Advert { flow: key, from, level });
            outbox.extend(crossing.adverts.iter().map(advert));
        }
    }

    /// Takes in what another region allows a flow.
    pub(super) fn hear(&mut self, key: FlowKey, from: RegionId, level: u64) {
        let crossing = self.crossings.get_mut(&key).expect("a flow ends in all regions at once");
        let others = &mut crossing.adverts;
        others.iter_mut().filter(|advert| advert.0 == from).for_each(|advert| advert.1 = level);
        let cap = others.iter().map(|advert| advert.1).min().unwrap_or(FREE);
        self.sharing.set_cap(crossing.flow, cap);
        self.newcomers.push(crossing.flow);
    }

    /// Announces the flows that begin in the epoch that begins now, to this region itself too.
    pub(super) fn announce(&mut self, ground: &Ground<'_>, now: SimTime, outbox: &mut Outbox<T>) {
        let end = now.saturating_add(self.epoch);
        while let Some((key, departure)) = self.take_outgoing(end) {
            let way = self.find(ground, departure.src, departure.dst);
            let announcement = Message::Announcement { flow: key, departure };
            outbox.extend(self.ways.concerned(way).iter().map(|&to| (to, announcement)));
        }
    }

    /// Takes in a message of another region.
    pub(super) fn receive(&mut self, ground: &Ground<'_>, message: Message<T>) {
        match message {
            Message::Announcement { flow: key, departure } => {
                let is_here = |host| ground.regions.of_host(host) == self.id;
                let is_told = is_here(departure.dst) || self.tells_both_ends && is_here(departure.src);
                let flow = self.register(ground, key, departure, is_told, true);
                let Transfer { way, .. } = self.transfers[flow as usize];
                let others = self.ways.concerned(way).iter().filter(|&&region| region != self.id);
                let adverts = others.map(|&region| (region, FREE)).collect();
                let offer = self.ways.way(way).bound;
                self.crossings.insert(key, Crossing { flow, adverts, told: FREE, offer });
                self.arrivals.push(key);
            }
            Message::Offer { flow, rate } => {
                let crossing = self.crossing(flow);
                crossing.offer = crossing.offer.min(rate);
            }
            Message::Advert { flow, from, level } => self.hear(flow, from, level),
        }
    }

    fn crossing(&mut self, key: FlowKey) -> &mut Crossing {
        self.crossings.get_mut(&key).expect("a flow is announced before it is talked about")
    }

    /// Says at what rates the links of the region let the announced flows begin.
    pub(super) fn offer(&mut self, now: SimTime, outbox: &mut Outbox<T>) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let mut crossed = std::mem::take(&mut self.crossed);
        arrivals.sort_unstable();
        for &key in &arrivals {
            let flow = self.crossing(key).flow;
            let Transfer { way, .. } = self.transfers[flow as usize];
            crossed.extend(self.ways.usages(way).iter().map(|usage| (usage.link, key, flow, usage.weight)));
        }
        crossed.sort_unstable_by_key(|&(link, key, ..)| (link, key));
        crossed.chunk_by(|one, other| one.0 == other.0).for_each(|group| self.forecast(now, group));
        crossed.clear();
        for &key in &arrivals {
            let Some(crossing) = self.crossings.get(&key) else { continue };
            let offer = Message::Offer { flow: key, rate: crossing.offer };
            outbox.extend(crossing.adverts.iter().map(|&(to, _)| (to, offer)));
        }
        (self.arrivals, self.crossed) = (arrivals, crossed);
    }

    /// Lowers the offers to the announced flows of a link to what it has for them.
    fn forecast(&mut self, now: SimTime, group: &[(u32, FlowKey, u32, u32)]) {
        self.on_link.clear();
        self.on_link.extend(group.iter().map(|&(_, key, flow, weight)| {
            let way = self.ways.way(self.transfers[flow as usize].way);
            let volume = self.transfers[flow as usize].left;
            Arrival { begin: key.begin, volume, share: way.share, weight, bound: way.bound }
        }));
        let link = &self.sharing.links[group[0].0 as usize];
        let crossings = &mut self.crossings;
        self.forecast.rates(link, &self.on_link, now.saturating_add(self.epoch), |number, rate| {
            if let Some(crossing) = crossings.get_mut(&group[number].1) {
                crossing.offer = crossing.offer.min(rate);
            }
        });
    }

    /// Begins the epoch: goes on with the rates that have been settled, and with those offered to the announced flows.
    pub(super) fn enter(&mut self, now: SimTime) {
        self.follow_all(now);
        let mut arrivals = std::mem::take(&mut self.arrivals);
        for key in arrivals.drain(..) {
            let Crossing { flow, offer, .. } = *self.crossing(key);
            self.plan(key.begin, flow, offer);
        }
        self.arrivals = arrivals;
    }
}
