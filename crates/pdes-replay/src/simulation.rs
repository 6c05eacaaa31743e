//! The simulation of one trace on one platform: loading, replaying, and the errors of both.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use mpi_model::collective::SelectionError;
use mpi_model::{
    Completion, CriticalPath, Distributions, Machine, RankProcess, Replay, ReplayError, ReplayErrorKind,
    Statistics,
};
use netmodel::epoch::{EpochError, EpochSummary};
use netmodel::{
    ContentionFree, LinkLoads, NetworkModel, NetworkParameters, Platform, RegionError, RouteError,
};
use pdes_core::{
    ClusterError, Ending, Engine, OrderedEngine, Partition, Process, Progress, Rank, RegionBlocks,
    RegionalEngine, RegionalRun, RegionalTiming, Run, RunAhead, SimTime, UnorderedConditional,
};
use trace_mmap::{LoadOptions, Trace, TraceError, UnmodelledCalls};

use crate::acquisition_warnings;
use crate::checkpoint::{CheckpointError, CheckpointSegments, CheckpointSummary, RunIdentity, StopHandle};
use crate::config::{PlatformFileError, read_platform};
use crate::contention::{Contention, EpochPlan, SharedMachine};
use crate::contention_free::ContentionFreeMachine;
use crate::deadlock::Deadlock;
use crate::fast_forward::{self, FastForward};
use crate::job::{Job, PlatformSource};
use crate::models::{Execution, Model};
use crate::partition::{PartitionCut, PartitionError, PartitionSource, RankAssignment};
use crate::placement::{Placement, PlacementError};
use crate::profile::{RegionCostsError, read_region_costs};
use crate::region_adapter::RegionAdapter;
use crate::report::peak_rss_bytes;
use ::timeline::{Summary, TimelineError};

/// Largest number of ranks whose waits are analysed by default: the analysis takes memory and time for each rank.
const MAX_RANKS_WITH_WAITS: u32 = 1 << 16;

/// Largest number of links whose loads are recorded by default: a record takes a kilobyte for each link.
const MAX_RECORDED_LINKS: usize = 1 << 16;

/// A loaded simulation: trace, platform and placement of ranks in memory, ready to be replayed.
#[derive(Debug)]
pub struct Simulation {
    job: Job,
    trace: Trace,
    platform: Platform,
    placement: Placement,
    /// The model of the job, or its variant with epochs.
    model: &'static Model,
    epochs: Option<EpochPlan>,
    /// Wall-clock cost of each region in an earlier replay \[ns\], if known.
    region_costs: Option<Vec<u64>>,
    load_time: Duration,
    /// Assignment of ranks to workers, if ranks were loaded accordingly.
    pub(crate) rank_assignment: Option<RankAssignment>,
    /// Assignment of regions to processes, if ranks were loaded accordingly.
    pub(crate) region_blocks: Option<RegionBlocks>,
    jitter: Option<u64>,
    batch: Option<usize>,
    stop: StopHandle,
    /// Warning about calls that take no time, computed on first use.
    unmodelled_warning: OnceLock<Option<String>>,
}

/// The result of a replay.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// End time of each rank.
    pub ends: Vec<SimTime>,
    /// Statistics of each rank.
    pub statistics: Vec<Statistics>,
    /// Wall-clock time of the replay.
    pub replay_time: Duration,
    /// Messages that cross the partition; `None` if ranks are assigned to workers in blocks.
    pub cuts: Option<PartitionCut>,
    /// Epoch statistics; `None` if there were no epochs.
    pub epochs: Option<EpochSummary>,
    /// Histograms of messages and waits, if requested.
    pub distributions: Option<Distributions>,
    /// Critical path to the end of the last rank, if requested.
    pub critical_path: Option<CriticalPath>,
    /// Loads of links, if messages share them and this was requested.
    pub links: Option<LinkLoads>,
    /// Summary of the timeline, if one was requested.
    pub timeline: Option<Summary>,
    /// Iterations that were not replayed; `None` if all were.
    pub fast_forward: Option<FastForward>,
    /// Checkpoint statistics; `None` if no checkpoints were requested.
    pub checkpoints: Option<CheckpointSummary>,
    /// Number of operating-system processes.
    pub processes: u32,
    /// Largest resident memory of one process \[B\]; `None` if the system does not report it.
    pub peak_rss_bytes: Option<u64>,
}

