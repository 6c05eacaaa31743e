//! Profile of the parallelism in a replay, and the run times predicted from it.

mod regions;

use std::path::Path;
use std::time::Duration;

use mpi_model::Replay;
use netmodel::ContentionFree;
use outputs::write_json;
use pdes_core::{
    Costs, Emulation, Ending, Partition, Profile, ProfileLevel, Progress, SimDuration, measure_token_latency,
};
use rayon::ThreadPoolBuilder;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use serde::Serialize;

use crate::contention_free::ContentionFreeMachine;
use crate::execution::ExecutionMode;
use crate::simulation::{Outcome, RunError, Simulation};

pub(crate) use regions::read_region_costs;
pub use regions::{PredictedRegions, RegionCostsError, RegionProfile};

/// Version of the format.
const VERSION: u32 = 2;

/// Cost of a token that goes to another worker: both ends copy it, and a cache line moves.
const TOKEN_COST: SimDuration = SimDuration::from_picos(60_000);
/// Cost of a message of tokens for sender and receiver together: memory, channel, an activation that ends early.
const MESSAGE_COST: SimDuration = SimDuration::from_picos(400_000);
/// Cost of a conditional event, for which all workers wait, on 64 workers: 5 to 50 us.
const QUIESCENCE_COST: SimDuration = SimDuration::from_picos(15_000_000);
/// Additional latency of a message between hosts, compared with threads \[s\].
const NETWORK_LATENCY_S: f64 = 5e-6;
/// Additional cost of a conditional event between hosts \[s\].
const NETWORK_QUIESCENCE_S: f64 = 35e-6;

/// The parallelism of a workload and the run times predicted from it, as written in JSON.
///
/// # Stability
/// As of `Report` of `pdes-replay`.
#[derive(Clone, Debug, Serialize)]
pub struct ParallelProfile {
    /// `"pdes-replay parallel profile"`.
    pub format: &'static str,
    /// Version of the format.
    pub version: u32,
    /// Number of actions replayed.
    pub actions: u64,
    /// Number of tokens that ranks sent to each other: messages, and replies to senders that wait for their receivers.
    pub tokens: u64,
    /// Number of conditional events, each of which all workers wait for.
    pub conditional_events: u64,
    /// Number of actions on the longest chain of dependent actions.
    pub critical_path: u64,
    /// `actions` / `critical_path`: upper bound on the speedup with any number of workers.
    pub speedup_limit: f64,
    /// Length of the intervals of simulated time in which the loads of workers are compared \[s\].
    pub interval_s: f64,
    /// Measured run on which the predictions are based.
    pub measured: Measured,
    /// Predictions for several numbers of workers.
    pub predicted: Vec<Predicted>,
}

/// A measured run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Number of workers: threads of all processes.
    pub workers: usize,
    /// Wall-clock time of its replay \[s\].
    pub replay_s: f64,
    /// Estimated time of one worker \[s\]: `replay_s` times the parallelism of this number of workers.
    pub serial_s: f64,
    /// Latency of a token between two threads, of which one waits, measured on this machine \[s\].
    pub hop_s: f64,
}

/// Prediction for a number of workers. Everything but the times is exact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Predicted {
    /// Number of workers: threads of all processes, which own ranks in contiguous blocks.
    pub workers: u32,
    /// Average number of busy workers: all actions over the sum of those of the busiest worker of each interval.
    pub parallelism: f64,
    /// The same with the whole run as one interval, as if no worker ever waited: the loss due to unequal blocks.
    pub balance: f64,
    /// Number of tokens from one worker to another.
    pub cut_tokens: u64,
    /// `cut_tokens` over `tokens`.
    pub cut_fraction: f64,
    /// Number of messages that carry these tokens.
    pub messages: u64,
    /// Number of messages on the chain that ends last, each of which its receiver waited for.
    pub hops: u64,
    /// Predicted wall-clock time of the replay \[s\]: without any waiting, on threads of one process, and on hosts connected by a
    /// network.
    pub replay_s: [f64; 3],
}

