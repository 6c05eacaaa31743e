//! The outcome of a run, and how the parts of it that several processes have are merged.

use std::cmp::Reverse;
use std::time::Duration;

use mpi_model::{Findings, Statistics};
use netmodel::epoch::EpochSummary;
use netmodel::storage::ServerUsage;
use netmodel::{FileSystemId, HostId, HostLoads, LinkLoads};
use pdes_core::{Cluster, LpId, Rank, SimTime};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use timeline::{SavedSpool, Summary};

use super::{LinkBlame, RunError};
use crate::certificate::CertificateSummary;
use crate::checkpoint::CheckpointSummary;
use crate::fast_forward::FastForward;
use crate::host_deaths::ProgramDeath;
use crate::partition::PartitionCut;
use crate::placement::Placement;
use crate::timeline::OpenTimeline;

/// Use of an I/O server during a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerUse {
    /// File system.
    pub system: FileSystemId,
    /// Host of the server.
    pub host: HostId,
    /// Amounts, queues, and hits of the cache.
    pub usage: ServerUsage,
}

/// The result of a program of a run.
#[derive(Clone, Debug, Default)]
pub struct ProgramOutcome {
    /// Start of the program; where hosts die, the last one, since which its ranks have their ends, statistics and findings.
    pub start: SimTime,
    /// Its deaths, in the order of time; if the last one has no restart, the program has not done its work.
    pub deaths: Vec<ProgramDeath>,
    /// Hosts of its ranks, where a program starts at an instant that was not known before the run, or hosts die.
    pub placement: Option<Placement>,
    /// End time of each rank.
    pub ends: Vec<SimTime>,
    /// Statistics of each rank.
    pub statistics: Vec<Statistics>,
    /// Results of the requested analyses.
    pub findings: Findings,
    /// Summary of the timeline, if one was requested.
    pub timeline: Option<Summary>,
}

/// The time that a program of a run loses to the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    /// End of the program alone on its hosts.
    pub alone: SimTime,
    /// Time that is lost to each program of the run \[ps\]; 0 to itself.
    pub lost_ps: Vec<i128>,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Results of the programs: first that of the run, then the [others](crate::RunSpec::other_programs) in their order.
    pub programs: Vec<ProgramOutcome>,
    /// Delays of the programs, if they were asked for and [found](crate::RunSpec::delays).
    pub delays: Option<Vec<Delay>>,
    /// Links on which messages of programs wait for each other, if they were asked for and [found](super::Simulation::link_blame).
    pub link_blame: Option<LinkBlame>,
    /// Wall-clock time of the replay.
    pub replay_time: Duration,
    /// Messages that cross the partition; `None` if ranks are assigned to workers in blocks.
    pub cuts: Option<PartitionCut>,
    /// Epoch statistics; `None` if there were no epochs.
    pub epochs: Option<EpochSummary>,
    /// Statistics of the network model, which the row of the model in the registry adds.
    pub model_statistics: Option<serde_json::Value>,
    /// Loads of links, if messages share them and this was requested.
    pub links: Option<LinkLoads>,
    /// Loads of hosts, if this was requested.
    pub hosts: Option<HostLoads>,
    /// Use of each I/O server of the platform's file systems; empty if there are none.
    pub file_servers: Vec<ServerUse>,
    /// Iterations that were not replayed; `None` if all were.
    pub fast_forward: Option<FastForward>,
    /// Checkpoint statistics; `None` if no checkpoints were requested.
    pub checkpoints: Option<CheckpointSummary>,
    /// The timeline, where one was requested and is not complete.
    pub open_timeline: OpenTimeline,
    /// Size and cost of the certificate; `None` if none was written.
    pub certificate: Option<CertificateSummary>,
    /// Number of operating-system processes.
    pub processes: u32,
    /// Largest resident memory of one process \[B\]; `None` if the system does not report it.
    pub peak_rss_bytes: Option<u64>,
}

impl ProgramOutcome {
    /// Returns the end time of the last rank.
    pub fn end(&self) -> SimTime {
        self.ends.iter().copied().max().unwrap_or(SimTime::ZERO)
    }

    /// Returns the first start of the program.
    pub fn first_start(&self) -> SimTime {
        self.deaths.first().map_or(self.start, |first| first.start)
    }

    /// Returns the death that has ended the program before its work was done.
    pub fn fatal_death(&self) -> Option<&ProgramDeath> {
        self.deaths.last().filter(|last| last.restart.is_none())
    }

