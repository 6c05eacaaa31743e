//! Simulation of a schedule under the LogGOPS model.
//!
//! Each rank is a host (the logical process of this simulation) with processors and network interfaces. A ready
//! operation waits until the resources it needs are idle, then occupies them. A message arrives o + L after its send
//! started and occupies processor and interface of the receiver as soon as both are idle, whether or not a receive is
//! posted (Hoefler, Schneider, Lumsdaine: LogGOPSim, HPDC 2010). `docs/goal.md` has the equations.
//!
//! Events are processed one by one in the order of time, ties in the order of their creation, as LogGOPSim does: see
//! [`ordered`].

use crate::noise::Noise;
use crate::parameters::{Costs, LogGops, NANOSECOND};
use crate::schedule::{Kind, Node, Schedule};

mod dependencies;
mod event_queue;
mod host;
mod lane;
mod matching;
mod memory;
mod ordered;
mod pool;

use host::Hosts;
use matching::{Leftovers, Matching};

/// Result of a simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// End time of each host: the time at which its last processor becomes idle \[ps\].
    pub ends: Vec<u64>,
    /// Number of messages sent.
    pub messages: u64,
    /// Payload of these messages \[B\].
    pub message_bytes: u64,
    /// Number of events as LogGOPSim counts them: operations and message arrivals.
    pub events: u64,
    /// Number of receives whose size lies on the other side of S than the size of their message. Here the size of the
    /// message decides between eager and rendezvous; LogGOPSim, which asks the receive if that comes second, ends such
    /// a send twice or never.
    pub protocol_mismatches: u64,
    /// Noise in the operations of each host \[ps\]; empty without noise.
    pub noise: Vec<u64>,
}

impl Outcome {
    /// Returns the end time of the last host \[ps\].
    pub fn end(&self) -> u64 {
        self.ends.iter().copied().max().unwrap_or(0)
    }
}

/// Error of a simulation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// An operation has a cost that is negative or does not fit the range of time.
    #[error(
        "rank {rank}, operation {operation}: the cost of {size} B (or ns) is negative or more than 53 days with these parameters; {HINT}"
    )]
    Cost {
        /// Rank of the operation.
        rank: u32,
        /// Number of the operation within its rank, from 0.
        operation: u32,
        /// Size of the operation \[B or ns\].
        size: u64,
    },
    /// An operation is longer than the noise is known for.
    #[error(
        "rank {rank}, operation {operation}: it takes {length} ns, and the noise is one of {longest} ns, at most: give a longer trace of \
         noise"
    )]
    Noise {
        /// Rank of the operation.
        rank: u32,
        /// Number of the operation within its rank, from 0.
        operation: u32,
        /// Length of the operation \[ns\].
        length: u64,
        /// Longest operation for which the noise is known \[ns\].
        longest: u64,
    },
    /// Simulated time exceeds its range.
    #[error("rank {rank}: simulated time leaves its range of 53 days")]
    Time {
        /// Lowest rank with an event out of range.
        rank: u32,
    },
    /// The schedule deadlocks: operations, receives or messages are left over.
    #[error("{}", describe_unmatched(left, *operations, *receives, *messages))]
    Unmatched {
        /// Number of operations that never started because a dependency never ended.
        operations: u64,
        /// Number of receives without a message.
        receives: u64,
        /// Number of messages without a receive.
        messages: u64,
        /// The first few unmatched receives and messages.
        left: Vec<Unmatched>,
    },
}

const HINT: &str =
    "a message of 0 bytes costs a byte less than one of 1 byte, unless loggops.empty = \"one_byte\"";

/// A receive without a message, or a message without a receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// True for a message, false for a receive.
    pub is_message: bool,
    /// Rank at which it waits.
    pub rank: u32,
    /// Sending rank; `None` matches any.
    pub source: Option<u32>,
    /// Tag; `None` matches any.
    pub tag: Option<u32>,
    /// Number of the receive at its rank, or of the send at its source, from 0.
    pub operation: u32,
}

fn describe_unmatched(left: &[Unmatched], operations: u64, receives: u64, messages: u64) -> String {
    let any = |number: Option<u32>| number.map_or_else(|| "any".to_owned(), |number| number.to_string());
    let mut text = format!(
        "the schedule does not end: {receives} receive(s) without a message, {messages} message(s) without a receive, \
         {operations} operation(s) that never start"
    );
    for Unmatched { is_message, rank, source, tag, operation } in left {
        let what = if *is_message { "message" } else { "receive" };
        let (source, tag) = (any(*source), any(*tag));
        text.push_str(&format!(
            "\n  rank {rank}: {what} from {source} with tag {tag} (operation {operation})"
        ));
    }
    text
}

