//! The flow model: messages share links and computations share cores, simulated event by event.
//!
//! This is SimGrid's flow model (network_cm02.cpp, cpu_cas01.cpp; Velho, Schnorr, Casanova and Legrand, "On the Validity
//! of Flow-level TCP Network Models for Grid and Cloud Simulations", TOMACS 23(4), 2013). A message of `s` bytes on the wire,
//! over a route of latency `L`,
//!
//! 1. uses no bandwidth during its *latency phase* of `L * latency_factor(s)`;
//! 2. then is a flow with penalty `L + sum_l weight_s / b_l`, or 1 if `L` is zero, and a rate of at most
//!    `min(min_l b_l, gamma / (2 L))`. It uses 1 of its rate on each link of the route and, with cross traffic, 0.05 on
//!    each link of the reverse route. Rates are max-min fair ([`MaxMin`]), solved again whenever a flow begins or ends;
//! 3. progresses at `bandwidth_factor(s)` times that rate, and arrives when its `s` bytes have passed.
//!
//! Computations on a host with `C` cores of speed `v` progress at `v`, or at `C v / n` each where `n > C` of them run.
//!
//! Events that lie less than `precision` after the earliest one are completed with it, at its instant, as SimGrid does
//! with `surf/precision`; with a precision of zero no event moves.

mod choice;
pub(crate) mod cpu;
mod parts;
mod pending;
mod progress;
mod route;
mod state;
mod volumes;
pub mod windows;

use std::collections::BTreeSet;

use pdes_core::{Bytes, EventQueue, SimDuration, SimTime, State, StateVisitor};
use rustc_hash::FxHashSet;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::link_load::LinkLoads;
use crate::maxmin::FlowIndex;
use crate::route_cost::SizeFactors;
use crate::{
    HostId, HostTotals, LinkId, LoadRecorder, MaxMin, Message, NetworkModel, NetworkObserver,
    NetworkParameters, Platform, Resource, ResourceChange, RouteError,
};
use choice::RouteChoices;
use cpu::{BusyTime, Cpus};
use pending::{MessageOrder, PendingId, PendingList, Work};
use progress::Progress;
use route::RouteCache;
use volumes::ObservedVolumes;

/// Picoseconds in a second.
pub(crate) const PICOS: f64 = 1e12;

/// Number of hosts from which on the parts of a network that share no links are kept apart to the last bit, so that threads may
/// simulate them; on fewer hosts there is too little to do for several threads, and grouped flows make dense traffic up to
/// four times as fast.
pub(crate) const MIN_SEPARATE_HOSTS: usize = 128;

/// Simulation of a machine with contention: messages and computations in progress, and future events.
///
/// `T` is the tag that the caller attaches to a message or computation and gets back on its completion.
///
/// ```
/// use netmodel::{FlowNetwork, Message, NetworkModel, NetworkParameters, Platform, Preset};
/// use pdes_core::{Bytes, SimTime};
///
/// let text = "[topology]\nkind = \"cluster\"\nhosts = 3\nspeed = \"1Gf\"\nbandwidth = \"1MBps\"\nlatency = \"0s\"\n";
/// let platform = Platform::from_toml(text, "flat.toml")?;
/// let host = |number| netmodel::HostId::new(number);
/// let parameters = NetworkParameters::preset(Preset::Raw);
/// let mut network = FlowNetwork::new(&platform, &parameters);
/// // Two messages to one host: they share its link until the shorter one is there.
/// network.send(Message::new(SimTime::ZERO, host(0), host(2), Bytes::new(1_000_000), "long"))?;
/// network.send(Message::new(SimTime::ZERO, host(1), host(2), Bytes::new(500_000), "short"))?;
/// let mut done = Vec::new();
/// assert_eq!(network.next_event(), Some(SimTime::from_picos(1_000_000_000_000)));
/// network.advance(&mut done);
/// assert_eq!(network.next_event(), Some(SimTime::from_picos(1_500_000_000_000)));
/// network.advance(&mut done);
/// assert_eq!(done, ["short", "long"]);
/// assert_eq!(network.next_event(), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FlowNetwork<'p, T, O = LoadRecorder> {
    factors: SizeFactors,
    /// At least a picosecond, so that events at one instant happen together.
    precision: SimDuration,
    routes: RouteCache<'p>,
    choices: RouteChoices,
    sharing: MaxMin,
    progress: Progress,
    /// Active flows, by their numbers in `sharing`.
    active: Vec<ActiveFlow>,
    /// Number of flows begun so far.
    begun: u64,
    pending: PendingList<T>,
    events: EventQueue<ScheduledEvent>,
    cpus: Cpus<PendingId>,
    now: SimTime,
    /// Time of the next event, unless something began since it was computed.
    upcoming: Option<SimTime>,
    due: Vec<((SimTime, EventOrder), DueEvent)>,
    volumes: ObservedVolumes<O>,
    /// Shortest latency phase between two hosts; computed when it is asked for.
    lookahead: Option<SimDuration>,
}

