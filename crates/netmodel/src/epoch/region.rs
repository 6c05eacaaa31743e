//! A region: the events of its hosts and flows during an epoch.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use pdes_core::{Bytes, EventQueue, SimDuration, SimTime, State};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::event_store::{EventSlot, EventStore, RegionEvent};
use super::forecast::{Arrival, Forecast};
use super::message::{FlowKey, MessageSpec};
use super::parallel::earlier;
use super::route::{NetworkContext, RegionRoute, RouteCache};
use super::solver::{Bottleneck, RegionSolver};
use super::unit::{self, LatencyFactors, WireVolumes};
use crate::change::ChangeCursor;
use crate::flow::cpu::{BusyTime, Cpus};
use crate::host_load::{HostRecorder, HostTotals};
use crate::link_load::LinkTotals;
use crate::region::RegionId;
use crate::{HostId, LinkId, NetworkObserver, Platform, RouteError};

/// State of a region. Between two boundaries it depends on itself alone.
#[derive(Debug)]
pub(super) struct RegionState<T> {
    pub(super) id: RegionId,
    pub(super) epoch: SimDuration,
    /// The next event must be recomputed.
    pub(super) is_stale: bool,
    /// Ends of messages to other regions are reported to the caller here as well.
    pub(super) reports_both_ends: bool,
    pub(super) routes: RouteCache,
    pub(super) solver: RegionSolver,
    /// Flows by their numbers in `solver`.
    pub(super) transfers: Vec<Transfer<T>>,
    /// Ends of *short* flows, which end in the epoch in which they begin.
    pub(super) short_ends: BinaryHeap<Reverse<(SimTime, FlowKey, u32)>>,
    /// Lower bounds on the ends of the other flows.
    pub(super) ends: BinaryHeap<Reverse<(SimTime, FlowKey, u32)>>,
    /// Flows that end in this epoch at the rates that they had at its begin, by their ends.
    pub(super) ending: VecDeque<(SimTime, FlowKey, u32)>,
    /// Flows that would end in the coming epoch but must be solved first; a buffer.
    pub(super) unsettled: Vec<Reverse<(SimTime, FlowKey, u32)>>,
    /// Last boundary for which the region prepared.
    pub(super) prepared: Option<SimTime>,
    pub(super) events: EventQueue<EventSlot>,
    pub(super) event_store: EventStore<T>,
    pub(super) cpus: Cpus<T>,
    /// Recorder of the loads of hosts, if enabled.
    pub(super) hosts: Option<Box<HostRecorder>>,
    /// Flows of later epochs that are not announced yet.
    pub(super) unannounced: BinaryHeap<Reverse<(FlowKey, EventSlot)>>,
    /// Numbers of the flows that concern other regions too, by key.
    pub(super) cross_region_flows: FxHashMap<FlowKey, u32>,
    /// State of such flows in other regions, by number.
    pub(super) cross_region_states: Vec<CrossRegionState>,
    /// Flows that begin in the coming epoch, during the exchanges of the boundary.
    pub(super) arrivals: Vec<(FlowKey, u32)>,
    /// Flows whose levels may have to be advertised to other regions after the next solve.
    pub(super) to_advertise: Vec<u32>,
    /// Announced flows in order of their begin, with that time, until they begin.
    pub(super) beginning: VecDeque<(SimTime, u32)>,
    /// Number of events that were scheduled before these flows entered `beginning`; on a tie such events come first.
    pub(super) events_before: u64,
    /// Linked lists, by link, of the announced flows during the offers.
    pub(super) link_arrivals: Vec<LinkArrival>,
    /// Links with a nonempty list.
    pub(super) arrival_links: Vec<u32>,
    /// Announced flows of one link; a buffer.
    pub(super) arrivals_on_link: Vec<Arrival>,
    pub(super) forecast: Forecast,
    /// Number of messages that each host of the region has sent; wraps around.
    pub(super) messages_sent: Vec<(HostId, u32)>,
    pub(super) latency_factors: LatencyFactors,
    pub(super) volumes: WireVolumes,
    /// Changes of resources so far.
    pub(super) changes: ChangeCursor,
}

/// A flow: the data of a message in transit.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
pub(super) struct Transfer<T> {
    pub(super) key: FlowKey,
    pub(super) tag: T,
    pub(super) route: u32,
    /// Volume left at `since`.
    pub(super) left: u128,
    pub(super) since: SimTime,
    /// Rate since then; zero before the flow begins.
    pub(super) rate: u64,
    /// End at that rate; the begin before the flow begins.
    pub(super) end: SimTime,
    /// This region reports the end of the flow to the caller.
    pub(super) is_reported: bool,
    pub(super) is_cross_region: bool,
    /// The flow was announced at the boundary before it began.
    pub(super) is_announced: bool,
    /// The flow ends in this epoch and keeps its rate until then.
    pub(super) is_ending: bool,
    pub(super) is_over: bool,
}

