//! The past that replays have in common whose machines differ from some instant on: one replay keeps its states, others go on from them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mpi_model::{Machine, RankProcess, Replay, RestoreError};
use netmodel::{ResourceChanges, RouteError};
use pdes_core::{Cluster, Ending, Interrupt, LpId, Process, Progress, SimDuration, SimTime};

use super::segments::Segmented;
use super::state::{ProgramStates, encode, findings};
use super::{ForeignPast, RunIdentity};
use crate::execution::{ExecutionMode, Feature};
use crate::programs::{processes_of, replay_of};
use crate::simulation::{MemberRun, RunError, Simulation, agree};

/// Largest size of all states that are kept \[B\]; when they exceed it, every second one is dropped.
const MAX_KEPT_BYTES: usize = 1 << 28;

/// Part of a replay in a past that it shares with others.
#[derive(Debug)]
pub(crate) enum PastSharing {
    /// The replay keeps its state before each of these instants, which ascend.
    Keeps(Vec<SimTime>, Mutex<Vec<PastState>>),
    /// The replay goes on from one of the states.
    GoesOn(Arc<CommonPast>),
}

/// States of a replay, from which others go on whose machines are the same until some instant.
#[derive(Debug)]
pub struct CommonPast {
    /// Identity of the run, without what changes in the course of it.
    identity: RunIdentity,
    changes: ResourceChanges,
    /// In the order of time.
    states: Vec<PastState>,
    /// Number of replays that have gone on from one of them.
    resumed: AtomicUsize,
}

/// A state of a replay.
#[derive(Debug)]
pub(crate) struct PastState {
    /// Nothing that the machine is from this instant on has had an effect.
    horizon: SimTime,
    actions: u64,
    programs: ProgramStates,
    network: Vec<u8>,
    ranks: Vec<Vec<u8>>,
}

impl PastState {
    fn bytes(&self) -> usize {
        self.network.len() + self.ranks.iter().map(Vec::len).sum::<usize>()
    }
}

impl CommonPast {
    /// Returns the number of replays that have gone on from one of the states.
    pub fn resumed(&self) -> usize {
        self.resumed.load(Ordering::Relaxed)
    }

    /// Returns the latest state which a replay has in common with the one that kept it.
    fn state_of(&self, simulation: &Simulation) -> Result<Option<&PastState>, RunError> {
        let own = RunIdentity::without_changes(simulation)?;
        if let Some(difference) = own.difference(&self.identity) {
            return Err(ForeignPast(difference.part).into());
        }
        let first = simulation.platform().changes().first_difference(&self.changes);
        let is_common = |state: &&PastState| first.is_none_or(|first| state.horizon <= first);
        let state = self.states.iter().rev().find(is_common);
        // A count of replays that are over: nothing depends on the order.
        self.resumed.fetch_add(state.is_some().into(), Ordering::Relaxed);
        Ok(state)
    }
}

impl Simulation {
    /// Keeps the state of the replay shortly before each of some instants, for replays on machines that change there.
    pub fn keeping_past(self, mut before: Vec<SimTime>) -> Self {
        before.sort_unstable();
        before.dedup();
        self.with_past(PastSharing::Keeps(before, Mutex::default()))
    }

    /// Returns the states that the replay has [kept](Simulation::keeping_past).
    ///
    /// # Errors
    /// If a file of the run cannot be read any more.
    pub fn kept_past(&self) -> Result<CommonPast, RunError> {
        let identity = RunIdentity::without_changes(self)?;
        let states = match self.past() {
            Some(PastSharing::Keeps(_, states)) => {
                std::mem::take(&mut *states.lock().unwrap_or_else(PoisonError::into_inner))
            }
            _ => Vec::new(),
        };
        let changes = self.platform().changes().clone();
        Ok(CommonPast { identity, changes, states, resumed: AtomicUsize::new(0) })
    }

    /// Lets the replay go on from the latest state of another run of the same program that it has in common with it: until then nothing
    /// differs but changes of resources to come. Where there is none, it begins at its begin. The result is the same.
    pub fn going_on_from(self, past: Arc<CommonPast>) -> Self {
        self.with_past(PastSharing::GoesOn(past))
    }