/// An event at a known instant.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
enum ScheduledEvent {
    /// A message or computation begins, or a timer ends.
    Begin(PendingId),
    /// The latency phase of a message is over: its data begin to flow.
    StartFlow(PendingId),
}

/// The message of an active flow.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ActiveFlow {
    message: PendingId,
    route: u32,
    /// Number of the flow in the order in which flows begin.
    begun: u64,
}

/// Order of the events of one time. It depends on the messages alone, not on what else happens in the network: numbers
/// of flows and of routes would depend on others that came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EventOrder {
    /// What begins or ends at an instant of a change sees the new values.
    Change,
    /// Messages arrive by their ends, and between two hosts in the order in which their flows began.
    Arrival {
        ends: (HostId, HostId),
        begun: u64,
    },
    /// Messages, computations and timers follow in the order in which they were scheduled.
    Begin,
    StartFlow(MessageOrder),
}

/// An event at the present instant.
#[derive(Clone, Copy, Debug)]
enum DueEvent {
    /// The last byte of a message arrives.
    Arrival(FlowIndex),
    /// Resources change.
    Change,
    Scheduled(ScheduledEvent),
}

impl<'p, T: Copy> FlowNetwork<'p, T> {
    /// Makes an idle machine, which records no loads. Takes memory proportional to the links and hosts of the platform, and later to the
    /// pairs of hosts that communicate and the messages and computations in progress.
    pub fn new(platform: &'p Platform, parameters: &NetworkParameters) -> Self {
        Self::observed(platform, parameters, LoadRecorder::default())
    }
}

impl<'p, T: Copy, O: NetworkObserver> FlowNetwork<'p, T, O> {
    /// Makes an idle machine that is observed. Takes as much memory as [`FlowNetwork::new`], beside the observer.
    pub fn observed(platform: &'p Platform, parameters: &NetworkParameters, observer: O) -> Self {
        let precision = SimDuration::try_from_secs_f64(parameters.precision_s).unwrap_or(SimDuration::ZERO);
        let mut network = Self {
            factors: SizeFactors::new(parameters),
            precision: precision.max(SimDuration::from_picos(1)),
            routes: RouteCache::new(platform, parameters),
            choices: RouteChoices::new(platform, parameters),
            sharing: match parameters.separates_messages() && platform.hosts().len() >= MIN_SEPARATE_HOSTS {
                true => MaxMin::without_groups(parameters.solve_scope),
                false => MaxMin::new(parameters.solve_scope),
            },
            progress: Progress::default(),
            active: Vec::new(),
            begun: 0,
            pending: PendingList::default(),
            events: EventQueue::default(),
            cpus: Cpus::new(platform.hosts().iter()),
            now: SimTime::ZERO,
            upcoming: None,
            due: Vec::new(),
            volumes: ObservedVolumes::new(observer),
            lookahead: None,
        };
        let past = network.routes.past_changes();
        network.change_speeds(&past);
        past.iter().for_each(|change| network.volumes.observer.changed(change));
        network
    }

