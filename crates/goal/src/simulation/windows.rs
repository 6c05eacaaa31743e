//! The engine without a queue: host after host, window after window.
//!
//! A message arrives o + L after its send started. In a window of that length no host can learn of what another one does
//! in it, so each host runs alone, from the first to the last of its events in the window (Chandy and Misra 1979 called
//! this lookahead; windows are those of Lubachevsky's bounded lag, 1989). What is left is the order of what happens at one
//! host at one time, which LogGOPSim takes from stamps that it gives out in the order of all events everywhere. Here an
//! event that creates something becomes a record; at the end of the window the records are put into the order of all
//! events, and a stamp is the place of the record and the number within it.
//!
//! That is exact where time never runs backwards (one processor per host) and where no send waits for its receive (all
//! messages at most S bytes): such a wait would end at another host in no time.

mod calendar;
mod records;

use calendar::Calendar;
use records::{Records, UNKNOWN, stamp};

use super::host::{self, Next};
use super::lane::What;
use super::pool::{List, Pool, Slot};
use super::program::{Freed, Program, Step};
use super::{Hosts, Matching, Outcome, SimulationError, finish, in_range};
use crate::order;
use crate::parameters::{Charges, LogGops};
use crate::schedule::{Kind, Node, Schedule};

/// Operations of so many bytes stay in the caches between visits of a host.
const CACHED: usize = 8 << 20;

/// Hosts whose memory is read together.
const TOGETHER: usize = 16;

/// The window of a host that waits for nothing but mail.
const NEVER: u64 = u64::MAX;

pub(crate) struct Windows<'a> {
    program: Program<'a>,
    charges: Charges,
    hosts: Hosts,
    matching: Matching,
    pool: Pool,
    records: Records,
    /// For each host what arrives there in even windows, and in odd ones, the last one first.
    mail: Vec<[List; 2]>,
    /// Time, rank and send of what arrives at a host in a window.
    sorted: Vec<(u64, u64, u32)>,
    /// The window in which each host is visited next.
    visits: Vec<u64>,
    /// What came next at each host, and in which lane, at the end of its last visit.
    ahead: Vec<(Next, usize)>,
    calendar: Calendar,
    /// Operations of hosts that are visited next.
    fetched: Vec<(u32, u32)>,
    freed: Vec<Freed>,
    outcome: Outcome,
}

/// Whether the engine gives LogGOPSim's answer for a schedule.
pub(crate) fn fits(schedule: &Schedule, parameters: &LogGops) -> bool {
    let charges = Charges::new(*parameters);
    let tables = schedule.tables();
    let is_eager = |node: &Node| node.kind() != Kind::Send || charges.is_eager(node.size);
    // Each operation makes a record, and each message once more.
    let countable = 2 * tables.nodes.len() + tables.ranks() as usize <= UNKNOWN as usize;
    schedule.extent().cpus == 1 && charges.flight > 0 && countable && tables.nodes.iter().all(is_eager)
}

impl<'a> Windows<'a> {
    pub(crate) fn new(schedule: &'a Schedule, parameters: LogGops) -> Self {
        let tables = schedule.tables();
        let ranks = tables.ranks() as usize;
        let hosts = Hosts::new(&tables);
        Self {
            program: Program::new(tables, &hosts.plan),
            charges: Charges::new(parameters),
            hosts,
            matching: Matching::new(&tables),
            pool: Pool::default(),
            records: Records::default(),
            mail: vec![[List::default(); 2]; ranks],
            sorted: Vec::new(),
            visits: vec![NEVER; ranks],
            ahead: vec![(host::NEVER, 0); ranks],
            calendar: Calendar::new(),
            fetched: Vec::new(),
            freed: Vec::new(),
            outcome: Outcome::default(),
        }
    }

    pub(crate) fn run(mut self) -> Result<Outcome, SimulationError> {
        for host in 0..self.program.tables.ranks() {
            self.program.roots(host, &mut self.freed);
            let record = self.records.seed();
            self.release(host, record, 0);
            self.visits[host as usize] = 0;
            self.ahead[host as usize] = self.next(host);
        }
        let mut hosts: Vec<u32> = (0..self.program.tables.ranks()).collect();
        let is_large = size_of_val::<[Step]>(&self.program.steps) > CACHED;
        let mut next = Some(0);
        while let Some(window) = next {
            for hosts in hosts.chunks(TOGETHER) {
                if is_large {
                    self.fetch(hosts);
                }
                for &host in hosts {
                    if self.visits[host as usize] == window {
                        self.visit(host, window)?;
                    }
                }
            }
            self.records.settle();
            hosts.clear();
            next = self.calendar.turn(&mut hosts);
        }
        finish(&self.program, &mut self.hosts, &self.matching, &self.pool, self.outcome)
    }

    /// Reads what the next visits will need.
    ///
    /// Between two visits of a host the others push its operations out of the caches. A visit reads one thing because of
    /// another, and so would wait for memory each time; here the reads for several hosts do not depend on each other, and
    /// the processor waits for them together.
    fn fetch(&mut self, hosts: &[u32]) {
        let (pool, program) = (&self.pool, &self.program);
        self.fetched.clear();
        for &host in hosts {
            self.fetched.extend(self.hosts.heads(host).map(|slot| (host, slot)));
        }
        self.fetched.iter_mut().for_each(|(_, slot)| *slot = pool[*slot].node);
        self.fetched.iter_mut().for_each(|(_, node)| *node = program.steps[*node as usize].first_edge);
        for (host, edge) in &mut self.fetched {
            *edge = program.dependent(*host, *edge);
        }
        // What a message frees is known when it meets its receive; what is read for it here may be anything.
        let open = |&(_, node): &(u32, u32)| program.steps.get(node as usize).map_or(0, |step| step.open);
        let seen = self.fetched.iter().map(open);
        std::hint::black_box(seen.fold(0, u32::wrapping_add));
    }

