//! The specification of a run: a configuration that is checked and complete.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use mpi_model::{Overhead, Parameters};
use netmodel::{
    HostId, NetworkParameters, Platform, PlatformDescription, ProfileSpec, RegionError, Regions,
    ResourceChange, RoutingRule,
};
use pdes_core::{RunAhead, SimDuration};
use trace_mmap::{LoadOptions, Trace, WorkMetric};

use crate::checkpoint::CheckpointPlan;
use crate::code::RunningProgram;
use crate::host_deaths::HostDeaths;
use crate::launches::{JobScheduler, Start};
use crate::models::{MODELS, Model};
use crate::noise::HostNoise;
use crate::offload::{Accelerators, Offload};
use crate::partition::PartitionSource;
use crate::placement::PlacementPolicy;
use crate::platforms::{PlatformFileError, read_platform};
use crate::presets::NetworkPreset;
use crate::programs::ProgramSpec;
use crate::timeline::{TimelineCounters, TimelinePlan};
use crate::trace_file::TraceFile;

/// A run with every option resolved.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// Name of the first program, if it is a job.
    pub name: Option<String>,
    /// The trace.
    pub trace: TraceFile,
    /// Program that runs in place of the trace, whose path is its name then; see [`with_code`](Self::with_code).
    pub code: Option<Arc<dyn RunningProgram>>,
    /// Number of ranks of the run; by default that of the trace.
    pub ranks: Option<u32>,
    /// Size of actions kept in memory \[B\]; further ones go to a temporary file. The default is that of `trace-mmap`.
    pub memory_budget: Option<u64>,
    /// Speed of the machine on which the program ran [flop/s]; by default the rate at which the trace counts times.
    pub trace_speed: Option<f64>,
    /// When the first program starts.
    pub start: Start,
    /// Scheduler of the programs that are [submitted](Start::Submitted).
    pub scheduler: Option<Arc<dyn JobScheduler>>,
    /// Hosts that die during the run, if any do.
    pub deaths: Option<Arc<dyn HostDeaths>>,
    /// No other program has ranks on the hosts of the first one.
    pub is_exclusive: bool,
    /// Programs that run beside the one of this trace, on the same platform.
    pub other_programs: Vec<ProgramSpec>,
    /// Numbers of the programs that run, from 0; the others only have their hosts. By default all run.
    pub present: Option<BTreeSet<usize>>,
    /// Delays of programs by each other, which take more replays.
    pub delays: bool,
    /// Seed of random placements.
    pub seed: u64,
    /// The platform.
    pub platform: PlatformSource,
    /// Path of the hosts file, which assigns ranks to hosts; without it, `placement` does.
    pub hosts: Option<PathBuf>,
    /// Routing rule of fat trees and dragonflies.
    pub routing: RoutingRule,
    /// Placement of ranks if there is no hosts file.
    pub placement: PlacementPolicy,
    /// Change of all links of the platform.
    pub link_scale: LinkScale,
    /// Further changes of the platform, one after the other.
    pub platform_changes: Vec<Arc<dyn PlatformChange>>,
    /// Changes of resources during the run, of the platform before it is scaled.
    pub changes: Vec<ResourceChange>,
    /// Noise of the operating systems of hosts, if there is any.
    pub noise: Option<Arc<dyn HostNoise>>,
    /// Regions of the programs whose computations accelerators do.
    pub offloads: Vec<Offload>,
    /// Profiles of resources, in place of those of the platform.
    pub profiles: Vec<ProfileSpec>,
    /// The network model.
    pub model: &'static Model,
    /// Section of the configuration that belongs to the model alone; empty if there is none.
    pub model_parameters: toml::Table,
    /// Sections of the configuration about what the run itself does not know, by name.
    pub extensions: BTreeMap<String, toml::Value>,
    /// Preset of the network's parameters.
    pub preset: &'static NetworkPreset,
    /// Warnings about constant factors in place of those of the preset.
    pub replaced_factors: Vec<String>,
    /// Parameters of the network.
    pub network: NetworkParameters,
    /// Times at which rates change.
    pub epoch: Epoch,
    /// Partition of the platform into regions, for epochs.
    pub regions: RegionSource,
    /// Parameters of the MPI library; the costs of polls are those of a trace of SimGrid until the trace is known.
    pub mpi: Parameters,
    /// Costs of polls that are set.
    pub polling: Polling,
    /// Number of threads of the replay.
    pub threads: usize,
    /// Number of threads that read the trace.
    pub reading_threads: usize,
    /// Assignment of ranks to workers.
    pub partition: PartitionSource,
    /// Path of the [profile](crate::RegionProfile) of an earlier replay, whose region costs balance the processes; if there is none,
    /// the number of actions does.
    pub region_costs: Option<PathBuf>,
    /// Under a launcher, processes work even if there is no core for each of their threads.
    pub oversubscribe: bool,
    /// Bound on run-ahead.
    pub run_ahead: RunAhead,
    /// Fast-forwarding: iterations that only shift all ranks in time are counted, not replayed.
    pub fast_forward: bool,
    /// Analysis of wait states: time per cause and per peer; by default on unless there are many ranks.
    pub waits: Option<bool>,
    /// Causes of waits, for a diagnosis.
    pub causes: bool,
    /// Times by region, also without the analysis of wait states.
    pub region_times: bool,
    /// Histograms of messages by size and of waits by length.
    pub histograms: bool,
    /// Communication matrix with at most this number of groups of ranks, if requested.
    pub matrix_groups: Option<u32>,
    /// Critical-path analysis: ranks record the causes of their clocks.
    pub critical_path: bool,
    /// Recording of link loads, if messages share links; by default on unless there are many links, or each packet would cost more.
    pub links: Option<bool>,
    /// Replays on ideal machines for the report; by default of short runs.
    pub ideal_machines: Option<bool>,
    /// Recording of the loads of hosts, and with them of links.
    pub host_loads: bool,
    /// Checkpoints, if any are written.
    pub checkpoints: Option<CheckpointPlan>,
    /// Timeline, if one is written.
    pub timeline: Option<TimelinePlan>,
    /// Counters of the timeline that are known at the end.
    pub timeline_counters: Vec<Arc<dyn TimelineCounters>>,
    /// Path of the report.
    pub report: Option<PathBuf>,
    /// Path of the profile of the parallelism.
    pub profile: Option<PathBuf>,
    /// Path of the certificate.
    pub certificate: Option<PathBuf>,
}

