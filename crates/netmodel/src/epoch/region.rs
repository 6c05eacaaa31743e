//! A region: the events of its hosts and flows during an epoch.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use pdes_core::{Bytes, SimDuration, SimTime};
use rustc_hash::FxHashMap;

use super::forecast::{Arrival, Forecast};
use super::message::{Departure, FlowKey};
use super::part::earlier;
use super::plans::{Plan, Plans, Slot};
use super::sharing::{Home, Sharing};
use super::unit::{self, LatencyFactors, WireVolumes};
use super::way::{Ground, Way, Ways};
use crate::flow::agenda::Agenda;
use crate::flow::cpu::Cpus;
use crate::link_load::Account;
use crate::link_load::gauge::Gauge;
use crate::region::RegionId;
use crate::{Host, HostId, LinkId, RouteError};

/// State of a region. Between two boundaries it depends on itself alone.
#[derive(Debug)]
pub(super) struct Region<T> {
    pub(super) id: RegionId,
    pub(super) epoch: SimDuration,
    /// The next event must be recomputed.
    pub(super) is_stale: bool,
    /// Ends of messages to other regions are reported to the caller here as well.
    pub(super) tells_both_ends: bool,
    pub(super) ways: Ways,
    pub(super) sharing: Sharing,
    /// Flows by their numbers in `solver`.
    pub(super) transfers: Vec<Transfer<T>>,
    /// Ends of *short* flows, which end in the epoch in which they begin.
    passing: BinaryHeap<Reverse<(SimTime, FlowKey, u32)>>,
    /// Lower bounds on the ends of the other flows.
    pub(super) ends: BinaryHeap<Reverse<(SimTime, FlowKey, u32)>>,
    /// Flows that end in this epoch at the rates that they had at its begin, by their ends.
    pub(super) leaving: VecDeque<(SimTime, FlowKey, u32)>,
    /// Flows that would end in the coming epoch but must be solved first; a buffer.
    pub(super) unsettled: Vec<Reverse<(SimTime, FlowKey, u32)>>,
    /// Last boundary for which the region prepared.
    pub(super) prepared: Option<SimTime>,
    pub(super) agenda: Agenda<Slot>,
    plans: Plans<T>,
    cpus: Cpus<T>,
    /// Flows of later epochs that are not announced yet.
    outgoing: BinaryHeap<Reverse<(FlowKey, Slot)>>,
    /// Numbers of the flows that concern other regions too, by key.
    pub(super) shared: FxHashMap<FlowKey, u32>,
    /// State of such flows in other regions, by number.
    pub(super) crossings: Vec<Crossing>,
    /// Flows that begin in the coming epoch, during the exchanges of the boundary.
    pub(super) arrivals: Vec<(FlowKey, u32)>,
    /// Flows whose levels may have to be advertised to other regions after the next solve.
    pub(super) newcomers: Vec<u32>,
    /// Announced flows in order of their begin, with that time, until they begin.
    pub(super) beginning: VecDeque<(SimTime, u32)>,
    /// Number of events that were scheduled before these flows entered `beginning`; on a tie such events come first.
    pub(super) filed_before: u64,
    /// Linked lists, by link, of the announced flows during the offers.
    pub(super) crossed: Vec<Crossed>,
    /// Links with a nonempty list.
    pub(super) crossed_links: Vec<u32>,
    /// Announced flows of one link; a buffer.
    pub(super) on_link: Vec<Arrival>,
    pub(super) forecast: Forecast,
    /// Number of messages that each host has sent; wraps around.
    sent: Vec<u32>,
    latency_factors: LatencyFactors,
    pub(super) volumes: WireVolumes,
}

/// A flow: the data of a message in transit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer<T> {
    pub(super) key: FlowKey,
    pub(super) tag: T,
    pub(super) way: u32,
    /// Volume left at `since`.
    pub(super) left: u128,
    pub(super) since: SimTime,
    /// Rate since then; zero before the flow begins.
    pub(super) speed: u64,
    end: SimTime,
    /// This region reports the end of the flow to the caller.
    pub(super) is_told: bool,
    pub(super) is_crossing: bool,
    /// The flow was announced at the boundary before it began.
    pub(super) is_known: bool,
    /// The flow ends in this epoch and keeps its rate until then.
    pub(super) is_leaving: bool,
    pub(super) is_over: bool,
}