/// Simulates a schedule and returns LogGOPSim's result. Up to `threads` threads count the dependencies; the simulation itself runs
/// on one, since ties are broken by the order in which events were created, over all hosts.
///
/// # Errors
/// Fails if receives or messages are left over, or if a time exceeds its range.
///
/// # Panics
/// Panics if `threads` is 0.
pub fn simulate(
    schedule: &Schedule,
    parameters: &LogGops,
    threads: usize,
) -> Result<Outcome, SimulationError> {
    run(schedule, parameters, None, threads)
}

/// Simulates a schedule as [`simulate`] does, with noise on its hosts, as LogGOPSim has it: a computation, a send and the receipt of a message
/// occupy their processor for longer, by the noise in the computation, or in the overhead per message. Neither messages nor
/// interfaces wait for it.
///
/// # Errors
/// As [`simulate`], and if an operation is longer than the noise is known for.
///
/// # Panics
/// Panics if `threads` is 0.
pub fn simulate_with_noise(
    schedule: &Schedule,
    parameters: &LogGops,
    noise: &dyn Noise,
    threads: usize,
) -> Result<Outcome, SimulationError> {
    check_lengths(schedule, parameters, noise.longest())?;
    run(schedule, parameters, Some(noise), threads)
}

fn run(
    schedule: &Schedule,
    parameters: &LogGops,
    noise: Option<&dyn Noise>,
    threads: usize,
) -> Result<Outcome, SimulationError> {
    assert!(threads > 0, "a simulation needs at least one thread");
    check_costs(schedule, &Costs::new(*parameters))?;
    ordered::OrderedEngine::new(schedule, *parameters, noise, threads).run()
}

/// Checks that no operation is longer than the noise is known for \[ps\].
fn check_lengths(schedule: &Schedule, parameters: &LogGops, longest: u64) -> Result<(), SimulationError> {
    let tables = schedule.tables();
    for rank in 0..tables.ranks() {
        for (operation, node) in (0..).zip(tables.nodes_of(rank)) {
            let length = match node.kind() {
                Kind::Calculate => node.size.saturating_mul(NANOSECOND),
                _ => parameters.overhead,
            };
            if length > longest {
                let [length, longest] = [length, longest].map(|picos| picos / NANOSECOND);
                return Err(SimulationError::Noise { rank, operation, length, longest });
            }
        }
    }
    Ok(())
}

/// Maximum number of unmatched receives and messages that an error lists.
const MAX_LISTED: usize = 8;

/// Checks that the cost of every operation is between 0 and the limit. Costs grow with sizes, except those of empty
/// messages, so checking the largest operations suffices unless the error must name one.
fn check_costs(schedule: &Schedule, charges: &Costs) -> Result<(), SimulationError> {
    let sizes = schedule.sizes();
    let empty = if sizes.has_empty() { 0 } else { sizes.largest_message() };
    let is_good = charges.are_valid(sizes.largest_message()) && charges.are_valid(empty);
    if is_good && Costs::computation(sizes.largest(Kind::Calculate)).is_some() {
        return Ok(());
    }
    let good = |node: &Node| match node.kind() {
        Kind::Calculate => Costs::computation(node.size).is_some(),
        _ => charges.are_valid(node.size),
    };
    let tables = schedule.tables();
    for rank in 0..tables.ranks() {
        if let Some(index) = tables.nodes_of(rank).iter().position(|node| !good(node)) {
            let size = tables.nodes_of(rank)[index].size;
            return Err(SimulationError::Cost { rank, operation: index as u32, size });
        }
    }
    Ok(())
}

/// Returns the outcome of a simulation that has run out of events. Either all `operations` have started and nothing is
/// left over, or the schedule deadlocks.
fn finish(
    operations: usize,
    begun: u64,
    left: Leftovers,
    mut outcome: Outcome,
) -> Result<Outcome, SimulationError> {
    let Leftovers { receives, messages, examples } = left;
    let operations = operations as u64 - begun;
    if operations + receives + messages > 0 {
        return Err(SimulationError::Unmatched { operations, receives, messages, left: examples });
    }
    outcome.events = begun + outcome.messages;
    Ok(outcome)
}
