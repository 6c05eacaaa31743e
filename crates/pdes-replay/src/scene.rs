//! A run: what is loaded, what comes out, and what can go wrong.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use mpi_model::collective::SelectionError;
use mpi_model::{
    CriticalPath, Distributions, Machine, RankProcess, ReplayError, ReplayErrorKind, Statistics, World,
};
use netmodel::epoch::EpochError;
use netmodel::{LinkLoads, LogGps, Platform, RegionError, RouteError};
use pdes_core::{
    ClusterError, Ending, Engine, OrderedEngine, Partition, Process, Progress, Rank, RegionBlocks,
    RegionalEngine, RegionalRun, RegionalTiming, Run, RunAhead, SimTime, Unordered,
};
use trace_mmap::{LoadOptions, Trace, TraceError, UnmodelledCalls};

use crate::acquired;
use crate::checkpoint::{CheckpointError, CheckpointSummary, Identity, Legs, Stop};
use crate::config::{PlatformFileError, read_platform};
use crate::contention::{Contention, EpochPlan, EpochSummary, SharedMachine};
use crate::deadlock::Deadlock;
use crate::forward::{self, FastForward};
use crate::job::{Job, Model, PlatformSource};
use crate::machine::PlacedMachine;
use crate::partition::{Cuts, Division, PartitionError, PartitionSource};
use crate::placement::{Placement, PlacementError};
use crate::profile::{RegionCostsError, read_region_costs};
use crate::province::Province;
use crate::report::peak_rss_bytes;
use ::timeline::{Summary, TimelineError};

/// Runs of more ranks than this do not look at waits unless they are asked to: that takes memory and time for each rank.
const MOST_RANKS_THAT_LOOK: u32 = 1 << 16;

/// What links carry is not recorded on platforms of more than these unless that is asked for: it takes a kilobyte for each.
const MOST_LINKS_RECORDED: usize = 1 << 16;

/// Everything that a replay needs, in memory.
#[derive(Debug)]
pub struct Scene {
    job: Job,
    trace: Trace,
    platform: Platform,
    placement: Placement,
    epochs: Option<EpochPlan>,
    /// What each region took in an earlier replay \[ns\], where that is known.
    region_costs: Option<Vec<u64>>,
    load_time: Duration,
    /// Which worker runs which rank, where ranks were loaded accordingly.
    pub(crate) division: Option<Division>,
    /// Which process runs which regions, where ranks were loaded accordingly.
    pub(crate) blocks: Option<RegionBlocks>,
    jitter: Option<u64>,
    batch: Option<usize>,
    stop: Stop,
    /// What is said of calls that take no time, once that was asked for.
    unmodelled: OnceLock<Option<String>>,
}

