//! Fast-forward: counts iterations that only shift the whole simulation in time instead of replaying them.
//!
//! The replay runs from cut to cut. At a cut, ranks and network are observed as one, relative to the present instant, and the hash of the
//! observation is kept. The whole observation of the last cut is kept, too: if the next one is equal, the iterations between do the
//! same again, later. Where a hash comes again, the observation is kept from there on, and one more period is replayed: then it is
//! certain. What links and servers carry in a period has to be watched from its begin, so that where it is recorded, periods are
//! announced before they are compared.
//!
//! Without contention all ranks stop at the boundaries of their iterations, each at its own clock, with no message in transit: a
//! consistent cut. With contention a cut is an instant, between two events or two windows, after one of the ranks, the pacemaker, has
//! passed an iteration boundary.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::convert::Infallible;

use mpi_model::{Interval, Machine, RankAtCut, RankProcess, Replay};
use netmodel::RouteError;
use pdes_core::{
    Cluster, Ending, Engine, ForeignState, Interrupt, LpId, Observation, Progress, Run, SimDuration, SimTime,
    State, StateVisitor,
};
use serde::{Deserialize, Serialize};
use timeline::Spool;
use trace_mmap::LoopRun;

use crate::checkpoint::{CheckpointPlan, CheckpointSummary, FreeRunning, Segmented, run_to_end};
use crate::simulation::{MemberRun, RunError, Simulation, sum};

/// Number of cuts without a recurrence after which their distance doubles: a network may need more than a hundred iterations until
/// it comes to rest, but a program that never repeats should not be compared forever.
const MAX_FRUITLESS_CUTS: u32 = 32;

/// The same in nested loops, which run again and have short iterations.
const MAX_FRUITLESS_NESTED_CUTS: u32 = 8;

/// Iterations that were counted instead of replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FastForward {
    /// Iterations skipped by each rank; if ranks differ, by the rank that skipped most.
    pub skipped_iterations: u64,
    /// Actions skipped, of all ranks.
    pub skipped_actions: u64,
    /// Iterations after which the states of all ranks repeat; of several periods the longest.
    pub period: u64,
    /// Number of cuts at which the simulation was compared.
    pub iteration_boundaries: u64,
}

/// A replay that can be cut: it stops where the whole simulation can be compared, and shifted in time.
///
/// # Laws
/// 1. What happens after a cut depends on the ranks and on what [`visit`](Cuttable::visit) shows alone, wherever in time it lies.
/// 2. All events before a cut have taken place, and no others.
pub(crate) trait Cuttable<'t, M: Machine>: Segmented<'t, M> {
    /// All ranks stop at the boundaries of their iterations, each at its own clock, or the pacemaker does. At clocks of their own, events
    /// that depend on the order of time do not recur.
    fn stops_all(&self) -> bool {
        false
    }

    /// Runs the ranks of this process from a cut, if there was one, to the first cut after one of them has come to an iteration boundary
    /// at which it stops, to their end, or until the interrupt. Returns the instant of the cut, if there is one.
    fn run_to_cut(
        &mut self,
        cluster: &mut Cluster,
        processes: Vec<RankProcess<'t, M>>,
        from: Option<SimTime>,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<(MemberRun<'t, M>, Option<SimTime>), RunError>;

    /// Shows the state of everything but the ranks at a cut.
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let _ = visitor;
    }

    /// Announces that the interval of length `period` which begins now may be repeated so many times.
    fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        let _ = (now, period, repetitions);
    }

    /// Adds the loads of the interval that was announced last and ends now, as often as it is repeated.
    fn repeat_loads(&mut self, now: SimTime) {
        let _ = now;
    }
}

/// The part of a simulation on this process.
struct Simulated<'a, 't, M: Machine> {
    replay: &'a Replay<'t, M>,
    processes: &'a mut [RankProcess<'t, M>],
    rest: &'a mut dyn Cuttable<'t, M>,
}

impl<M: Machine> State for Simulated<'_, '_, M> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { replay, processes, rest } = self;
        replay.visit(processes, visitor);
        let stops_all = rest.stops_all();
        for process in &mut **processes {
            if stops_all {
                process.visit_decisions(visitor);
            }
            process.visit(visitor);
            if visitor.is_refused() {
                return;
            }
        }
        rest.visit(visitor);
    }
}

