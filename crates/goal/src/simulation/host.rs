//! Hosts of the ordered engine: idle times of their resources, and the lanes in which slots wait for them.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::dependencies::{DependencyTracker, ReadyOperation};
use super::lane::{LaneKind, LanePlan};
use super::pool::{Pool, Slot, SlotQueue};
use crate::schedule::{Extent, Tables};

/// Time and order of the next event of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextEvent {
    /// Start time of the event \[ps\].
    pub(crate) time: u64,
    /// Creation order, the tie-breaker.
    pub(crate) stamp: u64,
}

impl NextEvent {
    /// Returns both as one number, which is compared without a branch.
    #[inline]
    fn order(self) -> u128 {
        u128::from(self.time) << u64::BITS | u128::from(self.stamp)
    }
}

impl Ord for NextEvent {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for NextEvent {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Marks a host without a next event.
pub(crate) const NEVER: NextEvent = NextEvent { time: u64::MAX, stamp: u64::MAX };

/// Number of bits in a word.
const BITS: usize = u64::BITS as usize;

/// Returns the bit of a lane, modulo 64.
#[inline]
fn lane_bit(number: usize) -> u64 {
    1 << (number % BITS)
}

/// The hosts of an ordered simulation.
#[derive(Debug)]
pub(crate) struct Hosts {
    pub(crate) plan: LanePlan,
    /// Slots that wait in each lane of each host.
    lanes: Vec<SlotQueue>,
    /// Bit per lane of each host, modulo 64, set if something may wait there.
    occupied: Vec<u64>,
    /// Arrivals in each lane of each host, if hosts have several processors.
    arrivals: Vec<Arrivals>,
    /// Times at which the resources of each host become idle \[ps\].
    idle_at: Vec<u64>,
}

impl Hosts {
    pub(crate) fn new(tables: &Tables<'_>, extent: &Extent) -> Self {
        let plan = LanePlan::new(tables, extent);
        let hosts = tables.ranks() as usize;
        let lanes = hosts * plan.lanes.len();
        Self {
            lanes: vec![SlotQueue::default(); lanes],
            occupied: vec![0; hosts],
            arrivals: vec![Arrivals::default(); if plan.cpus == 1 { 0 } else { lanes }],
            idle_at: vec![0; hosts * plan.idle_time_count()],
            plan,
        }
    }

    /// Returns the times at which the resources of a host become idle \[ps\].
    #[inline]
    fn idle_times(&mut self, host: u32) -> &mut [u64] {
        let times = self.plan.idle_time_count();
        &mut self.idle_at[host as usize * times..][..times]
    }

    /// Occupies the processor of a lane until `processor` and its interface, if it has one, until `interface` \[ps\].
    #[inline]
    pub(crate) fn occupy(&mut self, host: u32, lane: usize, processor: u64, interface: u64) {
        let [one, other] = self.plan.lanes[lane].resources;
        let times = self.idle_times(host);
        times[usize::from(other)] = interface;
        times[usize::from(one)] = processor;
    }

    /// Keeps a processor and a sending interface busy until at least `until` \[ps\].
    pub(crate) fn occupy_until(&mut self, host: u32, cpu: u8, nic: u8, until: u64) {
        let cpus = self.plan.cpus;
        let times = self.idle_times(host);
        for at in [usize::from(cpu), cpus + usize::from(nic)] {
            times[at] = times[at].max(until);
        }
    }

    /// Adds a ready operation to its lane.
    #[inline]
    pub(crate) fn push_ready(
        &mut self,
        host: u32,
        ready: ReadyOperation,
        program: &DependencyTracker<'_>,
        pool: &mut Pool,
        stamp: u64,
    ) {
        let number = self.plan.lane_of(&program.tables.nodes[ready.node as usize]) as usize;
        let lane = self.plan.lanes[number];
        let times = self.idle_times(host);
        let time = match lane.kind {
            LaneKind::Receive => times[usize::from(lane.cpu)],
            _ => lane.idle_time(times),
        };
        let slot = pool.insert(program.make_slot(ready, &self.plan, time, stamp));
        let lane = self.lane_index(host, number);
        self.occupied[host as usize] |= lane_bit(number);
        self.lanes[lane].push(slot, pool);
    }

