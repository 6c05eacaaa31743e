//! Critical path of a run, for the report.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pdes_core::SimDuration;
use replay::{Outcome, Simulation};
use serde::{Deserialize, Serialize};

use super::section::Section;
use super::tables;

/// Largest number of ranks that are listed.
const MAX_RANKS: usize = 32;

/// The critical path of a run; `docs/critical-path.md` defines it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CriticalPath {
    /// Rank that ends last, on which the path ends.
    pub rank: u32,
    /// End time of that rank \[ps\], the simulated time: the sum of the parts, and the sum of the calls.
    pub time_ps: u64,
    /// End time of that rank \[s\].
    pub time_s: f64,
    /// Number of times that the path passes from one rank to another.
    pub hops: u64,
    /// Parts of the time.
    pub parts: PathParts,
    /// Time by kind of action, in descending order.
    pub calls: Vec<PathCall>,
    /// Ranks with most time on the path according to the segments: at most 32, in descending order.
    pub ranks: Vec<PathRank>,
    /// Segments of the path on one rank each, from beginning to end.
    pub segments: Vec<PathSegment>,
}

/// Parts of the time on a critical path \[ps\].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathParts {
    /// Computation of the program.
    pub compute_ps: u64,
    /// Sleep of the program.
    pub sleep_ps: u64,
    /// Time inside the MPI library.
    pub library_ps: u64,
    /// Latency: the part of the time of messages that does not depend on bandwidths.
    pub latency_ps: u64,
    /// Additional time of messages due to bandwidths, without contention.
    pub bandwidth_ps: u64,
    /// Additional time of messages due to contention.
    pub waiting_ps: u64,
}

/// The time of one kind of action on a critical path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCall {
    /// Name of the action in a trace.
    pub call: Cow<'static, str>,
    /// Time on the path \[ps\].
    pub time_ps: u64,
}

/// The time of a rank on a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRank {
    /// The rank.
    pub rank: u32,
    /// Time of its segments \[ps\].
    pub time_ps: u64,
}

/// An interval in which a critical path is on one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSegment {
    /// Beginning \[ps\].
    pub from_ps: u64,
    /// End \[ps\].
    pub to_ps: u64,
    /// The rank.
    pub rank: u32,
}

impl From<&mpi_model::CriticalPath> for CriticalPath {
    fn from(path: &mpi_model::CriticalPath) -> Self {
        let call = |(kind, time): (mpi_model::ActionKind, SimDuration)| PathCall {
            call: Cow::Borrowed(kind.name()),
            time_ps: time.as_picos(),
        };
        let mut calls: Vec<PathCall> = path.calls().map(call).collect();
        // The sort is stable: kinds with equal times keep their order.
        calls.sort_by_key(|call| std::cmp::Reverse(call.time_ps));
        let segment = |segment: &mpi_model::Segment| PathSegment {
            from_ps: segment.from.as_picos(),
            to_ps: segment.to.as_picos(),
            rank: segment.rank.get(),
        };
        let segments: Vec<PathSegment> = path.segments().iter().map(segment).collect();
        Self {
            rank: path.rank().get(),
            time_ps: path.end().as_picos(),
            time_s: path.end().as_secs_f64(),
            hops: path.hops(),
            parts: path.parts().into(),
            calls,
            ranks: ranks(&segments),
            segments,
        }
    }
}

fn ranks(segments: &[PathSegment]) -> Vec<PathRank> {
    let mut times: BTreeMap<u32, u64> = BTreeMap::new();
    for &PathSegment { from_ps, to_ps, rank } in segments {
        *times.entry(rank).or_default() += to_ps - from_ps;
    }
    let mut ranks: Vec<PathRank> =
        times.into_iter().map(|(rank, time_ps)| PathRank { rank, time_ps }).collect();
    ranks.sort_by_key(|rank| std::cmp::Reverse(rank.time_ps));
    ranks.truncate(MAX_RANKS);
    ranks
}

impl From<mpi_model::PathParts> for PathParts {
    fn from(parts: mpi_model::PathParts) -> Self {
        Self {
            compute_ps: parts.compute.as_picos(),
            sleep_ps: parts.sleep.as_picos(),
            library_ps: parts.library.as_picos(),
            latency_ps: parts.latency.as_picos(),
            bandwidth_ps: parts.bandwidth.as_picos(),
            waiting_ps: parts.waiting.as_picos(),
        }
    }
}

impl PathParts {
    /// Returns the parts with their names; they add up to the time.
    pub fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("compute", self.compute_ps),
            ("sleep", self.sleep_ps),
            ("library", self.library_ps),
            ("latency", self.latency_ps),
            ("bandwidth", self.bandwidth_ps),
            ("waiting", self.waiting_ps),
        ]
    }
}

impl Section for CriticalPath {
    fn new(_: &Simulation, outcome: &Outcome) -> Option<Self> {
        outcome.program().findings.critical_path.as_ref().map(Self::from)
    }

    fn write_tables(&self, text: &mut String) -> std::fmt::Result {
        tables::critical_path::write(self, text)
    }

    #[cfg(feature = "pictures")]
    fn figures(&self, run: &super::SavedReport) -> Vec<figures::Figure> {
        super::page::critical_path::figures(self, run)
    }
}
