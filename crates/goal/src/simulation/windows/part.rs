//! Partition: the hosts that one thread runs, window after window, host after host.

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

/// Number of hosts whose memory is prefetched together.
const TOGETHER: usize = 16;

/// Bucket of a host that has no turn: it waits only for messages.
const NO_VISIT: u64 = u64::MAX;

/// Partition of the hosts, which have up to `LANES` lanes each.
pub(super) struct Part<'a, A, const LANES: usize> {
    pub(super) hosts: Hosts<LANES>,
    pub(super) work: Work<'a>,
    pub(super) agenda: A,
    pub(super) in_order: InOrder,
    /// Log2 of the bucket width \[ps\].
    pub(super) day: u32,
    /// Length of a window: o + L, rounded down to whole buckets \[ps\].
    pub(super) window: u64,
    /// End of the current window; no host has advanced beyond it \[ps\].
    pub(super) reached: u64,
    /// Lowest host with an event beyond the range of time.
    pub(super) late: Option<u32>,
    /// Outgoing messages by destination partition.
    pub(super) outboxes: Vec<Vec<Letter>>,
    /// First host of each partition except the first.
    borders: Vec<u32>,
    /// Buffer for the hosts of a bucket.
    pub(super) visited: Vec<u32>,
    /// Buffer for prefetching: first operation of each host that runs next, and a head slot.
    fetched: Vec<(u32, u32)>,
}

/// Message between partitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Letter {
    to: u32,
    slot: Slot,
}

/// Hosts of a partition, by rank.
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
    /// Makes partition `number` of those with these ranks; counts dependencies on up to `threads` threads.
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

    /// Adds the operations without dependencies to their lanes and schedules all hosts.
    pub(super) fn begin(&mut self) {
        for host in self.hosts.ranks() {
            self.work.begin(&mut self.hosts[host], host);
            self.agenda.enter(0, host);
        }
    }

    /// Runs all hosts that have events before the end of a window.
    pub(super) fn run_window(&mut self, end: u64) {
        self.reached = end;
        while let Some(day) = self.agenda.next().filter(|day| day << self.day < end) {
            self.run_day(day);
        }
    }

    /// Runs hosts of the next bucket, each until the end of the window.
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

    /// Reads the memory that the next hosts will need, before they run.
    ///
    /// Between two turns of a host the others evict its operations from the caches. A turn is a chain of dependent
    /// loads that misses each time; here the loads of several hosts are independent, so that their misses overlap.
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

    /// Runs a host to the end of the window.
    fn visit(&mut self, host: u32) {
        let end = self.reached;
        let own = &mut self.hosts[host];
        let next = self.work.run(own, host, end);
        self.deliver();
        self.plan_visit(host, next);
    }

    /// Delivers the messages that a host has sent; they arrive after the window.
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

    /// Takes messages from other partitions.
    pub(super) fn take_mail(&mut self, letters: impl Iterator<Item = Letter>) {
        for Letter { to, slot } in letters {
            let place = self.work.pool.take(slot);
            self.post(to, place, slot.time);
        }
    }

    /// Adds a message that arrives at `time` to the mailbox of a host.
    #[inline]
    fn post(&mut self, to: u32, place: u32, time: u64) {
        let host = &mut self.hosts[to];
        host.post(place, time, &mut self.work.pool);
        // A message changes nothing while the processor is busy. A host that has still to run in this window finds its
        // mailbox at the end of its turn.
        let time = time.max(host.cpu);
        if time >> self.day < host.visit {
            self.plan_visit_at(to, time);
        }
    }

    /// Schedules the next turn of a host that has just run, and whose next event in its lanes is at `time`.
    pub(super) fn plan_visit(&mut self, host: u32, time: u64) {
        let planned = &self.hosts[host];
        let time = time.min(planned.mail_time.max(planned.cpu));
        self.plan_visit_at(host, time);
    }

    /// Schedules the next turn of a host at `time`, which may be never.
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

    /// Returns a lower bound on the times of the next event and of the arrivals of outgoing messages \[ps\]; `u64::MAX`
    /// if there are none.
    pub(super) fn next_time(&self) -> u64 {
        let own = self.agenda.next().map_or(u64::MAX, |day| day << self.day);
        let sent = self.outboxes.iter().flatten().map(|letter| letter.slot.time >> self.day << self.day);
        sent.min().map_or(own, |sent| sent.min(own))
    }

    /// Adds the results of the hosts and the unmatched receives and messages; returns the number of operations that
    /// have started.
    pub(super) fn finish(self, outcome: &mut Outcome, left: &mut Left) -> u64 {
        outcome.ends.extend(self.hosts.list.iter().map(|host| host.cpu));
        self.work.finish(outcome, left)
    }
}
