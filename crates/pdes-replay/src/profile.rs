//! What a replay offers to parallel workers, and what that predicts.

use std::path::Path;

use mpi_model::World;
use netmodel::LogGps;
use pdes_core::{Ending, Level, Partition, Profile, Progress};
use serde::Serialize;

use crate::job::Model;
use crate::machine::PlacedMachine;
use crate::report::write_json;
use crate::scene::{Outcome, RunError, Scene};

/// The version of the format.
const VERSION: u32 = 1;

/// What a token costs that goes to another worker \[s\]: least, likely, most. On one host a batch goes through memory;
/// between hosts a token of 48 B takes about 10 ns per 16 B of a large message.
const TOKEN_S: [f64; 3] = [10e-9, 20e-9, 60e-9];

/// What it costs that all workers wait for a conditional event \[s\], on 64 workers: least, likely, most.
const QUIESCENCE_S: [f64; 3] = [5e-6, 15e-6, 50e-6];

/// The parallelism of a workload and the times predicted from it, as they are written in JSON.
///
/// # Stability
/// As of [`Report`](crate::Report).
#[derive(Clone, Debug, Serialize)]
pub struct ParallelProfile {
    /// `"pdes-replay parallel profile"`.
    pub format: &'static str,
    /// The version of the format.
    pub version: u32,
    /// Actions replayed.
    pub actions: u64,
    /// Tokens that ranks sent to each other: messages, and answers to those that wait for their receivers.
    pub tokens: u64,
    /// Conditional events, each of which all workers wait for.
    pub conditional_events: u64,
    /// Actions of the longest chain that wait for each other.
    pub critical_path: u64,
    /// `actions` over `critical_path`: no number of workers is faster than one by more.
    pub speedup_limit: f64,
    /// Simulated time over which the work of workers is compared \[s\].
    pub stretch_s: f64,
    /// The run from which times are predicted.
    pub measured: Measured,
    /// What numbers of workers find.
    pub predicted: Vec<Predicted>,
}

/// A run that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Its workers: threads of all processes.
    pub workers: usize,
    /// Wall-clock time of its replay \[s\].
    pub replay_s: f64,
    /// The time of one worker \[s\]: the same, times the parallelism that so many workers have.
    pub serial_s: f64,
}

/// What a number of workers finds. Everything but the times is exact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Predicted {
    /// Threads of all processes, which own ranks in contiguous blocks.
    pub workers: u32,
    /// Workers that are busy on average: actions over those of the busiest worker of each stretch.
    pub parallelism: f64,
    /// The same over the whole run, where nobody would ever wait: what uneven blocks cost.
    pub balance: f64,
    /// Tokens from one worker to another.
    pub cut_tokens: u64,
    /// `cut_tokens` over `tokens`.
    pub cut_fraction: f64,
    /// Predicted wall-clock time of the replay \[s\]: least, likely, most.
    pub replay_s: [f64; 3],
}

impl Scene {
    /// Replays the trace again without contention and counts what each rank does and when; takes about three times as long
    /// as a replay. Times are predicted from the replay that gave `outcome`.
    ///
    /// # Errors
    /// As [`replay`](Scene::replay).
    ///
    /// # Panics
    /// Where messages share the network: that runs on one worker whatever their number.
    pub fn profile(&self, outcome: &Outcome, progress: &Progress) -> Result<ParallelProfile, RunError> {
        assert_eq!(self.job().model, Model::LogGps, "a shared network has no workers to profile");
        let machine = PlacedMachine::new(self.platform(), self.placement(), LogGps::new(&self.job().network));
        let world = World::new(self.trace(), &machine, &self.job().mpi);
        let processes = world.processes().map_err(|error| self.locate(error))?;
        let partition = Partition::blocks(self.trace().ranks(), self.job().threads);
        let run = self.engine(partition).run_watched(Profile::wrap(processes), progress);
        match run.ending {
            Ending::Completed => {
                let replay_s = outcome.replay_time.as_secs_f64();
                Ok(ParallelProfile::new(&Profile::of(&run.processes), self.job().threads, replay_s))
            }
            Ending::Failed(_, fault) => Err(self.locate(fault.error)),
            Ending::Stalled(_) | Ending::Halted => unreachable!("what has ended once ends again"),
        }
    }
}

impl ParallelProfile {
    /// Predicts times from a profile and a measured run.
    ///
    /// The time on `P` workers is the serial time over the parallelism, plus what tokens and conditional events cost
    /// (`docs/parallel.md`). The least time takes the balance of the whole run for the parallelism, as if stretches
    /// overlapped without limit.
    pub fn new(profile: &Profile, workers: usize, replay_s: f64) -> Self {
        let parallelism = |level: &Level| level.parallelism(profile.steps);
        // Between two numbers of workers that the profile knows, the lower one: a bound.
        let known = profile.levels.iter().rfind(|level| level.workers as usize <= workers);
        let serial_s = replay_s * known.map_or(1.0, parallelism);
        let limit = profile.steps as f64 / profile.critical_path.max(1) as f64;
        Self {
            format: "pdes-replay parallel profile",
            version: VERSION,
            actions: profile.steps,
            tokens: profile.tokens,
            conditional_events: profile.conditional_events,
            critical_path: profile.critical_path,
            speedup_limit: limit,
            stretch_s: profile.stretch.as_secs_f64(),
            measured: Measured { workers, replay_s, serial_s },
            predicted: profile.levels.iter().map(|level| predict(profile, level, serial_s, limit)).collect(),
        }
    }

    /// Writes the profile as JSON.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        write_json(self, path)
    }
}

fn predict(profile: &Profile, level: &Level, serial_s: f64, limit: f64) -> Predicted {
    let workers = f64::from(level.workers);
    let parallelism = level.parallelism(profile.steps).min(limit);
    let balance = profile.steps as f64 / level.busiest_of_all.max(1) as f64;
    let time = |busy: f64, cost: usize| {
        serial_s / busy
            + level.cut_tokens as f64 / workers * TOKEN_S[cost]
            + profile.conditional_events as f64 * QUIESCENCE_S[cost]
    };
    Predicted {
        workers: level.workers,
        parallelism,
        balance,
        cut_tokens: level.cut_tokens,
        cut_fraction: level.cut_tokens as f64 / profile.tokens.max(1) as f64,
        replay_s: [time(balance.min(limit), 0), time(parallelism, 1), time(parallelism, 2)],
    }
}
