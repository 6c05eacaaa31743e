//! The model LogGOPS on a schedule: when do its hosts end?
//!
//! Each rank is a host with processors and network interfaces. An operation that is free waits until what it needs is
//! idle, and occupies it; a message arrives o + L after its send started, and occupies processor and interface of the
//! receiver as soon as both are idle, whether a receive was posted or not (Hoefler, Schneider, Lumsdaine: LogGOPSim,
//! HPDC 2010). `docs/goal.md` has the equations.

use crate::parameters::{Charges, LogGops};
use crate::schedule::{Kind, Node, Schedule};

mod host;
mod lane;
mod matching;
mod memory;
mod ordered;
mod pool;
mod program;
mod queue;
mod windows;

use host::Hosts;
use lane::Plan;
use matching::{Left, Matching};

/// What a simulation found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// When the last processor of each host becomes idle \[ps\].
    pub ends: Vec<u64>,
    /// Messages sent.
    pub messages: u64,
    /// Their payload \[B\].
    pub message_bytes: u64,
    /// Operations and arrivals: what LogGOPSim counts as events.
    pub events: u64,
    /// Receives that lie on the other side of S than their message. Here the size of the message decides; LogGOPSim, which
    /// asks the receive where that comes second, ends such a send twice or never.
    pub across_threshold: u64,
}

impl Outcome {
    /// Returns when the last host ends \[ps\].
    pub fn end(&self) -> u64 {
        self.ends.iter().copied().max().unwrap_or(0)
    }
}

/// Why a simulation has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// The parameters give an operation a cost that no time can hold.
    #[error(
        "rank {rank}, operation {operation}: the parameters charge {size} B (or ns) less than nothing, or more than 53 days; {HINT}"
    )]
    Cost {
        /// The rank.
        rank: u32,
        /// The number of the operation, from 0.
        operation: u32,
        /// Its size.
        size: u64,
    },
    /// Simulated time leaves its range.
    #[error("rank {rank}: simulated time leaves its range of 53 days")]
    Time {
        /// The first rank at which something happens later.
        rank: u32,
    },
    /// Receives or messages are left over at the end.
    #[error("{}", tell(left, *operations, *receives, *messages))]
    Unmatched {
        /// Operations that never started, for what they wait for never ended.
        operations: u64,
        /// Receives without a message.
        receives: u64,
        /// Messages without a receive.
        messages: u64,
        /// The first ones of them.
        left: Vec<Unmatched>,
    },
}

const HINT: &str =
    "a message of 0 bytes costs a byte less than one of 1 byte, unless loggops.empty = \"one_byte\"";

/// A receive without a message, or a message without a receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// Whether it is a message.
    pub is_message: bool,
    /// The rank at which it waits.
    pub rank: u32,
    /// The rank that sends; `None` is any.
    pub source: Option<u32>,
    /// The tag; `None` is any.
    pub tag: Option<u32>,
    /// The number of the receive at its rank, or of the send at the source, from 0.
    pub operation: u32,
}

fn tell(left: &[Unmatched], operations: u64, receives: u64, messages: u64) -> String {
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

/// How a simulation proceeds; the answer is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// What is faster: by windows, unless that is not exact or most sends wait for their receive.
    #[default]
    Auto,
    /// Host after host, window after window, where that is exact, otherwise ordered.
    Windows,
    /// Event after event in the order of time, for every schedule.
    Ordered,
}

/// Simulates a schedule, with LogGOPSim's answer, on up to so many threads; the answer is the same for any number.
///
/// Dependencies are counted on all threads. By windows, hosts are divided among the threads where no message is above S, at least 64
/// to each. With fewer, and otherwise, one thread is as fast or faster.
///
/// # Errors
/// Where receives or messages are left over, or a time leaves its range.
///
/// # Panics
/// Where `threads` is 0.
pub fn simulate(
    schedule: &Schedule,
    parameters: &LogGops,
    engine: Engine,
    threads: usize,
) -> Result<Outcome, SimulationError> {
    assert!(threads > 0, "a simulation takes a thread at least");
    check_costs(schedule, &Charges::new(*parameters))?;
    let by_windows = match engine {
        Engine::Auto => !mostly_waits(schedule, parameters),
        Engine::Windows => true,
        Engine::Ordered => false,
    };
    if by_windows && windows::fits(schedule, parameters) {
        let plan = Plan::new(&schedule.tables(), &schedule.extent());
        match plan.lanes.len() {
            0..=4 => return windows::simulate::<4>(schedule, &plan, *parameters, threads),
            5..=32 => return windows::simulate::<32>(schedule, &plan, *parameters, threads),
            _ => {}
        }
    }
    ordered::Ordered::new(schedule, *parameters, threads).run()
}

/// Returns whether most sends wait for their receive.
fn mostly_waits(schedule: &Schedule, parameters: &LogGops) -> bool {
    if schedule.sizes().largest(Kind::Send) <= parameters.eager_up_to {
        return false;
    }
    let sends = schedule.tables().nodes.iter().filter(|node| node.kind() == Kind::Send);
    let (waiting, all) = sends.fold((0_u64, 0_u64), |(waiting, all), node| {
        (waiting + u64::from(node.size > parameters.eager_up_to), all + 1)
    });
    2 * waiting > all
}

/// How many of the receives and messages that are left over an error names.
const NAMED: usize = 8;

/// Checks that every operation costs something between nothing and the limit. Costs grow with sizes, but for those of empty
/// messages: a look at the largest operations suffices, unless one is to be named.
fn check_costs(schedule: &Schedule, charges: &Charges) -> Result<(), SimulationError> {
    let sizes = schedule.sizes();
    let empty = if sizes.has_empty() { 0 } else { sizes.message() };
    let is_good = charges.bounds(sizes.message()) && charges.bounds(empty);
    if is_good && Charges::calculate(sizes.largest(Kind::Calculate)).is_some() {
        return Ok(());
    }
    let good = |node: &Node| match node.kind() {
        Kind::Calculate => Charges::calculate(node.size).is_some(),
        _ => charges.bounds(node.size),
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

/// Ends a simulation of so many operations in which nothing happens any more: either all of them have begun, and nothing is left,
/// or something waits for ever.
fn finish(
    operations: usize,
    begun: u64,
    left: Left,
    mut outcome: Outcome,
) -> Result<Outcome, SimulationError> {
    let Left { receives, messages, named } = left;
    let operations = operations as u64 - begun;
    if operations + receives + messages > 0 {
        return Err(SimulationError::Unmatched { operations, receives, messages, left: named });
    }
    outcome.events = begun + outcome.messages;
    Ok(outcome)
}
