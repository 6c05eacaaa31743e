//! Fast-forward with contention: finds the state of the whole simulation at a cut that recurs, and repeats what lies between.
//!
//! Flows share links, so that ranks and network are compared as one, between two events. A cut is taken whenever one of the ranks,
//! the pacemaker, has passed an iteration boundary. The state is written as bytes, relative to the present instant, and their hash
//! is kept for each cut. Where a hash comes again, the state is kept whole, one more period is replayed, and the bytes are
//! compared: then it is certain that the same iterations do the same again, later.

use std::cmp::Reverse;
use std::collections::HashMap;

use mpi_model::{Completion, Findings, OperationBases, RankAtCut, RankProcess, Repetition, Replay};
use netmodel::{ForeignState, NetworkModel};
use pdes_core::{Cluster, Interrupt, OrderedRun, Progress, Rank, SimDuration, SimTime, StateWriter};

use super::FastForward;
use crate::checkpoint::{InTimeOrder, Segmented};
use crate::contention::{Contention, SharedMachine};
use crate::simulation::{MemberRun, RunError, on_cluster};

/// Number of cuts without a recurrence after which their distance doubles: a network may need more than a hundred iterations until
/// it comes to rest, but a program that never repeats should not be compared forever.
const MAX_FRUITLESS_CUTS: u32 = 32;

type SharedProcess<'t, 'm> = RankProcess<'t, SharedMachine<'m>>;
type SharedRun<'a, 't, 'm, N> = OrderedRun<'a, SharedProcess<'t, 'm>, Contention<'m, N>>;

/// The cuts so far, and what was found.
struct RecurrenceSearch<'a, 't, 'm> {
    replay: &'a Replay<'t, SharedMachine<'m>>,
    /// Rank whose boundaries are followed by cuts, and the loop in which it is.
    pacemaker: Rank,
    loop_id: Option<u64>,
    /// Instant of each cut in this loop and number of equal iterations of the pacemaker until then, by the hash of the state.
    known: HashMap<blake3::Hash, (SimTime, u64)>,
    candidate: Option<Cut>,
    /// Number of boundaries of the pacemaker per cut, and number of cuts at this distance without a recurrence.
    stride: u64,
    fruitless: u32,
    found: FastForward,
}

/// A cut with its whole state, which may recur after one period.
struct Cut {
    at: SimTime,
    state: Vec<u8>,
    ranks: Vec<RankAtCut>,
    /// Findings until then.
    findings: Findings,
    /// Iterations of the pacemaker per period.
    period: u64,
    /// Length of the period, and number of repetitions after it, as the network expects them.
    length: SimDuration,
    repetitions: u64,
}

/// An interval between two cuts that can be repeated.
struct Recurrence {
    /// Number of times it is repeated.
    repetitions: u64,
    /// Time by which all is shifted.
    time: SimDuration,
    /// Iterations of the rank that has most.
    iterations: u64,
}

