//! The windowed engine: conservative simulation of hosts in windows of the lookahead o + L.
//!
//! A message arrives o + L after its send started. Within a window of that length no host can affect another one, so
//! each host runs alone, from the first to the last of its events in the window (lookahead: Chandy and Misra 1979;
//! windows: Lubachevsky's bounded lag, 1989). Time is divided into buckets, a fraction of a window each. A new window
//! starts with each bucket, and a host runs in the bucket of its first event, so that each turn advances it by nearly
//! o + L. Buckets of a few hosts are so short that mostly one host runs in each, and a tournament tree finds it; those
//! of many hosts are kept in a calendar queue.
//!
//! What remains is the order of simultaneous events at one host, which LogGOPSim takes from stamps that it gives out in
//! the order of all events everywhere. Here an event that creates something is recorded in a log, and a stamp is the
//! number of the record and a number within it; two stamps are compared through the records only when needed.
//!
//! This is exact if time never runs backwards (one processor per host) and no send waits for its receive: such a wait
//! ends at another host with no delay, i.e. without lookahead. While a message above S bytes (rendezvous) is in flight
//! or waits, windows are therefore run event by event, in global order, as soon as all hosts have reached the same
//! time.
//!
//! Threads divide the hosts by the same rule: within a window no partition can affect another one. All partitions run a
//! window independently, meet at a [barrier](pdes_core::Barrier), take the messages that the others have sent, and
//! start the next window at the first event of any. Stamps are compared as above, through records that other partitions
//! may have written in earlier windows; the result is therefore that of one thread.

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

/// Number of hosts per thread that makes another thread worthwhile: fewer seldom have enough to do in a window. One in
/// debug builds, so that tests use threads.
const HOSTS_PER_THREAD: usize = if cfg!(debug_assertions) { 1 } else { 64 };

/// Returns true if the engine gives LogGOPSim's result for a schedule, i.e. if each host has one processor, the
/// lookahead is positive, and the records are countable.
pub(crate) fn fits(schedule: &Schedule, parameters: &LogGops) -> bool {
    let charges = Charges::new(*parameters);
    let Extent { ranks, operations, cpus, .. } = schedule.extent();
    // Each operation makes at most one record, and each message one more.
    let is_countable = 2 * operations + u64::from(ranks) <= MOST;
    cpus == 1 && charges.flight > 0 && is_countable
}

/// Simulates a supported schedule whose hosts have up to `LANES` lanes, on up to `threads` threads.
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

/// Simulates partitions with these ranks.
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

/// Runs a single partition to its end, on this thread.
fn alone<'a, A: Agenda, const LANES: usize>(
    mut part: Part<'a, A, LANES>,
    mut places: Places<'a>,
) -> Part<'a, A, LANES> {
    part.begin();
    while let Some(day) = part.agenda.next() {
        let start = day << part.day;
        places.keep_up(&mut part.work, start);
        // While sends wait, all hosts must reach the same time before a window: only `run_sequentially` then sets its
        // end.
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
