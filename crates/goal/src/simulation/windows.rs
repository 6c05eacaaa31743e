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

mod bucket_queue;
mod calendar_queue;
mod event_handler;
mod event_log;
mod host;
mod order_numbers;
mod partition;
mod radix_sort;
mod sequential;
mod tournament_tree;
mod worker_pool;

use std::ops::Range;

use bucket_queue::BucketQueue;
use calendar_queue::CalendarQueue;
use event_log::{EventLog, MAX_RECORDS};
use order_numbers::OrderNumbers;
use partition::Partition;
use tournament_tree::TournamentTree;

use super::lane::LanePlan;
use super::matching::Leftovers;
use super::{Outcome, SimulationError, finish};
use crate::parameters::{Costs, LogGops, TIME_LIMIT};
use crate::schedule::{Extent, Kind, Schedule, Tables};
use crate::threads::divide_evenly;

/// Number of hosts per thread that makes another thread worthwhile: fewer seldom have enough to do in a window. One in
/// debug builds, so that tests use threads.
const HOSTS_PER_THREAD: usize = if cfg!(debug_assertions) { 1 } else { 64 };

/// Returns true if the engine gives LogGOPSim's result for a schedule, i.e. if each host has one processor, the
/// lookahead is positive, and the records are countable.
pub(crate) fn is_supported(schedule: &Schedule, parameters: &LogGops) -> bool {
    let charges = Costs::new(*parameters);
    let Extent { ranks, operations, cpus, .. } = schedule.extent();
    // Each operation makes at most one record, and each message one more.
    let is_countable = 2 * operations + u64::from(ranks) <= MAX_RECORDS;
    cpus == 1 && charges.arrival_delay > 0 && is_countable
}

/// Simulates a supported schedule whose hosts have up to `LANES` lanes, on up to `threads` threads.
pub(crate) fn simulate<const LANES: usize>(
    schedule: &Schedule,
    plan: &LanePlan,
    parameters: LogGops,
    threads: usize,
) -> Result<Outcome, SimulationError> {
    let tables = schedule.tables();
    let waits = schedule.sizes().largest(Kind::Send) > parameters.eager_up_to;
    let parts = if waits { 1 } else { threads.min(tables.ranks() as usize / HOSTS_PER_THREAD).max(1) };
    let ranks = divide_evenly(&tables, 0..tables.ranks(), parts);
    let log = EventLog::new(ranks.iter().map(|ranks| 2 * tables.operation_count(ranks) + ranks.len()));
    let most_hosts = ranks.iter().map(|ranks| ranks.len()).max().unwrap_or(0);
    let run = if TournamentTree::fits(most_hosts, Costs::new(parameters).arrival_delay) {
        run_partitions::<TournamentTree, LANES>
    } else {
        run_partitions::<CalendarQueue, LANES>
    };
    run(tables, plan, parameters, &ranks, &log, threads / parts)
}

/// Simulates partitions with these ranks.
fn run_partitions<A: BucketQueue, const LANES: usize>(
    tables: Tables<'_>,
    plan: &LanePlan,
    parameters: LogGops,
    ranks: &[Range<u32>],
    log: &EventLog,
    threads: usize,
) -> Result<Outcome, SimulationError> {
    let order_numbers = OrderNumbers::new(log, tables.ranks());
    let part =
        |number: usize| Partition::<A, LANES>::new(tables, plan, parameters, log, (number, ranks), threads);
    let parts = match ranks.len() {
        1 => vec![run_single(part(0), order_numbers)],
        parts => worker_pool::run(part, parts, order_numbers),
    };
    if let Some(rank) = parts.iter().filter_map(|part| part.late_rank).min() {
        return Err(SimulationError::Time { rank });
    }
    let (mut outcome, mut left, mut begun) = (Outcome::default(), Leftovers::default(), 0);
    for part in parts {
        begun += part.finish(&mut outcome, &mut left);
    }
    finish(tables.nodes.len(), begun, left, outcome)
}

/// Runs a single partition to its end, on this thread.
fn run_single<'a, A: BucketQueue, const LANES: usize>(
    mut part: Partition<'a, A, LANES>,
    mut order_numbers: OrderNumbers<'a>,
) -> Partition<'a, A, LANES> {
    part.schedule_roots();
    while let Some(bucket) = part.queue.next_bucket() {
        let start = bucket << part.bucket_shift;
        order_numbers.maintain(&mut part.handler, start);
        // While sends wait, all hosts must reach the same time before a window: only `run_sequentially` then sets its
        // end.
        if part.handler.pending_rendezvous == 0 {
            part.window_end = (start + part.window).min(TIME_LIMIT);
        }
        if start < part.window_end {
            part.run_bucket(bucket);
        } else {
            part.run_sequentially(bucket);
        }
    }
    part
}
