//! Fast-forward with contention: finds the state of the whole simulation at a cut that recurs, and repeats what lies between.
//!
//! Flows share links, so that ranks and network are compared as one, between two events or two windows. A cut is taken whenever one of
//! the ranks, the pacemaker, has passed an iteration boundary. The state is written as bytes, relative to the present instant, and their hash
//! is kept for each cut. Where a hash comes again, the state is kept whole, one more period is replayed, and the bytes are
//! compared: then it is certain that the same iterations do the same again, later. The whole state of the last cut is kept, too, unless
//! a period has to be watched from its begin, as the loads of links are: then most programs need no period more.

use std::cmp::Reverse;
use std::collections::HashMap;

use mpi_model::{Findings, OperationBases, RankAtCut, RankProcess, Repetition, Replay};
use netmodel::ForeignState;
use pdes_core::{Cluster, Interrupt, Progress, Rank, Run, SimDuration, SimTime, StateWriter};
use timeline::Spool;

use super::FastForward;
use crate::checkpoint::{CheckpointPlan, CheckpointSummary, Segmented, run_to_end};
use crate::contention::SharedMachine;
use crate::simulation::{MemberRun, RunError, Simulation};

/// Number of cuts without a recurrence after which their distance doubles: a network may need more than a hundred iterations until
/// it comes to rest, but a program that never repeats should not be compared forever.
const MAX_FRUITLESS_CUTS: u32 = 32;

type SharedProcess<'t, 'm> = RankProcess<'t, SharedMachine<'m>>;
type SharedRun<'t, 'm> = MemberRun<'t, SharedMachine<'m>>;

/// A replay of all ranks on one process that can be cut: it stops where the whole simulation can be compared, and shifted in time.
///
/// # Laws
/// 1. What happens after a cut depends on the ranks and on what [`write_state`](Cuttable::write_state) writes alone, wherever in time
///    it lies.
/// 2. All events before a cut have taken place, and no others.
pub(crate) trait Cuttable<'t, 'm>: Segmented<'t, SharedMachine<'m>> {
    /// Runs ranks from a cut, if there was one, to the first cut after one of them has come to an iteration boundary at which it stops,
    /// to their end, or until the interrupt. Returns the instant of the cut, if there is one.
    fn run_to_cut(
        &mut self,
        cluster: &mut Cluster,
        processes: Vec<SharedProcess<'t, 'm>>,
        from: Option<SimTime>,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<(SharedRun<'t, 'm>, Option<SimTime>), RunError>;

    /// Writes the state of everything but the ranks at a cut; `eager_messages` returns the number of eager messages to a rank. Returns
    /// false where the state cannot recur.
    fn write_state(&self, state: &mut StateWriter, eager_messages: &dyn Fn(Rank) -> u32) -> bool;

    /// Announces that the interval of length `period` which begins now may be repeated so many times.
    fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64);

    /// Repeats the interval that was announced last and ends now; `time` is that of all repetitions.
    fn repeat_period(&mut self, now: SimTime, time: SimDuration);
}

/// The cuts so far, and what was found.
struct RecurrenceSearch<'a, 't, 'm> {
    replay: &'a Replay<'t, SharedMachine<'m>>,
    /// Rank whose boundaries are followed by cuts, and the loop in which it is.
    pacemaker: Rank,
    loop_id: Option<u64>,
    /// Instant of each cut in this loop and number of equal iterations of the pacemaker until then, by the hash of the state.
    known: HashMap<blake3::Hash, (SimTime, u64)>,
    /// Cut with which the next one is compared.
    candidate: Option<Cut>,
    /// A period is [announced](Cuttable::watch_period) before it can be repeated.
    watches: bool,
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
    /// Period that was announced.
    watched: Option<WatchedPeriod>,
}

/// A period that begins at a cut, as it was announced.
struct WatchedPeriod {
    /// Iterations of the pacemaker.
    iterations: u64,
    length: SimDuration,
    /// Number of repetitions after it.
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

    /// Compares a cut with the earlier ones, and repeats the interval since one of them if the state is the same. Returns the instant
    /// from which the run continues.
    fn examine(
        &mut self,
        cut: SimTime,
        ranks: &mut [SharedProcess<'t, 'm>],
        rest: &mut impl Cuttable<'t, 'm>,
    ) -> SimTime {
        let mut at = cut;
        let distance = self.compare(&mut at, ranks, rest);
        ranks[self.pacemaker.index()].skip_boundaries(distance - 1);
        at
    }

