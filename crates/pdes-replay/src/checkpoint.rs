//! Checkpoints: runs that end where they are, and others that go on from there.
//!
//! The replay runs in legs. A leg ends when its time has passed: the engine holds all ranks between two turns, when no token is
//! under way, and what they are is written to a file. Where each of them is depends on the wall clock; the result does not,
//! because ranks compute the same in any schedule.

mod error;
mod file;
mod identity;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use mpi_model::{Machine, RankProcess, World};
use netmodel::RouteError;
use pdes_core::{Ending, Engine, Interrupt, Progress, Run};
use serde::Serialize;
use trace_mmap::{Trace, TraceError};

pub use error::CheckpointError;
use file::{Header, Opened};
pub(crate) use identity::Identity;

use crate::scene::RunError;

/// The name of the checkpoint in its directory.
const NAME: &str = "checkpoint.pdk";

/// When a run writes checkpoints, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoints {
    /// The directory, which is made where there is none. It is for one run.
    pub directory: PathBuf,
    /// The time between two checkpoints.
    pub every: Duration,
    /// Whether the run goes on from the checkpoint that is there; where there is none it starts from the beginning.
    pub resume: bool,
}

/// What checkpoints did to a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CheckpointSummary {
    /// Actions that were done before, by the run from whose checkpoint this one went on; null where it started from the
    /// beginning.
    pub resumed_from: Option<u64>,
    /// Wall-clock time of replaying them, that of all runs before together \[s\].
    pub replayed_before_s: f64,
    /// Checkpoints that were written.
    pub written: u64,
    /// Wall-clock time of writing them \[s\].
    pub writing_s: f64,
}

/// Asks a run to end with a checkpoint; clones ask the same one. A run that writes none does not listen.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    interrupt: Interrupt,
    is_asked: Arc<AtomicBool>,
}

impl Stop {
    /// Asks for the end.
    pub fn ask(&self) {
        // Before the interrupt, so that a leg which begins meanwhile sees one of them.
        self.is_asked.store(true, Ordering::SeqCst);
        self.interrupt.request();
    }

    fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::SeqCst)
    }
}

impl Checkpoints {
    /// Returns the file of the last complete checkpoint.
    pub fn path(&self) -> PathBuf {
        self.directory.join(NAME)
    }

    /// Takes the checkpoint of a run away that needs it no more.
    ///
    /// # Errors
    /// Where it is there and stays.
    pub fn discard(&self) -> Result<(), CheckpointError> {
        let path = self.path();
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(CheckpointError::io(&path, error))
            }
            _ => Ok(()),
        }
    }

    /// Opens the checkpoint from which a run is to go on, if there is one.
    fn open(&self, identity: &Identity) -> Result<Option<Opened>, CheckpointError> {
        let path = self.path();
        std::fs::create_dir_all(&self.directory)
            .map_err(|error| CheckpointError::io(&self.directory, error))?;
        match (self.resume, path.exists()) {
            (true, true) => Opened::new(&path, identity).map(Some),
            (true, false) => {
                tracing::info!(
                    "there is no checkpoint in {}: starting from the beginning",
                    self.directory.display()
                );
                Ok(None)
            }
            (false, true) => {
                tracing::warn!(
                    "starting from the beginning: the next checkpoint replaces {}; --resume goes on from it",
                    path.display()
                );
                Ok(None)
            }
            (false, false) => Ok(None),
        }
    }
}

/// A replay in legs.
pub(crate) struct Legs<'r, 't, M> {
    pub(crate) plan: &'r Checkpoints,
    pub(crate) stop: &'r Stop,
    pub(crate) engine: Engine,
    pub(crate) trace: &'t Trace,
    pub(crate) world: &'t World<'t, M>,
    pub(crate) progress: &'r Progress,
    pub(crate) identity: Identity,
}

