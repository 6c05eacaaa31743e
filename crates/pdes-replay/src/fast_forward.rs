//! Fast-forward: counts iterations that only shift all ranks in time instead of replaying them.
//!
//! The replay runs in segments. A segment ends when every rank has stopped at the boundary of an iteration, has ended, or waits
//! for a rank that has stopped. If all ranks have the states of some iterations before, except for one common shift in time, the
//! next iterations repeat them (see `mpi_model::Snapshot`).

mod recurrence;

use std::collections::VecDeque;
use std::convert::Infallible;

use mpi_model::{Findings, Machine, RankProcess, Repetition, Replay, Snapshot};
use netmodel::{ForeignState, RouteError};
use pdes_core::{Cluster, Ending, Engine, Interrupt, Progress, Run, SimDuration};
use serde::{Deserialize, Serialize};

use crate::checkpoint::Segmented;
use crate::simulation::{MemberRun, RunError, sum};
pub(crate) use recurrence::{ContendedRun, Cuttable, run_contended};

/// Longest period that is detected \[segments\].
const MAX_PERIOD: usize = 8;
/// Number of segments without a match after which segments become twice as long, so that loops that never repeat take little longer.
const MAX_FRUITLESS_SEGMENTS: u32 = 8;
/// Largest number of snapshots kept, of all ranks together: some 400 MB.
const MAX_SNAPSHOTS: usize = 1 << 20;

/// Iterations that were counted instead of replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FastForward {
    /// Iterations skipped by each rank; if ranks differ, by the rank that skipped most.
    pub skipped_iterations: u64,
    /// Actions skipped, of all ranks.
    pub skipped_actions: u64,
    /// Iterations after which the states of all ranks repeat; of several periods the longest.
    pub period: u64,
    /// Number of iteration boundaries at which all ranks stopped and were compared.
    pub iteration_boundaries: u64,
}

impl FastForward {
    /// Encodes the counts for a checkpoint.
    fn save(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("memory takes all")
    }

    /// Decodes the counts of a checkpoint.
    fn restore(state: &[u8]) -> Result<Self, ForeignState> {
        postcard::from_bytes(state).map_err(|_| ForeignState)
    }
}

/// A repetition that was found.
struct Recurrence {
    /// Index of its first boundary in the history.
    start: usize,
    /// Findings after its repetitions, of the ranks of this process.
    findings: Findings,
    interval: Interval,
}

/// An interval between two boundaries that can be repeated.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Interval {
    /// Time by which ranks are shifted; `None` if all have ended.
    time: Option<SimDuration>,
    /// Number of times it is to be repeated.
    repetitions: u64,
    /// Iterations of the rank that has most.
    iterations: u64,
}

/// The state of the ranks of this process at an iteration boundary, and the findings until then.
struct Boundary {
    ranks: Vec<Snapshot>,
    findings: Findings,
}

/// The last iteration boundaries at which all ranks stopped.
struct SnapshotHistory {
    boundaries: VecDeque<Boundary>,
    capacity: usize,
    /// Iterations per segment, and the number of segments of this length without a match.
    stride: u64,
    fruitless: u32,
    found: FastForward,
}

impl SnapshotHistory {
    fn new(ranks: usize) -> Self {
        let most = (MAX_SNAPSHOTS / ranks.max(1)).clamp(1, MAX_PERIOD);
        Self {
            boundaries: VecDeque::new(),
            capacity: most,
            stride: 1,
            fruitless: 0,
            found: FastForward::default(),
        }
    }

    /// Compares ranks that have stopped, skips the iterations that repeat, and sets the length of the next segment.
    fn examine<'t, M: Machine<WorkRequest = Infallible>>(
        &mut self,
        cluster: &mut Cluster,
        world: &Replay<'t, M>,
        processes: &mut [RankProcess<'t, M>],
    ) -> Result<(), RunError> {
        self.fruitless += 1;
        self.compare(cluster, world, processes)?;
        if self.fruitless == MAX_FRUITLESS_SEGMENTS {
            (self.stride, self.fruitless) = (self.stride.saturating_mul(2), 0);
        }
        processes.iter_mut().for_each(|process| process.skip_boundaries(self.stride - 1));
        Ok(())
    }

