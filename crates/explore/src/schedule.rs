//! Schedules: how calls end that may end in several ways.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
