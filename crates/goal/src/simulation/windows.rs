//! The engine without a queue: host after host, window after window.
//!
//! A message arrives o + L after its send started. In a window of that length no host can learn of what another one does
//! in it, so each host runs alone, from the first to the last of its events in the window (Chandy and Misra 1979 called
//! this lookahead; windows are those of Lubachevsky's bounded lag, 1989). A window starts with each day, a part of its
//! length, at the first event of which a host is visited: so it runs nearly as far as o + L each time. What is left is the
//! order of what happens at one host at one time, which LogGOPSim takes from stamps that it gives out in the order of all
//! events everywhere. Here an event that creates something becomes a record, and a stamp is the number of the record and
//! that within it; which one comes first is found from records where it matters.
//!
//! That is exact where time never runs backwards (one processor per host) and where no send waits for its receive: such a
//! wait ends at another host in no time. While a message above S bytes is under way or waits, days are therefore run event
//! by event, in the order of all events, as soon as all hosts have come as far as any.

mod calendar;
mod hosts;
mod in_order;
mod records;
mod sorting;
mod work;

use calendar::Calendar;
use hosts::Host;
use in_order::InOrder;
use records::MOST;
use work::Work;

use super::lane::Plan;
use super::pool::Slot;
use super::{Outcome, SimulationError};
use crate::parameters::{Charges, LIMIT, LogGops};
use crate::schedule::{Extent, Schedule};

/// What so many hosts need for their next operation stays in the caches between their visits.
const CACHED: usize = 2048;

/// Hosts whose memory is read together.
const TOGETHER: usize = 16;

/// The day of a host that waits for nothing but mail.
const NO_VISIT: u64 = u64::MAX;

/// A window has at least as many days, where it has as many picoseconds.
const DAYS: u64 = 8;

/// The engine for hosts with so many lanes.
pub(crate) struct Windows<'a, const LANES: usize> {
    hosts: Vec<Host<LANES>>,
    work: Work<'a>,
    calendar: Calendar,
    in_order: InOrder,
    /// The logarithm of the length of a day \[ps\].
    day: u32,
    /// The length of a window: as many days as o + L has \[ps\].
    window: u64,
    /// No host has come further than here \[ps\].
    reached: u64,
    /// First operations of hosts that are visited next, and what stands first there.
    fetched: Vec<(u32, u32)>,
}

/// Returns whether the engine gives LogGOPSim's answer for a schedule, where each host has one processor.
pub(crate) fn fits(schedule: &Schedule, parameters: &LogGops) -> bool {
    let charges = Charges::new(*parameters);
    let Extent { ranks, operations, cpus, .. } = schedule.extent();
    // Each operation makes a record, and each message once more.
    let is_countable = 2 * operations + u64::from(ranks) <= MOST;
    cpus == 1 && charges.flight > 0 && is_countable
}

impl<'a, const LANES: usize> Windows<'a, LANES> {
    /// Prepares the simulation of a schedule that fits.
    pub(crate) fn new(schedule: &'a Schedule, plan: &'a Plan, parameters: LogGops) -> Self {
        let tables = schedule.tables();
        let work = Work::new(tables, plan, parameters);
        let day = (work.charges.flight / DAYS).checked_ilog2().unwrap_or(0);
        let hosts = tables.first_node[..tables.ranks() as usize].iter().map(|&first| Host::new(first as u32));
        Self {
            hosts: hosts.collect(),
            day,
            window: work.charges.flight >> day << day,
            reached: 0,
            work,
            calendar: Calendar::new(),
            in_order: InOrder::default(),
            fetched: Vec::new(),
        }
    }

    pub(crate) fn run(mut self) -> Result<Outcome, SimulationError> {
        let mut hosts: Vec<u32> = (0..self.hosts.len() as u32).collect();
        for (own, &host) in self.hosts.iter_mut().zip(&hosts) {
            self.work.begin(own, host);
        }
        let is_large = self.hosts.len() > CACHED;
        let mut next = Some(0);
        while let Some(day) = next {
            let start = day << self.day;
            self.work.complete(start);
            if self.work.waiting == 0 {
                self.reached = (start + self.window).min(LIMIT);
            }
            if start < self.reached {
                self.run_day(&hosts, day, is_large)?;
            } else {
                self.run_in_order(&mut hosts, day)?;
            }
            hosts.clear();
            next = self.calendar.next();
            next.iter().for_each(|&day| self.calendar.turn(day, &mut hosts));
        }
        let ends = self.hosts.iter().map(|host| host.cpu).collect();
        self.work.finish(ends)
    }

    /// Visits the hosts of a day, each until the end of the window.
    fn run_day(&mut self, hosts: &[u32], day: u64, is_large: bool) -> Result<(), SimulationError> {
        for hosts in hosts.chunks(TOGETHER) {
            if is_large {
                self.fetch(hosts);
            }
            for &host in hosts {
                if self.hosts[host as usize].visit == day {
                    self.visit(host)?;
                }
            }
        }
        Ok(())
    }

    /// Reads what the next visits will need.
    ///
    /// Between two visits of a host the others push its operations out of the caches. A visit reads one thing because of
    /// another, and so would wait for memory each time; here the reads for several hosts do not depend on each other, and
    /// the processor waits for them together.
    fn fetch(&mut self, hosts: &[u32]) {
        self.fetched.clear();
        for &host in hosts {
            let host = &self.hosts[host as usize];
            self.fetched.extend(host.heads().map(|slot| (host.first, slot)));
        }
        let mut seen = 0;
        for &(first, slot) in &self.fetched {
            seen ^= self.work.read(first, slot);
            seen ^= self.work.leads_to(slot).map_or(0, |peer| self.hosts[peer as usize].first);
        }
        std::hint::black_box(seen);
    }

    /// Does everything that happens at a host in a window.
    fn visit(&mut self, host: u32) -> Result<(), SimulationError> {
        let end = self.reached;
        let own = &mut self.hosts[host as usize];
        self.work.open_mail(own, end);
        let next = self.work.run(own, host, end);
        self.deliver();
        self.plan_visit(host, next)
    }

    /// Puts what a visit has sent into the mail; it arrives behind the window.
    fn deliver(&mut self) {
        let Self { hosts, work, calendar, .. } = self;
        for place in work.sent.drain(..) {
            let Slot { time, channel, .. } = work.pool[place];
            let peer = work.matching.destination(channel);
            let to = &mut hosts[peer as usize];
            to.post(place, time, &mut work.pool);
            // As long as the processor is busy, the message changes nothing. A host that is still to be visited in this
            // window finds its mail at the end of the visit.
            let visit = time.max(to.cpu) >> self.day;
            if visit < to.visit {
                to.visit = visit;
                calendar.enter(visit, peer);
            }
        }
    }

    /// Plans the next visit of a host that was just visited, and at which something comes next at a time.
    fn plan_visit(&mut self, host: u32, time: u64) -> Result<(), SimulationError> {
        let planned = &mut self.hosts[host as usize];
        planned.visit = match time.min(planned.mail_time.max(planned.cpu)) {
            u64::MAX => NO_VISIT,
            LIMIT.. => return Err(SimulationError::Time { rank: host }),
            time => time >> self.day,
        };
        if planned.visit != NO_VISIT {
            self.calendar.enter(planned.visit, host);
        }
        Ok(())
    }
}
