//! Errors in the parameters of a generator.

use pdes_core::Bytes;

use super::npb_lu::Class;
use super::traffic::TrafficPattern;

/// The parameters of a generator are illegal, or a program cannot be generated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GenerateError {
    /// The benchmark has no process grid for this number of ranks.
    #[error(
        "NPB LU class {class} does not run on {ranks} ranks: the nearest legal counts are {}",
        format_nearest(*below, *above)
    )]
    RankCount {
        /// The class requested.
        class: Class,
        /// The number of ranks requested.
        ranks: u32,
        /// The largest legal count below it.
        below: Option<u32>,
        /// The smallest legal count above it.
        above: Option<u32>,
    },
    /// There are too few ranks for the pattern.
    #[error("{kind} needs {least} ranks or more, found {ranks}")]
    TooFewRanks {
        /// The generator.
        kind: &'static str,
        /// The number of ranks requested.
        ranks: u32,
        /// The smallest legal number.
        least: u32,
    },
    /// The process grid has 2^32 ranks or more.
    #[error("a process grid of {} x {} x {} has more than 2^32 - 1 ranks", grid[0], grid[1], grid[2])]
    TooManyRanks {
        /// The process grid.
        grid: [u32; 3],
    },
    /// Along one dimension there are more processes than cells.
    #[error(
        "dimension {dimension} has {cells} cells for {processes} processes, expected one cell each or more"
    )]
    EmptySubdomain {
        /// The dimension, from 0.
        dimension: usize,
        /// Number of cells along it.
        cells: u64,
        /// Number of processes along it.
        processes: u32,
    },
    /// The ranks do not divide the grid into equal slabs.
    #[error(
        "{ranks} ranks do not cut {extent} grid points into equal slabs: the nearest legal counts are {}",
        format_nearest(*below, *above)
    )]
    UnequalSlabs {
        /// The number of ranks requested.
        ranks: u32,
        /// Greatest common divisor of the two distributed extents, in points; legal counts divide it.
        extent: u64,
        /// The largest legal count below.
        below: Option<u32>,
        /// The smallest legal count above.
        above: Option<u32>,
    },
    /// A parameter that must be positive is zero.
    #[error("{parameter} is 0, expected 1 or more")]
    Zero {
        /// The name of the parameter.
        parameter: &'static str,
    },
    /// A parameter is not a multiple of another one.
    #[error("{parameter} is {whole}, expected a multiple of {part}")]
    Indivisible {
        /// The name of the parameter.
        parameter: &'static str,
        /// The value found.
        whole: u64,
        /// The value that it has to be a multiple of.
        part: u64,
    },
    /// An amount of computation is negative, infinite or not a number.
    #[error("{parameter} is {value}, expected a finite number, 0 or more")]
    Amount {
        /// The name of the parameter.
        parameter: &'static str,
        /// The value found.
        value: f64,
    },
    /// The smallest message is larger than the largest one.
    #[error("messages of {min} to {max} bytes: the smallest is larger than the largest")]
    EmptyRange {
        /// Smallest message \[B\].
        min: u64,
        /// Largest message \[B\].
        max: u64,
    },
    /// A parameter is too large.
    #[error("{parameter} is {found}, expected at most {most}")]
    TooLarge {
        /// The name of the parameter.
        parameter: &'static str,
        /// The value found.
        found: u64,
        /// The largest legal value.
        most: u64,
    },
    /// The spread of a jitter is not between 0 and 1.
    #[error("a jitter spreads by {spread}, expected a number from 0 to 1")]
    Spread {
        /// The value found.
        spread: f64,
    },
    /// A jitter of every action unrolls the loops, but the rank has too many actions for that.
    #[error(
        "a jitter of every action unrolls the loops of rank {rank}: {actions} actions, at most {most}; \
         take fewer steps or one factor per rank"
    )]
    TooManyToUnroll {
        /// The rank.
        rank: u32,
        /// Its number of actions.
        actions: u64,
        /// The largest number of actions that may be unrolled.
        most: u64,
    },
    /// A share is not between 0 and 1.
    #[error("{parameter} is {value}, expected a number from 0 to 1")]
    Share {
        /// The name of the parameter.
        parameter: &'static str,
        /// The value found.
        value: f64,
    },
    /// The name is not that of a pattern of traffic.
    #[error(
        "pattern {found:?} is unknown, expected one of {}",
        TrafficPattern::ALL.map(|pattern| pattern.to_string()).join(", ")
    )]
    Pattern {
        /// The name found.
        found: String,
    },
    /// The letter is not that of a class.
    #[error("class {found:?} is unknown, expected one of S W A B C D E F")]
    Class {
        /// The value found.
        found: String,
    },
}

/// Formats the nearest legal counts.
fn format_nearest(below: Option<u32>, above: Option<u32>) -> String {
    match (below, above) {
        (Some(below), Some(above)) => format!("{below} and {above}"),
        (Some(one), None) | (None, Some(one)) => one.to_string(),
        (None, None) => "none".to_owned(),
    }
}

/// Checks that a parameter is not zero.
pub(super) fn check_positive(parameter: &'static str, value: u64) -> Result<(), GenerateError> {
    if value == 0 { Err(GenerateError::Zero { parameter }) } else { Ok(()) }
}

/// Checks that an amount of computation is finite and not negative.
pub(super) fn check_amount(parameter: &'static str, value: f64) -> Result<(), GenerateError> {
    if value.is_finite() && value >= 0.0 { Ok(()) } else { Err(GenerateError::Amount { parameter, value }) }
}

/// Checks that a parameter is at most `most`.
pub(super) fn check_at_most(parameter: &'static str, found: u64, most: u64) -> Result<(), GenerateError> {
    if found > most { Err(GenerateError::TooLarge { parameter, found, most }) } else { Ok(()) }
}

/// Checks that there are at least `least` ranks.
pub(super) fn check_min_ranks(kind: &'static str, ranks: u32, least: u32) -> Result<(), GenerateError> {
    if ranks < least { Err(GenerateError::TooFewRanks { kind, ranks, least }) } else { Ok(()) }
}

/// Checks that a message has at most 2^48 bytes, the limit of traces.
pub(super) fn check_message_size(parameter: &'static str, bytes: Bytes) -> Result<(), GenerateError> {
    check_at_most(parameter, bytes.get(), 1 << 48)
}
