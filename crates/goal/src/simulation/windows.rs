//! The engine without a queue: host after host, window after window.
//!
//! A message arrives o + L after its send started. In a window of that length no host can learn of what another one does
//! in it, so each host runs alone, from the first to the last of its events in the window (Chandy and Misra 1979 called
//! this lookahead; windows are those of Lubachevsky's bounded lag, 1989). A window starts with each day, a part of its
//! length, at the first event of which a host is visited: so it runs nearly as far as o + L each time. Days of a few hosts
//! are so short that mostly one of them is visited, and a tree tells which; those of many are kept in a calendar. What is left
//! is the order of what happens at one host at one time, which LogGOPSim takes from stamps that it gives out in the order of all
//! events everywhere. Here an event that creates something becomes a record, and a stamp is the number of the record and
//! that within it; which one comes first is found from records where it matters.
//!
//! That is exact where time never runs backwards (one processor per host) and where no send waits for its receive: such a
//! wait ends at another host in no time. While a message above S bytes is under way or waits, days are therefore run event
//! by event, in the order of all events, as soon as all hosts have come as far as any.
//!
//! Hosts are divided among threads by the same rule: in a window no part can learn of what another one does in it. So all
//! parts run a window by themselves, [meet](pdes_core::Meeting), take what the others have sent, and begin the next window at the
//! first event of any. What is created is compared as above, by records that other parts may have written in windows before;
//! the answer is therefore that of one thread.

mod agenda;
mod calendar;
mod crew;
mod hosts;
mod in_order;
mod part;
mod places;
mod records;
mod sorting;
mod tournament;
mod work;

use std::ops::Range;

use agenda::Agenda;
use calendar::Calendar;
use part::Part;
use places::Places;
use records::{Log, MOST};
use tournament::Tournament;

use super::lane::Plan;
use super::matching::Left;
use super::{Outcome, SimulationError, finish};
use crate::parameters::{Charges, LIMIT, LogGops};
use crate::schedule::{Extent, Kind, Schedule, Tables};
use crate::threads::divide;

/// A thread more is used where there are so many hosts for each: fewer seldom have enough to do in a window. In debug builds one
/// suffices, so that tests use threads.
const HOSTS_PER_THREAD: usize = if cfg!(debug_assertions) { 1 } else { 64 };

/// Returns whether the engine gives LogGOPSim's answer for a schedule, where each host has one processor.
pub(crate) fn fits(schedule: &Schedule, parameters: &LogGops) -> bool {
    let charges = Charges::new(*parameters);
    let Extent { ranks, operations, cpus, .. } = schedule.extent();
    // Each operation makes a record, and each message once more.
    let is_countable = 2 * operations + u64::from(ranks) <= MOST;
    cpus == 1 && charges.flight > 0 && is_countable
}

/// Simulates a schedule that fits, of which hosts have so many lanes at most, on up to so many threads.
pub(crate) fn simulate<const LANES: usize>(
    schedule: &Schedule,
    plan: &Plan,
    parameters: LogGops,
    threads: usize,
) -> Result<Outcome, SimulationError> {
    let tables = schedule.tables();
    let waits = schedule.sizes().largest(Kind::Send) > parameters.eager_up_to;
    let parts = if waits { 1 } else { threads.min(tables.ranks() as usize / HOSTS_PER_THREAD).max(1) };
    let ranks = divide(&tables, 0..tables.ranks(), parts);
    let log = Log::new(ranks.iter().map(|ranks| 2 * tables.operations(ranks) + ranks.len()));
    let most_hosts = ranks.iter().map(|ranks| ranks.len()).max().unwrap_or(0);
    let run = if Tournament::fits(most_hosts, Charges::new(parameters).flight) {
        run::<Tournament, LANES>
    } else {
        run::<Calendar, LANES>
    };
    run(tables, plan, parameters, &ranks, &log, threads / parts)
}

/// Runs parts of these ranks.
fn run<A: Agenda, const LANES: usize>(
    tables: Tables<'_>,
    plan: &Plan,
    parameters: LogGops,
    ranks: &[Range<u32>],
    log: &Log,
    threads: usize,
) -> Result<Outcome, SimulationError> {
    let places = Places::new(log, tables.ranks());
    let part = |number: usize| Part::<A, LANES>::new(tables, plan, parameters, log, (number, ranks), threads);
    let parts = match ranks.len() {
        1 => vec![alone(part(0), places)],
        parts => crew::run(part, parts, places),
    };
    if let Some(rank) = parts.iter().filter_map(|part| part.late).min() {
        return Err(SimulationError::Time { rank });
    }
    let (mut outcome, mut left, mut begun) = (Outcome::default(), Left::default(), 0);
    for part in parts {
        begun += part.finish(&mut outcome, &mut left);
    }
    finish(tables.nodes.len(), begun, left, outcome)
}

/// Runs all hosts to their end, on one thread.
fn alone<'a, A: Agenda, const LANES: usize>(
    mut part: Part<'a, A, LANES>,
    mut places: Places<'a>,
) -> Part<'a, A, LANES> {
    part.begin();
    while let Some(day) = part.agenda.next() {
        let start = day << part.day;
        places.keep_up(&mut part.work, start);
        // Where sends wait, what a window needs is known once all hosts have come as far as any.
        if part.work.waiting == 0 {
            part.reached = (start + part.window).min(LIMIT);
        }
        if start < part.reached {
            part.run_day(day);
        } else {
            part.run_in_order(day);
        }
    }
    part
}
