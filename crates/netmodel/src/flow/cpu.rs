//! Computations that share the cores of hosts.

use std::ops::Range;

use pdes_core::{IndexedEventHeap, SimTime, State, StateVisitor};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{PICOS, later};
use crate::Host;

/// The cores of all hosts; `I` identifies a computation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Cpus<I> {
    hosts: Vec<Cores<I>>,
    next_ends: IndexedEventHeap,
}

#[derive(Debug, Serialize, Deserialize)]
struct Cores<I> {
    /// Speed of one core [flop/ps].
    speed: f64,
    cores: f64,
    running: Vec<Computation<I>>,
    /// Rate of each computation since the last change [flop/ps].
    rate: f64,
    since: SimTime,
    /// Instant until which `busy` functions were told.
    told: SimTime,
}

/// An interval in which computations have kept a number of cores busy, each at this speed [flop/s].
#[derive(Clone, Debug)]
pub(crate) struct BusyTime {
    pub(crate) host: u32,
    pub(crate) time: Range<SimTime>,
    pub(crate) cores: f64,
    pub(crate) speed: f64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
struct Computation<I> {
    id: I,
    /// Work left at the last change [flop].
    left: f64,
    end: SimTime,
}

impl<I: Copy> Cpus<I> {
    /// Makes the idle cores of hosts, which are numbered in this order.
    pub(crate) fn new<'h>(hosts: impl Iterator<Item = &'h Host>) -> Self {
        let cores = |host: &Host| Cores {
            speed: host.speed / PICOS,
            cores: f64::from(host.cores),
            running: Vec::new(),
            rate: 0.0,
            since: SimTime::ZERO,
            told: SimTime::ZERO,
        };
        let hosts: Vec<Cores<I>> = hosts.map(cores).collect();
        let mut ends = IndexedEventHeap::default();
        ends.grow(hosts.len());
        Self { hosts, next_ends: ends }
    }

    /// Begins a computation. Costs the number of computations in progress on the host. `busy` is told of the interval with another number
    /// of them, if there was any.
    pub(crate) fn begin(&mut self, now: SimTime, host: u32, flops: f64, id: I, busy: impl FnOnce(BusyTime)) {
        let cores = &mut self.hosts[host as usize];
        if cores.running.is_empty() {
            (cores.rate, cores.since, cores.told) = (cores.speed, now, now);
            let end = cores.end_of(flops);
            cores.running.push(Computation { id, left: flops, end });
            return self.next_ends.set(host, Some(end));
        }
        busy(cores.busy_time(host, now));
        cores.progress(now);
        cores.running.push(Computation { id, left: flops, end: now });
        cores.divide();
        self.next_ends.set(host, cores.earliest());
    }

    /// Sets the speed of a host [flop/s]: its computations go on at the new one. `busy` is told as by [`Cpus::begin`].
    pub(crate) fn set_speed(&mut self, now: SimTime, host: u32, speed: f64, busy: impl FnOnce(BusyTime)) {
        let cores = &mut self.hosts[host as usize];
        if cores.running.is_empty() {
            cores.speed = speed / PICOS;
            return;
        }
        busy(cores.busy_time(host, now));
        cores.progress(now);
        cores.speed = speed / PICOS;
        cores.divide();
        self.next_ends.set(host, cores.earliest());
    }

    /// Tells `busy` of all that runs until now; what is told next begins at an instant.
    pub(crate) fn tell(&mut self, now: SimTime, next: SimTime, mut busy: impl FnMut(BusyTime)) {
        for (host, cores) in (0..).zip(&mut self.hosts).filter(|(_, cores)| !cores.running.is_empty()) {
            busy(cores.busy_time(host, now));
            cores.told = next;
        }
    }

    /// Returns the earliest end of a computation.
    pub(crate) fn next(&mut self) -> Option<SimTime> {
        self.next_ends.next()
    }