impl<M: Machine> Simulated<'_, '_, M> {
    /// Observes the simulation; `None` where a part of it cannot recur.
    fn observe(&mut self, now: SimTime) -> Option<Observation> {
        let mut visitor = StateVisitor::observing(now);
        self.visit(&mut visitor);
        visitor.into_observation()
    }

    fn ranks(&self) -> Vec<RankAtCut> {
        self.processes.iter().map(RankProcess::at_cut).collect()
    }
}

/// The cuts so far, and what was found.
struct RecurrenceSearch {
    /// Ranks of this process that stop at the boundaries of their iterations, by index, and the loops in which they are.
    stopping: Vec<usize>,
    loops: Vec<Option<LoopRun>>,
    /// Number of iteration boundaries passed until now, and the instant and the boundaries of each cut in these loops, by the hash of the
    /// observation.
    boundaries: u64,
    known: HashMap<blake3::Hash, (SimTime, u64)>,
    /// Cut with which the next one is compared.
    candidate: Option<Cut>,
    /// A period is [announced](Cuttable::watch_period) before it can be repeated.
    watches: bool,
    /// Number of boundaries per cut, and number of cuts at this distance without a recurrence.
    stride: u64,
    fruitless: u32,
    found: FastForward,
}

/// A cut with its whole observation, which may recur after one period.
struct Cut {
    at: SimTime,
    observation: Observation,
    ranks: Vec<RankAtCut>,
    /// Period that was announced.
    watched: Option<WatchedPeriod>,
}

/// A period that begins at a cut, as it was announced.
#[derive(Clone, Copy)]
struct WatchedPeriod {
    /// Boundaries until its end.
    boundaries: u64,
    length: SimDuration,
    /// Number of repetitions after it.
    repetitions: u64,
}

impl RecurrenceSearch {
    fn new(watches: bool) -> Self {
        Self {
            stopping: Vec::new(),
            loops: Vec::new(),
            boundaries: 0,
            known: HashMap::new(),
            candidate: None,
            watches,
            stride: 1,
            fruitless: 0,
            found: FastForward::default(),
        }
    }

    /// Starts again in another loop, or after iterations were skipped.
    fn reset(&mut self) {
        self.known.clear();
        (self.candidate, self.stride, self.fruitless) = (None, 1, 0);
    }

    /// Compares a cut with the earlier ones, and repeats the interval since one of them if it is equal. Returns the instant from which the
    /// run continues.
    fn examine<M: Machine>(
        &mut self,
        cluster: &mut Cluster,
        cut: SimTime,
        simulated: &mut Simulated<'_, '_, M>,
    ) -> Result<SimTime, RunError> {
        let mut at = cut;
        let distance = self.compare(cluster, &mut at, simulated)?;
        self.boundaries += distance;
        for &stopping in &self.stopping {
            simulated.processes[stopping].skip_boundaries(distance - 1);
        }
        Ok(at)
    }

    /// Returns whether some rank of any process is in a nested loop.
    fn are_nested(&self, cluster: &mut Cluster) -> Result<bool, RunError> {
        let own = self.loops.iter().flatten().any(LoopRun::is_nested);
        Ok(sum(cluster, own.into())? > 0)
    }

