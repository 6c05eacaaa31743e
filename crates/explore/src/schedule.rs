//! Schedules: how calls end that may end in several ways.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A call that MPI lets end in several ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChoicePoint {
    /// The rank that makes the call.
    pub rank: u32,
    /// Number of the call among those of the rank, from 0.
    pub number: u32,
}

/// An end of a call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// A receive or a probe has the message of this rank; `None` for a probe that finds none.
    Source(Option<u32>),
    /// A wait or a test completes these requests, by their numbers; a test that fails completes none.
    Requests(Vec<u32>),
}

/// Mistake of a schedule of another program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// A rank that the program does not have.
    #[error("choice {} of rank {} names rank {named}: the program has ranks 0 to {}", .point.number, .point.rank, .ranks - 1)]
    UnknownRank {
        /// The choice.
        point: ChoicePoint,
        /// The rank that it names, or its own.
        named: u32,
        /// Number of ranks of the program.
        ranks: u32,
    },
    /// An end that the call cannot have.
    #[error("choice {} of rank {} ends otherwise than its call can: expected {expected}", .point.number, .point.rank)]
    WrongEnd {
        /// The choice.
        point: ChoicePoint,
        /// The ends that the call can have.
        expected: String,
    },
    /// A choice that the rank did not make.
    #[error("choice {} of rank {}: the rank has made {made} choice(s), by numbers from 0", .point.number, .point.rank)]
    NotMade {
        /// The choice.
        point: ChoicePoint,
        /// Number of choices of the rank.
        made: u32,
    },
}

impl Schedule {
    /// Checks that a program of `ranks` ranks has the ranks of the schedule.
    ///
    /// # Errors
    /// It has not: the first choice that names another one.
    pub fn check(&self, ranks: u32) -> Result<(), ScheduleError> {
        for (&point, end) in &self.0 {
            let source = match end {
                End::Source(source) => *source,
                End::Requests(_) => None,
            };
            if let Some(named) = [Some(point.rank), source].into_iter().flatten().find(|rank| *rank >= ranks)
            {
                return Err(ScheduleError::UnknownRank { point, named, ranks });
            }
        }
        Ok(())
    }
}

#[derive(Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    point: ChoicePoint,
    #[serde(flatten)]
    end: End,
}

/// Ends of calls of a program, by the calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Vec<Entry>", into = "Vec<Entry>")]
pub struct Schedule(pub BTreeMap<ChoicePoint, End>);

impl From<Vec<Entry>> for Schedule {
    fn from(entries: Vec<Entry>) -> Self {
        Self(entries.into_iter().map(|Entry { point, end }| (point, end)).collect())
    }
}

impl From<Schedule> for Vec<Entry> {
    fn from(schedule: Schedule) -> Self {
        schedule.0.into_iter().map(|(point, end)| Entry { point, end }).collect()
    }
}
