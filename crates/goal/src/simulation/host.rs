//! Hosts: when their resources become idle, and what waits for them.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::lane::{Entry, Plan, Resources, What, insert};
use super::program::Step;
use crate::schedule::{Kind, Tables};

/// What comes next at a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Next {
    /// When \[ps\].
    pub(crate) time: u64,
    /// Its place in the order of creation.
    pub(crate) stamp: u64,
}

/// Nothing comes next.
pub(crate) const NEVER: Next = Next { time: u64::MAX, stamp: u64::MAX };

/// The hosts of a simulation.
#[derive(Debug)]
pub(crate) struct Hosts {
    pub(crate) plan: Plan,
    /// What waits in each lane of each host; messages by their arrival, then by stamp.
    lanes: Vec<VecDeque<Entry>>,
    /// Messages that have arrived and found the resources busy, by stamp. Only where a host has several processors, and
    /// time may run backwards, that is another order than that of arrival; elsewhere they stay in their lanes.
    arrived: Vec<VecDeque<Entry>>,
    /// For each host when its processors become idle, its interfaces for sends, and those for receives \[ps\].
    idle: Vec<u64>,
    cpus: usize,
    nics: usize,
}

impl Hosts {
    pub(crate) fn new(tables: &Tables<'_>) -> Self {
        let (plan, extent) = (Plan::new(tables), tables.extent());
        let (cpus, nics) = (extent.cpus as usize, extent.nics as usize);
        let hosts = tables.ranks() as usize;
        Self {
            lanes: vec![VecDeque::new(); hosts * plan.lanes.len()],
            arrived: vec![VecDeque::new(); if cpus == 1 { 0 } else { hosts * plan.lanes.len() }],
            idle: vec![0; hosts * (cpus + 2 * nics)],
            plan,
            cpus,
            nics,
        }
    }

    #[inline]
    fn base(&self, host: u32) -> usize {
        host as usize * (self.cpus + 2 * self.nics)
    }

    #[inline]
    pub(crate) fn cpu(&mut self, host: u32, cpu: u8) -> &mut u64 {
        let base = self.base(host);
        &mut self.idle[base + usize::from(cpu)]
    }

    #[inline]
    pub(crate) fn sender(&mut self, host: u32, nic: u8) -> &mut u64 {
        let base = self.base(host);
        &mut self.idle[base + self.cpus + usize::from(nic)]
    }

    #[inline]
    pub(crate) fn receiver(&mut self, host: u32, nic: u8) -> &mut u64 {
        let base = self.base(host);
        &mut self.idle[base + self.cpus + self.nics + usize::from(nic)]
    }

    /// Returns when the resources of a lane become idle.
    #[inline]
    fn idle(&self, host: u32, resources: Resources) -> u64 {
        let base = self.base(host);
        let cpu = self.idle[base + usize::from(resources.cpu)];
        let nic = base + self.cpus + usize::from(resources.nic);
        match resources.what {
            What::Receive => 0,
            What::Calculate => cpu,
            What::Send => cpu.max(self.idle[nic]),
            What::Arrive => cpu.max(self.idle[nic + self.nics]),
        }
    }

    /// Puts a free operation into its lane.
    #[inline]
    pub(crate) fn free(&mut self, host: u32, node: u32, step: &Step, stamp: u64) {
        const SEND: u8 = Kind::Send as u8;
        const RECEIVE: u8 = Kind::Receive as u8;
        let cpu = *self.cpu(host, step.cpu);
        let (what, nic, time) = match step.kind {
            SEND => (What::Send, step.nic, cpu.max(*self.sender(host, step.nic))),
            RECEIVE => (What::Receive, 0, cpu),
            _ => (What::Calculate, 0, cpu),
        };
        let lane = self.lane(host, self.plan.lane(what, step.cpu, nic));
        self.lanes[lane].push_back(Entry { time, stamp, size: step.size, node, channel: step.channel });
    }

    /// Puts a message on its way to a host, to the processor and the interface with the numbers of the sender's.
    #[inline]
    pub(crate) fn arrive(&mut self, host: u32, cpu: u8, nic: u8, entry: Entry) {
        let lane = self.lane(host, self.plan.lane(What::Arrive, cpu, nic));
        if self.arrived.is_empty() {
            self.lanes[lane].push_back(entry);
        } else {
            insert(&mut self.lanes[lane], entry, |entry| (entry.time, entry.stamp));
        }
    }

    #[inline]
    fn lane(&self, host: u32, lane: usize) -> usize {
        host as usize * self.plan.lanes.len() + lane
    }

    /// Returns what comes next at a host in this order, and in which lane.
    #[inline]
    pub(crate) fn next(&mut self, host: u32, compare: impl Fn(&Next, &Next) -> Ordering) -> (Next, usize) {
        let mut first = (NEVER, 0);
        for lane in 0..self.plan.lanes.len() {
            if let Some(next) = self.next_in(host, lane)
                && compare(&next, &first.0).is_lt()
            {
                first = (next, lane);
            }
        }
        first
    }

    #[inline]
    fn next_in(&mut self, host: u32, lane: usize) -> Option<Next> {
        let resources = self.plan.lanes[lane];
        let lane = self.lane(host, lane);
        if resources.what == What::Arrive && !self.arrived.is_empty() {
            let idle = self.idle(host, resources);
            return next_arrived(&mut self.lanes[lane], &mut self.arrived[lane], idle);
        }
        let &Entry { time, stamp, .. } = self.lanes[lane].front()?;
        Some(Next { time: time.max(self.idle(host, resources)), stamp })
    }

    /// Takes what comes next in a lane.
    #[inline]
    pub(crate) fn pop(&mut self, host: u32, lane: usize) -> Option<Entry> {
        let lane = self.lane(host, lane);
        let arrived = self.arrived.get_mut(lane).and_then(VecDeque::pop_front);
        arrived.or_else(|| self.lanes[lane].pop_front())
    }

    /// Returns when the last processor of a host becomes idle.
    pub(crate) fn end(&self, host: u32) -> u64 {
        let base = self.base(host);
        self.idle[base..base + self.cpus].iter().copied().max().unwrap_or(0)
    }
}

/// Moves what has arrived by the time at which the resources become idle, and returns what comes next.
fn next_arrived(coming: &mut VecDeque<Entry>, arrived: &mut VecDeque<Entry>, idle: u64) -> Option<Next> {
    while coming.front().is_some_and(|entry| entry.time <= idle)
        && let Some(entry) = coming.pop_front()
    {
        insert(arrived, entry, |entry| (0, entry.stamp));
    }
    match arrived.front() {
        Some(entry) => Some(Next { time: idle, stamp: entry.stamp }),
        None => coming.front().map(|entry| Next { time: entry.time, stamp: entry.stamp }),
    }
}
