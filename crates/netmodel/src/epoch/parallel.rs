//! The epoch model region by region, for parallel engines.

use std::ops::Range;

use pdes_core::{EventQueue, SimDuration, SimTime, State, StateVisitor};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::message::{FlowUpdate, MessageSpec, Outbox};
use super::region::RegionState;
use super::route::NetworkContext;
use super::{EpochError, link_totals, make_context, make_regions};
use crate::link_load::{LinkLoads, LinkTotals};
use crate::region::RegionId;
use crate::{HostId, HostTotals, Message, NetworkModel, NetworkParameters, Platform, Regions, RouteError};

/// Context that the regions of a machine share.
#[derive(Debug)]
pub struct EpochMachine<'p> {
    pub(super) context: NetworkContext<'p>,
    pub(super) epoch: SimDuration,
    records_loads: bool,
}

/// A region of a machine. During an epoch it depends on nothing outside.
///
/// At a boundary regions have two exchanges. In the first, of two rounds, they announce the flows between them that begin in
/// the epoch, and offer them initial rates. In the second they find the rates of all other flows, in as many rounds as it
/// takes.
///
/// The model is that of [`EpochNetwork`](crate::EpochNetwork). Flows between regions that begin at one instant, at one host,
/// are ordered by their sending time, order number and submitter, so that the arrival order of requests in other regions
/// does not matter.
#[derive(Debug)]
pub struct EpochRegion<'g, 'p, T> {
    pub(super) machine: &'g EpochMachine<'p>,
    pub(super) region: RegionState<T>,
    /// Messages to other regions that have no key yet.
    pub(super) requests: Vec<PendingRequest<T>>,
    /// Earliest begin of their flows.
    pub(super) first_request: Option<SimTime>,
    pub(super) timers: EventQueue<T>,
    pub(super) now: SimTime,
    /// Time of the next event, if known.
    pub(super) upcoming: Option<SimTime>,
    /// Tags completed at the boundary that the region crossed last.
    pub(super) done: Vec<T>,
    pub(super) outbox: Outbox<T>,
    /// Messages to regions.
    pub(super) messages: Vec<(u32, RegionMessage<T>)>,
    pub(super) solves: u64,
}

/// Message between regions.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
pub struct RegionMessage<T>(MessageKind<T>);

#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
enum MessageKind<T> {
    /// A remote rank sends a message from a host of the receiving region.
    Request(Message<T>),
    Update(FlowUpdate<T>),
    /// To the region itself, which has announced flows and takes part in the next round.
    Reminder,
}

/// A request whose message must be announced to other regions.
#[derive(Debug, Serialize, Deserialize, State)]
pub(super) struct PendingRequest<T> {
    pub(super) request: Message<T>,
    pub(super) route: u32,
    /// Begin of its flow.
    begin: SimTime,
}

impl<'p> EpochMachine<'p> {
    /// Makes a machine.
    ///
    /// # Errors
    /// If the epoch is zero, or longer than [`Regions::lookahead`].
    pub fn new(
        platform: &'p Platform,
        parameters: &NetworkParameters,
        regions: Regions,
        epoch: SimDuration,
    ) -> Result<Self, EpochError> {
        Ok(Self { context: make_context(platform, parameters, regions, epoch)?, epoch, records_loads: false })
    }

    /// Enables or disables the recording of link loads: a kilobyte for each link that carries anything.
    pub fn with_link_loads(self, records: bool) -> Self {
        Self { records_loads: records, ..self }
    }

    /// Returns the link loads up to an instant at which all regions, given in their order, have ended; empty unless
    /// they were [recorded](EpochMachine::with_link_loads).
    pub fn link_loads<'r, 'g: 'r, T: Copy + 'r>(
        &self,
        regions: impl Iterator<Item = &'r mut EpochRegion<'g, 'p, T>>,
        end: SimTime,
    ) -> LinkLoads
    where
        'p: 'g,
    {
        let links = self.context.regions.links_by_region();
        let regions = regions.map(|part| &mut part.region);
        let platform = self.context.platform;
        LinkLoads::new(platform, end, link_totals(platform, &links, regions, end))
    }

    /// Returns the length of an epoch.
    pub fn epoch(&self) -> SimDuration {
        self.epoch
    }

    /// Returns the regions.
    pub fn regions(&self) -> &Regions {
        &self.context.regions
    }

    /// Returns the totals of the links of some of the regions, which end before `end`, for a process that
    /// [combines](EpochMachine::combine_link_totals) them; a kilobyte for each link that carried anything.
    pub fn link_totals<'r, 'g: 'r, T: Copy + 'r>(
        &self,
        numbers: Range<u32>,
        regions: impl Iterator<Item = &'r mut EpochRegion<'g, 'p, T>>,
        end: SimTime,
    ) -> Vec<LinkTotals<'static>>
    where
        'p: 'g,
    {
        let links = self.context.regions.links_by_region();
        let regions = regions.map(|part| &mut part.region);
        let links = &links[numbers.start as usize..numbers.end as usize];
        let totals = link_totals(self.context.platform, links, regions, end)
            .filter(|totals| totals.is_reported(self.context.platform));
        totals.map(LinkTotals::into_owned).collect()
    }