    /// Returns the number of boundaries of the pacemaker to the next cut.
    fn compare(
        &mut self,
        now: &mut SimTime,
        processes: &mut [SharedProcess<'t, 'm>],
        rest: &mut impl Cuttable<'t, 'm>,
    ) -> u64 {
        let boundary = processes[self.pacemaker.index()].last_boundary();
        let loop_id = boundary.map(|boundary| boundary.loop_id);
        if std::mem::replace(&mut self.loop_id, loop_id) != loop_id {
            self.reset();
        }
        self.fruitless += 1;
        if self.fruitless == MAX_FRUITLESS_CUTS {
            (self.stride, self.fruitless) = (self.stride.saturating_mul(2), 0);
        }
        let Some(boundary) = boundary else { return self.stride };
        let Some(state) = self.state(*now, processes, rest) else { return self.stride };
        self.found.iteration_boundaries += 1;
        if let Some(before) = self.candidate.take().filter(|candidate| candidate.state == state)
            && let Some(distance) = self.confirm(now, (processes, rest), &before, &state)
        {
            return distance;
        }
        let cut = (*now, boundary.completed_equal);
        if let Some((at, completed)) = self.known.insert(blake3::hash(&state), cut)
            && let Some(period) = cut.1.checked_sub(completed).filter(|&period| period > 0)
        {
            let possible = processes.iter().filter_map(|rank| rank.at_cut().repetitions_of(period)).min();
            // One of them is replayed before the others are skipped.
            let repetitions = possible.unwrap_or(0).saturating_sub(1);
            if repetitions > 0 {
                let watched = WatchedPeriod { iterations: period, length: cut.0 - at, repetitions };
                self.begin_period(cut.0, (processes, rest), state, watched);
                return period;
            }
        }
        if !self.watches {
            let (ranks, findings) = self.totals(processes);
            self.candidate = Some(Cut { at: cut.0, state, ranks, findings, watched: None });
        }
        self.stride
    }

    /// Announces a period that begins now, and keeps the cut.
    fn begin_period(
        &mut self,
        at: SimTime,
        (processes, rest): (&mut [SharedProcess<'t, 'm>], &mut impl Cuttable<'t, 'm>),
        state: Vec<u8>,
        watched: WatchedPeriod,
    ) {
        let (ranks, findings) = self.totals(processes);
        rest.watch_period(at, watched.length, watched.repetitions);
        self.candidate = Some(Cut { at, state, ranks, findings, watched: Some(watched) });
    }

    /// Repeats the interval since a cut with the same state. Returns the number of boundaries of the pacemaker to the next cut, or `None`
    /// if the interval cannot be repeated.
    fn confirm(
        &mut self,
        now: &mut SimTime,
        (processes, rest): (&mut [SharedProcess<'t, 'm>], &mut impl Cuttable<'t, 'm>),
        before: &Cut,
        state: &[u8],
    ) -> Option<u64> {
        let at = *now;
        let (ranks, findings) = self.totals(processes);
        let Recurrence { repetitions, time, iterations } = recurrence(&ranks, at, before)?;
        let repeated = findings.repeated(&before.findings, repetitions)?;
        let length = at - before.at;
        if let Some(watched) = &before.watched
            && (length, repetitions) != (watched.length, watched.repetitions)
        {
            // The network has to know both before the interval, and ranks may not do equally many iterations.
            let (iterations, repetitions) = (watched.iterations, repetitions - 1);
            if repetitions > 0 {
                let watched = WatchedPeriod { iterations, length, repetitions };
                self.begin_period(at, (processes, rest), state.to_owned(), watched);
            }
            return Some(iterations);
        }
        for ((process, now), before) in processes.iter_mut().zip(&ranks).zip(&before.ranks) {
            self.found.skipped_actions += process.repeat_iterations(now, before, repetitions, time);
        }
        self.replay.restore_findings(repeated);
        rest.repeat_period(at, time);
        *now = at + time;
        self.found.skipped_iterations += iterations * repetitions;
        self.found.period = self.found.period.max(iterations);
        debug_assert!(
            self.state(*now, processes, rest).as_deref() == Some(state),
            "the whole state is shifted in time"
        );
        self.reset();
        Some(1)
    }

    /// Returns progress and totals of all ranks, and the findings so far.
    fn totals(&self, processes: &mut [SharedProcess<'t, 'm>]) -> (Vec<RankAtCut>, Findings) {
        let findings = self.replay.counted_findings(processes);
        (processes.iter().map(RankProcess::at_cut).collect(), findings)
    }