    /// Returns the rank that ended last and the one that ended first; at a tie, the lowest.
    pub fn slowest_and_fastest(&self) -> Option<(Rank, Rank)> {
        let ranks = || self.ends.iter().enumerate();
        let slowest = ranks().min_by_key(|&(rank, &end)| (Reverse(end), rank))?;
        let fastest = ranks().min_by_key(|&(rank, &end)| (end, rank))?;
        Some((Rank::new(slowest.0 as u32), Rank::new(fastest.0 as u32)))
    }
}

impl Outcome {
    /// Returns the result of the first program of the run.
    pub fn program(&self) -> &ProgramOutcome {
        &self.programs[0]
    }

    /// Returns the result of the first program of the run alone.
    pub fn into_program(mut self) -> ProgramOutcome {
        self.programs.swap_remove(0)
    }

    /// Returns the end time of the last rank of all programs.
    pub fn simulated_time(&self) -> SimTime {
        self.programs.iter().map(ProgramOutcome::end).max().unwrap_or(SimTime::ZERO)
    }

    /// Returns the wall-clock time of replaying all actions, also those before a checkpoint, without that of writing checkpoints.
    pub(crate) fn time_of_all_actions(&self) -> Duration {
        let CheckpointSummary { replayed_before_s, writing_s, .. } = self.checkpoints.unwrap_or_default();
        let whole_s = self.replay_time.as_secs_f64() - writing_s + replayed_before_s;
        Duration::try_from_secs_f64(whole_s).unwrap_or_default()
    }
}

/// A part of an outcome that each process has of its own ranks or regions.
pub(crate) trait Part: Serialize + DeserializeOwned {
    /// Adds the part of another process; parts come in the order of processes.
    fn merge(&mut self, other: Self);
}

/// Merges the parts of all processes that have one; the first process gets the whole.
pub(crate) fn gather<P: Part>(cluster: &mut Cluster, own: Option<P>) -> Result<Option<P>, RunError> {
    let parts = cluster.gather(own)?.into_iter().flatten();
    Ok(parts.reduce(|mut whole, part| {
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

/// Returns the sum of the numbers of all processes.
pub(crate) fn sum(cluster: &mut Cluster, own: u64) -> Result<u64, RunError> {
    let all = cluster.gather(own)?;
    Ok(cluster.broadcast((cluster.member() == 0).then(|| all.iter().sum()))?)
}

/// One part for each program.
impl Part for Vec<Findings> {
    fn merge(&mut self, other: Self) {
        self.iter_mut().zip(other).for_each(|(whole, part)| whole.merge(part));
    }
}

impl Part for SavedSpool {
    fn merge(&mut self, other: Self) {
        Self::merge(self, other);
    }
}

/// Solves add up; boundaries, rounds and messages are those of all processes already.
impl Part for EpochSummary {
    fn merge(&mut self, other: Self) {
        self.counts.solves += other.counts.solves;
        self.counts.evaluations += other.counts.evaluations;
        self.capacity_violation = self.capacity_violation.max(other.capacity_violation);
    }
}

/// The ends and the statistics of logical processes, in any order.
#[derive(Serialize, Deserialize)]
pub(super) struct LpResults {
    pub(super) lps: Vec<LpId>,
    pub(super) ends: Vec<SimTime>,
    pub(super) statistics: Vec<Statistics>,
}

impl LpResults {
    /// Returns the ends and statistics in the order of logical processes.
    pub(super) fn in_order(self) -> (Vec<SimTime>, Vec<Statistics>) {
        if self.lps.is_sorted() {
            return (self.ends, self.statistics);
        }
        let mut ends = vec![SimTime::ZERO; self.ends.len()];
        let mut statistics = vec![Statistics::default(); self.ends.len()];
        for ((lp, end), totals) in self.lps.into_iter().zip(self.ends).zip(self.statistics) {
            (ends[lp.index()], statistics[lp.index()]) = (end, totals);
        }
        (ends, statistics)
    }
}

impl Part for LpResults {
    fn merge(&mut self, other: Self) {
        self.lps.extend(other.lps);
        self.ends.extend(other.ends);
        self.statistics.extend(other.statistics);
    }
}

/// Returns the largest resident memory of the process so far \[B\]; `None` if it cannot be read from `/proc` (Linux).
pub fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
