//! Loads of links, as an observer is told of them.
//!
//! When a packet joins a queue, its transmission is known, and an observer is told of intervals that are over: until then transmissions wait
//! here. A host sends up to a window late, so the observer's time is a window behind that of the network. All that has happened by then
//! follows from the state: after equal states the same follows, and may be repeated.

use std::collections::VecDeque;
use std::ops::Range;

use netmodel::{LinkTotals, LoadRecorder, NetworkObserver, ObservedLink, Resource, ResourceChange};
use pdes_core::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};

use super::Fabric;
use crate::machine::PacketMachine;

/// What the links of a region carry.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Loads {
    observer: LoadRecorder,
    /// Instant until which the observer is told next \[ps\].
    next_sample: u64,
    /// Instant until which all transmissions were known at the last event \[ps\].
    known_until: u64,
    /// Time of all repetitions of an interval that was announced \[ps\].
    #[serde(skip)]
    repeated: u64,
    /// By output port.
    ports: Vec<PortLoads>,
    /// Contentions at a host that is being caught up with, with their ports: those of its own messages are found before those of others.
    #[serde(skip)]
    contentions: Option<Vec<(u64, u64, u32)>>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct PortLoads {
    /// In the order of time.
    transmissions: VecDeque<Transmission>,
    /// Instant until which packets are known to have waited for the link \[ps\].
    contended_until: u64,
}

/// An interval in which a link sends at one rate.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Transmission {
    /// \[ps\]
    start: u64,
    end: u64,
    units: u64,
    /// What the observer was told of, and until when.
    told: u64,
    told_until: u64,
}

/// Volumes are counted in units of a 1024th of a byte, as those of flows: their sums are exact, whatever their order.
const UNITS_PER_BYTE: f64 = 1024.0;

impl Transmission {
    /// Tells an observer what a link sends until an instant in the interval.
    fn tell_until(
        &mut self,
        until: u64,
        link: ObservedLink,
        machine: &PacketMachine<'_>,
        observer: &mut LoadRecorder,
    ) {
        let part = |whole| u128::from(self.units) * u128::from(until - self.start) / whole;
        let units =
            if until == self.end { self.units } else { part(u128::from(self.end - self.start)) as u64 };
        let time = SimTime::from_picos(self.told_until)..SimTime::from_picos(until);
        let resource = Resource::Bandwidth(link.link);
        if machine.has_changes
            && let Some(value) = machine.platform.changes().value(resource, time.start)
        {
            observer.changed(&ResourceChange { at: time.start, resource, value });
        }
        observer.carried(link, time, (units - self.told) as f64 / UNITS_PER_BYTE);
        (self.told, self.told_until) = (units, until);
    }
}

impl Loads {
    fn new(ports: usize) -> Self {
        let mut observer = LoadRecorder::default();
        observer.record_link_loads();
        Self {
            observer,
            next_sample: 0,
            known_until: 0,
            repeated: 0,
            ports: vec![PortLoads::default(); ports],
            contentions: None,
        }
    }

    /// Adds what a link sends in an interval after all others.
    fn add(&mut self, link: ObservedLink, machine: &PacketMachine<'_>, time: Range<u64>, bytes: f64) {
        let transmissions = &mut self.ports[link.slot as usize].transmissions;
        while let Some(first) = transmissions.front_mut()
            && first.end <= self.known_until.min(self.next_sample)
        {
            first.tell_until(first.end, link, machine, &mut self.observer);
            transmissions.pop_front();
        }
        let units = (bytes * UNITS_PER_BYTE) as u64;
        let Range { start, end } = time;
        transmissions.push_back(Transmission { start, end, units, told: 0, told_until: start });
    }