    /// Returns the ends of the computations that are in progress, host by host.
    pub(crate) fn ends(&self) -> impl Iterator<Item = SimTime> + '_ {
        self.hosts.iter().flat_map(|cores| cores.running.iter().map(|computation| computation.end))
    }

    /// Returns the computations that are in progress, host by host.
    pub(crate) fn running(&self) -> impl Iterator<Item = I> + '_ {
        self.hosts.iter().flat_map(|cores| cores.running.iter().map(|computation| computation.id))
    }

    /// Ends the computations that end before `end`, at the instant `now`. `busy` is told as by [`Cpus::begin`].
    pub(crate) fn finish(
        &mut self,
        now: SimTime,
        end: SimTime,
        mut done: impl FnMut(I),
        mut busy: impl FnMut(BusyTime),
    ) {
        while let Some(host) = self.next_ends.pop_before(end) {
            let cores = &mut self.hosts[host as usize];
            busy(cores.busy_time(host, now));
            if let [only] = cores.running[..] {
                done(only.id);
                cores.running.clear();
                continue;
            }
            cores.progress(now);
            cores.running.retain(|computation| {
                if computation.end < end {
                    done(computation.id);
                }
                computation.end >= end
            });
            cores.divide();
            let earliest = cores.earliest();
            self.next_ends.set(host, earliest);
        }
    }

    /// Drops computations, whose cores go to the others of their hosts. `O(hosts + computations)`. `busy` is told as by [`Cpus::begin`].
    pub(crate) fn abandon(
        &mut self,
        now: SimTime,
        is_dropped: impl Fn(I) -> bool,
        mut busy: impl FnMut(BusyTime),
    ) {
        for (host, cores) in (0..).zip(&mut self.hosts) {
            if !cores.running.iter().any(|computation| is_dropped(computation.id)) {
                continue;
            }
            busy(cores.busy_time(host, now));
            cores.progress(now);
            cores.running.retain(|computation| !is_dropped(computation.id));
            cores.divide();
            self.next_ends.set(host, cores.earliest());
        }
    }
}

impl<I: Copy + State + Serialize + DeserializeOwned> State for Cpus<I> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { hosts, next_ends } = self;
        visitor.parts(hosts.iter_mut());
        if visitor.is_loading() || visitor.is_repeating() {
            (0..).zip(&*hosts).for_each(|(host, cores)| next_ends.set(host, cores.earliest()));
        }
    }
}

impl<I: State + Serialize + DeserializeOwned> State for Cores<I> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { speed: _, cores: _, running, rate, since, told } = self;
        running.visit(visitor);
        // The next computation of an idle host sets both.
        if !running.is_empty() {
            rate.visit(visitor);
            since.visit(visitor);
            visitor.saved(told);
        }
    }
}

impl<I> Cores<I> {
    /// Updates the work left up to now.
    fn progress(&mut self, now: SimTime) {
        let each = self.rate * (now - self.since).as_picos() as f64;
        self.running.iter_mut().for_each(|computation| computation.left -= each);
        (self.since, self.told) = (now, now);
    }

    /// Returns the time of which nothing was told.
    #[inline]
    fn busy_time(&self, host: u32, now: SimTime) -> BusyTime {
        let cores = self.cores.min(self.running.len() as f64);
        BusyTime { host, time: self.told..now, cores, speed: self.speed * PICOS }
    }

    /// Divides the cores among the computations: a core each, or equal parts of all cores (cpu_cas01.cpp).
    fn divide(&mut self) {
        self.rate = self.speed * (self.cores / self.running.len() as f64).min(1.0);
        for place in 0..self.running.len() {
            self.running[place].end = self.end_of(self.running[place].left);
        }
    }

    /// Returns the end of a computation with this much work left.
    fn end_of(&self, left: f64) -> SimTime {
        later(self.since, (left / self.rate).max(0.0))
    }

    fn earliest(&self) -> Option<SimTime> {
        self.running.iter().map(|computation| computation.end).min()
    }
}