/// An announced flow on a link: an entry of a linked list.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkArrival {
    pub(super) flow: u32,
    pub(super) weight: u32,
    /// Position of the next entry of the link.
    pub(super) next: Option<u32>,
}

/// State of a flow that concerns other regions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CrossRegionState {
    /// Levels that the other regions allow the flow.
    pub(super) adverts: Vec<(RegionId, u64)>,
    /// Level that this region advertised last.
    pub(super) advertised: u64,
    /// Initial rate: the least offer so far.
    pub(super) offer: u64,
}

impl<T: Copy> RegionState<T> {
    pub(super) fn new(
        id: RegionId,
        epoch: SimDuration,
        context: &NetworkContext<'_>,
        hosts: &[HostId],
        links: impl Iterator<Item = (f64, bool)>,
    ) -> Self {
        Self {
            id,
            epoch,
            is_stale: false,
            reports_both_ends: false,
            routes: RouteCache::default(),
            solver: RegionSolver::new(links, epoch.as_picos()),
            transfers: Vec::new(),
            short_ends: BinaryHeap::new(),
            ends: BinaryHeap::new(),
            ending: VecDeque::new(),
            unsettled: Vec::new(),
            prepared: None,
            events: EventQueue::default(),
            event_store: EventStore::default(),
            messages_sent: hosts.iter().map(|&host| (host, 0)).collect(),
            cpus: Cpus::new(hosts.iter().map(|&host| context.platform.host(host))),
            hosts: None,
            unannounced: BinaryHeap::new(),
            cross_region_flows: FxHashMap::default(),
            cross_region_states: Vec::new(),
            arrivals: Vec::new(),
            to_advertise: Vec::new(),
            beginning: VecDeque::new(),
            events_before: 0,
            link_arrivals: Vec::new(),
            arrival_links: Vec::new(),
            arrivals_on_link: Vec::new(),
            forecast: Forecast::default(),
            latency_factors: LatencyFactors::new(&context.parameters),
            volumes: WireVolumes::new(&context.parameters),
            changes: ChangeCursor::new(&context.changes),
        }
    }

    pub(super) fn reporting_both_ends(self) -> Self {
        Self { reports_both_ends: true, ..self }
    }

    /// Enables the recording of link loads if `records`.
    pub(super) fn recording(mut self, records: bool) -> Self {
        if records {
            self.solver.record_loads(self.changes.has_passed());
        }
        self
    }

    /// Returns the loads of hosts so far, as far as they are recorded.
    pub(super) fn host_totals(&self) -> Vec<HostTotals> {
        self.hosts.iter().flat_map(|hosts| hosts.totals()).collect()
    }

    /// Enables the recording of host loads.
    pub(super) fn recording_hosts(self) -> Self {
        Self { hosts: Some(Box::default()), ..self }
    }

