//! Fast-forward: iterations that only move everything on in time are counted and not replayed.
//!
//! The replay runs in legs. A leg ends where every rank has halted at the head of an iteration, has ended, or waits for
//! one that has halted. Where all ranks are what they were some iterations before, but for one shift in time, the next
//! iterations do the same once more (`mpi_model::Snapshot` says why).

use std::collections::VecDeque;
use std::convert::Infallible;

use mpi_model::{Machine, RankProcess, Snapshot, Stretch};
use pdes_core::{Ending, Engine, Progress, Run};
use serde::Serialize;

/// The longest period that is looked for.
const MAX_PERIOD: usize = 8;
/// Legs without a find after which they become twice as long, so that loops that never repeat take little longer.
const PATIENCE: u32 = 8;
/// Snapshots kept of all ranks together: some 400 MB.
const MAX_SNAPSHOTS: usize = 1 << 20;

/// What was not replayed, because it was known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FastForward {
    /// Iterations passed over: of each rank, or of the rank that passed over most.
    pub skipped_iterations: u64,
    /// Actions in them, of all ranks.
    pub skipped_actions: u64,
    /// After how many iterations all ranks were what they had been before; of several periods the longest.
    pub period: u64,
    /// How often all ranks stood at the heads of iterations and were compared.
    pub heads: u64,
}

/// How the iterations so far go on.
struct Recurrence {
    /// The place in the history of the head before them.
    since: usize,
    /// How often they are to happen again.
    again: u64,
    /// The most of one rank.
    iterations: u64,
}

/// The last heads at which all ranks stood.
struct History {
    heads: VecDeque<Vec<Snapshot>>,
    most: usize,
    /// Iterations of a leg, and legs of this length without a find.
    stride: u64,
    vain: u32,
    found: FastForward,
}

impl History {
    fn new(ranks: usize) -> Self {
        let most = (MAX_SNAPSHOTS / ranks.max(1)).clamp(1, MAX_PERIOD);
        Self { heads: VecDeque::new(), most, stride: 1, vain: 0, found: FastForward::default() }
    }

    /// Looks at ranks that have halted, passes over what will happen again, and says how far the next leg is to go.
    fn look<M: Machine<Order = Infallible>>(&mut self, processes: &mut [RankProcess<'_, M>]) {
        self.vain += 1;
        self.compare(processes);
        if self.vain == PATIENCE {
            (self.stride, self.vain) = (self.stride.saturating_mul(2), 0);
        }
        processes.iter_mut().for_each(|process| process.pass_heads(self.stride - 1));
    }

    /// Begins anew, where all ranks have gone on to something else.
    fn forget(&mut self) {
        self.heads.clear();
        (self.stride, self.vain) = (1, 0);
    }

    fn compare<M: Machine<Order = Infallible>>(&mut self, processes: &mut [RankProcess<'_, M>]) {
        let Some(now) = processes.iter().map(RankProcess::snapshot).collect::<Option<Vec<_>>>() else {
            return;
        };
        self.found.heads += 1;
        let is_of_loop =
            |before: &Vec<Snapshot>| now.iter().zip(before).all(|(now, before)| now.is_of_loop_of(before));
        if !self.heads.back().is_none_or(is_of_loop) {
            self.forget();
        }
        if let Some(Recurrence { since, again, iterations }) = self.recurrence(&now) {
            for ((process, now), before) in processes.iter_mut().zip(&now).zip(&self.heads[since]) {
                process.repeat(now, before, again);
                self.found.skipped_actions += process.actions() - now.actions();
            }
            self.found.skipped_iterations += iterations * again;
            self.found.period = self.found.period.max(iterations);
            self.forget();
            return;
        }
        if self.heads.len() == self.most {
            self.heads.pop_front();
        }
        self.heads.push_back(now);
    }

    /// Finds the last head since which all ranks have been moved on in time and by nothing else.
    fn recurrence(&self, now: &[Snapshot]) -> Option<Recurrence> {
        (0..self.heads.len()).rev().find_map(|since| {
            let before = &self.heads[since];
            let (mut shift, mut again, mut iterations) = (None, u64::MAX, 0);
            for (now, before) in now.iter().zip(before) {
                let Stretch::Iterations { count, again: more, time } = now.since(before)? else { continue };
                if *shift.get_or_insert(time) != time {
                    return None;
                }
                (again, iterations) = (again.min(more), iterations.max(count));
            }
            let is_possible = iterations > 0 && again > 0;
            let can_repeat = || now.iter().zip(before).all(|(now, before)| now.can_repeat(before, again));
            (is_possible && can_repeat()).then_some(Recurrence { since, again, iterations })
        })
    }
}

/// Runs processes that halt to their end; `None` where one of them fails, which has to be found without halts: only there is
/// the first failure known.
pub(crate) fn run<'t, M: Machine<Order = Infallible>>(
    engine: &Engine,
    mut processes: Vec<RankProcess<'t, M>>,
    progress: &Progress,
) -> Option<(Run<RankProcess<'t, M>>, FastForward)> {
    let mut history = History::new(processes.len());
    let mut steps = 0;
    loop {
        let run = engine.run_watched(processes, progress);
        steps += run.steps;
        match run.ending {
            Ending::Halted => {}
            Ending::Failed(..) => return None,
            _ => return Some((Run { steps, ..run }, history.found)),
        }
        processes = run.processes;
        history.look(&mut processes);
        progress.go_on_after(steps + history.found.skipped_actions);
    }
}
