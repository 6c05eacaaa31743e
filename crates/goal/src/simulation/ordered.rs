//! The ordered engine: events in the order of time, ties in the order of creation.

use super::dependencies::{DependencyTracker, Freed};
use super::event_queue::EventQueue;
use super::host::{NEVER, NextEvent};
use super::lane::{Lane, LaneKind};
use super::matching::Leftovers;
use super::pool::{Pool, Slot};
use super::{Hosts, Matching, Outcome, SimulationError, finish};
use crate::introsort;
use crate::noise::Noise;
use crate::parameters::{Costs, LogGops, TIME_LIMIT};
use crate::schedule::Schedule;

pub(crate) struct OrderedEngine<'a> {
    program: DependencyTracker<'a>,
    costs: Costs,
    noise: Option<&'a dyn Noise>,
    hosts: Hosts,
    matching: Matching<'a>,
    pool: Pool,
    /// Next event of each host and its lane, as in the event queue.
    queued: Vec<(NextEvent, usize)>,
    queue: EventQueue,
    stamp: u64,
    /// Operations that the current event has freed, at its host and at the host whose message was received.
    freed: Vec<Freed>,
    freed_elsewhere: Vec<Freed>,
    outcome: Outcome,
}

impl<'a> OrderedEngine<'a> {
    pub(crate) fn new(
        schedule: &'a Schedule,
        parameters: LogGops,
        noise: Option<&'a dyn Noise>,
        threads: usize,
    ) -> Self {
        let tables = schedule.tables();
        let hosts = Hosts::new(&tables, &schedule.extent());
        Self {
            program: DependencyTracker::new(tables, &(0..tables.ranks()), threads),
            costs: Costs::new(parameters),
            noise,
            hosts,
            matching: Matching::new(tables, 0..tables.ranks()),
            pool: Pool::new(),
            queued: vec![(NEVER, 0); tables.ranks() as usize],
            queue: EventQueue::default(),
            stamp: 0,
            freed: Vec::new(),
            freed_elsewhere: Vec::new(),
            outcome: Outcome {
                noise: vec![0; noise.map_or(0, |_| tables.ranks() as usize)],
                ..Outcome::default()
            },
        }
    }

    pub(crate) fn run(mut self) -> Result<Outcome, SimulationError> {
        self.release_roots();
        while let Some((next, host)) = self.queue.pop() {
            // The host's next event has changed since: this entry is outdated (lazy deletion).
            if self.queued[host as usize].0 != next {
                continue;
            }
            if next.time >= TIME_LIMIT {
                let late = self.queued.iter().position(|queued| queued.0 != NEVER);
                return Err(SimulationError::Time { rank: late.map_or(host, |rank| rank as u32) });
            }
            self.process_next(host);
        }
        self.outcome.ends = (0..self.program.tables.ranks()).map(|host| self.hosts.end_time(host)).collect();
        let mut left = Leftovers::default();
        self.matching.add_unmatched(&self.pool, &mut left);
        finish(self.program.tables.nodes.len(), self.program.started_count, left, self.outcome)
    }

    /// Adds all operations without dependencies to the lanes.
    fn release_roots(&mut self) {
        for host in 0..self.program.tables.ranks() {
            self.program.push_roots(host, &mut self.freed);
            self.release_freed(host, false);
            self.update_queue(host);
        }
    }

    /// Processes the next event of a host.
    #[inline]
    fn process_next(&mut self, host: u32) {
        let (NextEvent { time, .. }, lane) = self.queued[host as usize];
        let Some(slot) = self.hosts.pop(host, lane, &mut self.pool) else { return };
        let released = match self.hosts.plan.lanes[lane].kind {
            LaneKind::Calculate => self.calculate(host, lane, slot, time),
            LaneKind::Send => self.send(host, lane, slot, time),
            LaneKind::Receive => self.receive(host, slot, time),
            LaneKind::Arrival => self.arrive(host, lane, slot, time),
        };
        match released {
            // Freed operations get their stamps in the order of ranks, as in LogGOPSim.
            Some(source) if source < host => {
                self.release_freed(source, true);
                self.release_freed(host, false);
                self.update_queue(source);
            }
            Some(source) => {
                self.release_freed(host, false);
                self.release_freed(source, true);
                self.update_queue(source);
            }
            None => self.release_freed(host, false),
        }
        self.update_queue(host);
    }

    fn calculate(&mut self, host: u32, lane: usize, slot_id: u32, time: u64) -> Option<u32> {
        let slot = self.pool[slot_id];
        self.pool.remove(slot_id);
        let end = time + slot.size + self.noise(host, time, slot.size);
        self.hosts.occupy(host, lane, end, end);
        let first = self.program.first_node_of(host);
        self.program.resolve_start(first, &slot, &mut self.freed);
        self.resolve_end(first, &slot);
        None
    }

