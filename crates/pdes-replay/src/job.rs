//! What a run is asked to do, checked and complete.

use std::path::PathBuf;

use mpi_model::Parameters;
use netmodel::{NetworkParameters, Platform, PlatformDescription, Preset, RegionError, Regions, RoutingRule};
use pdes_core::{RunAhead, SimDuration};

use crate::checkpoint::Checkpoints;
use crate::partition::PartitionSource;
use crate::timeline::TimelinePlan;

/// A run, with every choice made.
#[derive(Clone, Debug)]
pub struct Job {
    /// The trace.
    pub trace: PathBuf,
    /// Ranks of the run; by default those of the trace.
    pub ranks: Option<u32>,
    /// Actions kept in memory \[B\]; further ones go to a temporary file. By default what `trace-mmap` does.
    pub memory_budget: Option<u64>,
    /// The platform.
    pub platform: PlatformSource,
    /// The file that says which rank runs on which host; by default rank `i` on host `i`, cyclically.
    pub hosts: Option<PathBuf>,
    /// Whose rule the routes of fat trees and dragonflies follow.
    pub routing: RoutingRule,
    /// The network model.
    pub model: Model,
    /// The preset from which the network's parameters come.
    pub preset: Preset,
    /// The network's parameters.
    pub network: NetworkParameters,
    /// When rates change.
    pub epoch: Epoch,
    /// How the platform is cut for epochs.
    pub regions: RegionSource,
    /// The MPI library's parameters.
    pub mpi: Parameters,
    /// Threads of the replay.
    pub threads: usize,
    /// Threads that read the trace.
    pub reading_threads: usize,
    /// Which worker runs which rank.
    pub partition: PartitionSource,
    /// The [profile](crate::RegionProfile) of an earlier replay that says what regions cost, by which they are put on processes; none
    /// where ranks' actions say it.
    pub region_costs: Option<PathBuf>,
    /// The bound on run-ahead.
    pub run_ahead: RunAhead,
    /// Whether iterations that only move everything on in time are passed over.
    pub fast_forward: bool,
    /// Whether ranks find out where their time goes, and for whom they wait; by default where they are not many.
    pub waits: Option<bool>,
    /// Whether messages and waits are counted by their size and length.
    pub histograms: bool,
    /// Whether ranks follow what leads to their clocks, to find the critical path of the run.
    pub critical_path: bool,
    /// Whether it is recorded what links carry, where messages share them; by default where they are not many.
    pub links: Option<bool>,
    /// When checkpoints are written, if they are.
    pub checkpoints: Option<Checkpoints>,
    /// The timeline that is written, if one is.
    pub timeline: Option<TimelinePlan>,
    /// Where the report goes.
    pub report: Option<PathBuf>,
    /// Where the profile of the parallelism goes.
    pub profile: Option<PathBuf>,
}

/// Where a platform comes from.
#[derive(Clone, Debug)]
pub enum PlatformSource {
    /// A file, SimGrid XML or TOML.
    File(PathBuf),
    /// The configuration itself.
    Inline(Box<PlatformDescription>),
}

/// How messages share the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Not at all: every message is alone on its route.
    LogGps,
    /// Messages share links and computations share cores, solved anew at every change.
    Flow,
}

/// When the rates of messages that share the network change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Epoch {
    /// Whenever a message begins or ends.
    #[default]
    Exact,
    /// At multiples of the longest time that the regions allow; with one region, as [`Epoch::Exact`].
    Auto,
    /// At multiples of a time, which is not zero.
    Fixed(SimDuration),
}

/// How a platform is cut into regions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RegionSource {
    /// As its shape suggests.
    #[default]
    Natural,
    /// Into about so many.
    About(u32),
    /// As a file lists.
    File(PathBuf),
}

impl RegionSource {
    /// Cuts a platform.
    ///
    /// # Errors
    /// Where the file cannot be read or does not list the hosts.
    pub fn cut(&self, platform: &Platform) -> Result<Regions, RegionError> {
        match self {
            Self::Natural => Ok(Regions::natural(platform)),
            Self::About(count) => Ok(Regions::about(platform, *count)),
            Self::File(path) => Regions::from_path(platform, path),
        }
    }
}

/// Prints `auto`, the number, or the path of the file.
impl std::fmt::Display for RegionSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Natural => f.write_str("auto"),
            Self::About(count) => count.fmt(f),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl Model {
    /// Returns the name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::LogGps => "loggps",
            Self::Flow => "flow",
        }
    }
}

/// Prints the path of the file, or `inline`.
impl std::fmt::Display for PlatformSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Inline(_) => f.write_str("inline"),
        }
    }
}
