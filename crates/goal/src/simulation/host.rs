//! Hosts of the ordered engine: idle times of their resources, and the lanes in which slots wait for them.

use std::collections::BTreeSet;

use super::lane::{Plan, What};
use super::pool::{List, Pool, Slot};
use super::program::{Program, Ready};
use crate::schedule::{Extent, Tables};

/// Time and order of the next event of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Next {
    /// Start time of the event \[ps\].
    pub(crate) time: u64,
    /// Creation order, the tie-breaker.
    pub(crate) stamp: u64,
}

/// Marks a host without a next event.
pub(crate) const NEVER: Next = Next { time: u64::MAX, stamp: u64::MAX };

/// Number of bits in a word.
const BITS: usize = u64::BITS as usize;

/// Returns the bit of a lane, modulo 64.
#[inline]
fn bit(number: usize) -> u64 {
    1 << (number % BITS)
}

/// The hosts of an ordered simulation.
#[derive(Debug)]
pub(crate) struct Hosts {
    pub(crate) plan: Plan,
    /// Slots that wait in each lane of each host.
    lanes: Vec<List>,
    /// Bit per lane of each host, modulo 64, set if something may wait there.
    occupied: Vec<u64>,
    /// Arrivals in each lane of each host, if hosts have several processors.
    arrivals: Vec<Arrivals>,
    /// Times at which the resources of each host become idle \[ps\].
    idle: Vec<u64>,
}

impl Hosts {
    pub(crate) fn new(tables: &Tables<'_>, extent: &Extent) -> Self {
        let plan = Plan::new(tables, extent);
        let hosts = tables.ranks() as usize;
        let lanes = hosts * plan.lanes.len();
        Self {
            lanes: vec![List::default(); lanes],
            occupied: vec![0; hosts],
            arrivals: vec![Arrivals::default(); if plan.cpus == 1 { 0 } else { lanes }],
            idle: vec![0; hosts * plan.times()],
            plan,
        }
    }

    /// Returns the times at which the resources of a host become idle \[ps\].
    #[inline]
    fn times(&mut self, host: u32) -> &mut [u64] {
        let times = self.plan.times();
        &mut self.idle[host as usize * times..][..times]
    }

    /// Occupies the processor of a lane until `processor` and its interface, if it has one, until `interface` \[ps\].
    #[inline]
    pub(crate) fn occupy(&mut self, host: u32, lane: usize, processor: u64, interface: u64) {
        let [one, other] = self.plan.lanes[lane].idle;
        let times = self.times(host);
        times[usize::from(other)] = interface;
        times[usize::from(one)] = processor;
    }

    /// Keeps a processor and a sending interface busy until at least `until` \[ps\].
    pub(crate) fn hold(&mut self, host: u32, cpu: u8, nic: u8, until: u64) {
        let cpus = self.plan.cpus;
        let times = self.times(host);
        for at in [usize::from(cpu), cpus + usize::from(nic)] {
            times[at] = times[at].max(until);
        }
    }

    /// Adds a ready operation to its lane.
    #[inline]
    pub(crate) fn free(
        &mut self,
        host: u32,
        ready: Ready,
        program: &Program<'_>,
        pool: &mut Pool,
        stamp: u64,
    ) {
        let number = self.plan.number(&program.tables.nodes[ready.node as usize]) as usize;
        let lane = self.plan.lanes[number];
        let times = self.times(host);
        let time = match lane.what {
            What::Receive => times[usize::from(lane.cpu)],
            _ => lane.idle(times),
        };
        let slot = pool.take(program.slot(ready, &self.plan, time, stamp));
        let lane = self.lane(host, number);
        self.occupied[host as usize] |= bit(number);
        self.lanes[lane].push(slot, pool);
    }

    /// Adds a message in flight to a host, for the processor and interface with the numbers of the sender's. Returns
    /// true if it may be the next event there.
    #[inline]
    pub(crate) fn arrive(&mut self, host: u32, message: u32, pool: &mut Pool) -> bool {
        let Slot { time, stamp, sort, .. } = pool[message];
        let number = sort.lane() + 1;
        let lane = self.lane(host, number);
        self.occupied[host as usize] |= bit(number);
        if let Some(arrivals) = self.arrivals.get_mut(lane) {
            arrivals.coming.insert((time, stamp, message));
            return true;
        }
        let is_first = self.lanes[lane].first().is_none();
        self.lanes[lane].push(message, pool);
        is_first
    }