/// What comes out of a replay.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// When each rank ended.
    pub ends: Vec<SimTime>,
    /// What each rank did.
    pub statistics: Vec<Statistics>,
    /// How long the replay took on the wall clock.
    pub replay_time: Duration,
    /// What the partition cuts, unless ranks lay on workers in blocks.
    pub cuts: Option<Cuts>,
    /// How the epochs went, if there were any.
    pub epochs: Option<EpochSummary>,
    /// How messages and waits were distributed, where that was asked for.
    pub distributions: Option<Distributions>,
    /// What led to the end of the last rank, where that was asked for.
    pub critical_path: Option<CriticalPath>,
    /// What links carried, where messages shared them and that was asked for.
    pub links: Option<LinkLoads>,
    /// What the timeline holds; `None` where none was asked for.
    pub timeline: Option<Summary>,
    /// What was not replayed; `None` where all was.
    pub fast_forward: Option<FastForward>,
    /// What checkpoints did; `None` where none were to be written.
    pub checkpoints: Option<CheckpointSummary>,
    /// Processes of the operating system on which it ran.
    pub processes: u32,
    /// The largest resident memory of one of them \[B\]; `None` where the system does not tell.
    pub peak_rss_bytes: Option<u64>,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There are no regions that could run in parallel.
    #[error(
        "nothing runs in parallel: the platform is one region, or a rank asks who comes first, which needs one thread for all"
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
    /// A rank does what it must not.
    #[error("{place}: rank {}, action {}: {}", .error.rank, .error.action, describe(&.error.kind))]
    Replay {
        /// Where the action stands in the trace.
        place: String,
        /// What is wrong.
        error: Box<ReplayError<RouteError>>,
    },
    /// What regions cost is not known.
    #[error(transparent)]
    RegionCosts(#[from] RegionCostsError),
    /// Ranks cannot be put on workers.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// The program deadlocks.
    #[error("{0}")]
    Deadlock(Deadlock),
    /// The timeline cannot be written.
    #[error(transparent)]
    Timeline(#[from] TimelineError),
    /// A checkpoint cannot be written, or gone on from.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Somebody ended the run, and a checkpoint was written.
    #[error("stopped after {actions} actions; --resume goes on from {}", checkpoint.display())]
    Stopped {
        /// Actions of all ranks.
        actions: u64,
        /// The checkpoint.
        checkpoint: PathBuf,
    },
    /// Another process failed, and tells why itself.
    #[error("process {process} failed")]
    Elsewhere {
        /// The process.
        process: usize,
    },
    /// The processes were not started for the same run.
    #[error("this process was given another configuration or trace than process 0, or is of another version")]
    Different,
    /// The processes lost each other.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

fn describe(kind: &ReplayErrorKind<RouteError>) -> String {
    match kind {
        ReplayErrorKind::NoPath { source, .. } => format!("{kind}: {source}"),
        _ => kind.to_string(),
    }
}

impl Scene {
    /// Loads what a job names.
    ///
    /// # Errors
    /// Where a file cannot be read or is wrong.
    pub fn load(job: &Job) -> Result<Self, RunError> {
        Self::load_watched(job, &AtomicU64::new(0))
    }

    /// Loads what a job names and counts the actions read meanwhile.
    ///
    /// # Errors
    /// Where a file cannot be read or is wrong.
    pub fn load_watched(job: &Job, actions: &AtomicU64) -> Result<Self, RunError> {
        let mut scene = Self::open(job, actions)?;
        scene.hold((0..scene.trace.ranks()).map(Rank::new))?;
        scene.trace.check_actions(scene.trace.held_actions()).map_err(TraceError::from)?;
        Ok(scene)
    }

    /// Loads what a job names, but for the ranks of an archive.
    pub(crate) fn open(job: &Job, actions: &AtomicU64) -> Result<Self, RunError> {
        let started = Instant::now();
        // The platform first: it is small, and a wrong one should show before a large trace is read.
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
            epochs,
            region_costs,
            load_time,
            division: None,
            blocks: None,
            jitter: None,
            batch: None,
            stop: Stop::default(),
            unmodelled: OnceLock::new(),
        })
    }

    /// Loads these ranks of an archive.
    pub(crate) fn hold(&mut self, ranks: impl Iterator<Item = Rank>) -> Result<(), RunError> {
        let started = Instant::now();
        self.trace.hold(ranks).map_err(TraceError::from)?;
        for ranks in communicator_sizes(&self.trace) {
            self.job.mpi.collectives.check(ranks)?;
        }
        self.load_time += started.elapsed();
        Ok(())
    }

    /// Disturbs the schedule of the replay at random, or does not, to test that the result does not depend on it.
    pub fn with_jitter(self, seed: Option<u64>) -> Self {
        Self { jitter: seed, ..self }
    }

    /// Sets how many tokens for one worker are gathered before they are sent, to test that the result does not depend on
    /// it.
    pub fn with_batch(self, tokens: usize) -> Self {
        Self { batch: Some(tokens), ..self }
    }

    /// Lets somebody end the replay with a checkpoint, if it writes some.
    pub fn with_stop(self, stop: Stop) -> Self {
        Self { stop, ..self }
    }

    /// Returns the scene, which holds all ranks, with ranks put on workers in another way.
    pub fn with_partition(mut self, partition: PartitionSource) -> Self {
        (self.job.partition, self.division) = (partition, None);
        self
    }

    /// Returns the scene with another bound on run-ahead.
    pub fn with_run_ahead(mut self, run_ahead: RunAhead) -> Self {
        self.job.run_ahead = run_ahead;
        self
    }

    /// Returns the scene, which holds all ranks, with another number of threads.
    pub fn with_threads(mut self, threads: usize) -> Self {
        (self.job.threads, self.division) = (threads, None);
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

    /// Returns how long loading took on the wall clock.
    pub fn load_time(&self) -> Duration {
        self.load_time
    }

    /// Returns what each region took in an earlier replay \[ns\], where that is known.
    pub(crate) fn region_costs(&self) -> Option<&[u64]> {
        self.region_costs.as_deref()
    }

    /// Returns the epochs in which the model runs, if it does.
    pub(crate) fn epochs(&self) -> Option<&EpochPlan> {
        self.epochs.as_ref()
    }

    /// Returns what a user should know before trusting the result, a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.platform.warnings().to_vec();
        warnings.extend(self.trace.warnings().iter().map(ToString::to_string));
        warnings.extend(self.trace.unreceived().map(|unreceived| unreceived.to_string()));
        warnings.extend(unfinished(&self.trace));
        warnings.extend(self.unmodelled.get_or_init(|| unmodelled(&self.trace)).clone());
        if self.trace.ranks() > 0 {
            let speed = self.platform.host(self.placement.host(Rank::new(0))).speed;
            warnings.extend(acquired::warnings(&self.trace.provenance(), speed));
        }
        if self.job.model == Model::LogGps {
            warnings.extend(self.placement.overcommitted(&self.platform).map(|(host, ranks)| {
                let host = self.platform.host(host);
                format!(
                    "{} has {ranks} ranks for {} core(s); the model \"loggps\" gives each rank a core of its own",
                    host.name, host.cores
                )
            }));
        }
        if self.job.model == Model::Flow && self.job.partition != PartitionSource::Blocks {
            warnings.push(
                "a partition helps \"loggps\" only: the model \"flow\" keeps ranks with their regions, or on one thread"
                    .to_owned(),
            );
        }
        warnings.extend(self.no_fast_forward().map(|why| format!("nothing is fast-forwarded: {why}")));
        if self.job.model == Model::LogGps && self.job.links == Some(true) {
            warnings.push(
                "analysis.links: the model \"loggps\" knows no links; take network.model = \"flow\""
                    .to_owned(),
            );
        }
        if self.job.model == Model::Flow && self.job.threads > 1 && self.epochs.is_none() {
            let threads = self.job.threads;
            warnings.push(format!(
                "the exact model \"flow\" runs on one thread; for {threads} threads take epoch_s = \"auto\""
            ));
        }
        warnings
    }

    /// Says why no iteration is passed over although that is asked for.
    fn no_fast_forward(&self) -> Option<&'static str> {
        if !self.job.fast_forward {
            None
        } else if self.job.model == Model::Flow {
            Some("with the model \"flow\" what happens depends on more than how much later")
        } else if self.job.histograms {
            Some("histograms count every message (analysis.histograms)")
        } else if self.job.critical_path {
            Some("a critical path goes through every iteration (analysis.critical_path)")
        } else if self.job.timeline.is_some() {
            Some("a timeline shows every iteration (timeline.file)")
        } else if self.trace.is_in_memory() {
            Some("only an archive has loops; convert the trace (trace convert)")
        } else {
            None
        }
    }

    /// Replays the trace on the platform.
    ///
    /// The outcome is the same for any number of threads and any bound on run-ahead. With contention the replay runs on
    /// one thread.
    ///
    /// # Errors
    /// Where the program is wrong: a deadlock, a message longer than its receive, ranks in different collectives.
    pub fn replay(&self, progress: &Progress) -> Result<Outcome, RunError> {
        match self.job.model {
            Model::LogGps => self.replay_alone(progress),
            Model::Flow => self.replay_shared(progress),
        }
    }

    /// Replays without contention.
    fn replay_alone(&self, progress: &Progress) -> Result<Outcome, RunError> {
        let started = Instant::now();
        let machine = PlacedMachine::new(&self.platform, &self.placement, LogGps::new(&self.job.network));
        let Division { partition, cuts } = self.job.partition.divide(&self.trace, self.job.threads)?;
        let engine = self.engine(partition);
        let shows_every_action = self.job.histograms || self.job.critical_path || self.job.timeline.is_some();
        if self.job.fast_forward && !shows_every_action {
            let world = self.world(&machine).by_iterations();
            let processes = world.processes().map_err(|error| self.locate(error))?;
            if let Some((run, found)) = forward::run(&engine, processes, progress) {
                return Ok(Outcome { cuts, fast_forward: Some(found), ..self.conclude(started, run)? });
            }
            progress.go_on_after(0);
        }
        let spool = self.spool();
        let world = self.world(&machine).with_recording(self.recording(spool.as_ref()));
        if let Some(plan) = &self.job.checkpoints {
            let (stop, trace, identity) = (&self.stop, &self.trace, Identity::of(self)?);
            let legs = Legs { plan, stop, engine, trace, world: &world, progress, identity };
            let (run, summary) = legs.run(|error| self.locate(error))?;
            return Ok(Outcome { cuts, checkpoints: Some(summary), ..self.conclude(started, run)? });
        }
        let processes = world.processes().map_err(|error| self.locate(error))?;
        let outcome = self.conclude(started, engine.run_watched(processes, progress))?;
        let distributions = world.distributions();
        Ok(Outcome { cuts, distributions, timeline: self.write_timeline(spool.as_ref())?, ..outcome })
    }

    /// Returns whether ranks find out where their time goes.
    pub(crate) fn looks_at_waits(&self) -> bool {
        let are_few = self.trace.ranks() <= MOST_RANKS_THAT_LOOK;
        self.job.waits.unwrap_or(self.job.histograms || are_few)
    }

    /// Returns whether it is recorded what links carry.
    pub(crate) fn records_links(&self) -> bool {
        let are_few = self.platform.links().len() <= MOST_LINKS_RECORDED;
        self.job.model == Model::Flow && self.job.links.unwrap_or(are_few)
    }

    /// The world of the trace on a machine.
    pub(crate) fn world<'a, M: Machine>(&'a self, machine: &'a M) -> World<'a, M> {
        let ranks = (0..self.trace.ranks()).map(Rank::new);
        let world = World::new(&self.trace, machine, &self.job.mpi)
            .with_breakdowns(self.looks_at_waits())
            .with_distributions(self.job.histograms);
        if self.job.critical_path { world.with_critical_paths(ranks) } else { world }
    }

    /// The engine for a replay without contention.
    pub(crate) fn engine(&self, partition: Partition) -> Engine {
        let engine = Engine::new(self.job.threads).run_ahead(self.job.run_ahead).partition(partition);
        let engine = self.batch.map_or(engine.clone(), |tokens| engine.batch(tokens));
        self.jitter.map_or(engine.clone(), |seed| engine.jitter(seed))
    }

    /// Replays with contention.
    fn replay_shared(&self, progress: &Progress) -> Result<Outcome, RunError> {
        let started = Instant::now();
        if let Some(plan) = &self.epochs
            && let Some((outcome, _)) =
                self.replay_regions(&self.regional_engine(), started, plan, progress)?
        {
            return Ok(outcome);
        }
        self.replay_in_order(started, progress)
    }

    /// Replays with contention, all of it in the order of time.
    pub(crate) fn replay_in_order(&self, started: Instant, progress: &Progress) -> Result<Outcome, RunError> {
        let machine = SharedMachine::new(&self.platform, &self.placement, &self.job.network);
        let spool = self.spool();
        let world = self.world(&machine).with_recording(self.recording(spool.as_ref()));
        let processes = world.processes().map_err(|error| self.locate(error))?;
        let mut contention = Contention::new(&machine, &self.job.network, self.epochs.as_ref())?;
        if self.records_links() {
            contention = contention.with_link_loads();
        }
        let engine = OrderedEngine::default();
        let engine = self.jitter.map_or(engine.clone(), |seed| engine.jitter(seed));
        let outcome = self.conclude(started, engine.run(processes, &mut contention, progress))?;
        let end = outcome.simulated_time();
        let links = if self.records_links() { contention.link_loads(end) } else { None };
        let (epochs, distributions) = (contention.epochs(), world.distributions());
        Ok(Outcome {
            epochs,
            distributions,
            links,
            timeline: self.write_timeline(spool.as_ref())?,
            ..outcome
        })
    }

    /// The engine for a replay region by region.
    pub(crate) fn regional_engine(&self) -> RegionalEngine {
        let engine = RegionalEngine::new(self.job.threads);
        self.jitter.map_or(engine.clone(), |seed| engine.jitter(seed))
    }

    /// Replays with contention, region by region; `None` where that cannot be done.
    pub(crate) fn replay_regions(
        &self,
        engine: &RegionalEngine,
        started: Instant,
        plan: &EpochPlan,
        progress: &Progress,
    ) -> Result<Option<(Outcome, Option<RegionalTiming>)>, RunError> {
        let machine = SharedMachine::new(&self.platform, &self.placement, &self.job.network)
            .with_ranks_ahead(self.trace.ranks());
        let spool = self.spool();
        let world = self.world(&machine).with_recording(self.recording(spool.as_ref()));
        let processes = world.processes().map_err(|error| self.locate(error))?;
        let ground = plan.machine(&self.platform, &self.job.network)?;
        let ground = ground.with_link_loads(self.records_links());
        let homes = plan.homes(&self.placement, self.trace.ranks());
        let provinces = Province::make(0..plan.regions(), &ground, &self.placement, &homes);
        match engine.run(plan.epoch(), processes, &homes, provinces, progress) {
            Ok(RegionalRun { run, mut regions, crossings, timing }) => {
                let outcome = self.conclude(started, run)?;
                let epochs = Some(Province::summary(&regions, crossings));
                let loads = || Province::link_loads(&ground, &mut regions, outcome.simulated_time());
                let links = self.records_links().then(loads);
                let (distributions, timeline) = (world.distributions(), self.write_timeline(spool.as_ref())?);
                Ok(Some((Outcome { epochs, distributions, links, timeline, ..outcome }, timing)))
            }
            Err(unordered) => {
                self.warn_of_one_thread(unordered);
                Ok(None)
            }
        }
    }

    pub(crate) fn warn_of_one_thread(&self, Unordered { rank, at }: Unordered) {
        tracing::warn!(
            "rank {rank} asks at {at} s who comes first, which needs one thread for all regions: {} thread(s) are of no use",
            self.job.threads
        );
    }

    fn conclude<M>(&self, started: Instant, run: Run<RankProcess<'_, M>>) -> Result<Outcome, RunError>
    where
        M: Machine<Error = RouteError>,
    {
        // Damage of an archive shows while it is read; what was computed meanwhile means nothing.
        self.trace.integrity().map_err(TraceError::from)?;
        match run.ending {
            Ending::Completed => {
                let ends = run.processes.iter().map(Process::clock).collect();
                let critical_path = last_path(&run.processes);
                // One rank after the other, so that memory does not grow once more.
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
            Ending::Halted => unreachable!("ranks that halt are run again"),
            Ending::Stalled(ranks) => {
                let waiting = |rank: Rank| run.processes[rank.index()].waiting();
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

/// What led to the end of the last rank of these; of equals, the lowest.
pub(crate) fn last_path<M: Machine>(processes: &[RankProcess<'_, M>]) -> Option<CriticalPath> {
    last(processes.iter().filter_map(RankProcess::critical_path)).cloned()
}

/// The path that ends last; of equals, that of the lowest rank.
pub(crate) fn last<P: Borrow<CriticalPath>>(paths: impl Iterator<Item = P>) -> Option<P> {
    paths.min_by_key(|path| (std::cmp::Reverse(path.borrow().end()), path.borrow().rank()))
}

/// The numbers of ranks of the communicators of the ranks that a trace holds, each once.
fn communicator_sizes(trace: &Trace) -> BTreeSet<u32> {
    let held = trace.held();
    held.flat_map(|rank| trace.rank(rank).communicators())
        .map(|communicator| communicator.group.len())
        .collect()
}

/// Says how many requests the ends of ranks wait for, if there are any.
/// Says which calls of a trace take no time in a replay, though they did in the program.
fn unmodelled(trace: &Trace) -> Option<String> {
    // Damage ends the run on the process whose ranks it concerns.
    let calls = UnmodelledCalls::of(trace).ok().filter(|calls| !calls.is_empty())?;
    let calls: Vec<String> = calls.iter().map(ToString::to_string).collect();
    Some(format!("calls that no replay models take no time: {}", calls.join(", ")))
}

fn unfinished(trace: &Trace) -> Option<String> {
    let ranks = (0..trace.ranks()).map(Rank::new);
    // Tables that are wrong end the run on the process whose ranks they are.
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
    /// Nothing of so many ranks.
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

    /// Returns the end of the last rank.
    pub fn simulated_time(&self) -> SimTime {
        self.ends.iter().copied().max().unwrap_or(SimTime::ZERO)
    }

    /// Returns the rank that ended last, and the one that ended first; of equals, the lowest.
    pub fn slowest_and_fastest(&self) -> Option<(Rank, Rank)> {
        let ranks = || self.ends.iter().enumerate();
        let slowest = ranks().min_by_key(|&(rank, &end)| (std::cmp::Reverse(end), rank))?;
        let fastest = ranks().min_by_key(|&(rank, &end)| (end, rank))?;
        Some((Rank::new(slowest.0 as u32), Rank::new(fastest.0 as u32)))
    }
}
