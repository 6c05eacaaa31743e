//! A region of a machine that is simulated in windows: hosts with their cores and loopbacks.

mod state;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pdes_core::{SimDuration, SimTime, State, StateVisitor};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::components::Target;
use super::{RoutedTag, StartingFlow, Subnetwork, WindowMachine};
use crate::flow::{FlowNetwork, earlier};
use crate::link_load::LinkTotals;
use crate::{HostId, HostTotals, LinkId, Message, NetworkModel, RouteError};

/// A region of a [`WindowMachine`], and the subnetwork of the same number.
#[derive(Debug)]
pub struct WindowRegion<'g, 'p, T> {
    machine: &'g WindowMachine<'p, T>,
    index: u32,
    /// Cores, loopbacks and timers.
    local: FlowNetwork<'p, T>,
    /// Links of the routes to other hosts, by route.
    links: Vec<Option<Arc<[LinkId]>>>,
    /// Messages to other hosts whose flows have not begun, and the first begin of a flow.
    starting: Vec<StartingFlow<T>>,
    first_begin: Option<SimTime>,
    /// Messages that arrive in the present window; up to `arrived` they have.
    arrivals: Vec<(SimTime, T)>,
    arrived: usize,
    now: SimTime,
    is_late: bool,
    /// Begin of a window, from which windows are counted.
    origin: SimTime,
    /// Messages to regions.
    messages: Vec<(u32, WindowMessage<T>)>,
}

/// Message between regions.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum WindowMessage<T> {
    /// The region has something to do in the next round.
    Call,
    /// A flow begins in the subnetwork of the region.
    Begin(SimTime, Message<RoutedTag<T>>),
    /// A message arrives.
    Arrival(SimTime, T),
}

impl<'g, 'p, T: Copy> WindowRegion<'g, 'p, T> {
    pub(super) fn new(machine: &'g WindowMachine<'p, T>, index: u32) -> Self {
        Self {
            machine,
            index,
            local: machine.network(),
            links: Vec::new(),
            starting: Vec::new(),
            first_begin: None,
            arrivals: Vec::new(),
            arrived: 0,
            now: SimTime::ZERO,
            is_late: false,
            origin: SimTime::ZERO,
            messages: Vec::new(),
        }
    }

    /// Returns the subnetwork of the same number.
    fn subnetwork(&self) -> &'g Subnetwork<'p, T> {
        &self.machine.subnetworks[self.index as usize]
    }

    /// Returns the begin of the window of an instant.
    fn window_of(&self, at: SimTime) -> SimTime {
        let (origin, window) = (self.origin.as_picos(), self.machine.window.as_picos());
        SimTime::from_picos(origin + at.as_picos().saturating_sub(origin) / window * window)
    }

    fn links_of(&mut self, route: u32) -> Arc<[LinkId]> {
        let place = route as usize;
        if self.links.len() <= place {
            self.links.resize(place + 1, None);
        }
        self.links[place].get_or_insert_with(|| self.local.links_of(route).collect()).clone()
    }