impl<'t, 'm> RecurrenceSearch<'_, 't, 'm> {
    /// Starts again in another loop, or after iterations were skipped.
    fn reset(&mut self) {
        self.known.clear();
        (self.candidate, self.stride, self.fruitless) = (None, 1, 0);
    }

    /// Compares a cut with the earlier ones, and repeats the interval since one of them if the state is the same. Returns whether
    /// iterations were skipped.
    fn examine<N: NetworkModel<Completion>>(&mut self, run: &mut SharedRun<'_, 't, 'm, N>) -> bool {
        let before = self.found.skipped_iterations;
        let distance = self.compare(run);
        let (processes, _) = run.parts();
        processes[self.pacemaker.index()].skip_boundaries(distance - 1);
        self.found.skipped_iterations > before
    }

    /// Returns the number of boundaries of the pacemaker to the next cut.
    fn compare<N: NetworkModel<Completion>>(&mut self, run: &mut SharedRun<'_, 't, 'm, N>) -> u64 {
        let boundary = run.parts().0[self.pacemaker.index()].last_boundary();
        let loop_id = boundary.map(|boundary| boundary.loop_id);
        if std::mem::replace(&mut self.loop_id, loop_id) != loop_id {
            self.reset();
        }
        self.fruitless += 1;
        if self.fruitless == MAX_FRUITLESS_CUTS {
            (self.stride, self.fruitless) = (self.stride.saturating_mul(2), 0);
        }
        let Some(boundary) = boundary else { return self.stride };
        let Some(state) = self.state(run) else { return self.stride };
        self.found.iteration_boundaries += 1;
        if let Some(before) = self.candidate.take().filter(|candidate| candidate.state == state) {
            return self.confirm(run, &before, state);
        }
        let cut = (run.now(), boundary.completed_equal);
        if let Some((at, completed)) = self.known.insert(blake3::hash(&state), cut)
            && let Some(period) = cut.1.checked_sub(completed).filter(|&period| period > 0)
        {
            let (ranks, findings) = self.totals(run);
            let (_, contention) = run.parts();
            // One of them is replayed before the others are skipped.
            let possible = ranks.iter().filter_map(|rank| rank.repetitions_of(period)).min();
            let repetitions = possible.unwrap_or(0).saturating_sub(1);
            if repetitions > 0 {
                let length = cut.0 - at;
                contention.watch_period(cut.0, length, repetitions);
                self.candidate = Some(Cut { at: cut.0, state, ranks, findings, period, length, repetitions });
                return period;
            }
        }
        self.stride
    }

    /// Repeats the interval since a cut with the same state, if it can be. Returns the number of boundaries of the pacemaker to the
    /// next cut.
    fn confirm<N: NetworkModel<Completion>>(
        &mut self,
        run: &mut SharedRun<'_, 't, 'm, N>,
        before: &Cut,
        state: Vec<u8>,
    ) -> u64 {
        let at = run.now();
        let (ranks, findings) = self.totals(run);
        let (processes, contention) = run.parts();
        let Some(Recurrence { repetitions, time, iterations }) = recurrence(&ranks, at, before) else {
            return self.stride;
        };
        let Some(repeated) = findings.repeated(&before.findings, repetitions) else { return self.stride };
        let length = at - before.at;
        if (length, repetitions) != (before.length, before.repetitions) {
            // The network has to know both before the interval, and ranks may not do equally many iterations.
            let (period, repetitions) = (before.period, repetitions - 1);
            if repetitions > 0 {
                contention.watch_period(at, length, repetitions);
                self.candidate = Some(Cut { at, state, ranks, findings, period, length, repetitions });
            }
            return period;
        }
        for ((process, now), before) in processes.iter_mut().zip(&ranks).zip(&before.ranks) {
            self.found.skipped_actions += process.repeat_iterations(now, before, repetitions, time);
        }
        self.replay.restore_findings(repeated);
        contention.repeat_period(at, time);
        run.shift_time(time);
        self.found.skipped_iterations += iterations * repetitions;
        self.found.period = self.found.period.max(iterations);
        debug_assert!(self.state(run) == Some(state), "the whole state is shifted in time");
        self.reset();
        1
    }

    /// Returns progress and totals of all ranks, and the findings so far.
    fn totals<N: NetworkModel<Completion>>(
        &self,
        run: &mut SharedRun<'_, 't, 'm, N>,
    ) -> (Vec<RankAtCut>, Findings) {
        let (processes, _) = run.parts();
        let findings = self.replay.counted_findings(processes);
        (processes.iter().map(RankProcess::at_cut).collect(), findings)
    }

    /// Writes the state of the simulation; `None` where it cannot recur.
    fn state<N: NetworkModel<Completion>>(&self, run: &mut SharedRun<'_, 't, 'm, N>) -> Option<Vec<u8>> {
        let mut state = StateWriter::at(run.now());
        run.write_state(&mut state);
        state.value(&self.replay.poll_prices());
        let (processes, contention) = run.parts();
        let mut counts = OperationBases::default();
        if !processes.iter().all(|process| process.write_state(&mut counts, &mut state)) {
            return None;
        }
        let can_recur = contention.write_state(&mut state, |rank| processes[rank.index()].eager_messages());
        can_recur.then(|| state.into_bytes())
    }
}

