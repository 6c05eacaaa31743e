//! What a replay offers to parallel workers, and what that predicts.

mod regions;

use std::path::Path;
use std::time::Duration;

use mpi_model::World;
use netmodel::LogGps;
use pdes_core::{Costs, Emulation, Ending, Level, Partition, Profile, Progress, SimDuration, measure_hop};
use rayon::ThreadPoolBuilder;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use serde::Serialize;

use crate::job::Model;
use crate::machine::PlacedMachine;
use crate::report::write_json;
use crate::scene::{Outcome, RunError, Scene};

pub(crate) use regions::read_region_costs;
pub use regions::{PredictedRegions, RegionCostsError, RegionProfile};

/// The version of the format.
const VERSION: u32 = 2;

/// What a token costs that goes to another worker: both ends copy it, and a line of the cache goes over.
const TOKEN: SimDuration = SimDuration::from_picos(60_000);
/// What a message of tokens costs its sender and its receiver together: memory, the channel, a turn that ends early.
const MESSAGE: SimDuration = SimDuration::from_picos(400_000);
/// What it costs that all workers wait for a conditional event, on 64 workers: 5 to 50 us.
const QUIESCENCE: SimDuration = SimDuration::from_picos(15_000_000);
/// What a message takes longer between hosts than between threads \[s\].
const NETWORK_LATENCY_S: f64 = 5e-6;
/// What a conditional event takes longer \[s\].
const NETWORK_QUIESCENCE_S: f64 = 35e-6;

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
    /// The time of a token from one thread to another that waits for it, measured on this machine \[s\].
    pub hop_s: f64,
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
    /// Messages that carry them.
    pub messages: u64,
    /// Messages on the chain that ends last, each of which its receiver waited for.
    pub hops: u64,
    /// Predicted wall-clock time of the replay \[s\]: where nobody ever waits, on threads of one process, on hosts with a
    /// network between them.
    pub replay_s: [f64; 3],
}

impl Scene {
    /// Replays the trace again without contention and counts what each rank does and when, and then once more for each number
    /// of workers, in turn, as those would take their time: about fifteen times the work of a replay. Times are predicted from
    /// the replay that gave `outcome`.
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
        let processes = || world.processes().map_err(|error| self.locate(error));
        let partition = Partition::blocks(self.trace().ranks(), self.job().threads);
        let run = self.engine(partition).run_watched(Profile::wrap(processes()?), progress);
        let profile = match run.ending {
            Ending::Completed => Profile::of(&run.processes),
            Ending::Failed(_, fault) => return Err(self.locate(fault.error)),
            Ending::Stalled(_) | Ending::Halted => unreachable!("what has ended once ends again"),
        };
        drop(run.processes);
        let measured = Measured::new(&profile, self.job().threads, outcome.replay_time);
        let costs = measured.costs(profile.steps);
        let pool = ThreadPoolBuilder::new().num_threads(self.job().threads).build();
        let emulations = pool.expect("the replay had as many threads").install(|| {
            let levels = profile.levels.par_iter().with_max_len(1);
            levels
                .map(|level| Ok(Emulation::of(processes()?, level.workers, &costs)))
                .collect::<Result<Vec<_>, RunError>>()
        })?;
        Ok(ParallelProfile::new(&profile, measured, &emulations))
    }
}

impl Measured {
    fn new(profile: &Profile, workers: usize, replay_time: Duration) -> Self {
        // Between two numbers of workers that the profile knows, the lower one: a bound.
        let known = profile.levels.iter().rfind(|level| level.workers as usize <= workers);
        let replay_s = replay_time.as_secs_f64();
        let serial_s = replay_s * known.map_or(1.0, |level| level.parallelism(profile.steps));
        Self { workers, replay_s, serial_s, hop_s: measure_hop().as_secs_f64() }
    }

    fn costs(&self, steps: u64) -> Costs {
        let picos = |seconds: f64| SimDuration::try_from_secs_f64(seconds).unwrap_or_default();
        let latency = self.hop_s - (TOKEN + MESSAGE).as_secs_f64();
        let step = picos(self.serial_s / steps.max(1) as f64);
        Costs { step, token: TOKEN, message: MESSAGE, latency: picos(latency), quiescence: QUIESCENCE }
    }
}

impl ParallelProfile {
    /// Predicts times from a profile, a measured run, and an emulation for each number of workers (`docs/parallel.md`).
    fn new(profile: &Profile, measured: Measured, emulations: &[Emulation]) -> Self {
        let limit = profile.steps as f64 / profile.critical_path.max(1) as f64;
        let levels = profile.levels.iter().zip(emulations);
        Self {
            format: "pdes-replay parallel profile",
            version: VERSION,
            actions: profile.steps,
            tokens: profile.tokens,
            conditional_events: profile.conditional_events,
            critical_path: profile.critical_path,
            speedup_limit: limit,
            stretch_s: profile.stretch.as_secs_f64(),
            measured,
            predicted: levels
                .map(|(level, emulation)| predict(profile, level, emulation, &measured))
                .collect(),
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

fn predict(profile: &Profile, level: &Level, emulation: &Emulation, measured: &Measured) -> Predicted {
    let limit = profile.steps as f64 / profile.critical_path.max(1) as f64;
    let balance = profile.steps as f64 / level.busiest_of_all.max(1) as f64;
    let likely = emulation.elapsed.as_secs_f64();
    let longer =
        emulation.hops as f64 * NETWORK_LATENCY_S + profile.conditional_events as f64 * NETWORK_QUIESCENCE_S;
    Predicted {
        workers: level.workers,
        parallelism: level.parallelism(profile.steps).min(limit),
        balance,
        cut_tokens: level.cut_tokens,
        cut_fraction: level.cut_tokens as f64 / profile.tokens.max(1) as f64,
        messages: emulation.messages,
        hops: emulation.hops,
        replay_s: [measured.serial_s / balance.min(limit), likely, likely + longer],
    }
}
