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

use std::collections::BTreeMap;

use super::host::Next;
use super::lane::{Entry, What};
use super::program::{Freed, Program};
use super::{Hosts, Matching, NAMED, Outcome, SimulationError, in_range};
use crate::order;
use crate::parameters::{Charges, LogGops};
use crate::schedule::{Kind, Node, Schedule};

/// The window of a host that waits for nothing but mail.
const NEVER: u64 = u64::MAX;

/// A message with the number of the interface that it uses.
type Mail = (u8, Entry);

pub(crate) struct Windows<'a> {
    program: Program<'a>,
    charges: Charges,
    hosts: Hosts,
    matching: Matching,
    records: Records,
    /// For each host what arrives there in even windows, and in odd ones.
    mail: [Vec<Vec<Mail>>; 2],
    /// The window in which each host is visited next.
    visits: Vec<u64>,
    /// Hosts to visit by window; entries may be outdated.
    later: BTreeMap<u64, Vec<u32>>,
    /// Hosts to visit in the next window, which has mail for them.
    soon: Vec<u32>,
    freed: Vec<Freed>,
    started: u64,
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
    pub(crate) fn new(schedule: &'a Schedule, parameters: LogGops) -> Result<Self, SimulationError> {
        let tables = schedule.tables();
        let hosts = tables.ranks() as usize;
        Ok(Self {
            charges: Charges::new(parameters),
            hosts: Hosts::new(&tables),
            matching: Matching::new(&tables)?,
            records: Records::default(),
            mail: [vec![Vec::new(); hosts], vec![Vec::new(); hosts]],
            visits: vec![NEVER; hosts],
            later: BTreeMap::new(),
            soon: Vec::new(),
            freed: Vec::new(),
            started: 0,
            outcome: Outcome::default(),
            program: Program::new(tables)?,
        })
    }

    pub(crate) fn run(mut self) -> Result<Outcome, SimulationError> {
        for host in 0..self.program.tables.ranks() {
            self.program.roots(host, &mut self.freed);
            let record = self.records.seed();
            self.release(host, record, 0);
            self.visits[host as usize] = 0;
        }
        let mut next: Option<(u64, Vec<u32>)> = Some((0, (0..self.program.tables.ranks()).collect()));
        while let Some((window, hosts)) = next {
            for &host in &hosts {
                if self.visits[host as usize] == window {
                    self.visit(host, window)?;
                }
            }
            self.records.settle();
            next = self.next_window(window);
        }
        self.finish()
    }

    /// Takes the hosts of the next window that has some.
    fn next_window(&mut self, window: u64) -> Option<(u64, Vec<u32>)> {
        if self.soon.is_empty() {
            return self.later.pop_first();
        }
        let mut hosts = std::mem::take(&mut self.soon);
        if let Some(others) = self.later.remove(&(window + 1)) {
            hosts.extend(others);
        }
        Some((window + 1, hosts))
    }

    /// Plans the next visit of a host that was just visited in a window.
    fn plan_visit(&mut self, host: u32, window: u64, next: u64) {
        let has_mail = !self.mail[(window + 1) as usize & 1][host as usize].is_empty();
        let then = match next {
            _ if has_mail => window + 1,
            u64::MAX => NEVER,
            _ => next / self.charges.flight,
        };
        self.visits[host as usize] = then;
        if then == window + 1 {
            self.soon.push(host);
        } else if then != NEVER {
            self.later.entry(then).or_default().push(host);
        }
    }

    /// Does everything that happens at a host in a window.
    fn visit(&mut self, host: u32, window: u64) -> Result<(), SimulationError> {
        self.open_mail(host, window);
        let end = (window + 1) * self.charges.flight;
        loop {
            let records = &self.records;
            let (next, lane) = self.hosts.next(host, |one, other| {
                one.time
                    .cmp(&other.time)
                    .then_with(|| records.rank(one.stamp).cmp(&records.rank(other.stamp)))
            });
            if next.time >= end {
                self.plan_visit(host, window, next.time);
                return Ok(());
            }
            in_range(host, next.time)?;
            let Some(entry) = self.hosts.pop(host, lane) else { return Ok(()) };
            self.step(host, lane, next, &entry, window);
        }
    }

    /// Puts arrivals into their lanes; all of them come in this window.
    fn open_mail(&mut self, host: u32, window: u64) {
        let mail = &mut self.mail[window as usize & 1][host as usize];
        if mail.len() > 1 {
            mail.sort_unstable_by_key(|(_, entry)| (entry.time, self.records.rank(entry.stamp)));
        }
        for (nic, entry) in mail.drain(..) {
            self.hosts.arrive(host, 0, nic, entry);
        }
    }

    #[inline]
    fn step(&mut self, host: u32, lane: usize, next: Next, entry: &Entry, window: u64) {
        let resources = self.hosts.plan.lanes[lane];
        let record = self.records.open(next);
        let created = match resources.what {
            What::Calculate => {
                *self.hosts.cpu(host, 0) = next.time + entry.size;
                self.start(host, entry.node);
                self.program.ended(host, entry.node, &mut self.freed);
                0
            }
            What::Send => {
                *self.hosts.cpu(host, 0) = next.time + self.charges.send(entry.size);
                *self.hosts.sender(host, resources.nic) = next.time + self.charges.gap(entry.size);
                self.start(host, entry.node);
                let arrival = next.time + self.charges.flight;
                self.post(
                    (resources.nic, Entry { time: arrival, stamp: stamp(record, 0), ..*entry }),
                    window,
                );
                self.program.ended(host, entry.node, &mut self.freed);
                1
            }
            What::Receive => {
                self.start(host, entry.node);
                if self.matching.post(&mut self.program, host, entry).is_some() {
                    self.receive(host, entry.node);
                }
                0
            }
            What::Arrive => {
                *self.hosts.cpu(host, 0) = next.time + self.charges.receive(entry.size);
                *self.hosts.receiver(host, resources.nic) = next.time + self.charges.gap(entry.size);
                if let Some(receive) = self.matching.arrive(&mut self.program, host, entry) {
                    self.receive(host, receive);
                }
                0
            }
        };
        if self.release(host, record, created) == 0 {
            self.records.abandon();
        }
    }

    #[inline]
    fn start(&mut self, host: u32, node: u32) {
        self.started += 1;
        self.program.started(host, node, &mut self.freed);
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
    fn post(&mut self, mail: Mail, window: u64) {
        self.outcome.messages += 1;
        self.outcome.message_bytes += mail.1.size;
        let to = self.program.steps[mail.1.node as usize].to;
        self.mail[(window + 1) as usize & 1][to as usize].push(mail);
        // A host that is still to be visited in this window finds its mail at the end of the visit.
        let visit = &mut self.visits[to as usize];
        if *visit > window + 1 {
            *visit = window + 1;
            self.soon.push(to);
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
            self.hosts.free(host, node, &self.program.steps[node as usize], stamp(record, number));
            number += 1;
        }
        number
    }

    fn finish(mut self) -> Result<Outcome, SimulationError> {
        let (receives, messages, left) = self.matching.left(&self.program, NAMED);
        let operations = self.program.tables.nodes.len() as u64 - self.started;
        if operations + receives + messages > 0 {
            return Err(SimulationError::Unmatched { operations, receives, messages, left });
        }
        self.outcome.ends.extend((0..self.program.tables.ranks()).map(|host| self.hosts.end(host)));
        self.outcome.events = self.started + self.outcome.messages;
        Ok(self.outcome)
    }
}