    /// Tells what links send until an instant, which is not after the next sample.
    fn tell_until(&mut self, at: u64, (machine, first_port): (&PacketMachine<'_>, u32)) {
        for (slot, port) in (0..).zip(&mut self.ports) {
            let link = observed(machine, first_port, slot);
            while let Some(first) = port.transmissions.front_mut()
                && first.start < at
            {
                first.tell_until(first.end.min(at), link, machine, &mut self.observer);
                if first.end > at {
                    break;
                }
                port.transmissions.pop_front();
            }
        }
    }

    /// Lets the observer know what links have carried until an instant.
    fn sample_until(&mut self, at: u64, region: (&PacketMachine<'_>, u32)) {
        let until = SimTime::from_picos(at);
        while self.next_sample <= at {
            let next = self.observer.next_sample(until);
            self.next_sample = next.as_picos();
            if self.next_sample <= at {
                self.tell_until(self.next_sample, region);
                self.observer.sampled(next, until);
            }
        }
    }

    /// Tells everything until an instant.
    fn tell_all_until(&mut self, at: u64, region: (&PacketMachine<'_>, u32)) {
        self.sample_until(at, region);
        self.tell_until(at, region);
    }
}

/// Returns the link of an output port of a region, as the observer knows it.
fn observed(machine: &PacketMachine<'_>, first_port: u32, slot: u32) -> ObservedLink {
    ObservedLink { link: machine.ports[(first_port + slot) as usize].link, slot }
}

impl Fabric<'_, '_> {
    /// Begins to record the loads of links.
    pub(crate) fn record_loads(&mut self) {
        self.loads = Some(Box::new(Loads::new(self.ports.len())));
        self.is_plain = false;
    }

    /// Returns the instant until which all transmissions are known at an instant.
    fn known_until(&self, now: u64) -> u64 {
        now.saturating_sub(self.machine.lookahead)
    }

    /// Lets the observer know what links have carried, if it is time.
    #[inline]
    pub(super) fn sample_loads(&mut self, now: u64) {
        let at = self.known_until(now);
        if let Some(loads) = &mut self.loads {
            loads.known_until = at;
            if loads.next_sample <= at {
                loads.sample_until(at, (self.machine, self.first_port));
            }
        }
    }

    /// Adds a packet that a port sends in an interval.
    pub(super) fn load(&mut self, port: u32, bytes: u32, time: Range<u64>) {
        let (machine, first_port) = (self.machine, self.first_port);
        let Some(loads) = &mut self.loads else { return };
        let link = observed(machine, first_port, port);
        loads.observer.message_began(link, bytes.into());
        if machine.has_changes {
            let add = |time, bytes| loads.add(link, machine, time, bytes);
            machine.transmit(first_port + port, time.start, bytes, add);
        } else {
            loads.add(link, machine, time, bytes.into());
        }
    }

    /// Takes in that packets wait while a port sends.
    #[inline(always)]
    pub(super) fn contend(&mut self, port: u32, time: Range<u64>) {
        if self.loads.is_some() {
            self.record_contention(port, time);
        }
    }

    #[inline(never)]
    fn record_contention(&mut self, port: u32, time: Range<u64>) {
        let Some(loads) = &mut self.loads else { return };
        if let Some(contentions) = &mut loads.contentions {
            contentions.push((time.start, time.end, port));
            return;
        }
        let until = &mut loads.ports[port as usize].contended_until;
        let from = time.start.max(*until);
        if from < time.end && time.end < u64::MAX {
            *until = time.end;
            let link = observed(self.machine, self.first_port, port);
            // The observer has to know the link.
            loads.observer.message_began(link, 0);
            loads.observer.limits(link, SimTime::from_picos(from), true);
            loads.observer.limits(link, SimTime::from_picos(time.end), false);
        }
    }

    /// Collects contentions from now on.
    pub(super) fn collect_contentions(&mut self) {
        if let Some(loads) = &mut self.loads {
            loads.contentions = Some(Vec::new());
        }
    }

    /// Records the contentions that have been collected, in the order of time.
    pub(super) fn record_contentions(&mut self) {
        let collected = self.loads.as_mut().and_then(|loads| loads.contentions.take());
        let mut contentions = collected.unwrap_or_default();
        contentions.sort_unstable();
        contentions.into_iter().for_each(|(start, end, port)| self.record_contention(port, start..end));
    }

    /// Announces an interval that begins now and may be repeated.
    pub(crate) fn watch_loads(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        let at = self.known_until(now.as_picos());
        let Some(loads) = &mut self.loads else { return };
        loads.tell_all_until(at, (self.machine, self.first_port));
        loads.observer.watch_period(SimTime::from_picos(at), period, repetitions);
        loads.repeated = period.as_picos().saturating_mul(repetitions);
        loads.next_sample = 0;
    }

    /// Repeats the interval that was announced and ends now.
    pub(crate) fn repeat_loads(&mut self, now: SimTime) {
        let at = self.known_until(now.as_picos());
        let Some(loads) = &mut self.loads else { return };
        loads.tell_all_until(at, (self.machine, self.first_port));
        loads.observer.repeat_period(SimTime::from_picos(at));
        let Loads { repeated, ports, .. } = &mut **loads;
        for PortLoads { transmissions, contended_until } in ports {
            *contended_until += *repeated;
            for Transmission { start, end, told_until, .. } in transmissions {
                [start, end, told_until].into_iter().for_each(|at| *at += *repeated);
            }
        }
        loads.next_sample = 0;
    }

    /// Returns the totals of the links of the region until an instant at which all has arrived; none unless they are recorded.
    pub(crate) fn link_totals(&mut self, end: SimTime) -> Vec<LinkTotals<'static>> {
        let (machine, first_port) = (self.machine, self.first_port);
        let Some(loads) = &mut self.loads else { return Vec::new() };
        loads.tell_all_until(end.as_picos(), (machine, first_port));
        let links = (0..loads.ports.len() as u32).map(|slot| observed(machine, first_port, slot));
        let totals = loads.observer.link_totals(machine.platform, links, end);
        totals.into_iter().flatten().map(LinkTotals::into_owned).collect()
    }
}
