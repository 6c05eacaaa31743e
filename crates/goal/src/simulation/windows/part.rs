//! Hosts that one thread runs: window after window, host after host.

use std::ops::{Index, IndexMut, Range};

use super::super::Outcome;
use super::super::lane::Plan;
use super::super::matching::Left;
use super::super::pool::Slot;
use super::super::program::CACHED;
use super::agenda::Agenda;
use super::hosts::Host;
use super::in_order::InOrder;
use super::records::Log;
use super::work::Work;
use crate::parameters::{LIMIT, LogGops};
use crate::schedule::Tables;

/// Hosts whose memory is read together.
const TOGETHER: usize = 16;

/// The day of a host that waits for nothing but mail.
const NO_VISIT: u64 = u64::MAX;

/// Some of the hosts, which have up to so many lanes.
pub(super) struct Part<'a, A, const LANES: usize> {
    pub(super) hosts: Hosts<LANES>,
    pub(super) work: Work<'a>,
    pub(super) agenda: A,
    pub(super) in_order: InOrder,
    /// The logarithm of the length of a day \[ps\].
    pub(super) day: u32,
    /// The length of a window: as many days as o + L has \[ps\].
    pub(super) window: u64,
    /// No host has come further than here \[ps\].
    pub(super) reached: u64,
    /// The first host at which something happens after the last time that there is.
    pub(super) late: Option<u32>,
    /// What has been sent to hosts of other parts, by their numbers.
    pub(super) outboxes: Vec<Vec<Letter>>,
    /// The first host of each part but the first one.
    borders: Vec<u32>,
    /// The hosts that are visited on a day.
    pub(super) visited: Vec<u32>,
    /// First operations of hosts that are visited next, and what stands first there.
    fetched: Vec<(u32, u32)>,
}

/// A message between parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Letter {
    to: u32,
    slot: Slot,
}

/// Hosts by their ranks.
pub(super) struct Hosts<const LANES: usize> {
    first: u32,
    list: Vec<Host<LANES>>,
}

impl<const LANES: usize> Hosts<LANES> {
    #[inline]
    fn ranks(&self) -> Range<u32> {
        self.first..self.first + self.list.len() as u32
    }
}

impl<const LANES: usize> Index<u32> for Hosts<LANES> {
    type Output = Host<LANES>;

    #[inline]
    fn index(&self, host: u32) -> &Host<LANES> {
        &self.list[(host - self.first) as usize]
    }
}

impl<const LANES: usize> IndexMut<u32> for Hosts<LANES> {
    #[inline]
    fn index_mut(&mut self, host: u32) -> &mut Host<LANES> {
        &mut self.list[(host - self.first) as usize]
    }
}

impl<'a, A: Agenda, const LANES: usize> Part<'a, A, LANES> {
    /// Prepares one of the parts with these ranks, on so many threads at most.
    pub(super) fn new(
        tables: Tables<'a>,
        plan: &'a Plan,
        parameters: LogGops,
        log: &'a Log,
        (number, parts): (usize, &[Range<u32>]),
        threads: usize,
    ) -> Self {
        let ranks = parts[number].clone();
        let work = Work::new(tables, plan, parameters, (log, number), ranks.clone(), threads);
        let day = A::day(work.charges.flight);
        let first_nodes = &tables.first_node[ranks.start as usize..ranks.end as usize];
        let list = first_nodes.iter().map(|&first| Host::new(first as u32)).collect();
        Self {
            agenda: A::new(&ranks),
            hosts: Hosts { first: ranks.start, list },
            day,
            window: work.charges.flight >> day << day,
            reached: 0,
            work,
            in_order: InOrder::default(),
            late: None,
            outboxes: parts.iter().map(|_| Vec::new()).collect(),
            borders: parts[1..].iter().map(|ranks| ranks.start).collect(),
            visited: Vec::new(),
            fetched: Vec::new(),
        }
    }

    /// Puts the operations that wait for nothing into their lanes.
    pub(super) fn begin(&mut self) {
        for host in self.hosts.ranks() {
            self.work.begin(&mut self.hosts[host], host);
            self.agenda.enter(0, host);
        }
    }

    /// Visits all hosts at which something happens before the end of a window.
    pub(super) fn run_window(&mut self, end: u64) {
        self.reached = end;
        while let Some(day) = self.agenda.next().filter(|day| day << self.day < end) {
            self.run_day(day);
        }
    }

