//! The time that the work of a job takes on other hosts.

use std::collections::BTreeMap;

use netmodel::HostId;
use pdes_core::Progress;
use replay::{Outcome, RunError, RunSpec, Simulation};
use tempfile::TempDir;

/// Times of the work of a job, each by a replay.
#[derive(Debug)]
pub struct Work<'a> {
    simulation: &'a Simulation,
    known: BTreeMap<Vec<HostId>, f64>,
    /// Directory of the hosts files.
    directory: Option<TempDir>,
}

/// The reason why a time is not known.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The job cannot be replayed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The hosts of its ranks cannot be written.
    #[error("a hosts file in the directory of temporary files: {0}")]
    Write(#[from] std::io::Error),
}

impl<'a> Work<'a> {
    /// Makes the times of the job of a run with this outcome.
    pub fn new(simulation: &'a Simulation, outcome: &Outcome) -> Self {
        let program = outcome.program();
        let time_s = (program.end() - program.start).as_secs_f64();
        let known = BTreeMap::from([(simulation.placement().hosts().to_vec(), time_s)]);
        Self { simulation, known, directory: None }
    }

    /// Returns the time of the whole work with ranks on some hosts \[s\].
    ///
    /// # Errors
    /// If it cannot be replayed.
    pub fn time_s(&mut self, hosts: &[HostId]) -> Result<f64, WorkError> {
        if let Some(time_s) = self.known.get(hosts) {
            return Ok(*time_s);
        }
        let directory = match &mut self.directory {
            Some(directory) => directory,
            none => none.insert(tempfile::tempdir()?),
        };
        let path = directory.path().join("hosts.txt");
        let platform = self.simulation.platform();
        let names: String = hosts.iter().map(|host| platform.host(*host).name.clone() + "\n").collect();
        std::fs::write(&path, names)?;
        let spec = RunSpec { hosts: Some(path), ..self.simulation.spec().without_analyses() };
        let outcome = Simulation::load(&spec)?.replay(&Progress::new(spec.threads))?;
        let program = outcome.program();
        let time_s = (program.end() - program.start).as_secs_f64();
        self.known.insert(hosts.to_vec(), time_s);
        Ok(time_s)
    }
}