impl Simulation {
    /// Replays the trace again without contention and counts the actions of each rank over time, then emulates each number of
    /// workers with another replay, in turn: about fifteen times the work of a replay. The times are predicted from the replay with
    /// the result `outcome`.
    ///
    /// # Errors
    /// As [`replay`](Simulation::replay).
    ///
    /// # Panics
    /// Panics if the replay is not [uncontended](ExecutionMode::Uncontended): it has no workers to profile.
    pub fn profile(&self, outcome: &Outcome, progress: &Progress) -> Result<ParallelProfile, RunError> {
        let mode = self.execution(1).mode;
        assert_eq!(mode, ExecutionMode::Uncontended, "a shared network has no workers to profile");
        let machine = ContentionFreeMachine::new(
            self.platform(),
            self.placement(),
            ContentionFree::new(&self.spec().network),
        )
        .with_noise(self.spec().noise.as_deref());
        let world = Replay::new(self.trace(), &machine, &self.spec().mpi);
        let processes = || world.processes().map_err(|error| self.locate(world.lp(error.rank), error));
        let partition = Partition::blocks(self.trace().ranks(), self.spec().threads);
        let run = self.engine(partition).run_with_progress(Profile::wrap(processes()?), progress);
        let profile = match run.ending {
            Ending::Completed => Profile::of(&run.processes),
            Ending::Failed(lp, fault) => return Err(self.locate(lp, fault.error)),
            Ending::Deadlocked(_) | Ending::StoppedAtCheckpoint => {
                unreachable!("what has ended once ends again")
            }
        };
        drop(run.processes);
        let measured = Measured::new(&profile, self.spec().threads, outcome.time_of_all_actions());
        let costs = measured.costs(profile.steps);
        let pool = ThreadPoolBuilder::new().num_threads(self.spec().threads).build();
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
        // Between two profiled numbers of workers, use the lower: this gives a bound.
        let known = profile.levels.iter().rfind(|level| level.workers as usize <= workers);
        let replay_s = replay_time.as_secs_f64();
        let serial_s = replay_s * known.map_or(1.0, |level| level.parallelism(profile.steps));
        Self { workers, replay_s, serial_s, hop_s: measure_token_latency().as_secs_f64() }
    }

    fn costs(&self, steps: u64) -> Costs {
        let picos = |seconds: f64| SimDuration::try_from_secs_f64(seconds).unwrap_or_default();
        let latency = self.hop_s - (TOKEN_COST + MESSAGE_COST).as_secs_f64();
        let step = picos(self.serial_s / steps.max(1) as f64);
        Costs {
            step,
            token: TOKEN_COST,
            message: MESSAGE_COST,
            latency: picos(latency),
            quiescence: QUIESCENCE_COST,
        }
    }
}

impl ParallelProfile {
    /// Predicts times from a profile, a measured run, and an emulation of each number of workers (`docs/parallel.md`).
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
            interval_s: profile.stretch.as_secs_f64(),
            measured,
            predicted: levels
                .map(|(level, emulation)| predict(profile, level, emulation, &measured))
                .collect(),
        }
    }

    /// Writes the profile as JSON.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        write_json(self, path)
    }
}

fn predict(profile: &Profile, level: &ProfileLevel, emulation: &Emulation, measured: &Measured) -> Predicted {
    let limit = profile.steps as f64 / profile.critical_path.max(1) as f64;
    let balance = profile.steps as f64 / level.busiest_total.max(1) as f64;
    let threads_s = emulation.elapsed.as_secs_f64();
    let network_s =
        emulation.hops as f64 * NETWORK_LATENCY_S + profile.conditional_events as f64 * NETWORK_QUIESCENCE_S;
    Predicted {
        workers: level.workers,
        parallelism: level.parallelism(profile.steps).min(limit),
        balance,
        cut_tokens: level.cut_tokens,
        cut_fraction: level.cut_tokens as f64 / profile.tokens.max(1) as f64,
        messages: emulation.messages,
        hops: emulation.hops,
        replay_s: [measured.serial_s / balance.min(limit), threads_s, threads_s + network_s],
    }
}