    /// Returns the tag of the message of each flow, and its rate [B/s] since the last [`next_event`](NetworkModel::next_event).
    /// Takes time proportional to the messages that flow and their links.
    pub fn rates(&self) -> impl Iterator<Item = (T, f64)> + '_ {
        self.sharing.flows_in_order().map(|flow| {
            let rate = self.sharing.level(flow) / self.sharing.penalty(flow);
            (self.pending.tag(self.active[flow.index()].message), rate)
        })
    }

    /// Returns the observer.
    pub fn into_observer(self) -> O {
        self.volumes.observer
    }

    // Part of every message: as a function of its own it takes 2 % of the instructions of a replay.
    #[inline(always)]
    fn submit(&mut self, at: SimTime, work: Work, tag: T) {
        self.upcoming = None;
        let id = self.pending.add(work, tag);
        if at > self.now {
            self.events.add(at, ScheduledEvent::Begin(id));
        } else {
            self.begin(id);
        }
    }

    /// Begins a message or computation now.
    fn begin(&mut self, id: PendingId) {
        match self.pending.work(id) {
            Work::Message { route, size, .. } => {
                let route = self.current_route(id, route);
                if self.choices.are_minimal() {
                    self.begin_on(route, id, size);
                } else {
                    self.begin_chosen(route, id, size);
                }
            }
            Work::Compute { host, flops } => {
                let busy = tell_busy(&mut self.volumes.observer);
                self.cpus.begin(self.now, host.get(), flops, id, busy);
            }
            Work::Timer => unreachable!("a timer has no begin, only an end"),
        }
    }

    /// Begins a message on the route that it chooses, for that of the platform, or in parts on several.
    #[inline(never)]
    fn begin_chosen(&mut self, current: u32, message: PendingId, size: Bytes) {
        let route = self.choices.choose(current, &mut self.routes, &mut self.sharing);
        if route != current {
            self.pending.set_route(message, route);
        }
        let others = self.choices.choose_parts(route, size.get(), &mut self.routes, &mut self.sharing);
        if others.is_empty() {
            return self.begin_on(route, message, size);
        }
        let parts = self.pending.split(message, &others);
        let routes = std::iter::once(route).chain(others);
        routes.zip(parts).for_each(|(route, part)| self.begin_on(route, part, size));
    }

    /// Begins a message on a route, or a part of one, which has the latency of the size of the whole.
    // Called for every message: without the attribute a replay executes half a percent more instructions.
    #[inline(always)]
    fn begin_on(&mut self, route: u32, message: PendingId, whole: Bytes) {
        let latency = self.routes.latency(route, self.now);
        self.routes.announce(route, &mut self.sharing);
        if latency > 0.0 {
            let begin = self.after_latency(latency, self.now, whole);
            self.events.add(begin, ScheduledEvent::StartFlow(message));
        } else {
            self.start_flow(message);
        }
    }

    /// Returns the route that a message takes now, which was sent on a route.
    #[inline]
    fn current_route(&mut self, message: PendingId, route: u32) -> u32 {
        let current = self.routes.current(route, &mut self.sharing);
        if current != route {
            self.pending.set_route(message, current);
        }
        current
    }

    /// Starts the flow of a message now.
    fn start_flow(&mut self, message: PendingId) {
        let Work::Message { route, size, order } = self.pending.work(message) else {
            unreachable!("only messages flow")
        };
        let route = self.current_route(message, route);
        let wire = size.get() as f64 * self.factors.of(self.pending.whole_size(message, size)).time_per_byte;
        self.add_flow((message, order), route, size.get(), wire);
    }

    /// Adds a flow for what is left of a message: these bytes, and their amount on the wire.
    #[inline(always)]
    fn add_flow(&mut self, (message, order): (PendingId, MessageOrder), route: u32, bytes: u64, wire: f64) {
        let terms = self.routes.terms(route, order.sent(), self.now);
        let flow = self.routes.add_flow(route, terms, &mut self.sharing);
        self.progress.begin(self.now, flow, wire * terms.penalty);
        let sources = (route, &self.routes, &self.sharing);
        self.volumes.begin(self.now, flow, sources, bytes, (wire * terms.penalty, terms.penalty));
        self.begun += 1;
        let active = ActiveFlow { message, route, begun: self.begun };
        match self.active.get_mut(flow.index()) {
            Some(place) => *place = active,
            None => self.active.push(active),
        }
    }

    /// Ends a flow now, of which this length is left.
    #[inline(always)]
    fn end_flow(&mut self, flow: FlowIndex, left: f64) {
        self.progress.end(self.now, flow);
        self.choices.release(self.active[flow.index()].route, &self.routes);
        self.sharing.remove_flow(flow);
        self.volumes.end(self.now, flow, left, (&self.routes, &self.sharing));
    }

    /// Moves what is left of a flow to another route.
    fn move_flow(&mut self, flow: FlowIndex, route: u32) {
        let ActiveFlow { message, .. } = self.active[flow.index()];
        let Work::Message { size, order, .. } = self.pending.work(message) else {
            unreachable!("only messages flow")
        };
        let time_per_byte = self.factors.of(self.pending.whole_size(message, size)).time_per_byte;
        let (left, penalty) = (self.progress.left(self.now, flow), self.sharing.penalty(flow));
        self.end_flow(flow, left);
        self.pending.set_route(message, route);
        let wire = left / penalty;
        self.add_flow((message, order), route, (wire / time_per_byte) as u64, wire);
    }

    /// Applies the changes of resources that come by an instant, which is now or within the precision.
    #[cold]
    fn apply_changes(&mut self, at: SimTime) {
        let changes = self.routes.pass_changes(at);
        self.change_speeds(&changes);
        let links: BTreeSet<LinkId> = changes.iter().filter_map(|change| change.resource.link()).collect();
        let mut flows = Vec::new();
        for link in links {
            if let Some(index) = self.routes.index_of(link) {
                self.sharing.set_capacity(index, self.routes.capacity(link));
                flows.extend(self.sharing.flows_on(index));
            }
        }
        let mut is_changed = FxHashSet::default();
        flows.retain(|&flow| is_changed.insert(flow));
        if self.routes.platform().has_detours() {
            // Flows between two hosts arrive in the order in which they began.
            flows.sort_unstable_by_key(|flow| self.active[flow.index()].begun);
        }
        for flow in flows {
            let ActiveFlow { message, route, .. } = self.active[flow.index()];
            if let Some(around) = self.routes.around(route, &mut self.sharing) {
                self.move_flow(flow, around);
                continue;
            }
            let terms = self.routes.terms(route, self.pending.order(message).sent(), self.now);
            let before = self.sharing.penalty(flow);
            let left = self.progress.left(self.now, flow);
            self.volumes.change(self.now, flow, (left, terms.penalty), (&self.routes, &self.sharing));
            self.progress.scale(self.now, flow, terms.penalty / before);
            self.routes.change_flow(flow, route, terms, &mut self.sharing);
        }
        self.volumes.tell_pipes(self.now, &self.sharing);
        changes.iter().for_each(|change| self.volumes.observer.changed(change));
    }

    /// Applies the changes of resources before an instant: there are some only where nothing was in progress.
    fn pass_changes_before(&mut self, now: SimTime) {
        while let Some(at) = self.routes.next_change().filter(|&at| at < now) {
            self.now = self.now.max(at);
            self.apply_changes(at);
        }
    }

    /// Returns the instant of the next change of resources if it may matter to what is in progress; changes before the next event that begins
    /// anything are passed with it, so that a network without work has no events.
    #[cold]
    fn next_change(&mut self, next: Option<SimTime>) -> Option<SimTime> {
        let is_moving = self.flow_count() > 0 || self.cpus.next().is_some();
        // Computations at speed 0 have no end.
        let ends = next.is_some_and(|at| at < SimTime::MAX);
        self.routes.next_change().filter(|_| is_moving && (ends || self.routes.any_returns()))
    }

    /// Applies the changes of speeds among changes of resources.
    fn change_speeds(&mut self, changes: &[ResourceChange]) {
        for change in changes {
            if let Resource::Speed(host) = change.resource {
                let busy = tell_busy(&mut self.volumes.observer);
                self.cpus.set_speed(self.now, host.get(), change.value, busy);
            }
        }
    }

    /// Solves the rates of the present flows.
    fn solve_rates(&mut self) {
        self.sharing.solve();
        self.progress.apply_solve(self.now, &self.sharing);
        self.volumes.solved(self.now, &self.routes, &self.sharing);
    }

    /// Advances to the next event; takes the tags completed by then, and the routes of those that are messages.
    #[inline]
    fn complete_next(&mut self, mut done: impl FnMut(T, Option<u32>)) {
        let Some(now) = self.upcoming.take().or_else(|| self.next_event()) else { return };
        self.upcoming = None;
        self.pass_changes_before(now);
        self.now = now;
        // Before any flow ends: the observer is told what is left of each.
        self.advance_observer(now);
        let end = now.saturating_add(self.precision);
        let busy = tell_busy(&mut self.volumes.observer);
        self.cpus.finish(now, end, |id| done(self.pending.complete(id), None), busy);
        let mut due = std::mem::take(&mut self.due);
        self.progress.pop_before(end, |at, flow| {
            let ActiveFlow { route, begun, .. } = self.active[flow.index()];
            due.push((
                (at, EventOrder::Arrival { ends: self.routes.ends(route), begun }),
                DueEvent::Arrival(flow),
            ));
        });
        if let Some(at) = self.routes.next_change().filter(|&at| at < end) {
            due.push(((at, EventOrder::Change), DueEvent::Change));
        }
        let scheduled = std::iter::from_fn(|| self.events.pop_before(end));
        due.extend(scheduled.map(|(at, event)| {
            let order = match event {
                ScheduledEvent::Begin(_) => EventOrder::Begin,
                ScheduledEvent::StartFlow(id) => EventOrder::StartFlow(self.pending.order(id)),
            };
            ((at, order), DueEvent::Scheduled(event))
        }));
        if due.len() > 1 {
            // Stable: what has no order of its own stays in the order in which it was scheduled.
            due.sort_by_key(|&(order, _)| order);
        }
        for &((at, _), event) in &due {
            match event {
                DueEvent::Arrival(flow) => {
                    let ActiveFlow { message, route, .. } = self.active[flow.index()];
                    let is_last = self.pending.end_part(message);
                    let tag = self.pending.complete(message);
                    if is_last {
                        done(tag, Some(route));
                    }
                    self.end_flow(flow, 0.0);
                }
                DueEvent::Scheduled(ScheduledEvent::StartFlow(message)) => self.start_flow(message),
                DueEvent::Change => self.apply_changes(at),
                DueEvent::Scheduled(ScheduledEvent::Begin(id)) => match self.pending.work(id) {
                    Work::Timer => done(self.pending.complete(id), None),
                    Work::Message { .. } | Work::Compute { .. } => self.begin(id),
                },
            }
        }
        due.clear();
        self.due = due;
    }
}