    /// Returns the totals of the links between the hosts of the region and themselves.
    pub(super) fn link_totals(&self, end: SimTime) -> impl Iterator<Item = LinkTotals<'_>> {
        self.local.link_totals(end).into_iter().flatten()
    }

    /// Joins the links of each flow that begins in a window.
    fn join_links(&mut self, end: SimTime) {
        let machine = self.machine;
        if self.first_begin.is_some_and(|begin| begin < end) {
            let mut begins = machine.begins[self.index as usize].lock();
            begins.extend(self.starting.extract_if(.., |flow| flow.begin < end));
            self.first_begin = self.starting.iter().map(|flow| flow.begin).min();
            for StartingFlow { links, .. } in &*begins {
                links[1..].iter().for_each(|&link| machine.components.join(links[0], link));
            }
            self.messages.push((self.index, WindowMessage::Call));
        }
        if machine.is_on_trial.load(Ordering::Relaxed) {
            self.messages.push((0, WindowMessage::Call));
        }
    }

    /// Proposes subnetworks for the components of the flows that begin in the window.
    fn propose_subnetworks(&mut self) {
        let machine = self.machine;
        if self.index == 0 {
            machine.add_trial_window();
        }
        let mut is_split = false;
        for StartingFlow { links, .. } in machine.begins[self.index as usize].lock().iter() {
            let root = machine.components.root(links[0]);
            machine.components.propose(root, Target::near(self.index));
            for &link in &**links {
                if let Some(subnetwork) = machine.components.subnetwork(link) {
                    let target =
                        Target::under_way(subnetwork, machine.subnetworks[subnetwork as usize].flows());
                    is_split |= machine.components.propose(root, target);
                }
            }
        }
        if is_split {
            self.messages.push((0, WindowMessage::Call));
        }
    }

    /// Sends the flows that begin in a window to the subnetworks of their components.
    fn send_flows(&mut self, end: SimTime) {
        let machine = self.machine;
        let begins = machine.begins[self.index as usize].lock();
        for StartingFlow { begin, message, links } in &*begins {
            let target = machine.components.target(links[0]).expect("each flow has proposed a subnetwork");
            machine.components.begin_flow(links.iter().copied(), target);
            self.messages.push((target, WindowMessage::Begin(*begin, *message)));
        }
        if !begins.is_empty() || self.subnetwork().next_event().is_some_and(|at| at < end) {
            self.messages.push((self.index, WindowMessage::Call));
        }
    }

    fn advance_subnetwork(&mut self, end: SimTime) {
        let machine = self.machine;
        for StartingFlow { links, .. } in machine.begins[self.index as usize].lock().drain(..) {
            machine.components.separate(&links);
        }
        let subnetwork = self.subnetwork();
        let mut network = subnetwork.network.lock();
        let mut routes = Vec::new();
        network.advance_until(end, |at, RoutedTag { tag, regions: [submitter, other] }, route| {
            self.messages.push((submitter, WindowMessage::Arrival(at, tag)));
            if other != submitter {
                self.messages.push((other, WindowMessage::Arrival(at, tag)));
            }
            routes.extend(route);
        });
        routes.into_iter().for_each(|route| machine.components.end_flow(network.links_of(route)));
        subnetwork.update(&mut network);
    }
}

impl<T: Copy + Send + Serialize + DeserializeOwned> NetworkModel<T> for WindowRegion<'_, '_, T> {
    type Message = WindowMessage<T>;
    /// Components of the flows that begin, and the subnetworks of these; then flows, and arrivals.
    const MAX_ROUNDS: &'static [u32] = &[3, 2];
    const BEGINS_ANYWHERE: bool = true;

    fn send(&mut self, message: Message<T>) -> Result<(), RouteError> {
        let Message { at, order, submitter, origin, src, dst, size, tag } = message;
        if src == dst {
            self.is_late |= at < self.now;
            return self.local.send(message);
        }
        let route = self.local.route(src, dst)?;
        let begin = self.local.flow_begin(route, at, size);
        self.is_late |= begin < self.window_of(at).saturating_add(self.machine.window);
        let machine = self.machine;
        let regions = match [src, dst].map(|host| machine.home(host)) {
            [sender, receiver] if receiver == self.index => [receiver, sender],
            regions => regions,
        };
        debug_assert_eq!(regions[0], self.index, "a rank of the region sends or receives the message");
        let tag = RoutedTag { tag, regions };
        let message = Message { at, order, submitter, origin, src, dst, size, tag };
        let links = self.links_of(route);
        self.starting.push(StartingFlow { begin, message, links });
        self.first_begin = earlier(self.first_begin, Some(begin));
        Ok(())
    }

    fn compute(&mut self, at: SimTime, host: HostId, flops: f64, tag: T) {
        self.is_late |= at < self.now;
        self.local.compute(at, host, flops, tag);
    }

    fn schedule(&mut self, at: SimTime, tag: T) {
        self.is_late |= at < self.now;
        self.local.schedule(at, tag);
    }

    /// All work is late once windows have proved [futile](WindowMachine::is_futile). Else work is late for an instant that this region has passed, because a rank of another region woke its rank without delay, or for
    /// a flow that begins in the window in which it was sent, which a shorter latency phase than the window's would allow.
    fn is_late(&self) -> bool {
        self.is_late || self.machine.is_futile()
    }