    /// Returns the totals of the region's links, whose identifiers are `links`, up to an instant.
    pub(super) fn link_totals<'a>(
        &'a mut self,
        platform: &'a Platform,
        links: &'a [LinkId],
        end: SimTime,
    ) -> impl Iterator<Item = LinkTotals<'a>> {
        links.iter().zip(&mut self.solver.links).filter_map(move |(&id, link)| {
            link.record_load(end);
            let integrator = link.integrator.as_deref()?;
            Some(LinkTotals {
                link: id,
                bytes: integrator.bytes,
                saturated: integrator.saturated(link.capacity),
                capacity: unit::capacity(platform.link(id).bandwidth) as f64,
                bins: Cow::Borrowed(&integrator.bins),
                by_bandwidth: Cow::Borrowed(&integrator.by_bandwidth),
            })
        })
    }

    /// Returns the largest excess load of a link over its capacity in a window, as a fraction of the capacity.
    pub(super) fn capacity_violation(&self) -> f64 {
        let epoch = self.epoch.as_picos();
        let violation = |link: &super::solver::Link| link.meter.violation(link.capacity, epoch);
        self.solver.links.iter().map(violation).fold(0.0, f64::max)
    }

    /// Sends a message from a host of the region at an instant that is not past.
    pub(super) fn send(
        &mut self,
        context: &NetworkContext<'_>,
        now: SimTime,
        at: SimTime,
        spec: MessageSpec<T>,
    ) -> Result<(), RouteError> {
        let route = self.routes.find(context, self.id, spec.src, spec.dst)?;
        self.send_on_route(context, now, at, route, spec);
        Ok(())
    }

    /// Sends a message on a known route.
    pub(super) fn send_on_route(
        &mut self,
        context: &NetworkContext<'_>,
        now: SimTime,
        at: SimTime,
        route: u32,
        spec: MessageSpec<T>,
    ) {
        if at > now {
            self.schedule(at, RegionEvent::Send(spec));
        } else {
            self.catch_up(context, now);
            self.start_message(context, now, route, spec);
        }
    }

    /// Runs a computation on a host of the region.
    pub(super) fn compute(
        &mut self,
        context: &NetworkContext<'_>,
        (now, at): (SimTime, SimTime),
        host: u32,
        flops: f64,
        tag: T,
    ) {
        if at > now {
            self.schedule(at, RegionEvent::Compute(host, flops, tag));
        } else {
            self.catch_up(context, now);
            self.cpus.begin(now, host, flops, tag, tell_busy(&mut self.hosts, &self.messages_sent));
        }
    }

    fn schedule(&mut self, at: SimTime, event: RegionEvent<T>) {
        let slot = self.event_store.add(event);
        self.events.add(at, slot);
    }

    /// Removes the next unannounced message whose flow begins before `end`; returns its key, route and message.
    pub(super) fn pop_unannounced(&mut self, end: SimTime) -> Option<(FlowKey, u32, MessageSpec<T>)> {
        let &Reverse((key, slot)) = self.unannounced.peek()?;
        if key.begin >= end {
            return None;
        }
        self.unannounced.pop();
        match self.event_store.take(slot) {
            RegionEvent::Announce(route, spec) => Some((key, route, spec)),
            _ => unreachable!("a message to another region waits to be announced"),
        }
    }

    /// Returns the time of the next event of the region.
    pub(super) fn next_event(&mut self) -> Option<SimTime> {
        let end = self.next_end().map(|(at, ..)| at);
        let leaving = self.ending.front().map(|&(at, ..)| at);
        let passing = self.short_ends.peek().map(|&Reverse((at, ..))| at);
        let begin = self.beginning.front().map(|&(at, _)| at);
        let end = earlier(passing, earlier(end, leaving));
        earlier(end, earlier(earlier(begin, self.events.next()), self.cpus.next()))
    }

    /// Returns the next boundary after `now` at which the region has work.
    pub(super) fn next_boundary(&self, context: &NetworkContext<'_>, now: SimTime) -> Option<SimTime> {
        if self.solver.needs_solve() {
            return Some(self.boundary_before(now).saturating_add(self.epoch));
        }
        let announcement = self.unannounced.peek().map(|Reverse((key, _))| self.boundary_before(key.begin));
        // If links are full, the capacity of a flow that ends goes to others, before the epoch of its end.
        let end = self.ends.peek().filter(|_| self.solver.full_links > 0);
        let end = end.map(|&Reverse((at, ..))| self.boundary_before(at)).filter(|&boundary| boundary > now);
        earlier(self.next_change(context), earlier(announcement, end))
    }

    /// Ends the flows and computations that end now.
    pub(super) fn finish(&mut self, now: SimTime, done: &mut Vec<T>) {
        self.solver.now = now;
        let end = now.saturating_add(SimDuration::from_picos(1));
        let busy = tell_busy(&mut self.hosts, &self.messages_sent);
        self.cpus.finish(now, end, |tag| done.push(tag), busy);
        while let Some(flow) = self.pop_end(now) {
            let transfer = &mut self.transfers[flow as usize];
            transfer.is_over = true;
            if transfer.is_reported {
                done.push(transfer.tag);
            }
            if let Bottleneck::Short { .. } = self.solver.flows[flow as usize].bottleneck {
                self.solver.end_short(flow, self.routes.usages(transfer.route));
                continue;
            }
            if transfer.is_cross_region {
                self.cross_region_flows.remove(&transfer.key);
            }
            self.solver.end(flow);
        }
    }

    /// Removes the next flow that ends by now, in order of time and key.
    fn pop_end(&mut self, now: SimTime) -> Option<u32> {
        let is_due = |&(at, ..): &(SimTime, FlowKey, u32)| at <= now;
        let passing = self.short_ends.peek().map(|&Reverse(end)| end).filter(is_due);
        let leaving = self.ending.front().copied().filter(is_due);
        let other = match self.ends.peek() {
            Some(Reverse(end)) if is_due(end) => self.next_end().filter(is_due),
            _ => None,
        };
        let (.., flow) = match (passing, leaving, other) {
            (None, None, None) => return None,
            (Some(end), None, None) => {
                self.short_ends.pop();
                end
            }
            _ => {
                let first = passing.into_iter().chain(leaving).chain(other).min()?;
                if passing == Some(first) {
                    self.short_ends.pop();
                } else if leaving == Some(first) {
                    self.ending.pop_front();
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
            let is_current = transfer.key == key && !transfer.is_over && !transfer.is_ending;
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
    pub(super) fn begin(&mut self, context: &NetworkContext<'_>, now: SimTime) {
        self.solver.now = now;
        let end = now.saturating_add(SimDuration::from_picos(1));
        if let Some(&(first, _)) = self.beginning.front()
            && first <= now
        {
            while let Some((_, slot)) = self.events.pop_early(end, self.events_before) {
                self.execute(context, now, slot);
            }
            while let Some(&(at, flow)) = self.beginning.front()
                && at <= now
            {
                self.beginning.pop_front();
                self.begin_flow(now, flow, self.cross_region_states[flow as usize].offer);
            }
        }
        while let Some((_, slot)) = self.events.pop_before(end) {
            self.execute(context, now, slot);
        }
    }

    fn execute(&mut self, context: &NetworkContext<'_>, now: SimTime, slot: EventSlot) {
        self.catch_up(context, now);
        match self.event_store.take(slot) {
            RegionEvent::Send(spec) => {
                let route = self.find_route(context, spec.src, spec.dst);
                self.start_message(context, now, route, spec);
            }
            RegionEvent::StartFlow(key, route, spec) => self.start_local_flow(now, key, route, spec),
            RegionEvent::Compute(host, flops, tag) => {
                let busy = tell_busy(&mut self.hosts, &self.messages_sent);
                self.cpus.begin(now, host, flops, tag, busy);
            }
            RegionEvent::Announce(..) => unreachable!("announcements are made at boundaries"),
        }
    }

    /// Sends a message now.
    fn start_message(
        &mut self,
        context: &NetworkContext<'_>,
        now: SimTime,
        route: u32,
        spec: MessageSpec<T>,
    ) {
        let begin = self.flow_begin(context, route, now, spec.size);
        if !self.routes.route(route).is_local() {
            self.schedule_announcement(context, (now, begin), route, spec);
            return;
        }
        let key = self.make_key(context, begin, spec.src);
        if self.boundary_before(begin) > now {
            self.add_unannounced(key, route, spec);
        } else if begin > now {
            self.schedule(begin, RegionEvent::StartFlow(key, route, spec));
        } else {
            self.start_local_flow(now, key, route, spec);
        }
    }

    /// Schedules the announcement of a message that concerns other regions. It is sent at an instant of the epoch
    /// that is in progress or has just ended; its flow begins at `begin`.
    ///
    /// # Panics
    /// If its latency phase is shorter than the epoch: the epoch would exceed the lookahead.
    pub(super) fn schedule_announcement(
        &mut self,
        context: &NetworkContext<'_>,
        (at, begin): (SimTime, SimTime),
        route: u32,
        spec: MessageSpec<T>,
    ) {
        let MessageSpec { src, dst, .. } = spec;
        let lookahead = begin - at;
        assert!(
            lookahead >= self.epoch || begin == SimTime::MAX,
            "a message from host {src} to host {dst} reaches other regions {lookahead} s after it is sent, less than the epoch of {} s",
            self.epoch
        );
        let key = self.make_key(context, begin, src);
        self.add_unannounced(key, route, spec);
    }

    fn add_unannounced(&mut self, key: FlowKey, route: u32, spec: MessageSpec<T>) {
        let slot = self.event_store.add(RegionEvent::Announce(route, spec));
        self.unannounced.push(Reverse((key, slot)));
    }

    /// Returns the last boundary that is not after an instant.
    pub(super) fn boundary_before(&self, at: SimTime) -> SimTime {
        let epoch = self.epoch.as_picos();
        SimTime::from_picos(at.as_picos() / epoch * epoch)
    }

    /// Returns the begin of the flow of a message that is sent at `at`.
    pub(super) fn flow_begin(
        &self,
        context: &NetworkContext<'_>,
        route: u32,
        at: SimTime,
        size: Bytes,
    ) -> SimTime {
        let latency = self.routes.latency(context, route, at);
        at.saturating_add(self.latency_factors.of(size).of(latency))
    }

    fn make_key(&mut self, context: &NetworkContext<'_>, begin: SimTime, src: HostId) -> FlowKey {
        let (_, sent) = &mut self.messages_sent[context.regions.host_slot(src).slot as usize];
        *sent = sent.wrapping_add(1);
        FlowKey { begin, src, count: *sent }
    }

    /// Returns a route that was looked up before, by this region or by that of the source.
    pub(super) fn find_route(&mut self, context: &NetworkContext<'_>, src: HostId, dst: HostId) -> u32 {
        let route = self.routes.find(context, self.id, src, dst);
        route.unwrap_or_else(|error| unreachable!("a route that was found is gone: {error}"))
    }

    /// Begins the flow of a message inside the region now.
    fn start_local_flow(&mut self, now: SimTime, key: FlowKey, route: u32, spec: MessageSpec<T>) {
        let flow = self.add_flow(key, route, spec, true, false);
        let &RegionRoute { share, bound, .. } = self.routes.route(route);
        let volume = self.transfers[flow as usize].left;
        let rate = self.solver.offered_rate(self.routes.usages(route), share, bound, volume);
        self.begin_flow(now, flow, rate);
    }

    /// Allocates a flow that will begin.
    pub(super) fn add_flow(
        &mut self,
        key: FlowKey,
        route: u32,
        spec: MessageSpec<T>,
        is_told: bool,
        is_crossing: bool,
    ) -> u32 {
        let &RegionRoute { share, bound, ceiling, .. } = self.routes.route(route);
        let flow = self.solver.allocate(share, bound, ceiling);
        self.solver.count_bytes(self.routes.usages(route), spec.size.get());
        let transfer = Transfer {
            key,
            tag: spec.tag,
            route,
            left: self.volumes.of(spec.size),
            since: key.begin,
            rate: 0,
            end: key.begin,
            is_reported: is_told,
            is_cross_region: is_crossing,
            is_announced: false,
            is_ending: false,
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
        let usages = self.routes.usages(transfer.route);
        let end = now.saturating_add(unit::duration(transfer.left, rate));
        (transfer.since, transfer.rate, transfer.end) = (now, rate, end);
        if end < boundary {
            self.short_ends.push(Reverse((end, transfer.key, flow)));
            self.solver.begin_short(flow, usages, rate);
            return;
        }
        self.ends.push(Reverse((end, transfer.key, flow)));
        self.solver.begin(flow, usages, rate);
        if transfer.is_cross_region {
            self.index_cross_region(flow);
        }
    }

    /// Continues a flow at its new rate from now on.
    pub(super) fn apply_rate(&mut self, now: SimTime, flow: u32) {
        let rate = self.solver.flows[flow as usize].rate;
        let transfer = &mut self.transfers[flow as usize];
        if transfer.rate == rate {
            return;
        }
        transfer.left = transfer.left.saturating_sub(unit::volume(transfer.rate, transfer.since, now));
        (transfer.since, transfer.rate) = (now, rate);
        let end = now.saturating_add(unit::duration(transfer.left, rate));
        // An entry for an earlier end is replaced when it comes up (`next_end`).
        if end < transfer.end || transfer.end == SimTime::MAX {
            self.ends.push(Reverse((end, transfer.key, flow)));
        }
        transfer.end = end;
    }

    /// Continues all flows whose rates a solve has changed.
    pub(super) fn apply_rates(&mut self, now: SimTime) {
        let mut changed = std::mem::take(&mut self.solver.changed_flows);
        for flow in changed.drain(..) {
            self.solver.flows[flow as usize].has_changed = false;
            if !self.transfers[flow as usize].is_over {
                self.apply_rate(now, flow);
            }
        }
        self.solver.changed_flows = changed;
    }

    /// Returns the tags of all items that this region reports and that are not complete.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = T> + '_ {
        let transfers = self.transfers.iter().filter(|transfer| transfer.is_reported && !transfer.is_over);
        let planned = self.event_store.iter().map(|event| match event {
            RegionEvent::Send(spec) | RegionEvent::StartFlow(.., spec) | RegionEvent::Announce(_, spec) => {
                spec.tag
            }
            RegionEvent::Compute(_, _, tag) => *tag,
        });
        transfers.map(|transfer| transfer.tag).chain(planned).chain(self.cpus.running())
    }
}

/// Returns what tells a recorder of busy cores; hosts have their numbers beside the messages that they have sent.
#[inline]
pub(super) fn tell_busy<'a>(
    recorder: &'a mut Option<Box<HostRecorder>>,
    hosts: &'a [(HostId, u32)],
) -> impl FnMut(BusyTime) + use<'a> {
    move |BusyTime { host, time, cores, speed }| {
        if let Some(recorder) = recorder {
            recorder.computed(hosts[host as usize].0, time, cores, speed);
        }
    }
}
