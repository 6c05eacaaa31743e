//! Profile of a replay region by region, and the run times predicted from it.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outputs::write_json;
use pdes_core::{Cluster, Progress, RegionalLevel, RegionalTiming, measure_token_latency};
use serde::{Deserialize, Serialize};

use super::NETWORK_LATENCY_S;
use crate::contention::RegionPlan;
use crate::execution::{ExecutionMode, Feature, Obstacle};
use crate::simulation::{RegionalOutcome, RunError, Simulation};

/// Number of threads whose regions a profile of exact contention has.
const PROFILED_THREADS: usize = 64;

const FORMAT: &str = "pdes-replay region profile";
/// Version of the format.
const VERSION: u32 = 1;

/// The parallelism of regions, as written in JSON. Everything is measured or predicted; only the number of barriers is exact.
///
/// # Stability
/// As of `Report` of `pdes-replay`.
#[derive(Clone, Debug, Serialize)]
pub struct RegionProfile {
    /// `"pdes-replay region profile"`.
    pub format: &'static str,
    /// Version of the format.
    pub version: u32,
    /// Length of an epoch, or with exact contention of a window \[s\].
    pub epoch_s: f64,
    /// Number of regions of the platform: more workers than regions do not help.
    pub regions: u32,
    /// Number of barriers of all workers: a few at each epoch boundary that matters, or in each window.
    pub barriers: u64,
    /// Wall-clock time of a replay on one thread, with timing of regions \[s\].
    pub serial_s: f64,
    /// Part of that time spent in regions \[s\].
    pub busy_s: f64,
    /// Time spent in each region \[s\]; used to [assign regions to processes](crate::RunSpec::region_costs).
    pub region_s: Vec<f64>,
    /// Latency of a token between two threads, of which one waits, measured on this machine \[s\].
    pub hop_s: f64,
    /// Predictions for several numbers of workers.
    pub predicted: Vec<PredictedRegions>,
}

/// The reason why a profile does not provide the costs of regions.
#[derive(Debug, thiserror::Error)]
pub enum RegionCostsError {
    /// The file cannot be read.
    #[error("parallel.region_costs {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is not a region profile.
    #[error(
        "parallel.region_costs {}: {found}; expected the file that --profile writes in a replay with contention and epochs",
        path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Description of the content.
        found: String,
    },
    /// The profile is of other regions.
    #[error(
        "parallel.region_costs {}: found a profile of {found} regions, expected one of {expected}, as the platform has them with network.regions",
        path.display()
    )]
    Regions {
        /// The file.
        path: PathBuf,
        /// Number of regions of the profile.
        found: usize,
        /// Number of regions of the platform.
        expected: u32,
    },
}

/// Reads the time spent in each of `regions` regions from a profile \[ns\].
pub(crate) fn read_region_costs(path: &Path, regions: u32) -> Result<Vec<u64>, RegionCostsError> {
    #[derive(Deserialize)]
    struct Costs {
        format: String,
        region_s: Vec<f64>,
    }

    let wrong = |found| RegionCostsError::Format { path: path.to_owned(), found };
    let file = File::open(path).map_err(|source| RegionCostsError::Read { path: path.to_owned(), source })?;
    let costs = serde_json::from_reader(BufReader::new(file)).map_err(|error| wrong(error.to_string()))?;
    let Costs { format, region_s } = costs;
    if format != FORMAT {
        return Err(wrong(format!("found a {format:?}")));
    }
    if region_s.len() != regions as usize {
        let (path, found) = (path.to_owned(), region_s.len());
        return Err(RegionCostsError::Regions { path, found, expected: regions });
    }
    Ok(region_s.iter().map(|seconds| (seconds * 1e9) as u64).collect())
}

/// Prediction for a number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PredictedRegions {
    /// Number of workers.
    pub workers: u32,
    /// Average number of busy threads: the time of all regions over that of the last thread between barriers.
    pub parallelism: f64,
    /// Predicted wall-clock time of the replay \[s\]: with barriers that cost nothing, on threads of one process, and on hosts connected
    /// by a network, each with a contiguous block of regions.
    pub replay_s: [f64; 3],
}

impl Simulation {
    /// Replays the trace again on one thread, and measures the time of each region between consecutive barriers. With exact contention
    /// the regions are those of 64 threads.
    ///
    /// # Errors
    /// As [`replay`](Simulation::replay). Also returns an error if the platform is one region, if a rank depends on the global event
    /// order, and if there are neither epochs nor windows.
    ///
    /// # Panics
    /// Panics if the replay is [uncontended](ExecutionMode::Uncontended): it has no regions.
    pub fn profile_regions(&self, progress: &Progress) -> Result<RegionProfile, RunError> {
        let execution = self.execution_with(Feature::Profile, true);
        execution.check()?;
        assert_ne!(execution.mode, ExecutionMode::Uncontended, "ranks without a network have no regions");
        let engine = self.regional_engine().timed();
        let plan = match self.regions() {
            Some(plan) => plan.clone(),
            None => self.window_plan(self.window().map_err(Obstacle::from)?, PROFILED_THREADS),
        };
        let blocks = self.partition_regions(&plan, &[true])?;
        let (alone, plan) = (&mut Cluster::alone(), (&plan, &blocks));
        match self.run_regions(alone, &engine, plan, (None, false), false, progress) {
            Ok(RegionalOutcome { outcome: Some(outcome), timing: Some(timing) }) => {
                let RegionPlan { span, count, .. } = plan.0;
                Ok(RegionProfile::new(span.as_secs_f64(), *count, &timing, outcome.replay_time))
            }
            Err(RunError::Unordered(_)) | Ok(_) => Err(RunError::NoRegions),
            Err(error) => Err(error),
        }
    }
}

impl RegionProfile {
    fn new(epoch_s: f64, regions: u32, timing: &RegionalTiming, serial: Duration) -> Self {
        let (serial_s, hop_s) = (serial.as_secs_f64(), measure_token_latency().as_secs_f64());
        let predict = |level: &RegionalLevel| predict(level, timing, serial_s, hop_s);
        Self {
            format: FORMAT,
            version: VERSION,
            epoch_s,
            regions,
            barriers: timing.barriers,
            serial_s,
            busy_s: timing.busy().as_secs_f64(),
            region_s: timing.regions.iter().map(Duration::as_secs_f64).collect(),
            hop_s,
            predicted: timing.levels.iter().map(predict).collect(),
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

fn predict(level: &RegionalLevel, timing: &RegionalTiming, serial_s: f64, hop_s: f64) -> PredictedRegions {
    let parallelism =
        |taken: Duration| timing.busy().as_secs_f64() / taken.as_secs_f64().max(f64::MIN_POSITIVE);
    let (threads, processes) = (parallelism(level.threads), parallelism(level.processes));
    let barriers = timing.barriers as f64;
    let shared = serial_s / threads;
    // Threads: one hop from the last worker that arrives to all others. Hosts: along a tree and back.
    let threads_s = shared + barriers * hop_s;
    let steps = f64::from(level.workers.ilog2());
    let hosts_s = serial_s / processes + barriers * 2.0 * steps * NETWORK_LATENCY_S;
    PredictedRegions { workers: level.workers, parallelism: threads, replay_s: [shared, threads_s, hosts_s] }
}