    /// Returns the reason why replays on machines that change cannot go on from states of this one.
    pub fn past_obstacle(&self) -> Option<String> {
        let with_checkpoints = self.execution_with(Feature::Checkpoints, true);
        let mut all_parameters = self.programs().iter().map(|program| &program.spec.mpi);
        let (model, mode) = (self.spec().model.key, self.execution(1).mode);
        if let Some(obstacle) = with_checkpoints.obstacle(Feature::Checkpoints) {
            return Some(obstacle.to_string());
        }
        if mode != ExecutionMode::InTimeOrder || !self.network().capabilities.foresees_no_changes {
            let epochs = if self.epochs().is_some() { " with epochs" } else { "" };
            return Some(format!("the model {model:?}{epochs} looks ahead at changes of resources"));
        }
        let reasons = [
            (self.fast_forwards(), "iterations are skipped (engine.fast_forward)"),
            (self.spec().noise.is_some(), "noise looks ahead at the speed during a computation"),
            (
                all_parameters.any(|parameters| parameters.collectives.looks_ahead()),
                "collective operations in closed form look ahead at changes of resources",
            ),
        ];
        reasons.into_iter().find(|(is_so, _)| *is_so).map(|(_, why)| why.to_owned())
    }
}

/// Runs the ranks to their end, and keeps their states or begins with some.
pub(super) fn run_sharing<'t, M: Machine<Error = RouteError>>(
    simulation: &Simulation,
    cluster: &mut Cluster,
    sharing: &PastSharing,
    segmented: &mut dyn Segmented<'t, M>,
    (worlds, mine): (&'t [Replay<'t, M>], &[LpId]),
    progress: &Progress,
) -> Result<MemberRun<'t, M>, RunError> {
    let anew = || processes_of(worlds, mine).map_err(|(lp, error)| simulation.locate(lp, error));
    let (instants, states) = match sharing {
        PastSharing::GoesOn(past) => {
            let processes = match past.state_of(simulation)? {
                Some(state) => state.restore(simulation, segmented, worlds, mine, progress),
                None => anew(),
            };
            let processes = agree(cluster, processes)?;
            return segmented.run(cluster, processes, &Interrupt::default(), progress);
        }
        PastSharing::Keeps(instants, states) => (instants, states),
    };
    // Events within the precision before a change come with it.
    let precision = SimDuration::try_from_secs_f64(simulation.spec().network.precision_s);
    let precision = precision.unwrap_or(SimDuration::ZERO).as_picos() + 1;
    let mut processes = agree(cluster, anew())?;
    for &instant in instants {
        let end = SimTime::from_picos(instant.as_picos().saturating_sub(precision));
        let run = segmented.run(cluster, processes, &Interrupt::default().before(end), progress)?;
        if !matches!(run.ending, Ending::StoppedAtCheckpoint) {
            return Ok(run);
        }
        processes = run.processes;
        let state = PastState::of(cluster, instant, segmented, worlds, &mut processes)?;
        progress.continue_after(state.actions);
        let mut states = states.lock().unwrap_or_else(PoisonError::into_inner);
        states.push(state);
        if states.iter().map(PastState::bytes).sum::<usize>() > MAX_KEPT_BYTES {
            let mut number = 0;
            states.retain(|_| {
                number += 1;
                number % 2 == 0
            });
        }
    }
    segmented.run(cluster, processes, &Interrupt::default(), progress)
}

impl PastState {
    /// Takes the state before an instant.
    fn of<'t, M: Machine<Error = RouteError>>(
        cluster: &mut Cluster,
        instant: SimTime,
        segmented: &mut dyn Segmented<'t, M>,
        worlds: &[Replay<'t, M>],
        processes: &mut [RankProcess<'t, M>],
    ) -> Result<Self, RunError> {
        // Ranks are ahead of the network by times that their library takes.
        let clocks =
            processes.iter().map(|process| process.clock().saturating_add(SimDuration::from_picos(1)));
        Ok(Self {
            horizon: clocks.max().map_or(instant, |clock| clock.max(instant)),
            actions: processes.iter().map(RankProcess::actions).sum(),
            programs: ProgramStates::of(worlds, findings(worlds)),
            network: segmented.save(cluster)?,
            ranks: processes.iter_mut().map(encode).collect(),
        })
    }

    /// Restores the state.
    fn restore<'t, M: Machine<Error = RouteError>>(
        &self,
        simulation: &Simulation,
        segmented: &mut dyn Segmented<'t, M>,
        worlds: &'t [Replay<'t, M>],
        mine: &[LpId],
        progress: &Progress,
    ) -> Result<Vec<RankProcess<'t, M>>, RunError> {
        self.programs.clone().restore(worlds, true);
        let foreign = || RunError::from(ForeignPast("the state".to_owned()));
        segmented.restore(&self.network).map_err(|_| foreign())?;
        progress.continue_after(self.actions);
        let process = |(&lp, state): (&LpId, &Vec<u8>)| {
            let (world, rank) = replay_of(worlds, lp);
            world.restore_process(rank, state).map_err(|error| match error {
                RestoreError::Replay(error) => simulation.locate(lp, error),
                RestoreError::Foreign { .. } => foreign(),
            })
        };
        mine.iter().zip(&self.ranks).map(process).collect()
    }
}