impl RunSpec {
    /// Creates the specification of the replay of a trace on a platform with a preset: exact contention on one thread, with ranks in blocks.
    pub fn new(
        trace: impl Into<TraceFile>,
        platform: PlatformSource,
        preset: &'static NetworkPreset,
    ) -> Self {
        Self {
            name: None,
            trace: trace.into(),
            code: None,
            ranks: None,
            memory_budget: None,
            trace_speed: None,
            start: Start::default(),
            scheduler: None,
            deaths: None,
            is_exclusive: false,
            other_programs: Vec::new(),
            present: None,
            delays: false,
            seed: 0,
            changes: Vec::new(),
            noise: None,
            offloads: Vec::new(),
            profiles: Vec::new(),
            platform,
            hosts: None,
            routing: RoutingRule::default(),
            placement: PlacementPolicy::Block,
            link_scale: LinkScale::default(),
            platform_changes: Vec::new(),
            model: &MODELS[0],
            model_parameters: toml::Table::new(),
            extensions: BTreeMap::new(),
            preset,
            replaced_factors: Vec::new(),
            network: preset.network(),
            epoch: Epoch::default(),
            regions: RegionSource::default(),
            mpi: preset.mpi(),
            polling: Polling::default(),
            threads: 1,
            reading_threads: 1,
            partition: PartitionSource::Blocks,
            region_costs: None,
            oversubscribe: false,
            run_ahead: RunAhead::Auto,
            fast_forward: false,
            waits: None,
            causes: false,
            region_times: false,
            histograms: false,
            matrix_groups: None,
            critical_path: false,
            links: None,
            ideal_machines: None,
            host_loads: false,
            checkpoints: None,
            timeline: None,
            timeline_counters: Vec::new(),
            report: None,
            profile: None,
            certificate: None,
        }
    }

    /// Returns the program of the trace alone.
    pub fn program(&self) -> ProgramSpec {
        ProgramSpec {
            name: self.name.clone(),
            trace: self.trace.clone(),
            code: self.code.clone(),
            ranks: self.ranks,
            hosts: self.hosts.clone(),
            placement: self.placement,
            is_exclusive: self.is_exclusive,
            mpi: self.mpi.clone(),
            polling: self.polling,
            start: self.start,
        }
    }

