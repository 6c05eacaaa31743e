//! The engine without a queue: host after host, window after window.
//!
//! A message arrives o + L after its send started. In a window of that length no host can learn of what another one does
//! in it, so each host runs alone, from the first to the last of its events in the window (Chandy and Misra 1979 called
//! this lookahead; windows are those of Lubachevsky's bounded lag, 1989). What is left is the order of what happens at one
//! host at one time, which LogGOPSim takes from stamps that it gives out in the order of all events everywhere. Here an
//! event that creates something becomes a record; at the end of the window the records are put into the order of all
//! events, and a stamp is the place of the record and the number within it.
//!
//! That is exact where time never runs backwards (one processor per host) and where no send waits for its receive: such a
//! wait ends at another host in no time. Windows that begin while a message above S bytes is under way or waits are
//! therefore run event by event, in the order of all events.

mod calendar;
mod hosts;
mod in_order;
mod records;
mod sorting;
mod work;

use calendar::Calendar;
use hosts::Host;
use in_order::InOrder;
use records::UNKNOWN;
use work::Work;

use super::lane::Plan;
use super::{Outcome, SimulationError};
use crate::parameters::{Charges, LIMIT, LogGops};
use crate::schedule::{Extent, Schedule};

/// What so many hosts need for their next operation stays in the caches between their visits.
const CACHED: usize = 512;

/// Hosts whose memory is read together.
const TOGETHER: usize = 16;

/// The window of a host that waits for nothing but mail.
const NO_VISIT: u64 = u64::MAX;

/// The engine for hosts with so many lanes.
pub(crate) struct Windows<'a, const LANES: usize> {
    hosts: Vec<Host<LANES>>,
    work: Work<'a>,
    calendar: Calendar,
    in_order: InOrder,
    /// First operations of hosts that are visited next, and what stands first there.
    fetched: Vec<(u32, u32)>,
}

/// Returns whether the engine gives LogGOPSim's answer for a schedule, where each host has one processor.
pub(crate) fn fits(schedule: &Schedule, parameters: &LogGops) -> bool {
    let charges = Charges::new(*parameters);
    let Extent { ranks, operations, cpus, .. } = schedule.extent();
    // Each operation makes a record, and each message once more.
    let is_countable = 2 * operations + u64::from(ranks) <= u64::from(UNKNOWN);
    cpus == 1 && charges.flight > 0 && is_countable
}

impl<'a, const LANES: usize> Windows<'a, LANES> {
    /// Prepares the simulation of a schedule that fits.
    pub(crate) fn new(schedule: &'a Schedule, plan: &'a Plan, parameters: LogGops) -> Self {
        let tables = schedule.tables();
        let hosts = tables.first_node[..tables.ranks() as usize].iter().map(|&first| Host::new(first as u32));
        Self {
            hosts: hosts.collect(),
            work: Work::new(tables, plan, parameters),
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
        while let Some(window) = next {
            if self.work.waiting > 0 {
                self.run_in_order(&mut hosts, window)?;
            } else {
                for hosts in hosts.chunks(TOGETHER) {
                    if is_large {
                        self.fetch(hosts);
                    }
                    for &host in hosts {
                        if self.hosts[host as usize].visit == window {
                            self.visit(host, window)?;
                        }
                    }
                }
                self.work.records.settle();
            }
            hosts.clear();
            next = self.calendar.turn(&mut hosts);
        }
        let ends = self.hosts.iter().map(|host| host.cpu).collect();
        self.work.finish(ends)
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
            seen ^= self.hosts.get(self.work.pool[slot].peer as usize).map_or(0, |host| host.first);
        }
        std::hint::black_box(seen);
    }

    /// Returns where a window ends.
    fn end(&self, window: u64) -> u64 {
        ((window + 1) * self.work.charges.flight).min(LIMIT)
    }

    /// Does everything that happens at a host in a window.
    fn visit(&mut self, host: u32, window: u64) -> Result<(), SimulationError> {
        let end = self.end(window);
        let own = &mut self.hosts[host as usize];
        self.work.open_mail(own, end);
        let next = self.work.run(own, host, end);
        self.deliver(window);
        self.plan_visit(host, window, next)
    }

    /// Puts what a visit in a window has sent into the mail; it arrives in the next window.
    fn deliver(&mut self, window: u64) {
        let Self { hosts, work, calendar, .. } = self;
        let flight = work.charges.flight;
        for place in work.sent.drain(..) {
            let peer = work.pool[place].peer;
            let to = &mut hosts[peer as usize];
            to.mail.push(place, &mut work.pool);
            // As long as the processor is busy, the message changes nothing. A host that is still to be visited in this
            // window finds its mail at the end of the visit.
            let visit = if to.cpu < (window + 2) * flight { window + 1 } else { to.cpu / flight };
            if visit < to.visit {
                to.visit = visit;
                calendar.enter(visit, peer);
            }
        }
    }

    /// Plans the next visit of a host that was just visited in a window, and at which something comes next at a time.
    fn plan_visit(&mut self, host: u32, window: u64, time: u64) -> Result<(), SimulationError> {
        let flight = self.work.charges.flight;
        let planned = &mut self.hosts[host as usize];
        let then = match planned.mail.last() {
            Some(_) => time.min(planned.cpu.max((window + 1) * flight)),
            None => time,
        };
        planned.visit = match then {
            u64::MAX => NO_VISIT,
            LIMIT.. => return Err(SimulationError::Time { rank: host }),
            time => time / flight,
        };
        if planned.visit != NO_VISIT {
            self.calendar.enter(planned.visit, host);
        }
        Ok(())
    }
}
