//! The ordered engine: events in the order of time, ties in the order of creation.

use super::host::{NEVER, Next};
use super::lane::{Lane, What};
use super::matching::Left;
use super::pool::{Pool, Slot};
use super::program::{Freed, Program};
use super::queue::Queue;
use super::{Hosts, Matching, Outcome, SimulationError, finish};
use crate::order;
use crate::parameters::{Charges, LIMIT, LogGops};
use crate::schedule::Schedule;

pub(crate) struct Ordered<'a> {
    program: Program<'a>,
    charges: Charges,
    hosts: Hosts,
    matching: Matching<'a>,
    pool: Pool,
    /// Next event of each host and its lane, as in the event queue.
    queued: Vec<(Next, usize)>,
    queue: Queue,
    stamp: u64,
    /// Operations that the current event has freed, at its host and at the host whose message was received.
    freed: Vec<Freed>,
    freed_elsewhere: Vec<Freed>,
    outcome: Outcome,
}

impl<'a> Ordered<'a> {
    pub(crate) fn new(schedule: &'a Schedule, parameters: LogGops, threads: usize) -> Self {
        let tables = schedule.tables();
        let hosts = Hosts::new(&tables, &schedule.extent());
        Self {
            program: Program::new(tables, &(0..tables.ranks()), threads),
            charges: Charges::new(parameters),
            hosts,
            matching: Matching::new(tables, 0..tables.ranks()),
            pool: Pool::new(),
            queued: vec![(NEVER, 0); tables.ranks() as usize],
            queue: Queue::default(),
            stamp: 0,
            freed: Vec::new(),
            freed_elsewhere: Vec::new(),
            outcome: Outcome::default(),
        }
    }

    pub(crate) fn run(mut self) -> Result<Outcome, SimulationError> {
        self.free_roots();
        while let Some((next, host)) = self.queue.pop() {
            // The host's next event has changed since: this entry is outdated (lazy deletion).
            if self.queued[host as usize].0 != next {
                continue;
            }
            if next.time >= LIMIT {
                let late = self.queued.iter().position(|queued| queued.0 != NEVER);
                return Err(SimulationError::Time { rank: late.map_or(host, |rank| rank as u32) });
            }
            self.step(host);
        }
        self.outcome.ends = (0..self.program.tables.ranks()).map(|host| self.hosts.end(host)).collect();
        let mut left = Left::default();
        self.matching.add_left(&self.pool, &mut left);
        finish(self.program.tables.nodes.len(), self.program.begun, left, self.outcome)
    }

    /// Adds all operations without dependencies to the lanes.
    fn free_roots(&mut self) {
        for host in 0..self.program.tables.ranks() {
            self.program.begin(host, &mut self.freed);
            self.release(host, false);
            self.requeue(host);
        }
    }

    /// Processes the next event of a host.
    #[inline]
    fn step(&mut self, host: u32) {
        let (Next { time, .. }, lane) = self.queued[host as usize];
        let Some(slot) = self.hosts.pop(host, lane, &mut self.pool) else { return };
        let released = match self.hosts.plan.lanes[lane].what {
            What::Calculate => self.calculate(host, lane, slot, time),
            What::Send => self.send(host, lane, slot, time),
            What::Receive => self.receive(host, slot, time),
            What::Arrive => self.arrive(host, lane, slot, time),
        };
        match released {
            // Freed operations get their stamps in the order of ranks, as in LogGOPSim.
            Some(source) if source < host => {
                self.release(source, true);
                self.release(host, false);
                self.requeue(source);
            }
            Some(source) => {
                self.release(host, false);
                self.release(source, true);
                self.requeue(source);
            }
            None => self.release(host, false),
        }
        self.requeue(host);
    }

    fn calculate(&mut self, host: u32, lane: usize, place: u32, time: u64) -> Option<u32> {
        let slot = self.pool[place];
        self.pool.give(place);
        self.hosts.occupy(host, lane, time + slot.size, time + slot.size);
        let first = self.program.first(host);
        self.program.started(first, &slot, &mut self.freed);
        self.ended(first, &slot);
        None
    }