/// Names something that is created: by its record and its number there.
fn stamp(record: u32, number: u32) -> u64 {
    u64::from(record) << 32 | u64::from(number)
}

/// Events that have created something.
#[derive(Debug, Default)]
struct Records {
    /// The place of each record of earlier windows in the order of all events.
    places: Vec<u32>,
    /// The events of this window: when they happened, and the stamp of what happened.
    events: Vec<Next>,
    /// The numbers of those events by their time.
    by_time: Vec<(u64, u32)>,
}

impl Records {
    /// Adds an event before all windows, behind those that there are, and returns the number of its record.
    fn seed(&mut self) -> u32 {
        let number = self.places.len() as u32;
        self.places.push(number);
        number
    }

    /// Adds an event of this window and returns the number of its record.
    #[inline]
    fn open(&mut self, event: Next) -> u32 {
        self.events.push(event);
        (self.places.len() + self.events.len() - 1) as u32
    }

    /// Takes the last event away, which has created nothing.
    #[inline]
    fn abandon(&mut self) {
        self.events.pop();
    }

    /// Returns what stamps are compared by: places, where they are known. Those that are not known belong to events of
    /// this window, and so to one host: they come later, in their own order.
    #[inline]
    fn rank(&self, stamp: u64) -> u64 {
        let record = (stamp >> 32) as usize;
        let place = self.places.get(record).copied().map_or(record as u64, u64::from);
        place << 32 | stamp & u64::from(u32::MAX)
    }

    /// Puts the events of the window into the order of all events, that of time and stamps.
    fn settle(&mut self) {
        let first = self.places.len();
        self.by_time.clear();
        self.by_time.extend((0..).zip(&self.events).map(|(number, event)| (event.time, number)));
        self.by_time.sort_unstable();
        self.places.resize(first + self.events.len(), UNKNOWN);
        let mut place = first as u32;
        let mut by_time = std::mem::take(&mut self.by_time);
        for group in by_time.chunk_by_mut(|one, other| one.0 == other.0) {
            self.settle_group(first, group, &mut place);
        }
        self.by_time = by_time;
        self.events.clear();
    }

    /// Orders events of one time: first what was created before, then what those events have created, and so on.
    fn settle_group(&mut self, first: usize, mut group: &mut [(u64, u32)], place: &mut u32) {
        while !group.is_empty() {
            let (places, events) = (&self.places, &self.events);
            let rank = |number: u32| {
                let stamp = events[number as usize].stamp;
                let place = places.get((stamp >> 32) as usize).copied().unwrap_or(0);
                u64::from(place) << 32 | stamp & u64::from(u32::MAX)
            };
            if group.len() > 1 {
                group.sort_unstable_by_key(|&(_, number)| rank(number));
            }
            let known = group.partition_point(|&(_, number)| rank(number) >> 32 != u64::from(UNKNOWN));
            let (settled, rest) = group.split_at_mut(known);
            for &mut (_, number) in settled {
                self.places[first + number as usize] = *place;
                *place += 1;
            }
            group = rest;
        }
    }
}

/// The place of a record whose turn has not come.
const UNKNOWN: u32 = u32::MAX;