    /// Starts again, because all ranks have reached another loop.
    fn reset(&mut self) {
        self.boundaries.clear();
        (self.stride, self.fruitless) = (1, 0);
    }

    fn compare<'t, M: Machine<WorkRequest = Infallible>>(
        &mut self,
        cluster: &mut Cluster,
        world: &Replay<'t, M>,
        processes: &mut [RankProcess<'t, M>],
    ) -> Result<(), RunError> {
        let ranks = processes.iter().map(RankProcess::snapshot).collect::<Option<Vec<_>>>();
        let Some(ranks) = common(cluster, ranks)? else { return Ok(()) };
        let now = Boundary { ranks, findings: world.counted_findings(processes) };
        self.found.iteration_boundaries += 1;
        let is_of_loop = |before: &Boundary| {
            now.ranks.iter().zip(&before.ranks).all(|(now, before)| now.is_in_loop_of(before))
        };
        let is_of_loop = self.boundaries.back().is_none_or(is_of_loop);
        if common(cluster, is_of_loop.then_some(()))?.is_none() {
            self.reset();
        }
        if let Some(Recurrence { start, findings, interval }) = self.recurrence(cluster, &now)? {
            let Interval { repetitions: again, iterations, .. } = interval;
            let before = &self.boundaries[start].ranks;
            let mut skipped = 0;
            for ((process, now), before) in processes.iter_mut().zip(&now.ranks).zip(before) {
                process.fast_forward(now, before, again);
                skipped += process.actions() - now.actions();
            }
            self.found.skipped_actions += sum(cluster, skipped)?;
            world.restore_findings(findings);
            self.found.skipped_iterations += iterations * again;
            self.found.period = self.found.period.max(iterations);
            self.reset();
            return Ok(());
        }
        if self.boundaries.len() == self.capacity {
            self.boundaries.pop_front();
        }
        self.boundaries.push_back(now);
        Ok(())
    }

    /// Finds the latest boundary since which all ranks have been shifted in time and have changed in nothing else.
    fn recurrence(&self, cluster: &mut Cluster, now: &Boundary) -> Result<Option<Recurrence>, RunError> {
        for (start, before) in self.boundaries.iter().enumerate().rev() {
            let own = now.interval_since(before);
            let Some(interval) = Interval::of_all(cluster, own)? else { continue };
            if let Some(findings) = common(cluster, now.findings_after(before, interval.repetitions))? {
                return Ok(Some(Recurrence { start, findings, interval }));
            }
        }
        Ok(None)
    }
}

impl Boundary {
    /// Returns the interval since an earlier boundary; `None` if more than times differ.
    fn interval_since(&self, before: &Self) -> Option<Interval> {
        let mut interval = Interval { time: None, repetitions: u64::MAX, iterations: 0 };
        for (now, before) in self.ranks.iter().zip(&before.ranks) {
            if let Repetition::Iterations { count, repeats, time } = now.repetition_since(before)? {
                let of_rank = Interval { time: Some(time), repetitions: repeats, iterations: count };
                interval = interval.merged(of_rank)?;
            }
        }
        Some(interval)
    }

    /// Returns the findings after so many repetitions of the interval since an earlier boundary; `None` if a total overflows.
    fn findings_after(&self, before: &Self, repetitions: u64) -> Option<Findings> {
        let mut ranks = self.ranks.iter().zip(&before.ranks);
        let is_possible = ranks.all(|(now, before)| now.can_fast_forward(before, repetitions));
        if is_possible { self.findings.repeated(&before.findings, repetitions) } else { None }
    }
}

