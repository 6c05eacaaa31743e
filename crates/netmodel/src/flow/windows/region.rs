//! A region of a machine that is simulated in windows: hosts with their cores and loopbacks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pdes_core::SimTime;
use serde::{Deserialize, Serialize};

use super::{Routed, StartingFlow, WindowMachine};
use crate::flow::{FlowNetwork, earlier};
use crate::link_load::LinkTotals;
use crate::{HostId, LinkId, Message, NetworkModel, NetworkRegion, RouteError};

/// A region of a [`WindowMachine`], and the pocket of the same number.
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
}

/// Message between regions.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum WindowMessage<T> {
    /// Flows begin or end in the window.
    Assign,
    /// The pocket of the region has events in the window.
    Advance,
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
        }
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
        self.local.link_totals(end)
    }

    fn advance_pocket(&mut self, end: SimTime, messages: &mut Vec<(u32, WindowMessage<T>)>) {
        let mut pocket = self.machine.pockets[self.index as usize].lock();
        pocket.advance_until(end, |at, Routed { tag, regions: [one, other] }| {
            messages.push((one, WindowMessage::Arrival(at, tag)));
            if other != one {
                messages.push((other, WindowMessage::Arrival(at, tag)));
            }
        });
        self.machine.set_pocket_event(self.index, pocket.next_event());
    }
}

impl<T: Copy + Send> NetworkRegion<T> for WindowRegion<'_, '_, T> {
    type Message = WindowMessage<T>;
    /// Flows that begin, their assignment to pockets, and arrivals.
    const MAX_ROUNDS: &'static [u32] = &[3];

    fn send(&mut self, message: Message<T>, _: &mut Vec<(u32, WindowMessage<T>)>) -> Result<(), RouteError> {
        let Message { at, order, submitter, src, dst, size, tag } = message;
        if src == dst {
            self.is_late |= at < self.now;
            return self.local.send(message);
        }
        let route = self.local.route(src, dst)?;
        let begin = self.local.flow_begin(route, at, size);
        self.is_late |= begin < self.machine.window_of(at).saturating_add(self.machine.window);
        let machine = self.machine;
        let tag = Routed { tag, regions: [src, dst].map(|host| machine.home(host)) };
        let message = Message { at, order, submitter, src, dst, size, tag };
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

    fn unfinished(&self) -> Vec<T> {
        let pocket = self.machine.pockets[self.index as usize].lock();
        let starting = self.starting.iter().map(|flow| flow.message.tag.tag);
        let flowing: Vec<T> = pocket.unfinished().map(|routed| routed.tag).collect();
        let arriving = self.arrivals[self.arrived..].iter().map(|&(_, tag)| tag);
        self.local.unfinished().chain(starting).chain(flowing).chain(arriving).collect()
    }

    fn next_boundary(&self) -> Option<SimTime> {
        let machine = self.machine;
        earlier(self.first_begin, machine.pocket_event(self.index)).map(|at| machine.window_of(at))
    }

    fn receive(&mut self, message: WindowMessage<T>) {
        if let WindowMessage::Arrival(at, tag) = message {
            self.arrivals.push((at, tag));
        }
    }

    fn begin_span(&mut self, _: SimTime) {
        self.arrivals.drain(..self.arrived);
        self.arrived = 0;
        // Stable, and fast where those of each pocket are in order.
        self.arrivals.sort_by_key(|&(at, _)| at);
    }

    fn exchange_round(
        &mut self,
        begin: SimTime,
        _: u32,
        round: u32,
        messages: &mut Vec<(u32, WindowMessage<T>)>,
    ) {
        let end = begin.saturating_add(self.machine.window);
        match round {
            0 => {
                if self.first_begin.is_some_and(|begin| begin < end) {
                    let flows = self.starting.extract_if(.., |flow| flow.begin < end);
                    self.machine.begins[self.index as usize].lock().extend(flows);
                    self.first_begin = self.starting.iter().map(|flow| flow.begin).min();
                }
                messages.push((0, WindowMessage::Assign));
            }
            1 if self.index == 0 => self.machine.assign_flows((begin, end), messages),
            1 => {}
            _ => self.advance_pocket(end, messages),
        }
    }
}

impl<T: Copy> WindowMachine<'_, T> {
    /// Gives the flows that begin in a window to pockets, and lets those with events advance.
    fn assign_flows(&self, (begin, end): (SimTime, SimTime), messages: &mut Vec<(u32, WindowMessage<T>)>) {
        let mut flows = Vec::new();
        self.begins.iter().for_each(|begins| flows.append(&mut begins.lock()));
        let mut pockets: Vec<_> = self.pockets.iter().map(|pocket| pocket.lock()).collect();
        self.assignment.lock().assign(begin, &mut flows, &mut pockets);
        if let Some(trial) = &self.trial {
            let mut trial = trial.lock();
            trial.add_window(pockets.iter().map(|pocket| (pocket.begun(), pocket.flow_count())));
            self.is_futile.store(trial.is_futile(), Ordering::Relaxed);
        }
        for (index, pocket) in (0..).zip(&mut pockets) {
            let next = pocket.next_event();
            self.set_pocket_event(index, next);
            if next.is_some_and(|at| at < end) {
                messages.push((index, WindowMessage::Advance));
            }
        }
    }
}