impl<T: Copy, O: NetworkObserver> NetworkModel<T> for FlowNetwork<'_, T, O> {
    type Message = ();

    #[inline]
    fn send(&mut self, message: Message<T>) -> Result<(), RouteError> {
        let route = self.routes.find(message.src, message.dst, &mut self.sharing)?;
        let work = Work::Message { route, size: message.size, order: MessageOrder::of(&message) };
        self.submit(message.at, work, message.tag);
        Ok(())
    }

    /// Runs a computation on one core, or on an equal part of all cores.
    fn compute(&mut self, at: SimTime, host: HostId, flops: f64, tag: T) {
        self.submit(at, Work::Compute { host, flops }, tag);
    }

    fn schedule(&mut self, at: SimTime, tag: T) {
        let id = self.pending.add(Work::Timer, tag);
        self.events.add(at, ScheduledEvent::Begin(id));
        self.upcoming = None;
    }

    /// `O(work in progress)`, and twice that of the hosts.
    fn abandon(&mut self, at: SimTime, is_dropped: impl Fn(T) -> bool) {
        self.upcoming = None;
        self.pass_changes_before(at);
        self.now = at;
        self.advance_observer(at);
        let items = self.pending.items().filter(|(_, pending)| is_dropped(pending.tag));
        let dropped: Vec<PendingId> = items.map(|(id, _)| id).collect();
        let is_dropped = FxHashSet::from_iter(dropped.iter().copied());
        let is_dropped = |id: PendingId| is_dropped.contains(&id);
        let flows = self.sharing.flows_in_order();
        let flows: Vec<FlowIndex> =
            flows.filter(|flow| is_dropped(self.active[flow.index()].message)).collect();
        for flow in flows {
            self.end_flow(flow, self.progress.left(at, flow));
        }
        self.events.retain(|event| {
            let (ScheduledEvent::Begin(id) | ScheduledEvent::StartFlow(id)) = *event;
            if let (true, ScheduledEvent::StartFlow(_), Work::Message { route, .. }) =
                (is_dropped(id), event, self.pending.work(id))
            {
                self.choices.release(route, &self.routes);
            }
            !is_dropped(id)
        });
        self.cpus.abandon(at, is_dropped, tell_busy(&mut self.volumes.observer));
        dropped.into_iter().for_each(|id| {
            self.pending.end_part(id);
            self.pending.complete(id);
        });
    }

    fn next_event(&mut self) -> Option<SimTime> {
        if self.sharing.needs_solve() {
            self.solve_rates();
        } else {
            self.sharing.skip_solve();
        }
        let next = earlier(earlier(self.events.next(), self.progress.next()), self.cpus.next());
        self.upcoming = match self.routes.next_change() {
            None => next,
            Some(_) => earlier(next, self.next_change(next)),
        };
        self.upcoming
    }

    /// Messages begin with their latency phase; the ends of computations change no rates.
    fn undisturbed_until(&mut self, submission: SimTime) -> SimTime {
        let submission = self.next_event().map_or(submission, |next| next.min(submission));
        let lookahead = *self.lookahead.get_or_insert_with(|| self.routes.lookahead());
        let scheduled = earlier(earlier(self.events.next(), self.progress.next()), self.routes.next_change());
        let first = submission.saturating_add(lookahead).min(scheduled.unwrap_or(SimTime::MAX));
        // Events are completed with those that are a little earlier.
        SimTime::from_picos(first.as_picos().saturating_sub(self.precision.as_picos()))
    }

    fn advance(&mut self, done: &mut Vec<T>) {
        self.complete_next(|tag, _| done.push(tag));
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>)
    where
        T: State + Serialize + DeserializeOwned,
    {
        State::visit(self, visitor);
    }

    fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        if self.volumes.observer.is_observing() {
            self.cpus.tell(now, now, tell_busy(&mut self.volumes.observer));
        }
        let left = |flow, at| self.progress.left(at, flow);
        self.volumes.watch(now, (period, repetitions), (&self.routes, &self.sharing), left);
    }

    fn repeat_loads(&mut self, now: SimTime) {
        if self.volumes.observer.is_observing() {
            let after = self.volumes.after_repetitions(now);
            self.cpus.tell(now, after, tell_busy(&mut self.volumes.observer));
        }
        let left = |flow, at| self.progress.left(at, flow);
        self.volumes.repeat(now, (&self.routes, &self.sharing), left);
    }

    fn now(&self) -> SimTime {
        self.now
    }

    fn unfinished(&self) -> impl Iterator<Item = T> + '_ {
        self.pending.tags()
    }

    /// Enables the recording of link loads: a kilobyte for each link that carries anything.
    fn with_link_loads(mut self) -> Self {
        self.volumes.observer.record_link_loads();
        self
    }

    fn with_host_loads(mut self) -> Self {
        self.volumes.observer.record_host_loads();
        self
    }

    fn host_totals(&self) -> Vec<HostTotals> {
        self.volumes.observer.host_totals()
    }

    fn link_loads(&mut self, end: SimTime) -> Option<LinkLoads> {
        let totals = self.link_totals(end)?;
        Some(LinkLoads::new(self.routes.platform(), end, totals))
    }
}

/// Returns what tells an observer of busy cores.
#[inline]
fn tell_busy(observer: &mut impl NetworkObserver) -> impl FnMut(BusyTime) {
    |BusyTime { host, time, cores, speed }| {
        if observer.is_observing() {
            observer.computed(HostId::new(host), time, cores, speed);
        }
    }
}

/// Returns the earlier of two optional instants.
#[inline]
fn earlier(one: Option<SimTime>, other: Option<SimTime>) -> Option<SimTime> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

/// Adds picoseconds to an instant; saturates at the end of time.
pub(crate) fn later(at: SimTime, picos: f64) -> SimTime {
    let duration = SimDuration::try_from_picos_f64(picos);
    duration.and_then(|duration| at.checked_add(duration)).unwrap_or(SimTime::MAX)
}
