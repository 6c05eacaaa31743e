//! Volumes that messages bring over links, as an observer is told of them.
//!
//! Nothing is told when rates are solved: the amount that a flow has brought over its links is known when it ends, and is sampled
//! before at instants that the observer chooses. This costs the length of the route for each flow and sample, regardless of the number
//! of rate changes.
//!
//! Fat pipes whose power depends on their load are the exception: their load is that of their most demanding flow, which each solve may
//! change.

use std::collections::BTreeMap;

use pdes_core::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};

use super::PICOS;
use super::route::RouteCache;
use crate::maxmin::{Component, FlowIndex, LinkIndex, Relocation};
use crate::observer::{NetworkObserver, ObservedLink};
use crate::{LinkId, MaxMin};

/// The flows that an observer is told of.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(bound = "O: NetworkObserver")]
pub(super) struct ObservedVolumes<O> {
    /// Earliest instant at which all flows are to be sampled.
    next_sample: SimTime,
    /// Active flows, by their numbers.
    flows: Vec<Option<ActiveFlow>>,
    /// Fat pipes in use whose power depends on their load, by their numbers in the solver.
    pipes: BTreeMap<u32, ActivePipe>,
    /// Time of all repetitions of an interval that was announced.
    #[serde(skip)]
    repeated: Option<SimDuration>,
    pub(super) observer: O,
}

/// An active flow.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ActiveFlow {
    route: u32,
    penalty: f64,
    /// Bytes times the penalty.
    length: f64,
    /// Length that the observer has not been told of, and from when on.
    left: f64,
    since: SimTime,
}

/// The most demanding flow of a fat pipe.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ActivePipe {
    /// Load [B/ps], and since when.
    load: f64,
    since: SimTime,
    /// Instant until which the observer was told.
    told: SimTime,
}

impl ActivePipe {
    fn new(load: f64, now: SimTime) -> Self {
        Self { load, since: now, told: now }
    }

    /// Returns the volume until an instant, in units.
    fn units(&self, until: SimTime) -> i64 {
        (self.load * (until - self.since).as_picos() as f64 * UNITS_PER_BYTE) as i64
    }
}

/// Volumes are counted in units of a 1024th of a byte: their sums are exact up to 8 TB, whatever their order, so that a bin has the
/// same sum however often its flows were sampled.
const UNITS_PER_BYTE: f64 = 1024.0;

/// Returns a link as the observer knows it.
fn observed(sharing: &MaxMin, link: LinkIndex) -> ObservedLink {
    ObservedLink { link: LinkId::new(sharing.number(link)), slot: link.get() }
}

impl<O: NetworkObserver> ObservedVolumes<O> {
    pub(super) fn new(observer: O) -> Self {
        let (flows, pipes) = (Vec::new(), BTreeMap::new());
        Self { next_sample: SimTime::ZERO, flows, pipes, repeated: None, observer }
    }

    /// Returns the instant after the repetitions of the interval that was announced and ends now.
    pub(super) fn after_repetitions(&self, now: SimTime) -> SimTime {
        self.repeated.map_or(SimTime::MAX, |time| now.saturating_add(time))
    }

