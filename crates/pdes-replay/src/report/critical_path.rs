//! What led to the end of a run, as the report tells it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pdes_core::SimDuration;
use serde::{Deserialize, Serialize};

/// The most ranks that are listed.
const RANKS: usize = 32;

/// The critical path of a run: `docs/critical-path.md` says what it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CriticalPath {
    /// The rank that ends last, where the path ends.
    pub rank: u32,
    /// Its end \[ps\], the simulated time: the sum of the parts, and that of the calls.
    pub time_ps: u64,
    /// The same \[s\].
    pub time_s: f64,
    /// How often the path goes from one rank to another.
    pub hops: u64,
    /// What the time is made of.
    pub parts: PathParts,
    /// The same by kind of action, those with most time first.
    pub calls: Vec<PathCall>,
    /// The ranks on which the path is longest, as far as the segments tell: at most 32, those with most time first.
    pub ranks: Vec<PathRank>,
    /// On which rank the path is when, from the beginning to the end.
    pub segments: Vec<PathSegment>,
}

/// What the time on a critical path is made of \[ps\].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathParts {
    /// Computation of the program.
    pub compute_ps: u64,
    /// Sleep of the program.
    pub sleep_ps: u64,
    /// What the MPI library does in calls.
    pub library_ps: u64,
    /// The part of the time of messages that does not depend on bandwidths.
    pub latency_ps: u64,
    /// What they take beyond, alone on their way.
    pub bandwidth_ps: u64,
    /// What they take beyond that, because they share links with others.
    pub waiting_ps: u64,
}

/// The time of one kind of action on a critical path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCall {
    /// The name of the action in a trace.
    pub call: Cow<'static, str>,
    /// The time \[ps\].
    pub time_ps: u64,
}

/// The time of a rank on a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRank {
    /// The rank.
    pub rank: u32,
    /// The time \[ps\]: of its segments.
    pub time_ps: u64,
}

/// A time during which a critical path is on one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSegment {
    /// Its beginning \[ps\].
    pub from_ps: u64,
    /// Its end \[ps\].
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
        // Stable: kinds with as much time keep their order.
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
    ranks.truncate(RANKS);
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
    /// Returns the parts with their names, which add up to the time.
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
