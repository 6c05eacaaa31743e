//! The ordered engine: everything happens in the order of time, and of creation where times are equal.

use super::host::{NEVER, Next};
use super::lane::{Lane, What};
use super::program::{Freed, Program};
use super::queue::Queue;
use super::{Hosts, Matching, Outcome, SimulationError, finish, in_range};
use crate::order;
use crate::parameters::{Charges, LogGops};
use crate::schedule::Schedule;

pub(crate) struct Ordered<'a> {
    program: Program<'a>,
    charges: Charges,
    hosts: Hosts,
    matching: Matching,
    /// What comes next at each host, as it stands in the queue.
    queued: Vec<(Next, usize)>,
    queue: Queue,
    stamp: u64,
    /// Operations that the current event has made free, at its host and at the host whose message it has taken.
    freed: Vec<Freed>,
    freed_elsewhere: Vec<Freed>,
    outcome: Outcome,
}

impl<'a> Ordered<'a> {
    pub(crate) fn new(schedule: &'a Schedule, parameters: LogGops) -> Self {
        let tables = schedule.tables();
        let hosts = Hosts::new(&tables);
        Self {
            program: Program::new(tables, &hosts.plan),
            charges: Charges::new(parameters),
            hosts,
            matching: Matching::new(&tables),
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
            // What came earlier was queued as well: this entry is outdated.
            if self.queued[host as usize].0 == next {
                self.step(host)?;
            }
        }
        finish(&self.program, &mut self.hosts, &self.matching, self.outcome)
    }

    /// Frees all operations that wait for nothing.
    fn free_roots(&mut self) {
        for host in 0..self.program.tables.ranks() {
            self.program.roots(host, &mut self.freed);
            self.release(host, false);
            self.requeue(host);
        }
    }

    /// Does what comes next at a host.
    #[inline]
    fn step(&mut self, host: u32) -> Result<(), SimulationError> {
        let (Next { time, .. }, lane) = self.queued[host as usize];
        let Some(node) = self.hosts.pop(host, lane, &mut self.program.steps) else { return Ok(()) };
        let time = in_range(host, time)?;
        let released = match self.hosts.plan.lanes[lane].what {
            What::Calculate => self.calculate(host, lane, node, time),
            What::Send => self.send(host, lane, node, time),
            What::Receive => self.receive(host, node, time),
            What::Arrive => self.arrive(host, lane, node, time),
        };
        match released {
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
        Ok(())
    }

    fn calculate(&mut self, host: u32, lane: usize, node: u32, time: u64) -> Option<u32> {
        let end = time + self.program.steps[node as usize].size;
        self.hosts.occupy(host, lane, end, end);
        self.program.started(host, node, &mut self.freed);
        self.program.ended(host, node, &mut self.freed);
        None
    }

    fn send(&mut self, host: u32, lane: usize, node: u32, time: u64) -> Option<u32> {
        self.stamp += 1;
        let step = &mut self.program.steps[node as usize];
        let (size, to) = (step.size, step.to);
        (step.time, step.stamp) = (time + self.charges.flight, self.stamp);
        self.hosts.occupy(host, lane, time + self.charges.send(size), time + self.charges.gap(size));
        self.program.started(host, node, &mut self.freed);
        self.outcome.messages += 1;
        self.outcome.message_bytes += size;
        let may_be_next = self.hosts.arrive(to, node, &mut self.program.steps);
        if may_be_next && to != host {
            self.requeue(to);
        }
        if self.charges.is_eager(size) {
            self.program.ended(host, node, &mut self.freed);
        }
        None
    }

    fn receive(&mut self, host: u32, node: u32, time: u64) -> Option<u32> {
        self.program.started(host, node, &mut self.freed);
        let message = self.matching.post(&mut self.program, host, node)?;
        // LogGOPSim holds the sender's resources that have the receive's numbers here, not those of the send.
        let resources = self.program.tables.nodes[node as usize];
        let released = self.taken(host, message, node, time, (resources.cpu, resources.nic));
        self.program.ended(host, node, &mut self.freed);
        released
    }

    fn arrive(&mut self, host: u32, lane: usize, node: u32, time: u64) -> Option<u32> {
        let size = self.program.steps[node as usize].size;
        self.hosts.occupy(host, lane, time + self.charges.receive(size), time + self.charges.gap(size));
        let receive = self.matching.arrive(&mut self.program, host, node)?;
        let Lane { cpu, nic, .. } = self.hosts.plan.lanes[lane];
        let released = self.taken(host, node, receive, time, (cpu, nic));
        self.program.ended(host, receive, &mut self.freed);
        released
    }

    /// Ends the send of a message that waited for its receive; returns its host if that is another one.
    fn taken(
        &mut self,
        host: u32,
        message: u32,
        receive: u32,
        time: u64,
        (cpu, nic): (u8, u8),
    ) -> Option<u32> {
        let [sent, received] = [message, receive].map(|node| self.program.steps[node as usize].size);
        let is_eager = self.charges.is_eager(sent);
        self.outcome.across_threshold += u64::from(is_eager != self.charges.is_eager(received));
        if is_eager {
            return None;
        }
        let channel = self.program.steps[message as usize].channel;
        let source = self.program.tables.channels[channel as usize].source;
        let freed = if source == host { &mut self.freed } else { &mut self.freed_elsewhere };
        self.program.ended(source, message, freed);
        self.hosts.hold(source, cpu, nic, time);
        (source != host).then_some(source)
    }

    /// Puts what has become free into the lanes of its host.
    #[inline]
    fn release(&mut self, host: u32, elsewhere: bool) {
        let freed = if elsewhere { &mut self.freed_elsewhere } else { &mut self.freed };
        if freed.len() > 1 {
            order::sort(freed);
        }
        for Freed { node, .. } in freed.drain(..) {
            self.stamp += 1;
            self.hosts.free(host, node, &mut self.program.steps, self.stamp);
        }
    }

    /// Tells the queue what comes next at a host, if that has changed.
    #[inline]
    fn requeue(&mut self, host: u32) {
        let next = self.hosts.next(host, &self.program.steps, Next::cmp);
        if self.queued[host as usize] != next {
            self.enqueue(host, next);
        }
    }

    #[inline]
    fn enqueue(&mut self, host: u32, next: (Next, usize)) {
        self.queued[host as usize] = next;
        if next.0 != NEVER {
            self.queue.push(next.0, host);
        }
    }
}