/// A replay in time order that lacks its network only.
#[derive(Debug)]
pub struct OrderedReplay<'a> {
    simulation: &'a Simulation,
    started: Instant,
    progress: &'a Progress,
}

impl<'a> OrderedReplay<'a> {
    /// Returns the platform.
    pub fn platform(&self) -> &'a Platform {
        &self.simulation.platform
    }

    /// Returns the parameters of the network.
    pub fn parameters(&self) -> &'a NetworkParameters {
        &self.simulation.job.network
    }

    /// Returns the epochs, which a model with epochs has.
    pub(crate) fn epochs(&self) -> &'a EpochPlan {
        self.simulation.epochs.as_ref().expect("the model was chosen because there are epochs")
    }

    /// Replays all ranks on an idle network.
    ///
    /// # Errors
    /// As [`Simulation::replay`].
    pub fn on<N: NetworkModel<Completion>>(self, network: N) -> Result<Outcome, RunError> {
        let Self { simulation, started, progress } = self;
        let machine =
            SharedMachine::new(&simulation.platform, &simulation.placement, &simulation.job.network);
        let spool = simulation.spool();
        let world = simulation.world(&machine).with_recording(simulation.recording(spool.as_ref()));
        let processes = world.processes().map_err(|error| simulation.locate(error))?;
        let records_links = simulation.records_links();
        let network = if records_links { network.with_link_loads() } else { network };
        let mut contention = Contention::new(&machine, network);
        let engine = OrderedEngine::default();
        let engine = simulation.jitter.map_or(engine.clone(), |seed| engine.jitter(seed));
        let run = engine.run(processes, &mut contention, progress);
        let outcome = simulation.outcome_of_run(started, run)?;
        let mut network = contention.into_network();
        let links = if records_links { network.link_loads(outcome.simulated_time()) } else { None };
        let (epochs, distributions) = (network.epochs(), world.distributions());
        let timeline = simulation.write_timeline(spool.as_ref())?;
        Ok(Outcome { epochs, distributions, links, timeline, ..outcome })
    }
}

