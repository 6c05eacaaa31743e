//! The outcome of a run, and how the parts of it that several processes have are merged.

use std::time::Duration;

use mpi_model::{CriticalPath, Distributions, Statistics, WaitReason};
use netmodel::epoch::EpochSummary;
use netmodel::{LinkLoads, LinkTotals};
use pdes_core::{Cluster, Rank, SimTime};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use timeline::Summary;

use super::RunError;
use crate::checkpoint::CheckpointSummary;
use crate::fast_forward::FastForward;
use crate::partition::PartitionCut;

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// End time of each rank.
    pub ends: Vec<SimTime>,
    /// Statistics of each rank.
    pub statistics: Vec<Statistics>,
    /// Wall-clock time of the replay.
    pub replay_time: Duration,
    /// Messages that cross the partition; `None` if ranks are assigned to workers in blocks.
    pub cuts: Option<PartitionCut>,
    /// Epoch statistics; `None` if there were no epochs.
    pub epochs: Option<EpochSummary>,
    /// Histograms of messages and waits, if requested.
    pub distributions: Option<Distributions>,
    /// Critical path to the end of the last rank, if requested.
    pub critical_path: Option<CriticalPath>,
    /// Loads of links, if messages share them and this was requested.
    pub links: Option<LinkLoads>,
    /// Summary of the timeline, if one was requested.
    pub timeline: Option<Summary>,
    /// Iterations that were not replayed; `None` if all were.
    pub fast_forward: Option<FastForward>,
    /// Checkpoint statistics; `None` if no checkpoints were requested.
    pub checkpoints: Option<CheckpointSummary>,
    /// Number of operating-system processes.
    pub processes: u32,
    /// Largest resident memory of one process \[B\]; `None` if the system does not report it.
    pub peak_rss_bytes: Option<u64>,
}

impl Outcome {
    /// Returns the end time of the last rank.
    pub fn simulated_time(&self) -> SimTime {
        self.ends.iter().copied().max().unwrap_or(SimTime::ZERO)
    }

    /// Returns the rank that ended last and the one that ended first; at a tie, the lowest.
    pub fn slowest_and_fastest(&self) -> Option<(Rank, Rank)> {
        let ranks = || self.ends.iter().enumerate();
        let slowest = ranks().min_by_key(|&(rank, &end)| (std::cmp::Reverse(end), rank))?;
        let fastest = ranks().min_by_key(|&(rank, &end)| (end, rank))?;
        Some((Rank::new(slowest.0 as u32), Rank::new(fastest.0 as u32)))
    }
}

/// A part of a result that each process has of its own ranks or regions.
pub(super) trait Section: Serialize + DeserializeOwned {
    /// Adds the part of another process; parts come in the order of processes.
    fn merge(&mut self, other: Self);
}

/// Merges the parts of all processes on the first one; the others get `None`.
pub(super) fn gather<S: Section>(cluster: &mut Cluster, own: S) -> Result<Option<S>, RunError> {
    Ok(cluster.gather(own)?.into_iter().reduce(|mut whole, part| {
        whole.merge(part);
        whole
    }))
}

/// Makes all processes succeed or fail together: if one has failed, the others get [`RunError::OtherProcess`]. If several have
/// failed, the first of them keeps its error, to report it.
pub(crate) fn agree<T>(cluster: &mut Cluster, own: Result<T, RunError>) -> Result<T, RunError> {
    match cluster.first_failure(own.is_ok())? {
        Some(process) if process != cluster.member() => Err(RunError::OtherProcess { process }),
        _ => own,
    }
}

/// A section that only some runs have: all processes of a run or none, except for the critical path, which a process without ranks
/// does not have.
impl<S: Section> Section for Option<S> {
    fn merge(&mut self, other: Self) {
        match (self.as_mut(), other) {
            (Some(own), Some(other)) => own.merge(other),
            (None, other) => *self = other,
            (Some(_), None) => {}
        }
    }
}

/// A count, of which the sum is reported.
impl Section for u64 {
    fn merge(&mut self, other: Self) {
        *self = self.saturating_add(other);
    }
}

/// The memory of a process, of which the largest is reported.
#[derive(Serialize, Deserialize)]
pub(super) struct Peak(pub(super) u64);

impl Section for Peak {
    fn merge(&mut self, other: Self) {
        self.0 = self.0.max(other.0);
    }
}

/// Histograms add up.
impl Section for Distributions {
    fn merge(&mut self, other: Self) {
        self.add(&other);
    }
}

/// Of several paths that ends last counts; at a tie, that of the lowest rank.
impl Section for CriticalPath {
    fn merge(&mut self, other: Self) {
        if (other.end(), std::cmp::Reverse(other.rank())) > (self.end(), std::cmp::Reverse(self.rank())) {
            *self = other;
        }
    }
}

/// Solves add up; boundaries, rounds and messages are those of all processes already.
impl Section for EpochSummary {
    fn merge(&mut self, other: Self) {
        self.counts.solves += other.counts.solves;
        self.counts.evaluations += other.counts.evaluations;
        self.capacity_violation = self.capacity_violation.max(other.capacity_violation);
    }
}

/// The totals of links, each of which belongs to one region, and thus to one process.
#[derive(Serialize, Deserialize)]
pub(super) struct LinkParts(pub(super) Vec<LinkTotals<'static>>);

impl Section for LinkParts {
    fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// The reasons why ranks wait.
#[derive(Serialize, Deserialize)]
pub(super) struct Waits(pub(super) Vec<(Rank, WaitReason)>);

impl Section for Waits {
    fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// The ends and the statistics of ranks, in any order.
#[derive(Serialize, Deserialize)]
pub(super) struct RankResults {
    pub(super) ranks: Vec<Rank>,
    pub(super) ends: Vec<SimTime>,
    pub(super) statistics: Vec<Statistics>,
}

impl RankResults {
    /// Returns the ends and statistics of all ranks, in their order.
    pub(super) fn in_rank_order(self) -> (Vec<SimTime>, Vec<Statistics>) {
        if self.ranks.is_sorted() {
            return (self.ends, self.statistics);
        }
        let mut ends = vec![SimTime::ZERO; self.ends.len()];
        let mut statistics = vec![Statistics::default(); self.ends.len()];
        for ((rank, end), totals) in self.ranks.into_iter().zip(self.ends).zip(self.statistics) {
            (ends[rank.index()], statistics[rank.index()]) = (end, totals);
        }
        (ends, statistics)
    }
}

impl Section for RankResults {
    fn merge(&mut self, other: Self) {
        self.ranks.extend(other.ranks);
        self.ends.extend(other.ends);
        self.statistics.extend(other.statistics);
    }
}