/// An announced flow on a link: an entry of a linked list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossed {
    pub(super) flow: u32,
    pub(super) weight: u32,
    /// Position of the next entry of the link.
    pub(super) next: Option<u32>,
}

/// State of a flow that concerns other regions.
#[derive(Clone, Debug, Default)]
pub(super) struct Crossing {
    /// Levels that the other regions allow the flow.
    pub(super) adverts: Vec<(RegionId, u64)>,
    /// Level that this region advertised last.
    pub(super) told: u64,
    /// Initial rate: the least offer so far.
    pub(super) offer: u64,
}

impl<T: Copy> Region<T> {
    pub(super) fn new<'h>(
        id: RegionId,
        epoch: SimDuration,
        ground: &Ground<'_>,
        hosts: impl ExactSizeIterator<Item = &'h Host>,
        links: impl Iterator<Item = (f64, bool)>,
    ) -> Self {
        Self {
            id,
            epoch,
            is_stale: false,
            tells_both_ends: false,
            ways: Ways::default(),
            sharing: Sharing::new(links, epoch.as_picos()),
            transfers: Vec::new(),
            passing: BinaryHeap::new(),
            ends: BinaryHeap::new(),
            leaving: VecDeque::new(),
            unsettled: Vec::new(),
            prepared: None,
            agenda: Agenda::default(),
            plans: Plans::default(),
            sent: vec![0; hosts.len()],
            cpus: Cpus::new(hosts),
            outgoing: BinaryHeap::new(),
            shared: FxHashMap::default(),
            crossings: Vec::new(),
            arrivals: Vec::new(),
            newcomers: Vec::new(),
            beginning: VecDeque::new(),
            filed_before: 0,
            crossed: Vec::new(),
            crossed_links: Vec::new(),
            on_link: Vec::new(),
            forecast: Forecast::default(),
            latency_factors: LatencyFactors::new(&ground.parameters),
            volumes: WireVolumes::new(&ground.parameters),
        }
    }

    pub(super) fn telling_both_ends(self) -> Self {
        Self { tells_both_ends: true, ..self }
    }

    /// Enables the recording of link loads if `records`.
    pub(super) fn recording(mut self, records: bool) -> Self {
        if records {
            self.sharing.record_loads();
        }
        self
    }

    /// Returns the totals of the region's links, whose identifiers are `links`, up to an instant.
    pub(super) fn accounts<'a>(
        &'a mut self,
        links: &'a [LinkId],
        end: SimTime,
    ) -> impl Iterator<Item = Account<'a>> {
        links.iter().zip(&mut self.sharing.links).filter_map(move |(&id, link)| {
            link.gauge(end);
            let &Gauge { bytes, saturated, ref bins, .. } = link.gauge.as_deref()?;
            Some(Account {
                link: id,
                bytes,
                saturated,
                capacity: link.capacity as f64,
                bins: Cow::Borrowed(bins),
            })
        })
    }

    /// Returns the largest excess load of a link over its capacity in a window, as a fraction of the capacity.
    pub(super) fn capacity_violation(&self) -> f64 {
        let epoch = self.epoch.as_picos();
        let violation = |link: &super::sharing::Link| link.meter.violation(link.capacity, epoch);
        self.sharing.links.iter().map(violation).fold(0.0, f64::max)
    }

    /// Sends a message from a host of the region at an instant that is not past.
    pub(super) fn send(
        &mut self,
        ground: &Ground<'_>,
        now: SimTime,
        at: SimTime,
        departure: Departure<T>,
    ) -> Result<(), RouteError> {
        let way = self.ways.find(ground, self.id, departure.src, departure.dst)?;
        self.send_on(ground, now, at, way, departure);
        Ok(())
    }

    /// Sends a message on a known route.
    pub(super) fn send_on(
        &mut self,
        ground: &Ground<'_>,
        now: SimTime,
        at: SimTime,
        way: u32,
        departure: Departure<T>,
    ) {
        if at > now {
            self.file(at, Plan::Start(departure));
        } else {
            self.start(ground, now, way, departure);
        }
    }

    /// Runs a computation on a host of the region.
    pub(super) fn compute(&mut self, now: SimTime, at: SimTime, host: u32, flops: f64, tag: T) {
        if at > now {
            self.file(at, Plan::Compute(host, flops, tag));
        } else {
            self.cpus.begin(now, host, flops, tag);
        }
    }

    fn file(&mut self, at: SimTime, plan: Plan<T>) {
        let slot = self.plans.add(plan);
        self.agenda.add(at, slot);
    }

    /// Removes the next unannounced message whose flow begins before `end`; returns its key, route and message.
    pub(super) fn take_outgoing(&mut self, end: SimTime) -> Option<(FlowKey, u32, Departure<T>)> {
        let &Reverse((key, slot)) = self.outgoing.peek()?;
        if key.begin >= end {
            return None;
        }
        self.outgoing.pop();
        match self.plans.take(slot) {
            Plan::Announce(way, departure) => Some((key, way, departure)),
            _ => unreachable!("a message to another region waits to be announced"),
        }
    }

    /// Returns the time of the next event of the region.
    pub(super) fn next_event(&mut self) -> Option<SimTime> {
        let end = self.next_end().map(|(at, ..)| at);
        let leaving = self.leaving.front().map(|&(at, ..)| at);
        let passing = self.passing.peek().map(|&Reverse((at, ..))| at);
        let begin = self.beginning.front().map(|&(at, _)| at);
        let end = earlier(passing, earlier(end, leaving));
        earlier(end, earlier(earlier(begin, self.agenda.next()), self.cpus.next()))
    }

    /// Returns the next boundary after `now` at which the region has work.
    pub(super) fn next_boundary(&self, now: SimTime) -> Option<SimTime> {
        if self.sharing.is_disturbed() {
            return Some(self.boundary_before(now).saturating_add(self.epoch));
        }
        let announcement = self.outgoing.peek().map(|Reverse((key, _))| self.boundary_before(key.begin));
        // If links are full, the capacity of a flow that ends goes to others, before the epoch of its end.
        let end = self.ends.peek().filter(|_| self.sharing.full > 0);
        let end = end.map(|&Reverse((at, ..))| self.boundary_before(at)).filter(|&boundary| boundary > now);
        earlier(announcement, end)
    }

    /// Ends the flows and computations that end now.
    pub(super) fn finish(&mut self, now: SimTime, done: &mut Vec<T>) {
        self.sharing.now = now;
        self.cpus.finish(now, now.saturating_add(SimDuration::from_picos(1)), |tag| done.push(tag));
        while let Some(flow) = self.take_end(now) {
            let transfer = &mut self.transfers[flow as usize];
            transfer.is_over = true;
            if transfer.is_told {
                done.push(transfer.tag);
            }
            if let Home::Passing { .. } = self.sharing.flows[flow as usize].home {
                self.sharing.end_pass(flow, self.ways.usages(transfer.way));
                continue;
            }
            if transfer.is_crossing {
                self.shared.remove(&transfer.key);
            }
            self.sharing.end(flow);
        }
    }

    /// Removes the next flow that ends by now, in order of time and key.
    fn take_end(&mut self, now: SimTime) -> Option<u32> {
        let is_due = |&(at, ..): &(SimTime, FlowKey, u32)| at <= now;
        let passing = self.passing.peek().map(|&Reverse(end)| end).filter(is_due);
        let leaving = self.leaving.front().copied().filter(is_due);
        let other = match self.ends.peek() {
            Some(Reverse(end)) if is_due(end) => self.next_end().filter(is_due),
            _ => None,
        };
        let (.., flow) = match (passing, leaving, other) {
            (None, None, None) => return None,
            (Some(end), None, None) => {
                self.passing.pop();
                end
            }
            _ => {
                let first = passing.into_iter().chain(leaving).chain(other).min()?;
                if passing == Some(first) {
                    self.passing.pop();
                } else if leaving == Some(first) {
                    self.leaving.pop_front();
                } else {
                    self.ends.pop();
                }
                first
            }
        };
        Some(flow)
    }

    /// Returns the next end of a flow whose rate may still change. Discards entries that were only lower bounds.
    pub(super) fn next_end(&mut self) -> Option<(SimTime, FlowKey, u32)> {
        while let Some(&Reverse((at, key, flow))) = self.ends.peek() {
            let transfer = &self.transfers[flow as usize];
            let is_current = transfer.key == key && !transfer.is_over && !transfer.is_leaving;
            if is_current && transfer.end == at {
                return Some((at, key, flow));
            }
            self.ends.pop();
            if is_current && transfer.end > at {
                self.ends.push(Reverse((transfer.end, key, flow)));
            }
        }
        None
    }

    /// Begins the messages, flows and computations that begin now.
    pub(super) fn begin(&mut self, ground: &Ground<'_>, now: SimTime) {
        self.sharing.now = now;
        let end = now.saturating_add(SimDuration::from_picos(1));
        if let Some(&(first, _)) = self.beginning.front()
            && first <= now
        {
            while let Some((_, slot)) = self.agenda.take_early(end, self.filed_before) {
                self.carry_out(ground, now, slot);
            }
            while let Some(&(at, flow)) = self.beginning.front()
                && at <= now
            {
                self.beginning.pop_front();
                self.begin_flow(now, flow, self.crossings[flow as usize].offer);
            }
        }
        while let Some((_, slot)) = self.agenda.take_before(end) {
            self.carry_out(ground, now, slot);
        }
    }

    fn carry_out(&mut self, ground: &Ground<'_>, now: SimTime, slot: Slot) {
        match self.plans.take(slot) {
            Plan::Start(departure) => {
                let way = self.find(ground, departure.src, departure.dst);
                self.start(ground, now, way, departure);
            }
            Plan::Flow(key, way, departure) => self.flow(now, key, way, departure),
            Plan::Compute(host, flops, tag) => self.cpus.begin(now, host, flops, tag),
            Plan::Announce(..) => unreachable!("announcements are made at boundaries"),
        }
    }

    /// Sends a message now.
    fn start(&mut self, ground: &Ground<'_>, now: SimTime, way: u32, departure: Departure<T>) {
        let begin = self.begin_of(way, now, departure.size);
        if !self.ways.way(way).is_local() {
            self.depart(ground, (now, begin), way, departure);
            return;
        }
        let key = self.name(ground, begin, departure.src);
        if self.boundary_before(begin) > now {
            self.announce_later(key, way, departure);
        } else if begin > now {
            self.file(begin, Plan::Flow(key, way, departure));
        } else {
            self.flow(now, key, way, departure);
        }
    }

    /// Schedules the announcement of a message that concerns other regions. It is sent at an instant of the epoch
    /// that is in progress or has just ended; its flow begins at `begin`.
    ///
    /// # Panics
    /// If its latency phase is shorter than the epoch: the epoch would exceed the lookahead.
    pub(super) fn depart(
        &mut self,
        ground: &Ground<'_>,
        (at, begin): (SimTime, SimTime),
        way: u32,
        departure: Departure<T>,
    ) {
        let Departure { src, dst, .. } = departure;
        let lookahead = begin - at;
        assert!(
            lookahead >= self.epoch || begin == SimTime::MAX,
            "a message from host {src} to host {dst} reaches other regions {lookahead} s after it is sent, less than the epoch of {} s",
            self.epoch
        );
        let key = self.name(ground, begin, src);
        self.announce_later(key, way, departure);
    }

    fn announce_later(&mut self, key: FlowKey, way: u32, departure: Departure<T>) {
        let slot = self.plans.add(Plan::Announce(way, departure));
        self.outgoing.push(Reverse((key, slot)));
    }

    /// Returns the last boundary that is not after an instant.
    pub(super) fn boundary_before(&self, at: SimTime) -> SimTime {
        let epoch = self.epoch.as_picos();
        SimTime::from_picos(at.as_picos() / epoch * epoch)
    }

    /// Returns the begin of the flow of a message that is sent at `at`.
    pub(super) fn begin_of(&self, way: u32, at: SimTime, size: Bytes) -> SimTime {
        at.saturating_add(self.ways.phase(way, self.latency_factors.of(size)))
    }

    fn name(&mut self, ground: &Ground<'_>, begin: SimTime, src: HostId) -> FlowKey {
        let sent = &mut self.sent[ground.regions.host(src).slot as usize];
        *sent = sent.wrapping_add(1);
        FlowKey { begin, src, count: *sent }
    }

    /// Returns a route that was looked up before, by this region or by that of the source.
    pub(super) fn find(&mut self, ground: &Ground<'_>, src: HostId, dst: HostId) -> u32 {
        let way = self.ways.find(ground, self.id, src, dst);
        way.unwrap_or_else(|error| unreachable!("a route that was found is gone: {error}"))
    }

    /// Begins the flow of a message inside the region now.
    fn flow(&mut self, now: SimTime, key: FlowKey, way: u32, departure: Departure<T>) {
        let flow = self.register(key, way, departure, true, false);
        let &Way { share, bound, .. } = self.ways.way(way);
        let volume = self.transfers[flow as usize].left;
        let rate = self.sharing.offer(self.ways.usages(way), share, bound, volume);
        self.begin_flow(now, flow, rate);
    }

    /// Allocates a flow that will begin.
    pub(super) fn register(
        &mut self,
        key: FlowKey,
        way: u32,
        departure: Departure<T>,
        is_told: bool,
        is_crossing: bool,
    ) -> u32 {
        let &Way { share, bound, ceiling, .. } = self.ways.way(way);
        let flow = self.sharing.allot(share, bound, ceiling);
        self.sharing.count_bytes(self.ways.usages(way), departure.size.get());
        let transfer = Transfer {
            key,
            tag: departure.tag,
            way,
            left: self.volumes.of(departure.size),
            since: key.begin,
            speed: 0,
            end: SimTime::MAX,
            is_told,
            is_crossing,
            is_known: false,
            is_leaving: false,
            is_over: false,
        };
        match self.transfers.get_mut(flow as usize) {
            Some(place) => *place = transfer,
            None => self.transfers.push(transfer),
        }
        flow
    }

    fn begin_flow(&mut self, now: SimTime, flow: u32, rate: u64) {
        let boundary = self.boundary_before(now).saturating_add(self.epoch);
        let transfer = &mut self.transfers[flow as usize];
        let usages = self.ways.usages(transfer.way);
        let end = now.saturating_add(unit::duration(transfer.left, rate));
        (transfer.since, transfer.speed, transfer.end) = (now, rate, end);
        if end < boundary {
            self.passing.push(Reverse((end, transfer.key, flow)));
            self.sharing.pass(flow, usages, rate);
            return;
        }
        self.ends.push(Reverse((end, transfer.key, flow)));
        self.sharing.begin(flow, usages, rate);
        if transfer.is_crossing {
            self.share(flow);
        }
    }

    /// Continues a flow at its new rate from now on.
    pub(super) fn follow(&mut self, now: SimTime, flow: u32) {
        let rate = self.sharing.flows[flow as usize].rate;
        let transfer = &mut self.transfers[flow as usize];
        if transfer.speed == rate {
            return;
        }
        transfer.left = transfer.left.saturating_sub(unit::volume(transfer.speed, transfer.since, now));
        (transfer.since, transfer.speed) = (now, rate);
        let end = now.saturating_add(unit::duration(transfer.left, rate));
        // An entry for an earlier end is replaced when it comes up (`next_end`).
        if end < transfer.end || transfer.end == SimTime::MAX {
            self.ends.push(Reverse((end, transfer.key, flow)));
        }
        transfer.end = end;
    }

    /// Continues all flows whose rates a solve has changed.
    pub(super) fn follow_all(&mut self, now: SimTime) {
        let mut changed = std::mem::take(&mut self.sharing.changed_flows);
        for flow in changed.drain(..) {
            self.sharing.flows[flow as usize].has_changed = false;
            if !self.transfers[flow as usize].is_over {
                self.follow(now, flow);
            }
        }
        self.sharing.changed_flows = changed;
    }

    /// Returns the tags of all items that this region reports and that are not complete.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = T> + '_ {
        let transfers = self.transfers.iter().filter(|transfer| transfer.is_told && !transfer.is_over);
        let planned = self.plans.iter().map(|plan| match plan {
            Plan::Start(departure) | Plan::Flow(.., departure) | Plan::Announce(_, departure) => {
                departure.tag
            }
            Plan::Compute(_, _, tag) => *tag,
        });
        transfers.map(|transfer| transfer.tag).chain(planned).chain(self.cpus.running())
    }
}