    /// Adds a message in flight to a host, for the processor and interface with the numbers of the sender's. Returns
    /// true if it may be the next event there.
    #[inline]
    pub(crate) fn push_arrival(&mut self, host: u32, message: u32, pool: &mut Pool) -> bool {
        let Slot { time, stamp, attributes, .. } = pool[message];
        let number = attributes.lane() + 1;
        let lane = self.lane_index(host, number);
        self.occupied[host as usize] |= lane_bit(number);
        if let Some(arrivals) = self.arrivals.get_mut(lane) {
            arrivals.in_flight.insert((time, stamp, message));
            return true;
        }
        let is_first = self.lanes[lane].first().is_none();
        self.lanes[lane].push(message, pool);
        is_first
    }

    #[inline]
    fn lane_index(&self, host: u32, number: usize) -> usize {
        host as usize * self.plan.lanes.len() + number
    }

    /// Returns the next event of a host and its lane.
    #[inline]
    pub(crate) fn next_event(&mut self, host: u32, pool: &Pool) -> (NextEvent, usize) {
        if !self.arrivals.is_empty() || self.plan.lanes.len() > BITS {
            return self.next_event_general(host, pool);
        }
        let (count, times) = (self.plan.lanes.len(), self.plan.idle_time_count());
        let lists = &self.lanes[host as usize * count..][..count];
        let times = &self.idle_at[host as usize * times..][..times];
        let mut first = (NEVER, 0);
        let mut occupied = self.occupied[host as usize];
        while occupied != 0 {
            let number = occupied.trailing_zeros() as usize;
            occupied &= occupied - 1;
            let Some(head) = lists[number].first() else { continue };
            let lane = &self.plan.lanes[number];
            let idle = lane.idle_time(times);
            let Slot { time, stamp, .. } = pool[head];
            first = first.min((NextEvent { time: time.max(idle), stamp }, number));
        }
        first
    }

    /// Returns the same for hosts with more than 64 lanes or several processors.
    #[cold]
    fn next_event_general(&mut self, host: u32, pool: &Pool) -> (NextEvent, usize) {
        let (count, times) = (self.plan.lanes.len(), self.plan.idle_time_count());
        let lists = &self.lanes[host as usize * count..][..count];
        let times = &self.idle_at[host as usize * times..][..times];
        let mut first = (NEVER, 0);
        let mut occupied = self.occupied[host as usize];
        while occupied != 0 {
            let bit = occupied.trailing_zeros() as usize;
            occupied &= occupied - 1;
            for number in (bit..count).step_by(BITS) {
                let lane = &self.plan.lanes[number];
                let idle = lane.idle_time(times);
                let next = if let Some(head) = lists[number].first() {
                    let Slot { time, stamp, .. } = pool[head];
                    NextEvent { time: time.max(idle), stamp }
                } else if let Some(arrivals) = self.arrivals.get_mut(host as usize * count + number)
                    && let Some(next) = arrivals.next_event(idle)
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
        let lane = self.lane_index(host, number);
        let listed = self.lanes[lane].pop(pool);
        if !self.arrivals.is_empty() {
            return listed.or_else(|| self.arrivals[lane].pop());
        }
        if self.plan.lanes.len() <= BITS && self.lanes[lane].first().is_none() {
            self.occupied[host as usize] &= !lane_bit(number);
        }
        listed
    }

    /// Returns the time at which the last processor of a host becomes idle \[ps\].
    pub(crate) fn end_time(&mut self, host: u32) -> u64 {
        let cpus = self.plan.cpus;
        self.idle_times(host)[..cpus].iter().copied().max().unwrap_or(0)
    }
}

/// Arrivals at a host with several processors. Time may run backwards there, so the order of arrival differs from that
/// of stamps, in which arrived messages get the resources.
#[derive(Clone, Debug, Default)]
struct Arrivals {
    /// Messages in flight, by time and stamp.
    in_flight: BTreeSet<(u64, u64, u32)>,
    /// Messages that have arrived and found the resources busy, by stamp.
    arrived: BTreeSet<(u64, u32)>,
}

impl Arrivals {
    /// Moves messages that arrive before the resources become idle to the arrived ones; returns the next event.
    fn next_event(&mut self, idle: u64) -> Option<NextEvent> {
        while let Some(&(time, stamp, node)) = self.in_flight.first().filter(|(time, ..)| *time <= idle) {
            self.in_flight.remove(&(time, stamp, node));
            self.arrived.insert((stamp, node));
        }
        let coming = self.in_flight.first().map(|&(time, stamp, _)| NextEvent { time, stamp });
        self.arrived.first().map(|&(stamp, _)| NextEvent { time: idle, stamp }).or(coming)
    }

    /// Removes and returns the next message.
    fn pop(&mut self) -> Option<u32> {
        let arrived = self.arrived.pop_first().map(|(_, node)| node);
        arrived.or_else(|| self.in_flight.pop_first().map(|(.., node)| node))
    }
}