impl<'t, M: Machine<Order = Infallible, Error = RouteError>> Legs<'_, 't, M> {
    /// Runs all ranks to their end, from the last checkpoint on where that is asked for.
    pub(crate) fn run(
        &self,
        locate: impl Fn(Box<mpi_model::ReplayError<RouteError>>) -> RunError,
    ) -> Result<(Run<RankProcess<'t, M>>, CheckpointSummary), RunError> {
        let engine = self.engine.clone().interrupted_by(self.stop.interrupt.clone());
        let mut summary = CheckpointSummary::default();
        let mut processes = match self.plan.open(&self.identity)? {
            Some(opened) => self.take_up(opened, &mut summary, &locate)?,
            None => self.world.processes().map_err(&locate)?,
        };
        let started = Instant::now();
        loop {
            let run = self.leg(&engine, processes);
            if run.ending != Ending::Halted {
                return Ok((run, summary));
            }
            processes = run.processes;
            // What comes of a damaged trace must not be gone on from.
            self.trace.integrity().map_err(TraceError::from)?;
            let actions = processes.iter().map(RankProcess::actions).sum();
            let replayed_s = summary.replayed_before_s + started.elapsed().as_secs_f64();
            let is_last = self.stop.is_asked();
            match self.write(&processes, actions, replayed_s, &mut summary) {
                Ok(()) if is_last => return Err(RunError::Stopped { actions, checkpoint: self.plan.path() }),
                Ok(()) => {}
                Err(error) if is_last => return Err(error.into()),
                Err(error) => tracing::warn!("{error}; the run goes on, and the checkpoint before stays"),
            }
            self.progress.go_on_after(actions);
        }
    }

    fn leg(&self, engine: &Engine, processes: Vec<RankProcess<'t, M>>) -> Run<RankProcess<'t, M>> {
        let Stop { interrupt, .. } = self.stop;
        interrupt.clear();
        if self.stop.is_asked() {
            interrupt.request();
        }
        std::thread::scope(|scope| {
            let (ended, timer) = mpsc::channel::<Infallible>();
            scope.spawn(move || {
                if timer.recv_timeout(self.plan.every) == Err(RecvTimeoutError::Timeout) {
                    interrupt.request();
                }
            });
            let run = engine.run_watched(processes, self.progress);
            drop(ended);
            run
        })
    }

    fn take_up(
        &self,
        opened: Opened,
        summary: &mut CheckpointSummary,
        locate: impl Fn(Box<mpi_model::ReplayError<RouteError>>) -> RunError,
    ) -> Result<Vec<RankProcess<'t, M>>, RunError> {
        let &Header { actions, replayed_s, looks, .. } = opened.header();
        tracing::info!("going on after {actions} actions, from {}", opened.path().display());
        (summary.resumed_from, summary.replayed_before_s) = (Some(actions), replayed_s);
        self.world.set_looks(looks.0, looks.1);
        self.progress.go_on_after(actions);
        opened.processes(self.world, self.trace.ranks(), locate)
    }

    fn write(
        &self,
        processes: &[RankProcess<'t, M>],
        actions: u64,
        replayed_s: f64,
        summary: &mut CheckpointSummary,
    ) -> Result<(), CheckpointError> {
        let started = Instant::now();
        let header =
            Header { identity: self.identity.clone(), actions, replayed_s, looks: self.world.looks() };
        let states =
            processes.iter().map(|process| process.save().expect("a rank that is held can be saved"));
        let bytes = file::write(&self.plan.path(), &header, states)?;
        let took = started.elapsed();
        (summary.written, summary.writing_s) = (summary.written + 1, summary.writing_s + took.as_secs_f64());
        tracing::info!(
            "wrote a checkpoint after {actions} actions ({bytes} bytes in {:.3} s)",
            took.as_secs_f64()
        );
        Ok(())
    }
}

/// Returns the name under which a file is written before it is complete.
fn draft(path: &Path) -> PathBuf {
    path.with_extension("pdk.part")
}