    /// Visits hosts of the next day, each until the end of the window.
    pub(super) fn run_day(&mut self, day: u64) {
        if let Some(host) = self.agenda.one() {
            return self.visit(host);
        }
        let mut hosts = std::mem::take(&mut self.visited);
        self.agenda.turn(day, &mut hosts);
        for hosts in hosts.chunks(TOGETHER) {
            if self.hosts.list.len() > CACHED {
                self.fetch(hosts);
            }
            for &host in hosts {
                if self.hosts[host].visit == day {
                    self.visit(host);
                }
            }
        }
        hosts.clear();
        self.visited = hosts;
    }

    /// Reads what the next visits will need.
    ///
    /// Between two visits of a host the others push its operations out of the caches. A visit reads one thing because of
    /// another, and so would wait for memory each time; here the reads for several hosts do not depend on each other, and
    /// the processor waits for them together.
    fn fetch(&mut self, hosts: &[u32]) {
        self.fetched.clear();
        for &host in hosts {
            let host = &self.hosts[host];
            self.fetched.extend(host.heads().map(|slot| (host.first, slot)));
        }
        let mut seen = 0;
        for &(first, slot) in &self.fetched {
            seen ^= self.work.read(first, slot);
            seen ^= self.work.leads_to(slot).map_or(0, |peer| self.hosts[peer].first);
        }
        std::hint::black_box(seen);
    }

    /// Does everything that happens at a host in a window.
    fn visit(&mut self, host: u32) {
        let end = self.reached;
        let own = &mut self.hosts[host];
        let next = self.work.run(own, host, end);
        self.deliver();
        self.plan_visit(host, next);
    }

    /// Puts what a visit has sent into the mail; it arrives behind the window.
    pub(super) fn deliver(&mut self) {
        if self.work.sent.is_empty() {
            return;
        }
        for index in 0..self.work.sent.len() {
            let place = self.work.sent[index];
            let slot = self.work.pool[place];
            let to = self.work.matching.destination(slot.channel);
            if self.hosts.ranks().contains(&to) {
                self.post(to, place, slot.time);
            } else {
                self.work.pool.give(place);
                let part = self.borders.partition_point(|&first| first <= to);
                self.outboxes[part].push(Letter { to, slot });
            }
        }
        self.work.sent.clear();
    }

    /// Takes what hosts of other parts have sent.
    pub(super) fn take_mail(&mut self, letters: impl Iterator<Item = Letter>) {
        for Letter { to, slot } in letters {
            let place = self.work.pool.take(slot);
            self.post(to, place, slot.time);
        }
    }

    /// Puts a message that arrives at a time into the mail of a host.
    #[inline]
    fn post(&mut self, to: u32, place: u32, time: u64) {
        let host = &mut self.hosts[to];
        host.post(place, time, &mut self.work.pool);
        // As long as the processor is busy, the message changes nothing. A host that is still to be visited in this
        // window finds its mail at the end of the visit.
        let time = time.max(host.cpu);
        if time >> self.day < host.visit {
            self.plan_visit_at(to, time);
        }
    }

    /// Plans the next visit of a host that was just visited, and at which something comes next at a time.
    pub(super) fn plan_visit(&mut self, host: u32, time: u64) {
        let planned = &self.hosts[host];
        let time = time.min(planned.mail_time.max(planned.cpu));
        self.plan_visit_at(host, time);
    }

    /// Plans the next visit of a host for a time, which may never come.
    #[inline]
    fn plan_visit_at(&mut self, host: u32, time: u64) {
        let planned = &mut self.hosts[host];
        if time < LIMIT {
            planned.visit = time >> self.day;
            self.agenda.enter(planned.visit, host);
            return;
        }
        planned.visit = NO_VISIT;
        self.agenda.remove(host);
        if time != u64::MAX {
            self.late = Some(self.late.map_or(host, |late| late.min(host)));
        }
    }

    /// Returns when the first thing happens, or what has been sent arrives, or before that \[ps\]; the largest number where nothing
    /// does.
    pub(super) fn next_time(&self) -> u64 {
        let own = self.agenda.next().map_or(u64::MAX, |day| day << self.day);
        let sent = self.outboxes.iter().flatten().map(|letter| letter.slot.time >> self.day << self.day);
        sent.min().map_or(own, |sent| sent.min(own))
    }

    /// Adds what the hosts have done, and what is left; returns how many operations have begun.
    pub(super) fn finish(self, outcome: &mut Outcome, left: &mut Left) -> u64 {
        outcome.ends.extend(self.hosts.list.iter().map(|host| host.cpu));
        self.work.finish(outcome, left)
    }
}