    /// Returns the specification with a program that runs in place of the trace.
    pub fn with_code(&self, code: impl RunningProgram + 'static) -> Self {
        Self { trace: code.name().into(), code: Some(Arc::new(code)), ..self.clone() }
    }

    /// Returns the options with which the trace is read.
    pub fn load_options(&self) -> LoadOptions<'static> {
        let defaults = LoadOptions::default();
        LoadOptions {
            threads: self.reading_threads,
            ranks: self.ranks,
            memory_budget: self.memory_budget.unwrap_or(defaults.memory_budget),
            ..defaults
        }
    }

    /// Returns the platform of the run, with its changes.
    ///
    /// # Errors
    /// Returns an error if the platform cannot be read.
    pub fn platform(&self) -> Result<Platform, PlatformFileError> {
        let mut platform = self.read_platform()?;
        self.change_platform(&mut platform);
        Ok(platform)
    }

    /// Returns the hosts of a platform that are no accelerators, neither of it nor by [`Self::offloads`].
    pub fn computers(&self, platform: &Platform) -> Vec<HostId> {
        let accelerators = Accelerators::new(&self.offloads, platform);
        let accelerators = Accelerators::all(accelerators.as_ref(), platform);
        let hosts = (0..).map(HostId::new).take(platform.hosts().len());
        hosts.filter(|host| !accelerators.contains(host)).collect()
    }

    /// Returns the platform before the changes of the run.
    pub(crate) fn read_platform(&self) -> Result<Platform, PlatformFileError> {
        let mut platform = match &self.platform {
            PlatformSource::File(path) => read_platform(path)?,
            PlatformSource::Inline(description, _) => Platform::from_description((**description).clone())?,
        };
        platform.set_routing_rule(self.routing);
        platform.set_default_loopback(self.network.loopback_bandwidth, self.network.loopback_latency_s);
        Ok(platform)
    }

    pub(crate) fn change_platform(&self, platform: &mut Platform) {
        self.link_scale.apply(platform);
        self.platform_changes.iter().for_each(|change| change.apply(platform));
    }

    /// Returns the number of flops of the machine on which the program ran for one of the trace, whose flops may be those of another speed.
    pub(crate) fn amount_scale(&self, trace: &Trace) -> f64 {
        let rate = trace.provenance().work_metric.and_then(WorkMetric::rate);
        self.trace_speed.zip(rate).map_or(1.0, |(speed, rate)| speed / rate)
    }

    /// Returns the specification on an ideal network: messages and calls take no time, computations as long as they take alone.
    pub fn on_ideal_network(&self) -> Self {
        let of_hosts = self.changes.iter().filter(|change| change.resource.link().is_none());
        let polling = Polling { test: Some(SimDuration::ZERO), grows: None, iprobe: Some(SimDuration::ZERO) };
        let mpi = Parameters {
            send: Overhead::default(),
            isend: Overhead::default(),
            receive: Overhead::default(),
            irecv: SimDuration::ZERO,
            call_overheads: BTreeMap::new(),
            ..self.mpi.clone()
        };
        Self {
            model: Model::uncontended(),
            network: NetworkParameters::ideal(),
            epoch: Epoch::Exact,
            mpi,
            polling,
            changes: of_hosts.copied().collect(),
            profiles: self.profiles.iter().filter(|profile| profile.is_of_hosts).cloned().collect(),
            platform_changes: [self.platform_changes.clone(), vec![Arc::new(SteadyLinks)]].concat(),
            links: Some(false),
            host_loads: false,
            histograms: false,
            matrix_groups: None,
            critical_path: false,
            waits: Some(false),
            region_times: true,
            causes: false,
            ..self.without_outputs()
        }
    }

    /// Returns the specification without analyses, which change no time, and without outputs.
    pub fn without_analyses(&self) -> Self {
        Self {
            waits: Some(false),
            causes: false,
            region_times: false,
            histograms: false,
            matrix_groups: None,
            critical_path: false,
            links: Some(false),
            ..self.without_outputs()
        }
    }

    /// Returns the specification without files that it writes beside its result.
    pub fn without_outputs(&self) -> Self {
        Self {
            checkpoints: None,
            timeline: None,
            report: None,
            profile: None,
            certificate: None,
            ..self.clone()
        }
    }
}