    #[inline]
    fn lane(&self, host: u32, number: usize) -> usize {
        host as usize * self.plan.lanes.len() + number
    }

    /// Returns the next event of a host and its lane.
    #[inline]
    pub(crate) fn next(&mut self, host: u32, pool: &Pool) -> (Next, usize) {
        if !self.arrivals.is_empty() || self.plan.lanes.len() > BITS {
            return self.next_of_many(host, pool);
        }
        let (count, times) = (self.plan.lanes.len(), self.plan.times());
        let lists = &self.lanes[host as usize * count..][..count];
        let times = &self.idle[host as usize * times..][..times];
        let mut first = (NEVER, 0);
        let mut occupied = self.occupied[host as usize];
        while occupied != 0 {
            let number = occupied.trailing_zeros() as usize;
            occupied &= occupied - 1;
            let Some(head) = lists[number].first() else { continue };
            let lane = &self.plan.lanes[number];
            let idle = lane.idle(times);
            let Slot { time, stamp, .. } = pool[head];
            first = first.min((Next { time: time.max(idle), stamp }, number));
        }
        first
    }

    /// Returns the same for hosts with more than 64 lanes or several processors.
    #[cold]
    fn next_of_many(&mut self, host: u32, pool: &Pool) -> (Next, usize) {
        let (count, times) = (self.plan.lanes.len(), self.plan.times());
        let lists = &self.lanes[host as usize * count..][..count];
        let times = &self.idle[host as usize * times..][..times];
        let mut first = (NEVER, 0);
        let mut occupied = self.occupied[host as usize];
        while occupied != 0 {
            let bit = occupied.trailing_zeros() as usize;
            occupied &= occupied - 1;
            for number in (bit..count).step_by(BITS) {
                let lane = &self.plan.lanes[number];
                let idle = lane.idle(times);
                let next = if let Some(head) = lists[number].first() {
                    let Slot { time, stamp, .. } = pool[head];
                    Next { time: time.max(idle), stamp }
                } else if let Some(arrivals) = self.arrivals.get_mut(host as usize * count + number)
                    && let Some(next) = arrivals.next(idle)
                {
                    next
                } else {
                    continue;
                };
                first = first.min((next, number));
            }
        }
        first
    }

    /// Removes and returns the next slot of a lane.
    #[inline]
    pub(crate) fn pop(&mut self, host: u32, number: usize, pool: &mut Pool) -> Option<u32> {
        let lane = self.lane(host, number);
        let listed = self.lanes[lane].pop(pool);
        if !self.arrivals.is_empty() {
            return listed.or_else(|| self.arrivals[lane].pop());
        }
        if self.plan.lanes.len() <= BITS && self.lanes[lane].first().is_none() {
            self.occupied[host as usize] &= !bit(number);
        }
        listed
    }

    /// Returns the time at which the last processor of a host becomes idle \[ps\].
    pub(crate) fn end(&mut self, host: u32) -> u64 {
        let cpus = self.plan.cpus;
        self.times(host)[..cpus].iter().copied().max().unwrap_or(0)
    }
}

/// Arrivals at a host with several processors. Time may run backwards there, so the order of arrival differs from that
/// of stamps, in which arrived messages get the resources.
#[derive(Clone, Debug, Default)]
struct Arrivals {
    /// Messages in flight, by time and stamp.
    coming: BTreeSet<(u64, u64, u32)>,
    /// Messages that have arrived and found the resources busy, by stamp.
    arrived: BTreeSet<(u64, u32)>,
}

impl Arrivals {
    /// Moves messages that arrive before the resources become idle to the arrived ones; returns the next event.
    fn next(&mut self, idle: u64) -> Option<Next> {
        while let Some(&(time, stamp, node)) = self.coming.first().filter(|(time, ..)| *time <= idle) {
            self.coming.remove(&(time, stamp, node));
            self.arrived.insert((stamp, node));
        }
        let coming = self.coming.first().map(|&(time, stamp, _)| Next { time, stamp });
        self.arrived.first().map(|&(stamp, _)| Next { time: idle, stamp }).or(coming)
    }

    /// Removes and returns the next message.
    fn pop(&mut self) -> Option<u32> {
        let arrived = self.arrived.pop_first().map(|(_, node)| node);
        arrived.or_else(|| self.coming.pop_first().map(|(.., node)| node))
    }
}