/// Returns the interval since a cut with the same state; `None` if it cannot be repeated even once.
fn recurrence(ranks: &[RankAtCut], at: SimTime, before: &Cut) -> Option<Recurrence> {
    let (mut repetitions, mut iterations) = (u64::MAX, 0);
    for (now, before) in ranks.iter().zip(&before.ranks) {
        if let Repetition::Iterations { count, repeats, .. } = now.repetition_since(before)? {
            (repetitions, iterations) = (repetitions.min(repeats), iterations.max(count));
        }
    }
    let time = at.checked_since(before.at)?.checked_mul(repetitions)?;
    // Events lie not far beyond the present, and must not overflow either.
    at.checked_add(time)?.checked_add(time)?;
    let mut pairs = ranks.iter().zip(&before.ranks);
    let can_repeat = pairs.all(|(now, before)| now.statistics_after(before, repetitions).is_some());
    (iterations > 0 && repetitions > 0 && can_repeat).then_some(Recurrence { repetitions, time, iterations })
}

/// A replay in time order that is fast-forwarded.
pub(crate) struct InOrderFastForward<'r, 'a, 't, 'm, N> {
    in_order: InTimeOrder<'r, 'm, N>,
    search: RecurrenceSearch<'a, 't, 'm>,
}

impl<'r, 'a, 't, 'm, N> InOrderFastForward<'r, 'a, 't, 'm, N> {
    pub(crate) fn new(in_order: InTimeOrder<'r, 'm, N>, replay: &'a Replay<'t, SharedMachine<'m>>) -> Self {
        let search = RecurrenceSearch {
            replay,
            pacemaker: Rank::new(0),
            loop_id: None,
            known: HashMap::new(),
            candidate: None,
            stride: 1,
            fruitless: 0,
            found: FastForward::default(),
        };
        Self { in_order, search }
    }

    /// Returns what was found so far.
    pub(crate) fn found(&self) -> FastForward {
        self.search.found
    }
}

impl<'t, 'm, N: NetworkModel<Completion>> Segmented<'t, SharedMachine<'m>>
    for InOrderFastForward<'_, '_, 't, 'm, N>
{
    const IN_TIME_ORDER: bool = true;

    fn run(
        &mut self,
        _: &mut Cluster,
        mut processes: Vec<SharedProcess<'t, 'm>>,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<MemberRun<'t, SharedMachine<'m>>, RunError> {
        let Self { in_order: InTimeOrder { engine, contention }, search } = self;
        // A loop of the longest program has most of its actions, if any has.
        let longest =
            processes.iter().map(|process| (process.program_actions(), Reverse(process.rank()))).max();
        search.pacemaker = longest.map_or(Rank::new(0), |(_, Reverse(rank))| rank);
        let others = processes.iter_mut().filter(|process| process.rank() != search.pacemaker);
        others.for_each(RankProcess::pass_all_boundaries);
        let before: u64 = processes.iter().map(RankProcess::actions).sum();
        let skipped_before = search.found.skipped_actions;
        let engine = engine.clone().interrupted_by(interrupt.clone());
        let mut run = engine.start(processes, &mut **contention, progress);
        while run.run_to_cut() {
            if interrupt.is_requested() {
                return Ok(on_cluster(run.stop()));
            }
            if search.examine(&mut run) {
                progress.continue_after(before + search.found.skipped_actions - skipped_before);
            }
        }
        Ok(on_cluster(run.finish()))
    }

    fn save(&self, _: &mut Cluster) -> Result<Vec<u8>, RunError> {
        let state = (self.search.found.save(), self.in_order.saved());
        Ok(postcard::to_allocvec(&state).expect("memory takes all"))
    }

    fn skipped_actions(&self) -> u64 {
        self.found().skipped_actions
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), ForeignState> {
        let (found, network): (Vec<u8>, Vec<u8>) = postcard::from_bytes(state).map_err(|_| ForeignState)?;
        self.search.found = FastForward::restore(&found)?;
        self.in_order.continue_from(&network)
    }
}