    /// Plans the next visit of a host that was just visited in a window.
    fn plan_visit(&mut self, host: u32, window: u64, next: (Next, usize)) {
        let has_mail = self.mail[host as usize][(window + 1) as usize & 1].first().is_some();
        let then = match next.0 {
            _ if has_mail => window + 1,
            host::NEVER => NEVER,
            Next { time, .. } => time / self.charges.flight,
        };
        self.ahead[host as usize] = next;
        self.visits[host as usize] = then;
        if then != NEVER {
            self.calendar.enter(then, host);
        }
    }

    /// Does everything that happens at a host in a window.
    fn visit(&mut self, host: u32, window: u64) -> Result<(), SimulationError> {
        let mut next = match self.open_mail(host, window) {
            true => self.next(host),
            false => self.ahead[host as usize],
        };
        let end = (window + 1) * self.charges.flight;
        while next.0.time < end {
            in_range(host, next.0.time)?;
            let Some(slot) = self.hosts.pop(host, next.1, &mut self.pool) else { break };
            self.step(host, next.1, next.0, slot, window);
            next = self.next(host);
        }
        self.plan_visit(host, window, next);
        Ok(())
    }

    #[inline]
    fn next(&mut self, host: u32) -> (Next, usize) {
        let records = &self.records;
        self.hosts.next(host, &self.pool, |one, other| records.rank(one) < records.rank(other))
    }

    /// Puts arrivals into their lanes, all of which come in this window; returns whether there are some.
    fn open_mail(&mut self, host: u32, window: u64) -> bool {
        let mut mail = std::mem::take(&mut self.mail[host as usize][window as usize & 1]);
        while let Some(slot) = mail.pop(&mut self.pool) {
            let Slot { time, stamp, .. } = self.pool[slot];
            self.sorted.push((time, self.records.rank(stamp), slot));
        }
        if self.sorted.len() > 1 {
            self.sorted.sort_unstable();
        }
        let has_come = !self.sorted.is_empty();
        for (.., slot) in self.sorted.drain(..) {
            self.hosts.arrive(host, slot, &mut self.pool);
        }
        has_come
    }

    #[inline]
    fn step(&mut self, host: u32, lane: usize, next: Next, slot: u32, window: u64) {
        let time = next.time;
        let Slot { size, node, .. } = self.pool[slot];
        let record = self.records.open(next);
        let mut created = 0;
        match self.hosts.plan.lanes[lane].what {
            What::Calculate => {
                self.pool.give(slot);
                self.hosts.occupy(host, lane, time + size, time + size);
                self.program.started(host, node, &mut self.freed);
                self.program.ended(host, node, &mut self.freed);
            }
            What::Send => {
                self.hosts.occupy(host, lane, time + self.charges.send(size), time + self.charges.gap(size));
                self.program.started(host, node, &mut self.freed);
                self.post(slot, time, stamp(record, 0), window);
                self.program.ended(host, node, &mut self.freed);
                created = 1;
            }
            What::Receive => {
                self.program.started(host, node, &mut self.freed);
                if let Some(message) = self.matching.post(&self.program, &mut self.pool, host, slot) {
                    self.receive(host, slot, message);
                }
            }
            What::Arrive => {
                let (processor, interface) = (self.charges.receive(size), self.charges.gap(size));
                self.hosts.occupy(host, lane, time + processor, time + interface);
                if let Some(receive) = self.matching.arrive(&self.program, &mut self.pool, host, slot) {
                    self.receive(host, receive, slot);
                }
            }
        }
        if self.release(host, record, created) == 0 {
            self.records.abandon();
        }
    }

    /// Ends a receive that has its message; all messages are eager.
    #[inline]
    fn receive(&mut self, host: u32, receive: u32, message: u32) {
        let Slot { size, node, .. } = self.pool[receive];
        self.outcome.across_threshold += u64::from(!self.charges.is_eager(size));
        self.pool.give(receive);
        self.pool.give(message);
        self.program.ended(host, node, &mut self.freed);
    }

    /// Sends a message, which arrives in the next window.
    #[inline]
    fn post(&mut self, slot: u32, time: u64, stamp: u64, window: u64) {
        let message = &mut self.pool[slot];
        (message.time, message.stamp) = (time + self.charges.flight, stamp);
        self.outcome.messages += 1;
        self.outcome.message_bytes += message.size;
        let to = self.program.tables.channels[message.channel as usize].destination;
        self.mail[to as usize][(window + 1) as usize & 1].push_front(slot, &mut self.pool);
        // A host that is still to be visited in this window finds its mail at the end of the visit.
        let visit = &mut self.visits[to as usize];
        if *visit > window + 1 {
            *visit = window + 1;
            self.calendar.enter(window + 1, to);
        }
    }

    /// Puts what has become free into its lanes; returns how much the record has created.
    #[inline]
    fn release(&mut self, host: u32, record: u32, created: u32) -> u32 {
        if self.freed.len() > 1 {
            order::sort(&mut self.freed);
        }
        let mut number = created;
        for Freed { node, .. } in self.freed.drain(..) {
            self.hosts.free(host, node, &self.program, &mut self.pool, stamp(record, number));
            number += 1;
        }
        number
    }
}