/// The reason why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There are no regions that could run in parallel.
    #[error(
        "nothing runs in parallel: the platform is one region, or a rank depends on the global event order, which needs one thread for all"
    )]
    NoRegions,
    /// The trace cannot be loaded.
    #[error("the trace: {0}")]
    Trace(#[from] TraceError),
    /// The platform cannot be loaded.
    #[error("the platform: {0}")]
    Platform(#[from] PlatformFileError),
    /// The platform cannot be cut into regions.
    #[error(transparent)]
    Regions(#[from] RegionError),
    /// The epoch does not suit the regions.
    #[error("network.epoch_s: {0}")]
    Epoch(#[from] EpochError),
    /// Ranks cannot be placed.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// An algorithm that was chosen does not work for the ranks of the trace.
    #[error("the collective algorithms: {0}")]
    Collectives(#[from] SelectionError),
    /// An action of a rank cannot be replayed.
    #[error("{place}: rank {}, action {}: {}", .error.rank, .error.action, describe(&.error.kind))]
    Replay {
        /// Position of the action in the trace.
        place: String,
        /// Cause.
        error: Box<ReplayError<RouteError>>,
    },
    /// The costs of the regions cannot be read.
    #[error(transparent)]
    RegionCosts(#[from] RegionCostsError),
    /// Ranks cannot be assigned to workers.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// The program deadlocks.
    #[error("{0}")]
    Deadlock(Deadlock),
    /// The timeline cannot be written.
    #[error(transparent)]
    Timeline(#[from] TimelineError),
    /// A checkpoint cannot be written, or resumed from.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The run was stopped on request, and a checkpoint was written.
    #[error("stopped after {actions} actions; --resume continues from {}", checkpoint.display())]
    Stopped {
        /// Number of actions replayed, of all ranks.
        actions: u64,
        /// Path of the checkpoint.
        checkpoint: PathBuf,
    },
    /// Another process failed, and reports the reason itself.
    #[error("process {process} failed")]
    OtherProcess {
        /// Index of the process.
        process: usize,
    },
    /// The processes were not started for the same run: configuration, trace or version differ.
    #[error("this process was given another configuration or trace than process 0, or is of another version")]
    ProcessMismatch,
    /// The processes lost contact with each other.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

fn describe(kind: &ReplayErrorKind<RouteError>) -> String {
    match kind {
        ReplayErrorKind::NoRoute { source, .. } => format!("{kind}: {source}"),
        _ => kind.to_string(),
    }
}

impl Simulation {
    /// Loads the inputs of a job.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is invalid.
    pub fn load(job: &Job) -> Result<Self, RunError> {
        Self::load_with_progress(job, &AtomicU64::new(0))
    }

    /// Loads the inputs of a job and counts the actions read in `actions`, for a progress display.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is invalid.
    pub fn load_with_progress(job: &Job, actions: &AtomicU64) -> Result<Self, RunError> {
        let mut simulation = Self::open(job, actions)?;
        simulation.load_ranks((0..simulation.trace.ranks()).map(Rank::new))?;
        simulation.trace.check_actions(simulation.trace.loaded_actions()).map_err(TraceError::from)?;
        Ok(simulation)
    }

    /// Loads the inputs of a job except the ranks of an archive.
    pub(crate) fn open(job: &Job, actions: &AtomicU64) -> Result<Self, RunError> {
        let started = Instant::now();
        // The platform first: it is small, and an error in it should be reported before a large trace is read.
        let mut platform = match &job.platform {
            PlatformSource::File(path) => read_platform(path)?,
            PlatformSource::Inline(description) => {
                Platform::from_description((**description).clone()).map_err(PlatformFileError::from)?
            }
        };
        platform.set_routing_rule(job.routing);
        platform.set_default_loopback(job.network.loopback_bandwidth, job.network.loopback_latency_s);
        let defaults = LoadOptions::default();
        let epochs = EpochPlan::new(job, &platform)?;
        let model = epochs.as_ref().and(job.model.with_epochs).unwrap_or(job.model);
        let region_costs = match (&job.region_costs, &epochs) {
            (Some(path), Some(plan)) => Some(read_region_costs(path, plan.regions())?),
            (Some(path), None) => {
                tracing::warn!(
                    "parallel.region_costs {} is of no use: there are regions with network.model = \"flow\" and network.epoch_s above 0 only",
                    path.display()
                );
                None
            }
            (None, _) => None,
        };
        let options = LoadOptions {
            threads: job.reading_threads,
            ranks: job.ranks,
            memory_budget: job.memory_budget.unwrap_or(defaults.memory_budget),
            progress: Some(actions),
            ..defaults
        };
        let trace = Trace::open(&job.trace, &options)?;
        let placement = match &job.hosts {
            Some(path) => Placement::from_file(&platform, path, trace.ranks())?,
            None => Placement::cyclic(&platform, trace.ranks())?,
        };
        let load_time = started.elapsed();
        Ok(Self {
            job: job.clone(),
            trace,
            platform,
            placement,
            model,
            epochs,
            region_costs,
            load_time,
            rank_assignment: None,
            region_blocks: None,
            jitter: None,
            batch: None,
            stop: StopHandle::default(),
            unmodelled_warning: OnceLock::new(),
        })
    }

    /// Loads `ranks` of an archive.
    pub(crate) fn load_ranks(&mut self, ranks: impl Iterator<Item = Rank>) -> Result<(), RunError> {
        let started = Instant::now();
        self.trace.load_ranks(ranks).map_err(TraceError::from)?;
        for ranks in communicator_sizes(&self.trace) {
            self.job.mpi.collectives.check(ranks)?;
        }
        self.load_time += started.elapsed();
        Ok(())
    }

    /// Perturbs the schedule of the replay at random if there is a seed, to test that the result does not depend on it.
    pub fn with_jitter(self, seed: Option<u64>) -> Self {
        Self { jitter: seed, ..self }
    }

    /// Sets how many tokens for one worker are gathered before they are sent, to test that the result does not depend on it.
    pub fn with_batch(self, tokens: usize) -> Self {
        Self { batch: Some(tokens), ..self }
    }

    /// Connects a handle that stops the replay with a checkpoint. It has no effect if the replay writes no checkpoints.
    pub fn with_stop(self, stop: StopHandle) -> Self {
        Self { stop, ..self }
    }

    /// Returns the simulation, which holds all ranks, with another assignment of ranks to workers.
    pub fn with_partition(mut self, partition: PartitionSource) -> Self {
        (self.job.partition, self.rank_assignment) = (partition, None);
        self
    }

    /// Returns the simulation with another bound on run-ahead.
    pub fn with_run_ahead(mut self, run_ahead: RunAhead) -> Self {
        self.job.run_ahead = run_ahead;
        self
    }

    /// Returns the simulation, which holds all ranks, with another number of threads.
    pub fn with_threads(mut self, threads: usize) -> Self {
        (self.job.threads, self.rank_assignment) = (threads, None);
        self
    }

    /// Returns the job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    pub(crate) fn platform(&self) -> &Platform {
        &self.platform
    }

    pub(crate) fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Returns the trace.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns the wall-clock time of loading.
    pub fn load_time(&self) -> Duration {
        self.load_time
    }

    /// Returns the wall-clock cost of each region in an earlier replay \[ns\], if known.
    pub(crate) fn region_costs(&self) -> Option<&[u64]> {
        self.region_costs.as_deref()
    }

    /// Returns the network model.
    pub fn model(&self) -> &'static Model {
        self.model
    }

    /// Returns the epochs of the network model, if it has any.
    pub(crate) fn epochs(&self) -> Option<&EpochPlan> {
        self.epochs.as_ref()
    }

    /// Returns warnings that a user should know before trusting the result, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.platform.warnings().to_vec();
        warnings.extend(self.trace.warnings().iter().map(ToString::to_string));
        warnings.extend(self.trace.unreceived().map(|unreceived| unreceived.to_string()));
        warnings.extend(unfinished_warning(&self.trace));
        warnings.extend(self.unmodelled_warning.get_or_init(|| unmodelled_warning(&self.trace)).clone());
        if self.trace.ranks() > 0 {
            let speed = self.platform.host(self.placement.host(Rank::new(0))).speed;
            warnings.extend(acquisition_warnings::warnings(&self.trace.provenance(), speed));
        }
        let Model { key, capabilities, .. } = self.model;
        if !capabilities.cores {
            warnings.extend(self.placement.overcommitted(&self.platform).map(|(host, ranks)| {
                let host = self.platform.host(host);
                format!(
                    "{} has {ranks} ranks for {} core(s); the model {key:?} gives each rank a core of its own",
                    host.name, host.cores
                )
            }));
        }
        if !self.model.distributes_ranks() && self.job.partition != PartitionSource::Blocks {
            let names = Model::names_with(|other| other.threads && !other.regions);
            warnings.push(format!(
                "a partition helps {names} only: the model {key:?} keeps ranks with their regions, or on one thread"
            ));
        }
        warnings.extend(self.fast_forward_obstacle().map(|why| format!("nothing is fast-forwarded: {why}")));
        if !capabilities.links && self.job.links == Some(true) {
            let names = Model::names_with(|other| other.links);
            warnings.push(format!(
                "analysis.links: the model {key:?} knows no links; take network.model = {names}"
            ));
        }
        if !capabilities.threads && self.job.threads > 1 {
            let (threads, setting) = (self.job.threads, self.model.setting_for_threads());
            warnings.push(format!(
                "the exact model {key:?} runs on one thread; for {threads} threads take {setting}"
            ));
        }
        warnings
    }

    /// Returns the reason why no iteration is fast-forwarded although this was requested.
    fn fast_forward_obstacle(&self) -> Option<String> {
        let key = self.model.key;
        let obstacle = if !self.job.fast_forward {
            return None;
        } else if !self.model.capabilities.fast_forward {
            return Some(format!("with the model {key:?} what happens depends on more than how much later"));
        } else if self.job.histograms {
            "histograms count every message (analysis.histograms)"
        } else if self.job.critical_path {
            "a critical path goes through every iteration (analysis.critical_path)"
        } else if self.job.timeline.is_some() {
            "a timeline shows every iteration (timeline.file)"
        } else if self.trace.is_in_memory() {
            "only an archive has loops; convert the trace (trace convert)"
        } else {
            return None;
        };
        Some(obstacle.to_owned())
    }

    /// Replays the trace on the platform.
    ///
    /// The outcome is the same for any number of threads and any bound on run-ahead. With contention and without epochs the
    /// replay runs on one thread.
    ///
    /// # Errors
    /// Returns an error if the program is wrong: a deadlock, a message longer than its receive, ranks in different collectives.
    pub fn replay(&self, progress: &Progress) -> Result<Outcome, RunError> {
        match self.model.execution {
            Execution::Uncontended => self.replay_contention_free(progress),
            Execution::InTimeOrder(_) | Execution::ByRegions(_) => self.replay_with_contention(progress),
            Execution::Schedules => unreachable!("a job is for traces"),
        }
    }

    /// Replays without contention.
    fn replay_contention_free(&self, progress: &Progress) -> Result<Outcome, RunError> {
        let started = Instant::now();
        let machine = ContentionFreeMachine::new(
            &self.platform,
            &self.placement,
            ContentionFree::new(&self.job.network),
        );
        let RankAssignment { partition, cuts } = self.job.partition.assign(&self.trace, self.job.threads)?;
        let engine = self.engine(partition);
        let shows_every_action = self.job.histograms || self.job.critical_path || self.job.timeline.is_some();
        if self.job.fast_forward && !shows_every_action {
            let world = self.world(&machine).stopping_at_iterations();
            let processes = world.processes().map_err(|error| self.locate(error))?;
            if let Some((run, found)) = fast_forward::run(&engine, processes, progress) {
                return Ok(Outcome { cuts, fast_forward: Some(found), ..self.outcome_of_run(started, run)? });
            }
            // A rank failed. Only a run without stops at iteration boundaries finds the first failure in time order: replay all.
            progress.continue_after(0);
        }
        let spool = self.spool();
        let world = self.world(&machine).with_recording(self.recording(spool.as_ref()));
        if let Some(plan) = &self.job.checkpoints {
            let (stop, trace, identity) = (&self.stop, &self.trace, RunIdentity::of(self)?);
            let legs = CheckpointSegments { plan, stop, engine, trace, world: &world, progress, identity };
            let (run, summary) = legs.run(|error| self.locate(error))?;
            return Ok(Outcome { cuts, checkpoints: Some(summary), ..self.outcome_of_run(started, run)? });
        }
        let processes = world.processes().map_err(|error| self.locate(error))?;
        let outcome = self.outcome_of_run(started, engine.run_with_progress(processes, progress))?;
        let distributions = world.distributions();
        Ok(Outcome { cuts, distributions, timeline: self.write_timeline(spool.as_ref())?, ..outcome })
    }

    /// Returns whether the wait states of ranks are analysed.
    pub(crate) fn analyses_waits(&self) -> bool {
        let are_few = self.trace.ranks() <= MAX_RANKS_WITH_WAITS;
        self.job.waits.unwrap_or(self.job.histograms || are_few)
    }

    /// Returns whether the loads of links are recorded.
    pub(crate) fn records_links(&self) -> bool {
        let are_few = self.platform.links().len() <= MAX_RECORDED_LINKS;
        self.model.capabilities.links && self.job.links.unwrap_or(are_few)
    }

    /// Creates the world of the trace on `machine`.
    pub(crate) fn world<'a, M: Machine>(&'a self, machine: &'a M) -> Replay<'a, M> {
        let ranks = (0..self.trace.ranks()).map(Rank::new);
        let world = Replay::new(&self.trace, machine, &self.job.mpi)
            .with_breakdowns(self.analyses_waits())
            .with_distributions(self.job.histograms);
        if self.job.critical_path { world.with_critical_paths(ranks) } else { world }
    }

    /// Creates the engine for a replay without contention.
    pub(crate) fn engine(&self, partition: Partition) -> Engine {
        let engine = Engine::new(self.job.threads).run_ahead(self.job.run_ahead).partition(partition);
        let engine = self.batch.map_or(engine.clone(), |tokens| engine.batch(tokens));
        self.jitter.map_or(engine.clone(), |seed| engine.jitter(seed))
    }

    /// Replays with contention.
    fn replay_with_contention(&self, progress: &Progress) -> Result<Outcome, RunError> {
        let started = Instant::now();
        if let Some(plan) = &self.epochs
            && let Some((outcome, _)) =
                self.replay_regions(&self.regional_engine(), started, plan, progress)?
        {
            return Ok(outcome);
        }
        self.replay_sequential(started, progress)
    }

    /// Replays with contention on one thread, in time order.
    pub(crate) fn replay_sequential(
        &self,
        started: Instant,
        progress: &Progress,
    ) -> Result<Outcome, RunError> {
        match self.model.execution {
            Execution::InTimeOrder(run) | Execution::ByRegions(run) => {
                run(OrderedReplay { simulation: self, started, progress })
            }
            Execution::Uncontended | Execution::Schedules => unreachable!("there is no contention"),
        }
    }

    /// Creates the engine for a replay region by region.
    pub(crate) fn regional_engine(&self) -> RegionalEngine {
        let engine = RegionalEngine::new(self.job.threads);
        self.jitter.map_or(engine.clone(), |seed| engine.jitter(seed))
    }

    /// Replays with contention, region by region; `None` if a rank depends on the global event order.
    pub(crate) fn replay_regions(
        &self,
        engine: &RegionalEngine,
        started: Instant,
        plan: &EpochPlan,
        progress: &Progress,
    ) -> Result<Option<(Outcome, Option<RegionalTiming>)>, RunError> {
        let machine = SharedMachine::new(&self.platform, &self.placement, &self.job.network)
            .with_compute_run_ahead(self.trace.ranks());
        let spool = self.spool();
        let world = self.world(&machine).with_recording(self.recording(spool.as_ref()));
        let processes = world.processes().map_err(|error| self.locate(error))?;
        let epoch_machine = plan.machine(&self.platform, &self.job.network)?;
        let epoch_machine = epoch_machine.with_link_loads(self.records_links());
        let homes = plan.homes(&self.placement, self.trace.ranks());
        let adapters = RegionAdapter::create_all(0..plan.regions(), &epoch_machine, &self.placement, &homes);
        match engine.run(plan.epoch(), processes, &homes, adapters, progress) {
            Ok(RegionalRun { run, mut regions, exchange_counts: crossings, timing }) => {
                let outcome = self.outcome_of_run(started, run)?;
                let epochs = Some(RegionAdapter::summary(&regions, crossings));
                let loads =
                    || RegionAdapter::link_loads(&epoch_machine, &mut regions, outcome.simulated_time());
                let links = self.records_links().then(loads);
                let (distributions, timeline) = (world.distributions(), self.write_timeline(spool.as_ref())?);
                Ok(Some((Outcome { epochs, distributions, links, timeline, ..outcome }, timing)))
            }
            Err(unordered) => {
                self.warn_sequential(unordered);
                Ok(None)
            }
        }
    }

    pub(crate) fn warn_sequential(&self, UnorderedConditional { rank, at }: UnorderedConditional) {
        tracing::warn!(
            "rank {rank} depends at {at} s on the global event order, which needs one thread for all regions: {} thread(s) do not help",
            self.job.threads
        );
    }

    fn outcome_of_run<M>(&self, started: Instant, run: Run<RankProcess<'_, M>>) -> Result<Outcome, RunError>
    where
        M: Machine<Error = RouteError>,
    {
        // A damaged archive is detected while it is read; results computed meanwhile are invalid.
        self.trace.integrity().map_err(TraceError::from)?;
        match run.ending {
            Ending::Completed => {
                let ends = run.processes.iter().map(Process::clock).collect();
                let critical_path = last_critical_path(&run.processes);
                // One rank at a time, so that the peak memory does not grow.
                let statistics = run.processes.into_iter().map(RankProcess::into_statistics).collect();
                Ok(Outcome {
                    ends,
                    statistics,
                    replay_time: started.elapsed(),
                    cuts: None,
                    epochs: None,
                    distributions: None,
                    critical_path,
                    links: None,
                    timeline: None,
                    fast_forward: None,
                    checkpoints: None,
                    processes: 1,
                    peak_rss_bytes: peak_rss_bytes(),
                })
            }
            Ending::Failed(_, fault) => Err(self.locate(fault.error)),
            Ending::StoppedAtCheckpoint => unreachable!("ranks that halt are run again"),
            Ending::Deadlocked(ranks) => {
                let waiting = |rank: Rank| run.processes[rank.index()].wait_reason();
                Err(RunError::Deadlock(Deadlock::find(&self.trace, &ranks, waiting)))
            }
        }
    }

    pub(crate) fn locate(&self, error: Box<ReplayError<RouteError>>) -> RunError {
        let place = match self.trace.locate(error.rank, error.action) {
            Ok(location) => location.to_string(),
            // The text may have gone since it was read; the error itself still names rank and action.
            Err(_) => self.job.trace.display().to_string(),
        };
        RunError::Replay { place, error }
    }
}

/// Returns the critical path to the end of the last of these ranks; at a tie, that of the lowest rank.
pub(crate) fn last_critical_path<M: Machine>(processes: &[RankProcess<'_, M>]) -> Option<CriticalPath> {
    latest_path(processes.iter().filter_map(RankProcess::critical_path)).cloned()
}

/// Returns the path that ends last; at a tie, that of the lowest rank.
pub(crate) fn latest_path<P: Borrow<CriticalPath>>(paths: impl Iterator<Item = P>) -> Option<P> {
    paths.min_by_key(|path| (std::cmp::Reverse(path.borrow().end()), path.borrow().rank()))
}

/// Returns the distinct sizes of the communicators of the ranks that are loaded.
fn communicator_sizes(trace: &Trace) -> BTreeSet<u32> {
    let held = trace.loaded_ranks();
    held.flat_map(|rank| trace.rank(rank).communicators())
        .map(|communicator| communicator.group.len())
        .collect()
}

/// Returns a warning that names the calls which take no time in a replay, although they did in the program.
fn unmodelled_warning(trace: &Trace) -> Option<String> {
    // A damaged archive ends the run on the process that holds the ranks concerned; no warning is needed.
    let calls = UnmodelledCalls::of(trace).ok().filter(|calls| !calls.is_empty())?;
    let calls: Vec<String> = calls.iter().map(ToString::to_string).collect();
    Some(format!("calls that no replay models take no time: {}", calls.join(", ")))
}

/// Returns a warning with the number of requests that the program never completes, if there are any.
fn unfinished_warning(trace: &Trace) -> Option<String> {
    let ranks = (0..trace.ranks()).map(Rank::new);
    // Invalid tables end the run on the process that holds the ranks concerned.
    let pending = ranks.filter_map(|rank| Some((rank, trace.outline(rank).ok()?.1)));
    let pending: Vec<(Rank, u64)> = pending.filter(|&(_, requests)| requests > 0).collect();
    let requests: u64 = pending.iter().map(|(_, requests)| requests).sum();
    let (first, _) = pending.first()?;
    Some(format!(
        "{requests} requests of {} ranks, the first of rank {first}, are not completed by the program; the replay waits for them at \
         the end of the trace",
        pending.len()
    ))
}

impl Outcome {
    /// Returns an outcome of `ranks` ranks without results.
    pub(crate) fn empty(ranks: u32, replay_time: Duration) -> Self {
        Self {
            ends: vec![SimTime::ZERO; ranks as usize],
            statistics: vec![Statistics::default(); ranks as usize],
            replay_time,
            cuts: None,
            epochs: None,
            distributions: None,
            critical_path: None,
            links: None,
            timeline: None,
            fast_forward: None,
            checkpoints: None,
            processes: 1,
            peak_rss_bytes: None,
        }
    }

    /// Returns the end time of the last rank.
    pub fn simulated_time(&self) -> SimTime {
        self.ends.iter().copied().max().unwrap_or(SimTime::ZERO)
    }

    /// Returns the rank that ended last and the one that ended first; at a tie, the lowest.
    pub fn slowest_and_fastest(&self) -> Option<(Rank, Rank)> {
        let ranks = || self.ends.iter().enumerate();
        let slowest = ranks().min_by_key(|&(rank, &end)| (std::cmp::Reverse(end), rank))?;
        let fastest = ranks().min_by_key(|&(rank, &end)| (end, rank))?;
        Some((Rank::new(slowest.0 as u32), Rank::new(fastest.0 as u32)))
    }
}
