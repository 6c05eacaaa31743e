//! Computations that share the cores of hosts.

use pdes_core::SimTime;

use super::agenda::Earliest;
use super::pending::PendingId;
use super::{PICOS, later};
use crate::{HostId, Platform};

/// The hosts' cores.
#[derive(Debug)]
pub(super) struct Cpus {
    hosts: Vec<Cores>,
    ends: Earliest,
}

#[derive(Debug)]
struct Cores {
    /// What one core computes [flop/ps].
    speed: f64,
    cores: f64,
    running: Vec<Computation>,
    /// What each computation gets since the last change [flop/ps].
    rate: f64,
    since: SimTime,
}

#[derive(Debug)]
struct Computation {
    id: PendingId,
    /// What was left at the last change [flop].
    left: f64,
    end: SimTime,
}

impl Cpus {
    pub(super) fn new(platform: &Platform) -> Self {
        let cores = |host: &crate::Host| Cores {
            speed: host.speed / PICOS,
            cores: f64::from(host.cores),
            running: Vec::new(),
            rate: 0.0,
            since: SimTime::ZERO,
        };
        let hosts: Vec<Cores> = platform.hosts().iter().map(cores).collect();
        let mut ends = Earliest::default();
        ends.grow(hosts.len());
        Self { hosts, ends }
    }

    /// Begins a computation. Costs the number of those that run on the host.
    pub(super) fn begin(&mut self, now: SimTime, host: HostId, flops: f64, id: PendingId) {
        let cores = &mut self.hosts[host.index()];
        cores.progress(now);
        cores.running.push(Computation { id, left: flops, end: now });
        cores.divide();
        self.ends.set(host.get(), cores.earliest());
    }

    /// Returns the earliest end.
    pub(super) fn next(&mut self) -> Option<SimTime> {
        self.ends.next()
    }

    /// Ends the computations that end before `end`, now.
    pub(super) fn finish(&mut self, now: SimTime, end: SimTime, mut done: impl FnMut(PendingId)) {
        while let Some(host) = self.ends.take_before(end) {
            let cores = &mut self.hosts[host as usize];
            cores.progress(now);
            cores.running.retain(|computation| {
                if computation.end < end {
                    done(computation.id);
                }
                computation.end >= end
            });
            cores.divide();
            let earliest = cores.earliest();
            self.ends.set(host, earliest);
        }
    }
}

impl Cores {
    /// Counts what has been computed until now.
    fn progress(&mut self, now: SimTime) {
        let each = self.rate * (now - self.since).as_picos() as f64;
        self.running.iter_mut().for_each(|computation| computation.left -= each);
        self.since = now;
    }

    /// Divides the cores among the computations (cpu_cas01.cpp: a core each, or equal parts of all cores).
    fn divide(&mut self) {
        self.rate = self.speed * (self.cores / self.running.len() as f64).min(1.0);
        for computation in &mut self.running {
            computation.end = later(self.since, (computation.left / self.rate).max(0.0));
        }
    }

    fn earliest(&self) -> Option<SimTime> {
        self.running.iter().map(|computation| computation.end).min()
    }
}