    fn send(&mut self, host: u32, lane: usize, place: u32, time: u64) -> Option<u32> {
        self.stamp += 1;
        let message = &mut self.pool[place];
        (message.time, message.stamp) = (time + self.charges.flight, self.stamp);
        let slot = *message;
        let (size, peer) = (slot.size, self.matching.destination(slot.channel));
        self.hosts.occupy(host, lane, time + self.charges.send(size), time + self.charges.gap(size));
        let first = self.program.first(host);
        self.program.started(first, &slot, &mut self.freed);
        self.outcome.messages += 1;
        self.outcome.message_bytes += size;
        let may_be_next = self.hosts.arrive(peer, place, &mut self.pool);
        if may_be_next && peer != host {
            self.requeue(peer);
        }
        if self.charges.is_eager(size) {
            self.ended(first, &slot);
        }
        None
    }

    fn receive(&mut self, host: u32, place: u32, time: u64) -> Option<u32> {
        let slot = self.pool[place];
        let first = self.program.first(host);
        self.program.started(first, &slot, &mut self.freed);
        let Some(message) = self.matching.message_for(&mut self.pool, host, slot.channel) else {
            self.matching.wait(&mut self.pool, host, place);
            return None;
        };
        // LogGOPSim blocks the sender's resources with the numbers of the receive here, not those of the send.
        let resources = self.program.tables.nodes[slot.node as usize];
        let released = self.taken(host, message, place, time, (resources.cpu, resources.nic));
        self.ended(first, &slot);
        released
    }

    fn arrive(&mut self, host: u32, lane: usize, place: u32, time: u64) -> Option<u32> {
        let Slot { size, channel, .. } = self.pool[place];
        self.hosts.occupy(host, lane, time + self.charges.receive(size), time + self.charges.gap(size));
        let Some(receive) = self.matching.receive_for(&mut self.pool, host, channel) else {
            self.matching.wait(&mut self.pool, host, place);
            return None;
        };
        let slot = self.pool[receive];
        let Lane { cpu, nic, .. } = self.hosts.plan.lanes[lane];
        let released = self.taken(host, place, receive, time, (cpu, nic));
        self.ended(self.program.first(host), &slot);
        released
    }

    /// Completes a receive; if the message is rendezvous, ends its send and returns the sending host unless that is
    /// `host`.
    fn taken(
        &mut self,
        host: u32,
        message: u32,
        receive: u32,
        time: u64,
        (cpu, nic): (u8, u8),
    ) -> Option<u32> {
        let slot = self.pool[message];
        let is_eager = self.charges.is_eager(slot.size);
        self.outcome.across_threshold +=
            u64::from(is_eager != self.charges.is_eager(self.pool[receive].size));
        self.pool.give(message);
        self.pool.give(receive);
        if is_eager {
            return None;
        }
        let source = self.matching.source(slot.channel);
        let freed = if source == host { &mut self.freed } else { &mut self.freed_elsewhere };
        let only = self.program.ended(self.program.first(source), &slot, freed);
        self.program.add(only, freed);
        self.hosts.hold(source, cpu, nic, time);
        (source != host).then_some(source)
    }

    /// Adds the operations that the end of an operation frees at the current host.
    #[inline]
    fn ended(&mut self, first: u32, slot: &Slot) {
        let only = self.program.ended(first, slot, &mut self.freed);
        self.program.add(only, &mut self.freed);
    }

    /// Adds freed operations to the lanes of their host, with new stamps.
    #[inline]
    fn release(&mut self, host: u32, elsewhere: bool) {
        let freed = if elsewhere { &mut self.freed_elsewhere } else { &mut self.freed };
        if freed.len() > 1 {
            order::sort(freed);
        }
        for freed in freed.drain(..) {
            self.stamp += 1;
            let ready = self.program.ready(freed);
            self.hosts.free(host, ready, &self.program, &mut self.pool, self.stamp);
        }
    }

    /// Updates the event queue if the next event of a host has changed.
    #[inline]
    fn requeue(&mut self, host: u32) {
        let next = self.hosts.next(host, &self.pool);
        if self.queued[host as usize] != next {
            self.queued[host as usize] = next;
            if next.0 != NEVER {
                self.queue.push(next.0, host);
            }
        }
    }
}
