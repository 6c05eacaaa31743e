//! Checkpoints: runs that save their state, and runs that resume from it.
//!
//! The replay runs in segments. A segment ends when its wall-clock time has passed: the engine stops all ranks between two of their
//! activations, when no token is in flight, and their states are written to a file, with that of the network where messages share
//! links. Where a segment ends depends on the wall clock, the result does not: without contention ranks compute the same in any
//! schedule, and with contention the segment ends between two events.

mod error;
mod file;
mod identity;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use mpi_model::{Completion, Machine, RankProcess, Replay};
use netmodel::{ForeignState, NetworkModel, RouteError};
use pdes_core::{Ending, Engine, Interrupt, OrderedEngine, Process, Progress, Run};
use serde::Serialize;
use timeline::{SavedSpool, Spool};
use trace_mmap::{Trace, TraceError};

pub use error::CheckpointError;
use file::{CheckpointReader, Header};
use identity::RunIdentity;

use crate::contention::{Contention, SharedMachine};
use crate::simulation::{RunError, Simulation};

/// File name of the checkpoint in its directory.
const FILE_NAME: &str = "checkpoint.pdk";

/// Interval and directory of the checkpoints of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointPlan {
    /// Directory, created if there is none. It is for one run only.
    pub directory: PathBuf,
    /// Wall-clock time between two checkpoints.
    pub interval: Duration,
    /// Resume from the existing checkpoint; if there is none, the run starts from the beginning.
    pub resume: bool,
}

/// Checkpoint statistics of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CheckpointSummary {
    /// Actions replayed before the checkpoint from which this run resumed; null if it started from the beginning.
    pub resumed_from: Option<u64>,
    /// Wall-clock time of replaying them, summed over all earlier runs \[s\].
    pub replayed_before_s: f64,
    /// Number of checkpoints written.
    pub written: u64,
    /// Wall-clock time of writing them \[s\].
    pub writing_s: f64,
}

/// A handle that asks a run to stop with a checkpoint; clones ask the same run. A run without checkpoints ignores it.
#[derive(Clone, Debug, Default)]
pub struct StopHandle {
    interrupt: Interrupt,
    is_requested: Arc<AtomicBool>,
}

impl StopHandle {
    /// Asks the run to stop.
    pub fn request(&self) {
        // Before the interrupt, so that a segment which begins meanwhile sees one of them.
        self.is_requested.store(true, Ordering::SeqCst);
        self.interrupt.request();
    }

    fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::SeqCst)
    }
}

impl CheckpointPlan {
    /// Returns the path of the last complete checkpoint.
    pub fn path(&self) -> PathBuf {
        self.directory.join(FILE_NAME)
    }

    /// Removes the checkpoint of a run that has completed.
    ///
    /// # Errors
    /// Returns an error if a file exists and cannot be removed.
    pub fn remove(&self) -> Result<(), CheckpointError> {
        remove_file(&self.path())?;
        self.remove_events_but(None)
    }

    /// Removes all files of events of timelines but one, which are of earlier runs.
    fn remove_events_but(&self, kept: Option<&str>) -> Result<(), CheckpointError> {
        let io = |error| CheckpointError::io(&self.directory, error);
        if !self.directory.is_dir() {
            return Ok(());
        }
        for entry in std::fs::read_dir(&self.directory).map_err(io)? {
            let name = entry.map_err(io)?.file_name();
            let is_of_events = name.to_str().is_some_and(Spool::is_file_name);
            if is_of_events && name.to_str() != kept {
                remove_file(&self.directory.join(name))?;
            }
        }
        Ok(())
    }

    /// Opens the checkpoint to resume from, if there is one.
    fn open(&self, identity: &RunIdentity) -> Result<Option<CheckpointReader>, CheckpointError> {
        let path = self.path();
        std::fs::create_dir_all(&self.directory)
            .map_err(|error| CheckpointError::io(&self.directory, error))?;
        match (self.resume, path.exists()) {
            (true, true) => CheckpointReader::new(&path, identity).map(Some),
            (true, false) => {
                tracing::info!(
                    "there is no checkpoint in {}: starting from the beginning",
                    self.directory.display()
                );
                Ok(None)
            }
            (false, true) => {
                tracing::warn!(
                    "starting from the beginning: the next checkpoint replaces {}; --resume continues from it",
                    path.display()
                );
                Ok(None)
            }
            (false, false) => Ok(None),
        }
    }
}

fn remove_file(path: &Path) -> Result<(), CheckpointError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(CheckpointError::io(path, error)),
        _ => Ok(()),
    }
}