    /// Writes the state of the simulation; `None` where it cannot recur.
    fn state(
        &self,
        now: SimTime,
        processes: &[SharedProcess<'t, 'm>],
        rest: &impl Cuttable<'t, 'm>,
    ) -> Option<Vec<u8>> {
        let mut state = StateWriter::at(now);
        state.value(&self.replay.poll_prices());
        let mut counts = OperationBases::default();
        if !processes.iter().all(|process| process.write_state(&mut counts, &mut state)) {
            return None;
        }
        let can_recur = rest.write_state(&mut state, &|rank| processes[rank.index()].eager_messages());
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

/// A replay with contention that is fast-forwarded.
struct ContendedFastForward<'a, 't, 'm, S> {
    inner: S,
    search: RecurrenceSearch<'a, 't, 'm>,
    /// Last cut, shifted in time if iterations were skipped there.
    cut: Option<SimTime>,
}

impl<'a, 't, 'm, S> ContendedFastForward<'a, 't, 'm, S> {
    /// `watches` tells whether what a period adds to links and servers is recorded.
    fn new(inner: S, replay: &'a Replay<'t, SharedMachine<'m>>, watches: bool) -> Self {
        let search = RecurrenceSearch {
            replay,
            pacemaker: Rank::new(0),
            loop_id: None,
            known: HashMap::new(),
            candidate: None,
            watches,
            stride: 1,
            fruitless: 0,
            found: FastForward::default(),
        };
        Self { inner, search, cut: None }
    }
}

/// The end of a replay with contention.
pub(crate) struct ContendedRun<'t, 'm> {
    pub(crate) run: SharedRun<'t, 'm>,
    pub(crate) checkpoints: Option<CheckpointSummary>,
    /// Iterations that were skipped, if they are.
    pub(crate) fast_forward: Option<FastForward>,
}

/// Runs a replay of all ranks to its end, and skips iterations that repeat if `forwards` is true.
pub(crate) fn run_contended<'t, 'm>(
    simulation: &Simulation,
    checkpoints: Option<&CheckpointPlan>,
    forwards: bool,
    inner: &mut impl Cuttable<'t, 'm>,
    sources: (&'t Replay<'t, SharedMachine<'m>>, Option<&Spool>, &[Rank]),
    progress: &Progress,
) -> Result<ContendedRun<'t, 'm>, RunError> {
    let alone = &mut Cluster::alone();
    if !forwards {
        let (run, checkpoints) = run_to_end(simulation, alone, checkpoints, inner, sources, progress)?;
        return Ok(ContendedRun { run, checkpoints, fast_forward: None });
    }
    let watches = simulation.records_links() || simulation.uses_storage();
    let mut forwarded = ContendedFastForward::new(inner, sources.0, watches);
    let (run, checkpoints) = run_to_end(simulation, alone, checkpoints, &mut forwarded, sources, progress)?;
    Ok(ContendedRun { run, checkpoints, fast_forward: Some(forwarded.search.found) })
}

impl<'t, 'm, S: Cuttable<'t, 'm>> Segmented<'t, SharedMachine<'m>>
    for ContendedFastForward<'_, 't, 'm, &mut S>
{
    const IN_TIME_ORDER: bool = S::IN_TIME_ORDER;

    fn run(
        &mut self,
        cluster: &mut Cluster,
        mut processes: Vec<SharedProcess<'t, 'm>>,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<SharedRun<'t, 'm>, RunError> {
        let Self { inner, search, cut } = self;
        // A loop of the longest program has most of its actions, if any has.
        let longest =
            processes.iter().map(|process| (process.program_actions(), Reverse(process.rank()))).max();
        search.pacemaker = longest.map_or(Rank::new(0), |(_, Reverse(rank))| rank);
        let others = processes.iter_mut().filter(|process| process.rank() != search.pacemaker);
        others.for_each(RankProcess::pass_all_boundaries);
        let before: u64 = processes.iter().map(RankProcess::actions).sum();
        let (mut steps, skipped_before) = (0, search.found.skipped_actions);
        loop {
            let (run, reached) = inner.run_to_cut(cluster, processes, *cut, interrupt, progress)?;
            steps += run.steps;
            let Some(reached) = reached else { return Ok(Run { steps, ..run }) };
            *cut = Some(reached);
            if interrupt.is_requested() {
                return Ok(Run { steps, ..run });
            }
            processes = run.processes;
            *cut = Some(search.examine(reached, &mut processes, &mut **inner));
            progress.continue_after(before + steps + search.found.skipped_actions - skipped_before);
        }
    }

    fn save(&self, cluster: &mut Cluster) -> Result<Vec<u8>, RunError> {
        let state = (self.search.found.save(), self.inner.save(cluster)?);
        Ok(postcard::to_allocvec(&state).expect("memory takes all"))
    }

    fn skipped_actions(&self) -> u64 {
        self.search.found.skipped_actions
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), ForeignState> {
        let (found, network): (Vec<u8>, Vec<u8>) = postcard::from_bytes(state).map_err(|_| ForeignState)?;
        self.search.found = FastForward::restore(&found)?;
        self.inner.restore(&network)
    }
}