    /// Returns the number of boundaries to the next cut.
    fn compare<M: Machine>(
        &mut self,
        cluster: &mut Cluster,
        now: &mut SimTime,
        simulated: &mut Simulated<'_, '_, M>,
    ) -> Result<u64, RunError> {
        let loop_run = |&stopping: &usize| simulated.processes[stopping].at_cut().loop_run();
        let loops: Vec<Option<LoopRun>> = self.stopping.iter().map(loop_run).collect();
        let is_same = std::mem::replace(&mut self.loops, loops) == self.loops;
        if common(cluster, is_same.then_some(()))?.is_none() {
            self.reset();
        }
        self.fruitless += 1;
        if self.fruitless == MAX_FRUITLESS_CUTS
            || self.fruitless == MAX_FRUITLESS_NESTED_CUTS && self.are_nested(cluster)?
        {
            (self.stride, self.fruitless) = (self.stride.saturating_mul(2), 0);
        }
        let candidate = self.candidate.take();
        let Some(observation) = common(cluster, simulated.observe(*now))? else { return Ok(self.stride) };
        self.found.iteration_boundaries += 1;
        let equal = candidate.filter(|candidate| candidate.observation.equals(&observation));
        let (at, boundaries) = (*now, self.boundaries);
        let observation = match common(cluster, equal)? {
            None => observation,
            Some(before) => match self.repeat(cluster, now, &before, observation, simulated)? {
                Repeated::Done(distance) => return Ok(distance),
                Repeated::Impossible(observation) => observation,
            },
        };
        let hash = common_hash(cluster, blake3::hash(observation.bytes()))?;
        if let Some((earlier, boundaries_then)) = self.known.insert(hash, (at, boundaries)) {
            let boundaries = boundaries - boundaries_then;
            let own = simulated.ranks().iter().filter_map(|rank| rank.repetitions_of(boundaries)).min();
            // One of them is replayed before the others are skipped.
            let repetitions = least(cluster, own.unwrap_or(u64::MAX))?.saturating_sub(1);
            if repetitions > 0 && repetitions < u64::MAX - 1 {
                let watched = WatchedPeriod { boundaries, length: at - earlier, repetitions };
                self.begin_period(at, observation, watched, simulated);
                return Ok(boundaries);
            }
        }
        if !self.watches {
            self.candidate = Some(Cut { at, observation, ranks: simulated.ranks(), watched: None });
        }
        Ok(self.stride)
    }

    /// Announces a period that begins now, and keeps the cut.
    fn begin_period<M: Machine>(
        &mut self,
        at: SimTime,
        observation: Observation,
        watched: WatchedPeriod,
        simulated: &mut Simulated<'_, '_, M>,
    ) {
        simulated.rest.watch_period(at, watched.length, watched.repetitions);
        self.candidate = Some(Cut { at, observation, ranks: simulated.ranks(), watched: Some(watched) });
    }

    /// Repeats the interval since an equal cut.
    fn repeat<M: Machine>(
        &mut self,
        cluster: &mut Cluster,
        now: &mut SimTime,
        before: &Cut,
        observation: Observation,
        simulated: &mut Simulated<'_, '_, M>,
    ) -> Result<Repeated, RunError> {
        let at = *now;
        let ranks = simulated.ranks();
        let own = common(cluster, interval(&ranks, &before.ranks))?;
        let Some((repetitions, iterations)) = own else { return Ok(Repeated::Impossible(observation)) };
        let (repetitions, iterations) = (least(cluster, repetitions)?, greatest(cluster, iterations)?);
        let length = at - before.at;
        let time = length.checked_mul(repetitions).filter(|_| iterations > 0 && repetitions > 0);
        // Events lie not far beyond the present, and must not overflow either.
        let time =
            time.filter(|&time| at.checked_add(time).is_some_and(|end| end.checked_add(time).is_some()));
        let Some(time) = time else { return Ok(Repeated::Impossible(observation)) };
        let repetition = common(cluster, observation.repetition(&before.observation, repetitions))?;
        let Some(repetition) = repetition else { return Ok(Repeated::Impossible(observation)) };
        if let Some(watched) = before.watched
            && (length, repetitions) != (watched.length, watched.repetitions)
        {
            // The network has to know both before the interval, and ranks may not do equally many iterations.
            let watched = WatchedPeriod { length, repetitions: repetitions - 1, ..watched };
            if watched.repetitions > 0 {
                self.begin_period(at, observation, watched, simulated);
            }
            return Ok(Repeated::Done(watched.boundaries));
        }
        simulated.rest.repeat_loads(at);
        repetition.repeat(time, simulated);
        *now = at + time;
        debug_assert!(
            simulated.observe(*now).is_some_and(|later| later.equals(&observation)),
            "the whole state is shifted in time"
        );
        let mut skipped = 0;
        for ((process, now), before) in simulated.processes.iter_mut().zip(&ranks).zip(&before.ranks) {
            if let Some(Interval::Iterations { count, .. }) = now.interval_since(before) {
                skipped += process.skip_iterations(count * repetitions);
            }
        }
        self.found.skipped_actions += sum(cluster, skipped)?;
        self.found.skipped_iterations += iterations * repetitions;
        self.found.period = self.found.period.max(iterations);
        self.reset();
        Ok(Repeated::Done(1))
    }
}

/// Outcome of the repetition of an interval.
enum Repeated {
    /// It was repeated, or will be: number of boundaries to the next cut.
    Done(u64),
    /// It cannot be repeated even once.
    Impossible(Observation),
}