    /// Combines the [totals](EpochMachine::link_totals) of the links of all regions; `None` if some are not of this
    /// machine.
    pub fn combine_link_totals(&self, totals: Vec<LinkTotals<'_>>, end: SimTime) -> Option<LinkLoads> {
        let links = self.context.platform.links().len();
        let is_known = totals.iter().all(|totals| totals.link.index() < links);
        is_known.then(|| LinkLoads::new(self.context.platform, end, totals))
    }

    /// Makes the idle regions of these numbers, in their order.
    pub fn make_regions<T: Copy>(&self, numbers: Range<u32>) -> Vec<EpochRegion<'_, 'p, T>> {
        let part = |region: RegionState<T>| EpochRegion {
            machine: self,
            region: region.reporting_both_ends().recording(self.records_loads),
            requests: Vec::new(),
            first_request: None,
            timers: EventQueue::default(),
            now: SimTime::ZERO,
            upcoming: None,
            done: Vec::new(),
            outbox: Vec::new(),
            messages: Vec::new(),
            solves: 0,
        };
        make_regions(&self.context, self.epoch, numbers).into_iter().map(part).collect()
    }
}

impl<T: Copy + Send + Serialize + DeserializeOwned> NetworkModel<T> for EpochRegion<'_, '_, T> {
    type Message = RegionMessage<T>;
    const MAX_ROUNDS: &'static [u32] = &[2, u32::MAX];

    fn send(&mut self, request: Message<T>) -> Result<(), RouteError> {
        self.upcoming = None;
        let home = self.machine.context.regions.of_host(request.src);
        if home != self.region.id {
            self.messages.push((home.get(), RegionMessage(MessageKind::Request(request))));
            return Ok(());
        }
        self.add_request(request)
    }

    fn compute(&mut self, at: SimTime, host: HostId, flops: f64, tag: T) {
        self.upcoming = None;
        let slot = self.machine.context.regions.host_slot(host).slot;
        self.region.compute(&self.machine.context, (self.now, at), slot, flops, tag);
    }

    fn schedule(&mut self, at: SimTime, tag: T) {
        self.upcoming = None;
        self.timers.add(at, tag);
    }

    fn now(&self) -> SimTime {
        self.now
    }

    fn next_event(&mut self) -> Option<SimTime> {
        if !self.done.is_empty() {
            return Some(self.now);
        }
        if self.upcoming.is_none() {
            self.upcoming = earlier(self.region.next_event(), self.timers.next());
        }
        self.upcoming
    }

    fn advance(&mut self, done: &mut Vec<T>) {
        let Some(now) = self.next_event() else { return };
        let before = done.len();
        done.append(&mut self.done);
        let boundary = self.region.boundary_before(now).saturating_add(self.machine.epoch);
        let mut next = Some(now);
        while let Some(now) = next {
            self.step(now, done);
            let is_silent = done.len() == before;
            next = if is_silent { self.next_event().filter(|&at| at < boundary) } else { None };
        }
    }

    fn next_boundary(&self) -> Option<SimTime> {
        let epoch = self.machine.epoch.as_picos();
        let requests = self.first_request.map(|begin| SimTime::from_picos(begin.as_picos() / epoch * epoch));
        earlier(requests, self.region.next_boundary(&self.machine.context, self.now))
    }

    fn take_messages(&mut self, messages: &mut Vec<(u32, RegionMessage<T>)>) {
        messages.append(&mut self.messages);
        let updates = self.outbox.drain(..);
        messages.extend(
            updates
                .map(|(to, message): (RegionId, _)| (to.get(), RegionMessage(MessageKind::Update(message)))),
        );
    }

    fn receive(&mut self, messages: RegionMessage<T>) {
        match messages.0 {
            MessageKind::Request(request) => {
                // The submitter has looked up the route.
                self.add_request(request)
                    .unwrap_or_else(|error| unreachable!("a route that was found is gone: {error}"));
            }
            MessageKind::Update(message) => self.region.receive(&self.machine.context, message),
            MessageKind::Reminder => {}
        }
    }

    fn exchange_round(&mut self, Range { start, .. }: Range<SimTime>, exchange: u32, round: u32) {
        let context = &self.machine.context;
        match (exchange, round) {
            (0, 0) => {
                self.now = start;
                self.upcoming = None;
                self.region.finish(start, &mut self.done);
                self.sort_requests();
                for PendingRequest { request, route, begin } in self.requests.drain(..) {
                    let Message { at, src, dst, size, tag, .. } = request;
                    self.region.schedule_announcement(
                        context,
                        (at, begin),
                        route,
                        MessageSpec { src, dst, size, tag },
                    );
                }
                self.first_request = None;
                self.region.announce(context, start, &mut self.outbox);
                if !self.region.arrivals.is_empty() {
                    self.messages.push((self.region.id.get(), RegionMessage(MessageKind::Reminder)));
                }
            }
            (0, 1) => self.region.offer_rates(start, &mut self.outbox),
            (1, _) => {
                self.solves += 1;
                self.region.solve(start, &mut self.outbox);
            }
            _ => {}
        }
    }