    fn now(&self) -> SimTime {
        self.now
    }

    fn next_event(&mut self) -> Option<SimTime> {
        earlier(self.local.next_event(), self.arrivals.get(self.arrived).map(|&(at, _)| at))
    }

    fn advance(&mut self, done: &mut Vec<T>) {
        let local = self.local.next_event();
        let Some(now) = earlier(local, self.arrivals.get(self.arrived).map(|&(at, _)| at)) else { return };
        self.now = now;
        if local == Some(now) {
            self.local.advance(done);
        }
        while let Some(&(at, tag)) = self.arrivals.get(self.arrived)
            && at == now
        {
            self.arrived += 1;
            done.push(tag);
        }
    }

    fn unfinished(&self) -> impl Iterator<Item = T> + '_ {
        let subnetwork = self.subnetwork().network.lock();
        let starting = self.starting.iter().map(|flow| flow.message.tag.tag);
        let flowing: Vec<T> = subnetwork.unfinished().map(|routed| routed.tag).collect();
        let arriving = self.arrivals[self.arrived..].iter().map(|&(_, tag)| tag);
        self.local.unfinished().chain(starting).chain(flowing).chain(arriving)
    }

    fn next_boundary(&self) -> Option<SimTime> {
        earlier(self.first_begin, self.subnetwork().next_event()).map(|at| self.window_of(at))
    }

    fn take_messages(&mut self, messages: &mut Vec<(u32, WindowMessage<T>)>) {
        messages.append(&mut self.messages);
    }

    fn receive(&mut self, message: WindowMessage<T>) {
        match message {
            WindowMessage::Call => {}
            WindowMessage::Begin(at, message) => {
                self.subnetwork().network.lock().schedule_flow(at, message);
            }
            WindowMessage::Arrival(at, tag) => self.arrivals.push((at, tag)),
        }
    }

    fn begin_span(&mut self, _: Range<SimTime>) {
        self.arrivals.drain(..self.arrived);
        self.arrived = 0;
        // Stable, and fast where those of each subnetwork are in order.
        self.arrivals.sort_by_key(|&(at, _)| at);
    }

    fn exchange_round(&mut self, Range { start, end }: Range<SimTime>, exchange: u32, round: u32) {
        match (exchange, round) {
            (0, 0) => self.join_links(end),
            (0, 1) => self.propose_subnetworks(),
            (0, _) => self.machine.gather(start),
            (_, 0) => self.send_flows(end),
            _ => self.advance_subnetwork(end),
        }
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>)
    where
        T: State + Serialize + DeserializeOwned,
    {
        State::visit(self, visitor);
    }

    fn count_spans_from(&mut self, origin: SimTime) {
        self.origin = origin;
    }

    fn with_host_loads(mut self) -> Self {
        self.local = self.local.with_host_loads();
        self
    }

    fn host_totals(&self) -> Vec<HostTotals> {
        self.local.host_totals()
    }

    fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        self.local.watch_period(now, period, repetitions);
        self.subnetwork().network.lock().watch_period(now, period, repetitions);
    }

    fn repeat_loads(&mut self, now: SimTime) {
        self.local.repeat_loads(now);
        self.subnetwork().network.lock().repeat_loads(now);
    }
}

impl<T: Copy> WindowMachine<'_, T> {
    /// Adds the window before the present one to the trial, if it is not over.
    fn add_trial_window(&self) {
        if self.is_on_trial.load(Ordering::Relaxed) {
            let mut trial = self.trial.lock();
            let begun = |subnetwork: &Subnetwork<'_, T>| subnetwork.begun.load(Ordering::Relaxed);
            trial.add_window(
                self.subnetworks.iter().map(|subnetwork| (begun(subnetwork), subnetwork.flows() as usize)),
            );
            self.is_on_trial.store(!trial.is_over(), Ordering::Relaxed);
            self.is_futile.store(trial.is_futile(), Ordering::Relaxed);
        }
    }
}