impl Interval {
    /// Returns the interval of all processes; `None` if it is none of one of them, or cannot be repeated.
    fn of_all(cluster: &mut Cluster, own: Option<Self>) -> Result<Option<Self>, RunError> {
        let all = cluster.gather(own)?;
        let mut all = all.into_iter().map(|own| own.ok_or(()));
        let merged = all.try_fold(Self { time: None, repetitions: u64::MAX, iterations: 0 }, |one, other| {
            one.merged(other?).ok_or(())
        });
        let merged = merged.ok().filter(|all| all.iterations > 0 && all.repetitions > 0);
        Ok(cluster.broadcast((cluster.member() == 0).then_some(merged))?)
    }

    /// Returns the interval of the ranks of both. There is one shift for all ranks: different shifts would change the order in which
    /// messages arrive.
    fn merged(self, other: Self) -> Option<Self> {
        let time = match (self.time, other.time) {
            (Some(one), Some(other)) if one != other => return None,
            (one, other) => one.or(other),
        };
        let repetitions = self.repetitions.min(other.repetitions);
        Some(Self { time, repetitions, iterations: self.iterations.max(other.iterations) })
    }
}

/// Returns a value if all processes have one.
fn common<T>(cluster: &mut Cluster, own: Option<T>) -> Result<Option<T>, RunError> {
    let is_common = cluster.first_failure(own.is_some())?.is_none();
    Ok(own.filter(|_| is_common))
}

/// A replay without contention that is fast-forwarded. It fails where one of the ranks fails: the first failure in time order is only
/// known in a run without stops at iteration boundaries.
pub(crate) struct FreeFastForward<'w, 't, M> {
    engine: Engine,
    world: &'w Replay<'t, M>,
    /// Number of ranks of all processes.
    ranks: u32,
    history: SnapshotHistory,
}

impl<'w, 't, M: Machine> FreeFastForward<'w, 't, M> {
    pub(crate) fn new(engine: Engine, world: &'w Replay<'t, M>, ranks: u32) -> Self {
        Self { engine, world, ranks, history: SnapshotHistory::new(ranks as usize) }
    }

    /// Returns what was found so far.
    pub(crate) fn found(&self) -> FastForward {
        self.history.found
    }
}

impl<'t, M> Segmented<'t, M> for FreeFastForward<'_, 't, M>
where
    M: Machine<WorkRequest = Infallible, Error = RouteError>,
{
    fn run(
        &mut self,
        cluster: &mut Cluster,
        mut processes: Vec<RankProcess<'t, M>>,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<MemberRun<'t, M>, RunError> {
        let engine = self.engine.clone().interrupted_by(interrupt.clone());
        let before = sum(cluster, processes.iter().map(RankProcess::actions).sum())?;
        let (mut steps, skipped_before) = (0, self.history.found.skipped_actions);
        loop {
            let mut run = engine.run_distributed(cluster, self.ranks, processes, progress)?;
            steps += run.steps;
            if !matches!(run.ending, Ending::StoppedAtCheckpoint) {
                return Ok(Run { steps, ..run });
            }
            // An interrupt comes after some progress: without, all ranks have stopped.
            let is_interrupted = sum(cluster, interrupt.is_requested().into())? > 0;
            if is_interrupted && run.steps > 0 {
                run.processes.iter_mut().for_each(RankProcess::stop_again_at_boundary);
                return Ok(Run { steps, ..run });
            }
            processes = run.processes;
            self.history.examine(cluster, self.world, &mut processes)?;
            if is_interrupted {
                return Ok(Run { processes, steps, ending: Ending::StoppedAtCheckpoint });
            }
            let reached = before + steps + self.history.found.skipped_actions - skipped_before;
            // The first process counts for all.
            progress.continue_after(if cluster.member() == 0 { reached } else { 0 });
        }
    }

    fn save(&self, _: &mut Cluster) -> Result<Vec<u8>, RunError> {
        Ok(self.found().save())
    }

    fn skipped_actions(&self) -> u64 {
        self.found().skipped_actions
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), ForeignState> {
        self.history.found = FastForward::restore(state)?;
        Ok(())
    }
}