    fn send(&mut self, host: u32, lane: usize, slot_id: u32, time: u64) -> Option<u32> {
        self.stamp += 1;
        let message = &mut self.pool[slot_id];
        (message.time, message.stamp) = (time + self.costs.arrival_delay, self.stamp);
        let slot = *message;
        let (size, peer) = (slot.size, self.matching.destination(slot.channel));
        let noise = self.noise(host, time, self.costs.overhead());
        self.hosts.occupy(
            host,
            lane,
            time + self.costs.send_overhead(size) + noise,
            time + self.costs.gap(size),
        );
        let first = self.program.first_node_of(host);
        self.program.resolve_start(first, &slot, &mut self.freed);
        self.outcome.messages += 1;
        self.outcome.message_bytes += size;
        let may_be_next = self.hosts.push_arrival(peer, slot_id, &mut self.pool);
        if may_be_next && peer != host {
            self.update_queue(peer);
        }
        if self.costs.is_eager(size) {
            self.resolve_end(first, &slot);
        }
        None
    }

    fn receive(&mut self, host: u32, slot_id: u32, time: u64) -> Option<u32> {
        let slot = self.pool[slot_id];
        let first = self.program.first_node_of(host);
        self.program.resolve_start(first, &slot, &mut self.freed);
        let Some(message) = self.matching.take_unexpected(&mut self.pool, host, slot.channel) else {
            self.matching.enqueue(&mut self.pool, host, slot_id);
            return None;
        };
        // LogGOPSim blocks the sender's resources with the numbers of the receive here, not those of the send.
        let resources = self.program.tables.nodes[slot.node as usize];
        let released = self.complete_receive(host, message, slot_id, time, (resources.cpu, resources.nic));
        self.resolve_end(first, &slot);
        released
    }

    fn arrive(&mut self, host: u32, lane: usize, slot_id: u32, time: u64) -> Option<u32> {
        let Slot { size, channel, .. } = self.pool[slot_id];
        let noise = self.noise(host, time, self.costs.overhead());
        let end = time + self.costs.receive_overhead(size) + noise;
        self.hosts.occupy(host, lane, end, time + self.costs.gap(size));
        let Some(receive) = self.matching.take_posted(&mut self.pool, host, channel) else {
            self.matching.enqueue(&mut self.pool, host, slot_id);
            return None;
        };
        let slot = self.pool[receive];
        let Lane { cpu, nic, .. } = self.hosts.plan.lanes[lane];
        let released = self.complete_receive(host, slot_id, receive, time, (cpu, nic));
        self.resolve_end(self.program.first_node_of(host), &slot);
        released
    }

    /// Returns and counts the noise in an operation \[ps\].
    #[inline]
    fn noise(&mut self, host: u32, begin: u64, length: u64) -> u64 {
        let Some(noise) = self.noise else { return 0 };
        let delay = noise.delay(host, begin, length);
        self.outcome.noise[host as usize] += delay;
        delay
    }

    /// Completes a receive; if the message is rendezvous, ends its send and returns the sending host unless that is
    /// `host`.
    fn complete_receive(
        &mut self,
        host: u32,
        message: u32,
        receive: u32,
        time: u64,
        (cpu, nic): (u8, u8),
    ) -> Option<u32> {
        let slot = self.pool[message];
        let is_eager = self.costs.is_eager(slot.size);
        self.outcome.protocol_mismatches +=
            u64::from(is_eager != self.costs.is_eager(self.pool[receive].size));
        self.pool.remove(message);
        self.pool.remove(receive);
        if is_eager {
            return None;
        }
        let source = self.matching.source(slot.channel);
        let freed = if source == host { &mut self.freed } else { &mut self.freed_elsewhere };
        let only = self.program.resolve_end(self.program.first_node_of(source), &slot, freed);
        self.program.push_freed(only, freed);
        self.hosts.occupy_until(source, cpu, nic, time);
        (source != host).then_some(source)
    }

    /// Adds the operations that the end of an operation frees at the current host.
    #[inline]
    fn resolve_end(&mut self, first: u32, slot: &Slot) {
        let only = self.program.resolve_end(first, slot, &mut self.freed);
        self.program.push_freed(only, &mut self.freed);
    }

    /// Adds freed operations to the lanes of their host, with new stamps.
    #[inline]
    fn release_freed(&mut self, host: u32, elsewhere: bool) {
        let freed = if elsewhere { &mut self.freed_elsewhere } else { &mut self.freed };
        if freed.len() > 1 {
            introsort::sort(freed);
        }
        for freed in freed.drain(..) {
            self.stamp += 1;
            let ready = self.program.to_ready(freed);
            self.hosts.push_ready(host, ready, &self.program, &mut self.pool, self.stamp);
        }
    }

    /// Updates the event queue if the next event of a host has changed.
    #[inline]
    fn update_queue(&mut self, host: u32) {
        let next = self.hosts.next_event(host, &self.pool);
        if self.queued[host as usize] != next {
            self.queued[host as usize] = next;
            if next.0 != NEVER {
                self.queue.push(next.0, host);
            }
        }
    }
}
