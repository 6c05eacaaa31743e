//! What a replay region by region offers to parallel workers, and what that predicts.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pdes_core::{Progress, RegionalLevel, RegionalTiming, measure_hop};
use serde::{Deserialize, Serialize};

use super::NETWORK_LATENCY_S;
use crate::report::write_json;
use crate::scene::{RunError, Scene};

const FORMAT: &str = "pdes-replay region profile";
/// The version of the format.
const VERSION: u32 = 1;

/// What regions offer to parallel workers, as it is written in JSON; all of it is measured or predicted, nothing exact but the
/// number of meetings.
///
/// # Stability
/// As of [`Report`](crate::Report).
#[derive(Clone, Debug, Serialize)]
pub struct RegionProfile {
    /// `"pdes-replay region profile"`.
    pub format: &'static str,
    /// The version of the format.
    pub version: u32,
    /// The length of an epoch \[s\].
    pub epoch_s: f64,
    /// Regions of the platform: no more workers than these have anything to do.
    pub regions: u32,
    /// How often all workers meet, a few times at each boundary that matters.
    pub meetings: u64,
    /// Wall-clock time of a replay on one thread in which regions were timed \[s\].
    pub serial_s: f64,
    /// What regions took of it \[s\].
    pub busy_s: f64,
    /// What each region took \[s\]: how [regions are put on processes](crate::Job::region_costs).
    pub region_s: Vec<f64>,
    /// The time of a token from one thread to another that waits for it, measured on this machine \[s\].
    pub hop_s: f64,
    /// What numbers of workers would take.
    pub predicted: Vec<PredictedRegions>,
}

/// Why a profile does not tell what regions cost.
#[derive(Debug, thiserror::Error)]
pub enum RegionCostsError {
    /// The file cannot be read.
    #[error("parallel.region_costs {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is something else.
    #[error(
        "parallel.region_costs {}: {found}; expected what --profile writes of a replay with contention and epochs",
        path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: String,
    },
    /// It is the profile of other regions.
    #[error(
        "parallel.region_costs {}: found a profile of {found} regions, expected one of {expected}, as the platform has them with network.regions",
        path.display()
    )]
    Regions {
        /// The file.
        path: PathBuf,
        /// Regions of the profile.
        found: usize,
        /// Regions of the platform.
        expected: u32,
    },
}

/// Reads what each of so many regions took from a profile \[ns\].
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

/// What a number of workers would take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PredictedRegions {
    /// Workers, each with a contiguous block of regions.
    pub workers: u32,
    /// Workers that are busy on average: what all regions took over what the busiest worker took between meetings.
    pub parallelism: f64,
    /// Predicted wall-clock time of the replay \[s\]: where meetings cost nothing, on threads of one process, on hosts with a
    /// network between them.
    pub replay_s: [f64; 3],
}

impl Scene {
    /// Replays the trace again on one thread, and takes the time of each region between any two meetings of workers.
    ///
    /// # Errors
    /// As [`replay`](Scene::replay); where rates change at every event, where the platform is one region, and where a rank
    /// asks who comes first.
    pub fn profile_regions(&self, progress: &Progress) -> Result<RegionProfile, RunError> {
        let plan = self.epochs().ok_or(RunError::NoRegions)?;
        let started = Instant::now();
        let replay = self.replay_regions(&self.regional_engine().timed(), started, plan, progress)?;
        let (outcome, timing) = replay.ok_or(RunError::NoRegions)?;
        let timing = timing.ok_or(RunError::NoRegions)?;
        Ok(RegionProfile::new(plan.epoch().as_secs_f64(), plan.regions(), &timing, outcome.replay_time))
    }
}

impl RegionProfile {
    fn new(epoch_s: f64, regions: u32, timing: &RegionalTiming, serial: Duration) -> Self {
        let (serial_s, hop_s) = (serial.as_secs_f64(), measure_hop().as_secs_f64());
        let predict = |level: &RegionalLevel| predict(level, timing, serial_s, hop_s);
        Self {
            format: FORMAT,
            version: VERSION,
            epoch_s,
            regions,
            meetings: timing.meetings,
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
    /// Where the file cannot be written.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        write_json(self, path)
    }
}

fn predict(level: &RegionalLevel, timing: &RegionalTiming, serial_s: f64, hop_s: f64) -> PredictedRegions {
    let parallelism = timing.busy().as_secs_f64() / level.busiest.as_secs_f64().max(f64::MIN_POSITIVE);
    let shared = serial_s / parallelism;
    // At a meeting the last worker to come tells all others; between hosts that goes along a tree, and back.
    let met = shared + timing.meetings as f64 * hop_s;
    let steps = f64::from(level.workers.ilog2());
    let across = shared + timing.meetings as f64 * 2.0 * steps * NETWORK_LATENCY_S;
    PredictedRegions { workers: level.workers, parallelism, replay_s: [shared, met, across] }
}