/// A simulation that can be interrupted and continued: ranks run on an engine, perhaps with a network that has a state of its own.
pub(crate) trait Segmented<P: Process> {
    /// Runs processes to their end, or until the interrupt.
    fn run(&mut self, processes: Vec<P>, interrupt: &Interrupt, progress: &Progress) -> Run<P>;

    /// Returns the state of the network between two segments.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Returns the number of actions that were skipped so far.
    fn skipped_actions(&self) -> u64 {
        0
    }

    /// Restores the state of the network, which is idle.
    fn restore(&mut self, state: &[u8]) -> Result<(), ForeignState> {
        if state.is_empty() { Ok(()) } else { Err(ForeignState) }
    }
}

/// Without contention the ranks are all there is.
impl<P: Process<WorkRequest = Infallible>> Segmented<P> for Engine {
    fn run(&mut self, processes: Vec<P>, interrupt: &Interrupt, progress: &Progress) -> Run<P> {
        self.clone().interrupted_by(interrupt.clone()).run_with_progress(processes, progress)
    }
}

/// With contention ranks and network run in the order of time.
pub(crate) struct InTimeOrder<'r, 'm, N> {
    pub(crate) engine: OrderedEngine,
    pub(crate) contention: &'r mut Contention<'m, N>,
}

impl<'t, 'm, N: NetworkModel<Completion>> Segmented<RankProcess<'t, SharedMachine<'m>>>
    for InTimeOrder<'_, 'm, N>
{
    fn run(
        &mut self,
        processes: Vec<RankProcess<'t, SharedMachine<'m>>>,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Run<RankProcess<'t, SharedMachine<'m>>> {
        self.engine.clone().interrupted_by(interrupt.clone()).run(processes, self.contention, progress)
    }

    fn save(&self) -> Vec<u8> {
        postcard::to_allocvec(&self.contention.save()).expect("memory takes all")
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), ForeignState> {
        self.contention.restore(&postcard::from_bytes(state).map_err(|_| ForeignState)?)
    }
}

/// Runs all ranks of a simulation to their end, in segments between checkpoints if there are any, from the last checkpoint if that is
/// requested.
pub(crate) fn run_to_end<'t, M, S>(
    simulation: &Simulation,
    checkpoints: Option<&CheckpointPlan>,
    segmented: &mut S,
    (world, spool): (&'t Replay<'t, M>, Option<&Spool>),
    progress: &Progress,
) -> Result<(Run<RankProcess<'t, M>>, Option<CheckpointSummary>), RunError>
where
    M: Machine<Error = RouteError>,
    S: Segmented<RankProcess<'t, M>>,
{
    let locate = |error| simulation.locate(error);
    let Some(plan) = checkpoints else {
        let processes = world.processes().map_err(locate)?;
        return Ok((segmented.run(processes, &Interrupt::default(), progress), None));
    };
    let identity = RunIdentity::of(simulation)?;
    let (stop, trace) = (simulation.stop_handle(), simulation.trace());
    let mut segments =
        CheckpointSegments { plan, stop, simulation: segmented, trace, world, spool, progress, identity };
    let (run, summary) = segments.run(locate)?;
    Ok((run, Some(summary)))
}

/// A replay in segments between checkpoints.
struct CheckpointSegments<'r, 't, M, S> {
    plan: &'r CheckpointPlan,
    stop: &'r StopHandle,
    simulation: &'r mut S,
    trace: &'r Trace,
    world: &'t Replay<'t, M>,
    /// Events of the timeline, if there is one.
    spool: Option<&'r Spool>,
    progress: &'r Progress,
    identity: RunIdentity,
}

impl<'t, M, S> CheckpointSegments<'_, 't, M, S>
where
    M: Machine<Error = RouteError>,
    S: Segmented<RankProcess<'t, M>>,
{
    /// Runs all ranks to their end, from the last checkpoint if requested.
    fn run(
        &mut self,
        locate: impl Fn(Box<mpi_model::ReplayError<RouteError>>) -> RunError,
    ) -> Result<(Run<RankProcess<'t, M>>, CheckpointSummary), RunError> {
        let mut summary = CheckpointSummary::default();
        let mut processes = match self.plan.open(&self.identity)? {
            Some(opened) => self.restore(opened, &mut summary, &locate)?,
            None => self.world.processes().map_err(&locate)?,
        };
        let started = Instant::now();
        loop {
            let run = self.run_segment(processes);
            if run.ending != Ending::StoppedAtCheckpoint {
                return Ok((run, summary));
            }
            processes = run.processes;
            // The state computed from a damaged trace must not become a checkpoint.
            self.trace.integrity().map_err(TraceError::from)?;
            let reached: u64 = processes.iter().map(RankProcess::actions).sum();
            let actions = reached.saturating_sub(self.simulation.skipped_actions());
            let replayed_s = summary.replayed_before_s + started.elapsed().as_secs_f64();
            let is_last = self.stop.is_requested();
            match self.write(&processes, actions, replayed_s, &mut summary) {
                Ok(()) if is_last => return Err(RunError::Stopped { actions, checkpoint: self.plan.path() }),
                Ok(()) => {}
                Err(error) if is_last => return Err(error.into()),
                Err(error) => {
                    tracing::warn!("{error}; the run continues, and the previous checkpoint remains")
                }
            }
            self.progress.continue_after(reached);
        }
    }

    /// Runs until the next checkpoint is due, the stop is requested, or all ranks have ended.
    fn run_segment(&mut self, processes: Vec<RankProcess<'t, M>>) -> Run<RankProcess<'t, M>> {
        let StopHandle { interrupt, .. } = self.stop;
        let interval = self.plan.interval;
        interrupt.clear();
        if self.stop.is_requested() {
            interrupt.request();
        }
        std::thread::scope(|scope| {
            let (ended, timer) = mpsc::channel::<Infallible>();
            scope.spawn(move || {
                if timer.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                    interrupt.request();
                }
            });
            let run = self.simulation.run(processes, interrupt, self.progress);
            // Disconnects the channel, which ends the timer.
            drop(ended);
            run
        })
    }

    /// Restores the state of a checkpoint.
    fn restore(
        &mut self,
        mut opened: CheckpointReader,
        summary: &mut CheckpointSummary,
        locate: impl Fn(Box<mpi_model::ReplayError<RouteError>>) -> RunError,
    ) -> Result<Vec<RankProcess<'t, M>>, RunError> {
        let Header { actions, replayed_s, poll_costs, findings, events, .. } = opened.header().clone();
        tracing::info!("continuing after {actions} actions, from {}", opened.path().display());
        (summary.resumed_from, summary.replayed_before_s) = (Some(actions), replayed_s);
        self.world.set_poll_prices(poll_costs.0, poll_costs.1);
        self.world.restore_findings(findings);
        self.restore_events(events, opened.path())?;
        let network = opened.network()?;
        self.simulation
            .restore(&network)
            .map_err(|ForeignState| CheckpointError::ImpossibleNetwork { path: opened.path().to_owned() })?;
        self.progress.continue_after(actions.saturating_add(self.simulation.skipped_actions()));
        opened.processes(self.world, self.trace.ranks(), locate)
    }

    /// Continues the timeline with the events before the checkpoint.
    fn restore_events(&self, events: Option<SavedSpool>, path: &Path) -> Result<(), CheckpointError> {
        match (self.spool, events) {
            (Some(spool), Some(events)) if events.ranks() <= self.trace.ranks() as usize => spool
                .restore(events)
                .map_err(|source| CheckpointError::Events { path: path.to_owned(), source }),
            (None, None) => Ok(()),
            _ => Err(CheckpointError::Damaged {
                path: path.to_owned(),
                what: "its timeline is of another run",
            }),
        }
    }

    fn write(
        &self,
        processes: &[RankProcess<'t, M>],
        actions: u64,
        replayed_s: f64,
        summary: &mut CheckpointSummary,
    ) -> Result<(), CheckpointError> {
        let started = Instant::now();
        let events = self.spool.map(Spool::save).transpose();
        let events = events.map_err(|source| CheckpointError::Events { path: self.plan.path(), source })?;
        let header = Header {
            identity: self.identity.clone(),
            actions,
            replayed_s,
            poll_costs: self.world.poll_prices(),
            findings: self.world.findings(&[]),
            events: events.clone(),
        };
        let states =
            processes.iter().map(|process| process.save().expect("a rank that has stopped can be saved"));
        let bytes = file::write(&self.plan.path(), &header, self.simulation.save(), states)?;
        self.plan.remove_events_but(events.as_ref().and_then(SavedSpool::file))?;
        let took = started.elapsed();
        (summary.written, summary.writing_s) = (summary.written + 1, summary.writing_s + took.as_secs_f64());
        tracing::info!(
            "wrote a checkpoint after {actions} actions ({bytes} bytes in {:.3} s)",
            took.as_secs_f64()
        );
        Ok(())
    }
}
