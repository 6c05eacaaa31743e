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
use super::program::{Freed, Program, Step};
use super::{Hosts, Matching, Outcome, SimulationError, finish, in_range};
use crate::order;
use crate::parameters::{Charges, LogGops};
use crate::schedule::{Kind, Node, Schedule};

/// Operations of so many bytes stay in the caches between visits of a host.
const CACHED: usize = 16 << 20;

/// Hosts whose memory is read together.
const TOGETHER: usize = 16;

/// The window of a host that waits for nothing but mail.
const NEVER: u64 = u64::MAX;

pub(crate) struct Windows<'a> {
    program: Program<'a>,
    charges: Charges,
    hosts: Hosts,
    matching: Matching,
    records: Records,
    /// For each host what arrives there in even windows, and in odd ones: one more than the index of the last send, behind
    /// which the others stand, or 0.
    mail: Vec<[u32; 2]>,
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
            records: Records::default(),
            mail: vec![[0; 2]; ranks],
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
                    self.fetch(hosts, window);
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
        finish(&self.program, &mut self.hosts, &self.matching, self.outcome)
    }

    /// Reads what the next visits will need.
    ///
    /// Between two visits of a host the others push its operations out of the caches. A visit reads one thing because of
    /// another, and so would wait for memory each time; here the reads for several hosts do not depend on each other, and
    /// the processor waits for them together.
    fn fetch(&mut self, hosts: &[u32], window: u64) {
        let steps = &self.program.steps;
        self.fetched.clear();
        for &host in hosts {
            let mail = self.mail[host as usize][window as usize & 1].checked_sub(1);
            self.fetched.extend(self.hosts.heads(host).chain(mail).map(|node| (host, node)));
        }
        let mut seen: u64 =
            self.fetched.iter().map(|&(_, node)| u64::from(steps[node as usize].behind)).sum();
        for (host, node) in &mut self.fetched {
            let edge = self.program.first_edge(*node);
            *node = self.program.first(*host) + edge.unwrap_or(0);
        }
        seen ^= self
            .fetched
            .iter()
            .map(|&(_, node)| steps.get(node as usize).map_or(0, |step| step.time))
            .fold(0, u64::wrapping_add);
        std::hint::black_box(seen);
    }

    /// Plans the next visit of a host that was just visited in a window.
    fn plan_visit(&mut self, host: u32, window: u64, next: (Next, usize)) {
        let has_mail = self.mail[host as usize][(window + 1) as usize & 1] != 0;
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
            let Some(node) = self.hosts.pop(host, next.1, &mut self.program.steps) else { break };
            self.step(host, next.1, next.0, node, window);
            next = self.next(host);
        }
        self.plan_visit(host, window, next);
        Ok(())
    }

    #[inline]
    fn next(&mut self, host: u32) -> (Next, usize) {
        let records = &self.records;
        self.hosts.next(host, &self.program.steps, |one, other| {
            let rank = |next: &Next| records.rank(next.stamp);
            one.time.cmp(&other.time).then_with(|| rank(one).cmp(&rank(other)))
        })
    }

    /// Puts arrivals into their lanes, all of which come in this window; returns whether there are some.
    fn open_mail(&mut self, host: u32, window: u64) -> bool {
        let mail = &mut self.mail[host as usize][window as usize & 1];
        if *mail == 0 {
            return false;
        }
        let mut mail = std::mem::take(mail);
        let steps = &mut self.program.steps;
        while let Some(node) = mail.checked_sub(1) {
            let step = &mut steps[node as usize];
            mail = std::mem::take(&mut step.behind);
            self.sorted.push((step.time, self.records.rank(step.stamp), node));
        }
        if self.sorted.len() > 1 {
            self.sorted.sort_unstable();
        }
        for (.., node) in self.sorted.drain(..) {
            self.hosts.arrive(host, node, steps);
        }
        true
    }

    #[inline]
    fn step(&mut self, host: u32, lane: usize, next: Next, node: u32, window: u64) {
        let time = next.time;
        let size = self.program.steps[node as usize].size;
        let record = self.records.open(next);
        let mut created = 0;
        match self.hosts.plan.lanes[lane].what {
            What::Calculate => {
                self.hosts.occupy(host, lane, time + size, time + size);
                self.program.started(host, node, &mut self.freed);
                self.program.ended(host, node, &mut self.freed);
            }
            What::Send => {
                self.hosts.occupy(host, lane, time + self.charges.send(size), time + self.charges.gap(size));
                self.program.started(host, node, &mut self.freed);
                self.post(node, time, stamp(record, 0), window);
                self.program.ended(host, node, &mut self.freed);
                created = 1;
            }
            What::Receive => {
                self.program.started(host, node, &mut self.freed);
                if self.matching.post(&mut self.program, host, node).is_some() {
                    self.receive(host, node);
                }
            }
            What::Arrive => {
                self.hosts.occupy(
                    host,
                    lane,
                    time + self.charges.receive(size),
                    time + self.charges.gap(size),
                );
                if let Some(receive) = self.matching.arrive(&mut self.program, host, node) {
                    self.receive(host, receive);
                }
            }
        }
        if self.release(host, record, created) == 0 {
            self.records.abandon();
        }
    }

    /// Ends a receive that has a message; all messages are eager.
    #[inline]
    fn receive(&mut self, host: u32, node: u32) {
        let is_eager = self.charges.is_eager(self.program.steps[node as usize].size);
        self.outcome.across_threshold += u64::from(!is_eager);
        self.program.ended(host, node, &mut self.freed);
    }

    /// Sends a message, which arrives in the next window.
    #[inline]
    fn post(&mut self, node: u32, time: u64, stamp: u64, window: u64) {
        let step = &mut self.program.steps[node as usize];
        (step.time, step.stamp) = (time + self.charges.flight, stamp);
        self.outcome.messages += 1;
        self.outcome.message_bytes += step.size;
        let to = step.to;
        let mail = &mut self.mail[to as usize][(window + 1) as usize & 1];
        step.behind = std::mem::replace(mail, node + 1);
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
            self.hosts.free(host, node, &mut self.program.steps, stamp(record, number));
            number += 1;
        }
        number
    }
}