/// Costs of tests and non-blocking probes, as far as they are set. The others depend on the trace: SimGrid's for its traces; none for
/// traces that were recorded from running programs, which hold as many polls as the real machine had time for, and for programs that run
/// with measured computations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polling {
    /// Cost of a test.
    pub test: Option<SimDuration>,
    /// Growth of the costs with each failed poll.
    pub grows: Option<bool>,
    /// Cost of a probe.
    pub iprobe: Option<SimDuration>,
}

impl Polling {
    /// Completes the parameters of a replay.
    pub fn apply(self, parameters: &mut Parameters, was_recorded: bool) {
        let defaults = match was_recorded {
            false => Parameters::default(),
            true => Parameters {
                test: SimDuration::ZERO,
                test_grows: false,
                iprobe: SimDuration::ZERO,
                ..Parameters::default()
            },
        };
        parameters.test = self.test.unwrap_or(defaults.test);
        parameters.test_grows = self.grows.unwrap_or(defaults.test_grows);
        parameters.iprobe = self.iprobe.unwrap_or(defaults.iprobe);
    }
}

/// Change of all links of a platform.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkScale {
    /// Factor of the latency.
    pub latency: f64,
    /// Factor of the bandwidth.
    pub bandwidth: f64,
}

/// No change.
impl Default for LinkScale {
    fn default() -> Self {
        Self { latency: 1.0, bandwidth: 1.0 }
    }
}

impl PlatformChange for LinkScale {
    fn apply(&self, platform: &mut Platform) {
        platform.scale_links(|_| true, self.latency, self.bandwidth);
    }
}

/// Change of a platform that has been read, before ranks are placed on it.
///
/// # Laws
/// The change depends on nothing but itself and the platform. Equal texts of [`Debug`](fmt::Debug) are equal changes: processes compare their
/// specifications by them, and checkpoints those of their runs.
pub trait PlatformChange: fmt::Debug + Send + Sync {
    /// Changes a platform.
    fn apply(&self, platform: &mut Platform);

    /// Returns whether the change is one in the course of runs: until it, the platform is as it would be without it. Then
    /// [`Platform::changes`] tells all of it.
    fn is_in_course(&self) -> bool {
        false
    }

    /// Finds out whether the platform has what is to be changed.
    ///
    /// # Errors
    /// Returns an error if it has not.
    fn check(&self, platform: &Platform) -> Result<(), Box<dyn Error + Send + Sync>> {
        let _ = platform;
        Ok(())
    }
}

/// Links that do not change.
#[derive(Debug)]
struct SteadyLinks;

impl PlatformChange for SteadyLinks {
    fn apply(&self, platform: &mut Platform) {
        platform.drop_link_changes();
    }
}

/// Source of a platform.
#[derive(Clone, Debug)]
pub enum PlatformSource {
    /// A file, SimGrid XML or TOML.
    File(PathBuf),
    /// The configuration itself, or a file in TOML of which the configuration changes parts.
    Inline(Box<PlatformDescription>, Option<PathBuf>),
}

/// Times at which the rates of messages that share the network change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Epoch {
    /// Whenever a message begins or ends.
    #[default]
    Exact,
    /// At multiples of the longest epoch that the regions allow; with one region, as [`Epoch::Exact`].
    Auto,
    /// At multiples of this time, which is not zero.
    Fixed(SimDuration),
}

/// Partition of a platform into regions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RegionSource {
    /// Along the structure of the topology.
    #[default]
    Natural,
    /// Into about this number of regions.
    Count(u32),
    /// As listed in a file.
    File(PathBuf),
}

impl RegionSource {
    /// Partitions a platform into regions.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or does not list the hosts.
    pub fn partition(&self, platform: &Platform) -> Result<Regions, RegionError> {
        match self {
            Self::Natural => Ok(Regions::natural(platform)),
            Self::Count(count) => Ok(Regions::with_count(platform, *count)),
            Self::File(path) => Regions::from_path(platform, path),
        }
    }
}

/// Prints `auto`, the number, or the path of the file.
impl fmt::Display for RegionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Natural => f.write_str("auto"),
            Self::Count(count) => count.fmt(f),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// Prints the path of the file, and whether the configuration changes it, or `inline`.
impl fmt::Display for PlatformSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Inline(_, None) => f.write_str("inline"),
            Self::Inline(_, Some(base)) => write!(f, "{} (changed)", base.display()),
        }
    }
}
