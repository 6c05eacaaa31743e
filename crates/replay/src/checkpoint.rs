//! Checkpoints: runs that save their state, and runs that resume from it.
//!
//! The replay runs in segments. A segment ends when its wall-clock time has passed: the engine stops all ranks between two of their
//! activations, when no token is in flight, and their states are written to a file, with that of the network where messages share
//! links. Where a segment ends depends on the wall clock, the result does not: without contention ranks compute the same in any
//! schedule, with contention the segment ends between two events, and with epochs at the end of one.

mod common_past;
mod error;
mod file;
mod identity;
mod segments;
mod state;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pdes_core::Interrupt;
use serde::Serialize;
use timeline::{SavedSpool, Spool};

pub use common_past::CommonPast;
pub(crate) use common_past::PastSharing;
pub use error::{CheckpointError, ForeignPast};
use file::CheckpointReader;
use identity::RunIdentity;
pub(crate) use segments::{FreeRunning, InTimeOrder, Segmented, run_to_end};

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

    /// Removes all files of events of timelines but those of a checkpoint.
    fn remove_events_but(&self, kept: Option<&SavedSpool>) -> Result<(), CheckpointError> {
        let io = |error| CheckpointError::io(&self.directory, error);
        if !self.directory.is_dir() {
            return Ok(());
        }
        for entry in std::fs::read_dir(&self.directory).map_err(io)? {
            let name = entry.map_err(io)?.file_name();
            let is_old = |name| Spool::is_file_name(name) && !kept.is_some_and(|kept| kept.has_file(name));
            if name.to_str().is_some_and(is_old) {
                remove_file(&self.directory.join(name))?;
            }
        }
        Ok(())
    }

    /// Opens the checkpoint to resume from, if there is one; the first of several processes reports what it finds.
    fn open(
        &self,
        identity: &RunIdentity,
        is_first: bool,
    ) -> Result<Option<CheckpointReader>, CheckpointError> {
        let path = self.path();
        std::fs::create_dir_all(&self.directory)
            .map_err(|error| CheckpointError::io(&self.directory, error))?;
        match (self.resume, path.exists()) {
            (true, true) => CheckpointReader::new(&path, identity).map(Some),
            (true, false) if is_first => {
                tracing::info!(
                    "there is no checkpoint in {}: starting from the beginning",
                    self.directory.display()
                );
                Ok(None)
            }
            (false, true) if is_first => {
                tracing::warn!(
                    "starting from the beginning: the next checkpoint replaces {}; --resume continues from it",
                    path.display()
                );
                Ok(None)
            }
            _ => Ok(None),
        }
    }
}

/// Removes a file, if it exists.
fn remove_file(path: &Path) -> Result<(), CheckpointError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(CheckpointError::io(path, error)),
        _ => Ok(()),
    }
}