    fn begin_span(&mut self, Range { start, .. }: Range<SimTime>) {
        self.upcoming = None;
        self.region.begin_epoch(start);
    }

    /// The state recurs after a number of epochs.
    fn visit(&mut self, visitor: &mut StateVisitor<'_>)
    where
        T: State + Serialize + DeserializeOwned,
    {
        self.visit_state(visitor);
    }

    fn with_host_loads(self) -> Self {
        Self { region: self.region.recording_hosts(), ..self }
    }

    fn host_totals(&self) -> Vec<HostTotals> {
        self.region.host_totals()
    }

    fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        self.region.watch_period(now, period, repetitions);
    }

    fn repeat_loads(&mut self, now: SimTime) {
        self.region.repeat_loads(now);
    }

    fn unfinished(&self) -> impl Iterator<Item = T> + '_ {
        let requests = self.requests.iter().map(|requests| requests.request.tag);
        self.region.unfinished().chain(self.timers.iter().copied()).chain(requests)
    }
}

impl<T: Copy + Send> EpochRegion<'_, '_, T> {
    fn add_request(&mut self, request: Message<T>) -> Result<(), RouteError> {
        let Message { at, src, dst, size, tag, .. } = request;
        let context = &self.machine.context;
        let spec = MessageSpec { src, dst, size, tag };
        let route = self.region.routes.find(context, self.region.id, src, dst)?;
        if self.region.routes.route(route).is_local() {
            self.region.send_on_route(context, self.now, at, route, spec);
        } else {
            let begin = self.region.flow_begin(context, route, at, size);
            self.first_request = earlier(self.first_request, Some(begin));
            self.requests.push(PendingRequest { request, route, begin });
        }
        Ok(())
    }

    /// Sorts requests into the order in which they get their keys: stable, so that those of one rank stay in the order of submission.
    pub(super) fn sort_requests(&mut self) {
        self.requests.sort_by_key(
            |PendingRequest { request: Message { at, order, submitter, .. }, .. }| (*at, *order, *submitter),
        );
    }

    /// Processes the events of an instant.
    fn step(&mut self, now: SimTime, done: &mut Vec<T>) {
        self.now = now;
        self.upcoming = None;
        self.region.finish(now, done);
        done.extend(std::iter::from_fn(|| self.timers.pop_due(now)));
        self.region.begin(&self.machine.context, now);
    }

    /// Returns the number of solves of the region and of link evaluations in these.
    pub fn solve_counts(&self) -> (u64, u64) {
        (self.solves, self.region.solver.evaluations)
    }

    /// Returns the largest excess load of a link of the region over its capacity in a window of ten epochs, as a
    /// fraction of the capacity.
    pub fn capacity_violation(&self) -> f64 {
        self.region.capacity_violation()
    }
}

/// Returns the earlier of two optional instants.
#[inline]
pub(super) fn earlier(one: Option<SimTime>, other: Option<SimTime>) -> Option<SimTime> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use pdes_core::{Bytes, LpId};

    use super::*;
    use crate::epoch::message::FlowKey;

    #[test]
    fn messages_survive_a_round_trip() {
        let flow = FlowKey { begin: SimTime::from_picos(u64::MAX - 1), src: HostId::new(2), count: 3 };
        let [src, dst] = [4, u32::MAX].map(HostId::new);
        let (size, tag) = (Bytes::new(1 << 50), u64::MAX - 2);
        let (at, submitter) = (SimTime::from_picos(8), LpId::new(9));
        let request = Message { at, order: u64::MAX, submitter, origin: src, src, dst, size, tag };
        let kinds = [
            MessageKind::Request(request),
            MessageKind::Update(FlowUpdate::Announcement { flow, spec: MessageSpec { src, dst, size, tag } }),
            MessageKind::Update(FlowUpdate::Offer { flow, rate: u64::MAX }),
            MessageKind::Update(FlowUpdate::Advert { flow, from: RegionId::new(5), level: 6 }),
            MessageKind::Reminder,
        ];
        for kind in kinds {
            let mut bytes = postcard::to_stdvec(&RegionMessage(kind)).expect("the message is encoded");
            let (found, rest) =
                postcard::take_from_bytes::<RegionMessage<u64>>(&bytes).expect("the message is decoded");
            assert_eq!(format!("{:?}", found.0), format!("{kind:?}"));
            assert!(rest.is_empty());
            let shorter = &bytes[..bytes.len() - 1];
            assert!(postcard::from_bytes::<RegionMessage<u64>>(shorter).is_err(), "too short");
            bytes[0] = 5;
            assert!(postcard::from_bytes::<RegionMessage<u64>>(&bytes).is_err(), "no such kind");
        }
    }
}