/// Returns how often the interval between two cuts of ranks can be repeated, and the iterations of the rank that has most; `None` if it
/// cannot be repeated.
fn interval(ranks: &[RankAtCut], before: &[RankAtCut]) -> Option<(u64, u64)> {
    let (mut repetitions, mut iterations) = (u64::MAX, 0);
    for (now, before) in ranks.iter().zip(before) {
        if let Interval::Iterations { count, repeats } = now.interval_since(before)? {
            (repetitions, iterations) = (repetitions.min(repeats), iterations.max(count));
        }
    }
    Some((repetitions, iterations))
}

/// Returns a value if all processes have one.
fn common<T>(cluster: &mut Cluster, own: Option<T>) -> Result<Option<T>, RunError> {
    let is_common = cluster.first_failure(own.is_some())?.is_none();
    Ok(own.filter(|_| is_common))
}

/// Returns a function of the values of all processes, in their order.
fn of_all<T, U>(cluster: &mut Cluster, own: T, of: impl Fn(Vec<T>) -> U) -> Result<U, RunError>
where
    T: Serialize + serde::de::DeserializeOwned,
    U: Serialize + serde::de::DeserializeOwned,
{
    let all = cluster.gather(own)?;
    Ok(cluster.broadcast((cluster.member() == 0).then(|| of(all)))?)
}

fn least(cluster: &mut Cluster, own: u64) -> Result<u64, RunError> {
    of_all(cluster, own, |all| all.into_iter().min().unwrap_or_default())
}

fn greatest(cluster: &mut Cluster, own: u64) -> Result<u64, RunError> {
    of_all(cluster, own, |all| all.into_iter().max().unwrap_or_default())
}

fn common_hash(cluster: &mut Cluster, own: blake3::Hash) -> Result<blake3::Hash, RunError> {
    let all = of_all(cluster, *own.as_bytes(), |all| *blake3::hash(&all.concat()).as_bytes())?;
    Ok(all.into())
}

/// A replay that is fast-forwarded.
struct FastForwarded<'a, 't, M: Machine> {
    inner: &'a mut dyn Cuttable<'t, M>,
    replay: &'a Replay<'t, M>,
    search: RecurrenceSearch,
    /// Last cut, shifted in time if iterations were skipped there.
    cut: Option<SimTime>,
}

/// The end of a replay that may have been fast-forwarded.
pub(crate) struct ForwardedRun<'t, M: Machine> {
    pub(crate) run: MemberRun<'t, M>,
    pub(crate) checkpoints: Option<CheckpointSummary>,
    /// Iterations that were skipped, if they are.
    pub(crate) fast_forward: Option<FastForward>,
}

/// Runs the ranks of this process to their end, and skips iterations that repeat if `forwards` is true.
pub(crate) fn run_forwarded<'t, M: Machine<Error = RouteError>>(
    simulation: &Simulation,
    cluster: &mut Cluster,
    checkpoints: Option<&CheckpointPlan>,
    forwards: bool,
    inner: &mut dyn Cuttable<'t, M>,
    sources: (&'t [Replay<'t, M>], Option<&Spool>, &[LpId]),
    progress: &Progress,
) -> Result<ForwardedRun<'t, M>, RunError> {
    if !forwards {
        let (run, checkpoints) = run_to_end(simulation, cluster, checkpoints, inner, sources, progress)?;
        return Ok(ForwardedRun { run, checkpoints, fast_forward: None });
    }
    let records = simulation.records_links() || simulation.spec().host_loads;
    let watches = records || simulation.uses_storage();
    let search = RecurrenceSearch::new(watches && !inner.stops_all());
    let [replay] = sources.0 else { unreachable!("several programs are not fast-forwarded") };
    let mut forwarded = FastForwarded { inner, replay, search, cut: None };
    let (run, checkpoints) = run_to_end(simulation, cluster, checkpoints, &mut forwarded, sources, progress)?;
    Ok(ForwardedRun { run, checkpoints, fast_forward: Some(forwarded.search.found) })
}

impl<'t, M: Machine<Error = RouteError>> Segmented<'t, M> for FastForwarded<'_, 't, M> {
    fn is_in_time_order(&self) -> bool {
        self.inner.is_in_time_order()
    }

