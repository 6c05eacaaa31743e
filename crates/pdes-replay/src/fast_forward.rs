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
use pdes_core::{Cluster, Ending, Engine, Interrupt, Progress, Run};
use serde::{Deserialize, Serialize};

use crate::checkpoint::Segmented;
use crate::simulation::{MemberRun, RunError, on_cluster};
pub(crate) use recurrence::InOrderFastForward;

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
    /// Findings after its repetitions.
    findings: Findings,
    /// Number of times it is to be repeated.
    repetitions: u64,
    /// Iterations of the rank that has most.
    iterations: u64,
}

/// The state of all ranks at an iteration boundary, and the findings until then.
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
        world: &Replay<'t, M>,
        processes: &mut [RankProcess<'t, M>],
    ) {
        self.fruitless += 1;
        self.compare(world, processes);
        if self.fruitless == MAX_FRUITLESS_SEGMENTS {
            (self.stride, self.fruitless) = (self.stride.saturating_mul(2), 0);
        }
        processes.iter_mut().for_each(|process| process.skip_boundaries(self.stride - 1));
    }

    /// Starts again, because all ranks have reached another loop.
    fn reset(&mut self) {
        self.boundaries.clear();
        (self.stride, self.fruitless) = (1, 0);
    }

    fn compare<'t, M: Machine<WorkRequest = Infallible>>(
        &mut self,
        world: &Replay<'t, M>,
        processes: &mut [RankProcess<'t, M>],
    ) {
        let Some(ranks) = processes.iter().map(RankProcess::snapshot).collect::<Option<Vec<_>>>() else {
            return;
        };
        let now = Boundary { ranks, findings: world.counted_findings(processes) };
        self.found.iteration_boundaries += 1;
        let is_of_loop = |before: &Boundary| {
            now.ranks.iter().zip(&before.ranks).all(|(now, before)| now.is_in_loop_of(before))
        };
        if !self.boundaries.back().is_none_or(is_of_loop) {
            self.reset();
        }
        if let Some(Recurrence { start, findings, repetitions: again, iterations }) = self.recurrence(&now) {
            let before = &self.boundaries[start].ranks;
            for ((process, now), before) in processes.iter_mut().zip(&now.ranks).zip(before) {
                process.fast_forward(now, before, again);
                self.found.skipped_actions += process.actions() - now.actions();
            }
            world.restore_findings(findings);
            self.found.skipped_iterations += iterations * again;
            self.found.period = self.found.period.max(iterations);
            self.reset();
            return;
        }
        if self.boundaries.len() == self.capacity {
            self.boundaries.pop_front();
        }
        self.boundaries.push_back(now);
    }

    /// Finds the latest boundary since which all ranks have been shifted in time and have changed in nothing else.
    fn recurrence(&self, now: &Boundary) -> Option<Recurrence> {
        (0..self.boundaries.len()).rev().find_map(|since| {
            let before = &self.boundaries[since];
            let (mut shift, mut again, mut iterations) = (None, u64::MAX, 0);
            for (now, before) in now.ranks.iter().zip(&before.ranks) {
                let Repetition::Iterations { count, repeats: more, time } = now.repetition_since(before)?
                else {
                    continue;
                };
                // One shift for all ranks: different shifts would change the order in which messages arrive.
                if *shift.get_or_insert(time) != time {
                    return None;
                }
                (again, iterations) = (again.min(more), iterations.max(count));
            }
            let mut ranks = now.ranks.iter().zip(&before.ranks);
            let is_possible =
                iterations > 0 && again > 0 && ranks.all(|(now, before)| now.can_fast_forward(before, again));
            if !is_possible {
                return None;
            }
            let findings = now.findings.repeated(&before.findings, again)?;
            Some(Recurrence { start: since, findings, repetitions: again, iterations })
        })
    }
}

/// A replay without contention that is fast-forwarded. It fails where one of the ranks fails: the first failure in time order is only
/// known in a run without stops at iteration boundaries.
pub(crate) struct FreeFastForward<'w, 't, M> {
    engine: Engine,
    world: &'w Replay<'t, M>,
    history: SnapshotHistory,
}

impl<'w, 't, M: Machine> FreeFastForward<'w, 't, M> {
    pub(crate) fn new(engine: Engine, world: &'w Replay<'t, M>, ranks: u32) -> Self {
        Self { engine, world, history: SnapshotHistory::new(ranks as usize) }
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
        _: &mut Cluster,
        mut processes: Vec<RankProcess<'t, M>>,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<MemberRun<'t, M>, RunError> {
        let engine = self.engine.clone().interrupted_by(interrupt.clone());
        let before: u64 = processes.iter().map(RankProcess::actions).sum();
        let (mut steps, skipped_before) = (0, self.history.found.skipped_actions);
        loop {
            let mut run = engine.run_with_progress(processes, progress);
            steps += run.steps;
            if !matches!(run.ending, Ending::StoppedAtCheckpoint) {
                return Ok(on_cluster(Run { steps, ..run }));
            }
            // An interrupt comes after some progress: without, all ranks have stopped.
            let is_interrupted = interrupt.is_requested();
            if is_interrupted && run.steps > 0 {
                run.processes.iter_mut().for_each(RankProcess::stop_again_at_boundary);
                return Ok(on_cluster(Run { steps, ..run }));
            }
            processes = run.processes;
            self.history.examine(self.world, &mut processes);
            if is_interrupted {
                return Ok(Run { processes, steps, ending: Ending::StoppedAtCheckpoint });
            }
            progress.continue_after(before + steps + self.history.found.skipped_actions - skipped_before);
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