    /// Tells the start of a flow.
    #[inline(always)]
    pub(super) fn begin(
        &mut self,
        now: SimTime,
        flow: FlowIndex,
        sources: (u32, &RouteCache<'_>, &MaxMin),
        bytes: u64,
        lengths: (f64, f64),
    ) {
        if self.observer.is_observing() {
            self.tell_begin(now, flow, sources, bytes, lengths);
        }
    }

    fn tell_begin(
        &mut self,
        now: SimTime,
        flow: FlowIndex,
        (route, routes, sharing): (u32, &RouteCache<'_>, &MaxMin),
        bytes: u64,
        (length, penalty): (f64, f64),
    ) {
        if self.flows.len() <= flow.index() {
            self.flows.resize(flow.index() + 1, None);
        }
        self.flows[flow.index()] = Some(ActiveFlow { route, penalty, length, left: length, since: now });
        let has_pipes = routes.has_metered_pipes();
        for usage in routes.usages(route) {
            // The weight is truncated to whole crossings: acknowledgements on the reverse route do not count as bytes
            // of messages.
            self.observer.message_began(observed(sharing, usage.link), bytes * usage.weight as u64);
            if has_pipes && routes.is_metered_pipe(observed(sharing, usage.link).link) {
                self.pipes.entry(usage.link.get()).or_insert(ActivePipe::new(0.0, now));
            }
        }
    }

    /// Tells the end of a flow, which has left its links; unless it has arrived, with a length left.
    #[inline]
    pub(super) fn end(
        &mut self,
        now: SimTime,
        flow: FlowIndex,
        left: f64,
        (routes, sharing): (&RouteCache<'_>, &MaxMin),
    ) {
        if self.observer.is_observing() {
            self.tell_end(now, flow, left, (routes, sharing));
        }
    }

    fn tell_end(
        &mut self,
        now: SimTime,
        flow: FlowIndex,
        left: f64,
        (routes, sharing): (&RouteCache<'_>, &MaxMin),
    ) {
        let Some(active) = self.flows[flow.index()].take() else { return };
        self.tell(now, active, left.clamp(0.0, active.left), (routes, sharing));
        if !self.pipes.is_empty() {
            self.update_pipes(now, (routes, sharing));
        }
        for usage in routes.usages(active.route) {
            self.tell_limits(now, usage.link, sharing);
        }
    }

    /// Tells a change of the penalty of a flow, which has a length left.
    pub(super) fn change(
        &mut self,
        now: SimTime,
        flow: FlowIndex,
        (left, penalty): (f64, f64),
        sources: (&RouteCache<'_>, &MaxMin),
    ) {
        if let Some(active) = self.flows.get(flow.index()).copied().flatten() {
            let left = left.clamp(0.0, active.left);
            self.tell(now, active, left, sources);
            let factor = penalty / active.penalty;
            let (length, left) = (active.length * factor, left * factor);
            self.flows[flow.index()] = Some(ActiveFlow { penalty, length, left, since: now, ..active });
        }
    }

    /// Tells the volume that a flow has brought over its links since it was told last.
    fn tell(
        &mut self,
        at: SimTime,
        flow: ActiveFlow,
        left: f64,
        (routes, sharing): (&RouteCache<'_>, &MaxMin),
    ) {
        let [sent, sent_before] =
            [left, flow.left].map(|left| (flow.length - left) / flow.penalty * UNITS_PER_BYTE);
        // Casts round down, without the call that `floor` is where the processor may be old.
        let units = |sent: f64| sent as i64;
        let volume_of =
            |weight: f64| (units(sent * weight) - units(sent_before * weight)) as f64 / UNITS_PER_BYTE;
        // Links have the weight of the message, or that of its acknowledgements: each volume is computed once.
        let (whole, mut other) = (volume_of(1.0), (0.0, 0.0));
        let has_pipes = !self.pipes.is_empty();
        for usage in routes.usages(flow.route) {
            if has_pipes && self.pipes.contains_key(&usage.link.get()) {
                continue;
            }
            let volume = if usage.weight == 1.0 {
                whole
            } else {
                if usage.weight != other.0 {
                    other = (usage.weight, volume_of(usage.weight));
                }
                other.1
            };
            self.observer.carried(observed(sharing, usage.link), flow.since..at, volume);
        }
    }

    /// Updates the loads of fat pipes after rates have changed. Costs the flows on these.
    fn update_pipes(&mut self, now: SimTime, (routes, sharing): (&RouteCache<'_>, &MaxMin)) {
        let Self { flows, pipes, observer, .. } = self;
        pipes.retain(|&number, pipe| {
            let link = LinkIndex::new(number);
            let load_of = |flow: FlowIndex| {
                let active = flows[flow.index()].as_ref().expect("a flow on a link is active");
                let usage = routes.usages(active.route).iter().find(|usage| usage.link == link);
                sharing.rate(flow) / PICOS * usage.expect("the link is on the route").weight
            };
            let loads = sharing.flows_on(link).map(load_of);
            let load = loads.reduce(f64::max);
            if load != Some(pipe.load) {
                tell_pipe(observer, now, pipe, observed(sharing, link));
                *pipe = ActivePipe::new(load.unwrap_or_default(), now);
            }
            load.is_some()
        });
    }

    /// Advances to an instant with constant rates; `left` returns the length left of a flow at an instant until then.
    #[inline]
    pub(super) fn advance(
        &mut self,
        now: SimTime,
        sources: (&RouteCache<'_>, &MaxMin),
        left: impl Fn(FlowIndex, SimTime) -> f64,
    ) {
        // No event ends at the end of time.
        if self.observer.is_observing() && now >= self.next_sample && now < SimTime::MAX {
            self.sample_until(now, sources, left);
        }
    }

    #[cold]
    fn sample_until(
        &mut self,
        now: SimTime,
        sources: (&RouteCache<'_>, &MaxMin),
        left: impl Fn(FlowIndex, SimTime) -> f64,
    ) {
        loop {
            self.next_sample = self.observer.next_sample(now);
            if self.next_sample > now {
                return;
            }
            self.sample(self.next_sample, sources, &left);
            self.observer.sampled(self.next_sample, now);
        }
    }

    /// Tells the volumes of all flows up to an instant.
    fn sample(
        &mut self,
        at: SimTime,
        sources: (&RouteCache<'_>, &MaxMin),
        left: impl Fn(FlowIndex, SimTime) -> f64,
    ) {
        for flow in 0..self.flows.len() {
            let Some(active) = self.flows[flow] else { continue };
            let left = left(FlowIndex::new(flow as u32), at).clamp(0.0, active.left);
            self.flows[flow] = Some(ActiveFlow { left, since: at, ..active });
            self.tell(at, active, left, sources);
        }
        self.tell_pipes(at, sources.1);
    }

    /// Tells the volumes of the fat pipes in use up to an instant.
    pub(super) fn tell_pipes(&mut self, at: SimTime, sharing: &MaxMin) {
        for (&number, pipe) in &mut self.pipes {
            tell_pipe(&mut self.observer, at, pipe, observed(sharing, LinkIndex::new(number)));
        }
    }

    /// Announces an interval that begins now and may be repeated.
    pub(super) fn watch(
        &mut self,
        now: SimTime,
        (period, repetitions): (SimDuration, u64),
        sources: (&RouteCache<'_>, &MaxMin),
        left: impl Fn(FlowIndex, SimTime) -> f64,
    ) {
        if self.observer.is_observing() {
            self.advance(now, sources, &left);
            self.sample(now, sources, left);
            self.observer.watch_period(now, period, repetitions);
            self.repeated = period.checked_mul(repetitions);
            self.next_sample = SimTime::ZERO;
        }
    }

    /// Repeats the interval that was [announced](ObservedVolumes::watch), and ends now.
    pub(super) fn repeat(
        &mut self,
        now: SimTime,
        sources: (&RouteCache<'_>, &MaxMin),
        left: impl Fn(FlowIndex, SimTime) -> f64,
    ) {
        if self.observer.is_observing() {
            self.advance(now, sources, &left);
            self.sample(now, sources, left);
            self.observer.repeat_period(now);
            // What flows bring from now on, they bring after the repetitions.
            let after = self.after_repetitions(now);
            self.repeated = None;
            self.flows.iter_mut().flatten().for_each(|flow| flow.since = after);
            self.pipes.values_mut().for_each(|pipe| *pipe = ActivePipe::new(pipe.load, after));
            self.next_sample = SimTime::ZERO;
        }
    }

    /// Moves the flows of a component to the observer of another network; `routes` gives their routes there. Both have
    /// [advanced](ObservedVolumes::advance) to `now`.
    pub(super) fn move_component(
        &mut self,
        now: SimTime,
        (component, relocation): (&Component, &Relocation),
        to: &mut Self,
        sharing: &MaxMin,
        route_there: impl Fn(FlowIndex) -> u32,
    ) {
        if !self.observer.is_observing() {
            return;
        }
        for &flow in &component.flows {
            let there = relocation.flows[&flow].index();
            if to.flows.len() <= there {
                to.flows.resize(there + 1, None);
            }
            let active = self.flows[flow.index()].take();
            to.flows[there] = active.map(|active| ActiveFlow { route: route_there(flow), ..active });
        }
        for &link in &component.links {
            let here = observed(sharing, link);
            let there = ObservedLink { slot: relocation.links[&link].get(), ..here };
            self.observer.move_link(here, now, (&mut to.observer, there));
            if let Some(pipe) = self.pipes.remove(&link.get()) {
                to.pipes.insert(there.slot, pipe);
            }
        }
    }

    /// Tells which links are bottlenecks after a solve.
    #[inline(always)]
    pub(super) fn solved(&mut self, now: SimTime, routes: &RouteCache<'_>, sharing: &MaxMin) {
        if self.observer.is_observing() {
            self.tell_solved(now, routes, sharing);
        }
    }

    fn tell_solved(&mut self, now: SimTime, routes: &RouteCache<'_>, sharing: &MaxMin) {
        if !self.pipes.is_empty() {
            self.update_pipes(now, (routes, sharing));
        }
        let links = sharing.changed_links().chain(sharing.freed_links());
        links.for_each(|link| self.tell_limits(now, link, sharing));
    }

    fn tell_limits(&mut self, now: SimTime, link: LinkIndex, sharing: &MaxMin) {
        // A link has a finite level if it is a bottleneck.
        self.observer.limits(observed(sharing, link), now, sharing.link_level(link).is_finite());
    }
}

/// Tells the volume of the most demanding flow of a fat pipe since it was told last.
fn tell_pipe(observer: &mut impl NetworkObserver, at: SimTime, pipe: &mut ActivePipe, link: ObservedLink) {
    if pipe.told < at {
        let units = pipe.units(at) - pipe.units(pipe.told);
        observer.peaked(link, pipe.told..at, units as f64 / UNITS_PER_BYTE);
        pipe.told = at;
    }
}