    fn run(
        &mut self,
        cluster: &mut Cluster,
        mut processes: Vec<RankProcess<'t, M>>,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<MemberRun<'t, M>, RunError> {
        let Self { inner, replay, search, cut } = self;
        let stops_all = inner.stops_all();
        search.stopping =
            if stops_all { (0..processes.len()).collect() } else { pacemaker(cluster, &mut processes)? };
        let before = sum(cluster, processes.iter().map(RankProcess::actions).sum())?;
        let (mut steps, skipped_before) = (0, search.found.skipped_actions);
        loop {
            let (run, reached) = inner.run_to_cut(cluster, processes, *cut, interrupt, progress)?;
            steps += run.steps;
            let Some(reached) = reached else { return Ok(Run { steps, ..run }) };
            *cut = Some(reached);
            let is_interrupted = sum(cluster, interrupt.is_requested().into())? > 0;
            if is_interrupted && !stops_all {
                return Ok(Run { steps, ..run });
            }
            processes = run.processes;
            let mut simulated = Simulated { replay, processes: &mut processes, rest: &mut **inner };
            *cut = Some(search.examine(cluster, reached, &mut simulated)?);
            if is_interrupted {
                return Ok(Run { processes, steps, ending: Ending::StoppedAtCheckpoint });
            }
            let reached = before + steps + search.found.skipped_actions - skipped_before;
            // The first process counts for all.
            progress.continue_after(if cluster.member() == 0 { reached } else { 0 });
        }
    }

    fn save(&mut self, cluster: &mut Cluster) -> Result<Vec<u8>, RunError> {
        let state = (self.search.found, self.inner.save(cluster)?);
        Ok(postcard::to_allocvec(&state).expect("memory takes all"))
    }

    fn skipped_actions(&self) -> u64 {
        self.search.found.skipped_actions
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), ForeignState> {
        let (found, inner): (FastForward, Vec<u8>) = postcard::from_bytes(state).map_err(|_| ForeignState)?;
        self.search.found = found;
        self.inner.restore(&inner)
    }
}

/// Chooses the rank whose boundaries are followed by cuts, and lets all others pass theirs; returns its index on its process. A loop of
/// the longest program has most of its actions, if any has.
fn pacemaker<M: Machine>(
    cluster: &mut Cluster,
    processes: &mut [RankProcess<'_, M>],
) -> Result<Vec<usize>, RunError> {
    let longest = processes.iter().map(|process| (process.program_actions(), Reverse(process.rank()))).max();
    let longest = of_all(cluster, longest, |all| all.into_iter().max().flatten())?;
    let is_pacemaker =
        |process: &RankProcess<'_, M>| longest.is_some_and(|(_, rank)| rank.0 == process.rank());
    processes.iter_mut().filter(|process| !is_pacemaker(process)).for_each(RankProcess::pass_all_boundaries);
    Ok(processes.iter().position(is_pacemaker).into_iter().collect())
}

/// Without contention a replay is cut where all ranks have stopped at the boundary of an iteration, have ended, or wait for a rank
/// that has stopped. It fails where one of the ranks fails: the first failure in time order is only known in a run without stops.
impl<'t, M> Cuttable<'t, M> for FreeRunning
where
    M: Machine<WorkRequest = Infallible, Error = RouteError>,
{
    fn stops_all(&self) -> bool {
        true
    }

    fn run_to_cut(
        &mut self,
        cluster: &mut Cluster,
        processes: Vec<RankProcess<'t, M>>,
        _: Option<SimTime>,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<(MemberRun<'t, M>, Option<SimTime>), RunError> {
        let engine: Engine = self.engine.clone().interrupted_by(interrupt.clone());
        let mut run = engine.run_distributed(cluster, self.lps, processes, progress)?;
        if !matches!(run.ending, Ending::StoppedAtCheckpoint) {
            return Ok((run, None));
        }
        // An interrupt comes after some progress: without, all ranks have stopped.
        let is_interrupted = sum(cluster, interrupt.is_requested().into())? > 0;
        if is_interrupted && run.steps > 0 {
            run.processes.iter_mut().for_each(RankProcess::stop_again_at_boundary);
            return Ok((run, None));
        }
        let clocks = run.processes.iter().filter(|process| !process.has_ended());
        let first = clocks.map(|process| pdes_core::Process::clock(process).as_picos()).min();
        let now = SimTime::from_picos(least(cluster, first.unwrap_or(u64::MAX))?);
        Ok((run, Some(now)))
    }
}
