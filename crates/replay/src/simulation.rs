//! The simulation of one trace on one platform: loading here, replays in the submodules.

mod error;
mod failure;
mod files;
mod link_blame;
mod ordered;
mod outcome;
mod overheads;
mod rank_loads;
mod regional;
mod run;
mod switches;
mod warnings;

use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use mpi_model::{EventSink, Excerpt, Statistics};
use netmodel::flow::windows::{WindowError, window};
use netmodel::{HostId, MessageRouting, Platform};
use pdes_core::{
    Cluster, Engine, LpId, Partition, Rank, RegionBlocks, RegionIndex, RegionalEngine, RunAhead, SimDuration,
};
use trace_mmap::{LoadOptions, Trace, TraceError};

use crate::certificate::CertificateRecorder;
use crate::checkpoint::{PastSharing, StopHandle};
use crate::contention::RegionPlan;
use crate::execution::{Execution, ExecutionMode, Feature};
use crate::message_routing;
use crate::models::{Network, Parallelism};
use crate::offload::Accelerators;
use crate::partition::{PartitionSource, RankAssignment};
use crate::placement::Placement;
use crate::profile::read_region_costs;
use crate::programs::{Program, ProgramSpec, Programs};
use crate::spec::{Epoch, RegionSource, RunSpec};
use crate::storage::FileRules;

pub use error::RunError;
use files::{check_routes, file_features};
pub use link_blame::LinkBlame;
pub use ordered::OrderedReplay;
pub use outcome::{Delay, Outcome, ProgramOutcome, ServerUse, peak_rss_bytes};
pub(crate) use outcome::{agree, gather, sum};
pub use regional::{RegionalOutcome, RegionalReplay, RegionsDone};
pub(crate) use run::{MemberRun, on_cluster};
use switches::{SwitchCommunicators, check_switch_tree};

/// Largest number of ranks whose waits are analysed by default: the analysis takes memory and time for each rank.
const MAX_RANKS_WITH_WAITS: u32 = 1 << 16;

/// Number of regions for each thread in windows, so that threads can share the work evenly.
const REGIONS_PER_THREAD: u32 = 4;
/// Number of regions of a run with checkpoints.
const SAVED_REGIONS: u32 = 32;

/// Largest number of links whose loads are recorded by default: a record takes a kilobyte for each link.
const MAX_RECORDED_LINKS: usize = 1 << 16;

/// A loaded simulation: trace, platform and placement of ranks in memory, ready to be replayed.
#[derive(Debug)]
pub struct Simulation {
    spec: RunSpec,
    platform: Platform,
    accelerators: Option<Accelerators>,
    programs: Programs,
    switch_communicators: SwitchCommunicators,
    /// Regions with epochs, or without contention where accesses to files need the order of time.
    regions: Option<RegionPlan>,
    /// Wall-clock cost of each region in an earlier replay \[ns\], if known.
    region_costs: Option<Vec<u64>>,
    /// Number of processes that wait because their host has no core for them.
    surplus_processes: usize,
    /// Number of threads of each process that was asked for, if there are no cores for so many.
    surplus_threads: Option<usize>,
    load_time: Duration,
    /// Assignment of ranks to workers, if ranks were loaded accordingly.
    rank_assignment: Option<RankAssignment>,
    /// Assignment of regions to processes, if ranks were loaded accordingly.
    region_blocks: Option<RegionBlocks>,
    jitter: Option<u64>,
    batch: Option<usize>,
    stop: StopHandle,
    /// Past that the replay shares with others.
    past: Option<PastSharing>,
    /// Consumer of the events of all ranks in place of a timeline.
    event_sink: Option<(Excerpt, Arc<dyn EventSink + Send>)>,
    /// Recorder of the certificate, which consumes the events of all ranks, too.
    certificate: Option<Arc<CertificateRecorder>>,
    /// Warnings about the traces, computed on first use: some read all ranks.
    trace_warnings: OnceLock<Vec<String>>,
    /// Features that the traces have on this platform.
    trace_features: BTreeSet<Feature>,
    /// Length of the windows in which threads share exact contention, or why they cannot, computed on first use.
    window: OnceLock<Result<SimDuration, WindowError>>,
}

impl Simulation {
    /// Loads the inputs of a run on this process alone.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is invalid.
    pub fn load(spec: &RunSpec) -> Result<Self, RunError> {
        Self::load_on(&mut Cluster::alone(), spec, &AtomicU64::new(0))
    }

    /// Loads the inputs of a run on each process of a cluster, checks that all have the same, and counts the actions read in
    /// `actions`, for a progress display. Each process loads only its own ranks of an archive; with contention and without regions
    /// the first process loads all.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is invalid, on any of the processes.
    pub fn load_on(cluster: &mut Cluster, spec: &RunSpec, actions: &AtomicU64) -> Result<Self, RunError> {
        let mut simulation = agree(cluster, Self::open(spec, cluster.members() * spec.threads, actions))?;
        let (me, members, lps) = (cluster.member(), cluster.members(), simulation.programs.lps());
        let mut mine: Vec<LpId> = (0..lps).filter(|_| me == 0).map(LpId::new).collect();
        if members > 1 {
            let own = simulation.fingerprint();
            let first = cluster.broadcast(Some(own))?;
            agree(cluster, if own == first { Ok(()) } else { Err(RunError::ProcessMismatch) })?;
        }
        simulation.limit_threads(cluster)?;
        if members > 1 {
            let works = simulation.working_processes(cluster)?;
            let execution = simulation.execution(members);
            if execution.obstacle(Feature::Processes).is_some() {
                // The first process has all ranks.
            } else if execution.mode == ExecutionMode::Uncontended {
                let assignment = simulation.assign_ranks(cluster, &works)?;
                mine = simulation.engine(assignment.partition.clone()).lps(me, members, lps);
                simulation.rank_assignment = Some(assignment);
            } else {
                let blocks = agree(cluster, simulation.partition_regions(simulation.region_plan(), &works))?;
                mine = blocks.lps(me).collect();
                simulation.region_blocks = Some(blocks);
            }
        }
        agree(cluster, simulation.load_ranks(&mine))?;
        for program in simulation.programs.iter() {
            let loaded = cluster.gather(program.trace.loaded_actions())?;
            let loaded = loaded.into_iter().fold(0, u64::saturating_add);
            // The ranks of all processes together have as many actions as the archive says.
            let checked = if me == 0 { program.trace.check_actions(loaded) } else { Ok(()) };
            agree(cluster, checked.map_err(|error| TraceError::from(error).into()))?;
        }
        Ok(simulation)
    }

    /// Limits the threads to the cores that every process may use at once, unless all are to work, or a file says which ranks they
    /// have: each thread without a core makes all others wait for its turns. The result is the same for any number.
    fn limit_threads(&mut self, cluster: &mut Cluster) -> Result<(), RunError> {
        if self.has_fixed_workers() {
            return Ok(());
        }
        let own = thread::available_parallelism().map_or(usize::MAX, NonZero::get);
        let least = cluster.gather(own)?.into_iter().min();
        let cores = cluster.broadcast(least)?;
        if self.spec.threads > cores {
            self.surplus_threads = Some(self.spec.threads);
            self.spec.threads = cores;
        }
        Ok(())
    }

    /// Returns whether all threads of all processes are to work.
    fn has_fixed_workers(&self) -> bool {
        self.spec.oversubscribe || matches!(self.spec.partition, PartitionSource::File(_))
    }

    /// Returns for each process of a cluster whether it is to work: whether there is a core for each of its threads, unless
    /// all are to work, or a file says which ranks they have.
    fn working_processes(&mut self, cluster: &mut Cluster) -> Result<Vec<bool>, RunError> {
        let works = match self.has_fixed_workers() {
            true => vec![true; cluster.members()],
            false => cluster.members_with_cores(self.spec.threads)?,
        };
        self.surplus_processes = works.iter().filter(|works| !**works).count();
        Ok(works)
    }

    /// Assigns the regions of the platform to the processes that work with balanced costs: the costs of an earlier replay if known,
    /// else the number of actions.
    pub(crate) fn partition_regions(
        &self,
        plan: &RegionPlan,
        works: &[bool],
    ) -> Result<RegionBlocks, RunError> {
        let lp_regions = self.programs.regions(&plan.hosts);
        let costs = match &self.region_costs {
            Some(costs) => costs.to_vec(),
            None => {
                let mut costs = vec![0_u64; plan.count as usize];
                for ((_, program, rank), &region) in self.programs.ranks().zip(&lp_regions) {
                    let (actions, _) = program.trace.outline(rank).map_err(TraceError::from)?;
                    // One more, so that a rank without actions has a cost, too.
                    costs[region as usize] = costs[region as usize].saturating_add(actions).saturating_add(1);
                }
                costs
            }
        };
        Ok(RegionBlocks::with_costs(lp_regions, &costs, works))
    }

    /// Returns the number of processes that wait because their host has no core for them.
    pub fn surplus_processes(&self) -> usize {
        self.surplus_processes
    }

    /// Returns the number of processes that have regions with ranks; `None` if regions are not distributed.
    pub fn processes_of_regions(&self) -> Option<usize> {
        let blocks = self.region_blocks.as_ref()?;
        Some((0..blocks.members()).filter(|&member| blocks.lps(member).next().is_some()).count())
    }

    /// Returns a hash of everything that must be the same on all processes.
    fn fingerprint(&self) -> [u8; 32] {
        let spec = RunSpec { reading_threads: 0, ..self.spec.clone() };
        let traces = self.programs.iter().map(|program| (program.trace.ranks(), program.trace.actions()));
        let traces: Vec<_> = traces.collect();
        let epochs = self.regions.as_ref().map(|plan| (plan.span, plan.count));
        let (costs, changes) = (&self.region_costs, self.platform.changes());
        let text =
            format!("{} {spec:?} {traces:?} {epochs:?} {costs:?} {changes:?}", env!("CARGO_PKG_VERSION"));
        blake3::hash(text.as_bytes()).into()
    }

    /// Loads the inputs of a run on so many threads of all processes, except the ranks of an archive.
    fn open(spec: &RunSpec, workers: usize, actions: &AtomicU64) -> Result<Self, RunError> {
        let started = Instant::now();
        // The platform first: it is small, and an error in it should be reported before a large trace is read.
        let mut platform = spec.read_platform()?;
        platform.add_profiles(&spec.profiles)?;
        platform.set_changes(spec.changes.iter().copied())?;
        let checks = spec.platform_changes.iter().map(|change| change.check(&platform));
        let checks = checks.chain(spec.deaths.iter().map(|deaths| deaths.check(&platform)));
        checks.collect::<Result<(), _>>().map_err(RunError::PlatformChange)?;
        spec.change_platform(&mut platform);
        message_routing::check(spec, &platform)?;
        let epochs = plan_regions(spec.model.with_epochs.as_ref(), spec, &platform, None)?;
        let region_costs = spec.region_costs.as_ref().zip(epochs.as_ref());
        let region_costs = region_costs.map(|(path, plan)| read_region_costs(path, plan.count));
        let region_costs = region_costs.transpose()?;
        let options = LoadOptions { progress: Some(actions), ..spec.load_options() };
        let mut accelerators = Accelerators::new(&spec.offloads, &platform);
        let programs = Programs::open(spec, &platform, accelerators.as_ref(), &options)?;
        if let Some(accelerators) = &mut accelerators {
            accelerators.serve(&platform, computing_hosts(spec, &platform, &programs))?;
        }
        let mut trace_features: BTreeSet<Feature> =
            programs.iter().flat_map(|program| file_features(program, &platform)).collect();
        let has_queues = trace_features.contains(&Feature::FileSystems);
        if has_queues {
            check_routes(&platform, programs.lp_hosts())?;
        }
        // What is saved or measured is for any number of workers.
        let suits_workers = workers > 1
            && spec.regions == RegionSource::Natural
            && spec.checkpoints.is_none()
            && spec.profile.is_none()
            && !programs.are_launched();
        let for_workers = suits_workers.then(|| (programs.lp_hosts(), workers));
        let regions = match spec.model.parallelism {
            Parallelism::Uncontended if !has_queues => None,
            Parallelism::Uncontended | Parallelism::Regions => {
                plan_regions(spec.model.network.as_ref(), spec, &platform, for_workers)?
            }
            Parallelism::Windows | Parallelism::None => epochs,
        };
        if let (Some(accelerators), Some(plan)) = (&accelerators, &regions) {
            accelerators.check_regions(plan, &platform)?;
        }
        for program in programs.iter() {
            check_switch_tree(&program.spec.mpi.collectives, &platform)?;
            let (grows, is_in_memory) = (program.trace.grows(), program.trace.is_in_memory());
            trace_features.extend((is_in_memory && !grows).then_some(Feature::Text));
            trace_features.extend(grows.then_some(Feature::Code));
            trace_features.extend(program.trace.has_graphs().then_some(Feature::Graph));
            trace_features.extend(program.trace.has_excluding_window_calls().then_some(Feature::Locks));
        }
        let are_shared = accelerators.as_ref().is_some_and(Accelerators::are_shared);
        trace_features.extend(are_shared.then_some(Feature::SharedAccelerators));
        trace_features.extend((!programs.others().is_empty()).then_some(Feature::Programs));
        trace_features.extend(programs.are_launched().then_some(Feature::Launches));
        trace_features.extend(spec.scheduler.is_some().then_some(Feature::Scheduling));
        trace_features.extend(spec.deaths.is_some().then_some(Feature::Deaths));
        let spec = RunSpec { mpi: programs.first().spec.mpi.clone(), ..spec.clone() };
        platform.scale_speeds(spec.amount_scale(&programs.first().trace).recip());
        let certificate = spec.certificate.clone().map(CertificateRecorder::new).map(Arc::new);
        let event_sink = certificate.clone().map(|recorder| {
            let sink: Arc<dyn EventSink + Send> = recorder;
            (Excerpt { operations: true, ..Excerpt::default() }, sink)
        });
        let load_time = started.elapsed();
        let switch_communicators = SwitchCommunicators::find(&spec, &programs)?;
        let simulation = Self {
            spec,
            platform,
            accelerators,
            programs,
            switch_communicators,
            regions,
            region_costs,
            surplus_processes: 0,
            surplus_threads: None,
            load_time,
            rank_assignment: None,
            region_blocks: None,
            jitter: None,
            batch: None,
            stop: StopHandle::default(),
            past: None,
            event_sink,
            certificate,
            trace_warnings: OnceLock::new(),
            trace_features,
            window: OnceLock::new(),
        };
        simulation.execution(1).check()?;
        Ok(simulation)
    }

    /// Loads the ranks of some logical processes of archives.
    fn load_ranks(&mut self, lps: &[LpId]) -> Result<(), RunError> {
        let started = Instant::now();
        self.programs.load(lps)?;
        for program in self.programs.iter() {
            for ranks in communicator_sizes(&program.trace) {
                program.spec.mpi.collectives.check(ranks)?;
            }
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

    /// Shares a past with other replays.
    pub(crate) fn with_past(self, past: PastSharing) -> Self {
        Self { past: Some(past), ..self }
    }

    /// Returns the past that the replay shares with others.
    pub(crate) fn past(&self) -> Option<&PastSharing> {
        self.past.as_ref()
    }

    /// Returns the simulation, which holds all ranks, with another assignment of ranks to workers.
    pub fn with_partition(mut self, partition: PartitionSource) -> Self {
        (self.spec.partition, self.rank_assignment) = (partition, None);
        self
    }

    /// Returns the simulation with another bound on run-ahead.
    pub fn with_run_ahead(mut self, run_ahead: RunAhead) -> Self {
        self.spec.run_ahead = run_ahead;
        self
    }

    /// Returns the simulation, which holds all ranks, with another number of threads.
    pub fn with_threads(mut self, threads: usize) -> Self {
        (self.spec.threads, self.rank_assignment) = (threads, None);
        self
    }

    /// Passes an excerpt of the events of all ranks to a sink, in place of a timeline: the states of a rank in their order.
    pub fn with_event_sink(self, excerpt: Excerpt, sink: Arc<dyn EventSink + Send>) -> Self {
        Self { event_sink: Some((excerpt, sink)), ..self }
    }

    /// Returns the consumer of events in place of a timeline, if there is one, and what it is to get.
    pub(crate) fn event_sink(&self) -> Option<(&Excerpt, &dyn EventSink)> {
        self.event_sink.as_ref().map(|(excerpt, sink)| (excerpt, sink.as_ref() as &dyn EventSink))
    }

    /// Returns the handle that stops the replay.
    pub(crate) fn stop_handle(&self) -> &StopHandle {
        &self.stop
    }

    /// Returns how several processes, or one, execute the replay, and why not as the run asks for.
    pub fn execution(&self, processes: usize) -> Execution {
        self.execution_with(Feature::Processes, processes > 1)
    }

    /// Returns how the replay is executed if a feature is asked for that the run does not tell.
    pub(crate) fn execution_with(&self, feature: Feature, is_asked: bool) -> Execution {
        let spec = &self.spec;
        let asked = [
            (feature, is_asked),
            (Feature::Threads, spec.threads > 1),
            (Feature::Epochs, spec.epoch != Epoch::Exact),
            (Feature::Checkpoints, spec.checkpoints.is_some()),
            (Feature::FastForward, spec.fast_forward),
            (Feature::LinkLoads, spec.links == Some(true)),
            (Feature::HostLoads, spec.host_loads),
            (Feature::Noise, spec.noise.is_some()),
            (Feature::Offload, self.accelerators.is_some()),
            (Feature::Changes, !self.platform.changes().is_empty()),
            (Feature::MessageRouting, spec.network.routing != MessageRouting::Minimal),
            (Feature::CriticalPath, spec.critical_path),
            (Feature::Timeline, spec.timeline.is_some()),
            (Feature::Profile, spec.profile.is_some()),
            (Feature::Certificate, spec.certificate.is_some()),
            (Feature::Partition, spec.partition != PartitionSource::Blocks),
            (Feature::RegionCosts, spec.region_costs.is_some()),
        ];
        let asked = asked.into_iter().filter_map(|(feature, is_asked)| is_asked.then_some(feature));
        let features = asked.chain(self.trace_features.iter().copied()).collect();
        let regions = self.regions.as_ref().map_or(0, |plan| plan.count);
        Execution::of(spec.model, &features, regions, || self.window())
    }

    /// Returns the length of the windows in which threads share exact contention, or why they cannot.
    pub(crate) fn window(&self) -> Result<SimDuration, WindowError> {
        *self.window.get_or_init(|| window(&self.platform, &self.spec.network))
    }

    /// Cuts the hosts into regions for this number of threads, with about the same number of ranks, and accelerators with their hosts.
    pub(crate) fn window_plan(&self, window: SimDuration, threads: usize) -> RegionPlan {
        let ranks = self.programs.lps();
        let mut residents = vec![0_u64; self.platform.hosts().len()];
        self.programs.lp_hosts().iter().for_each(|host| residents[host.index()] += 1);
        // A run that resumes from a checkpoint has the same regions, whatever the number of threads.
        let regions = match self.spec.checkpoints {
            Some(_) => SAVED_REGIONS,
            None => (threads as u32).saturating_mul(REGIONS_PER_THREAD),
        };
        let regions = regions.min(ranks);
        let before =
            residents.iter().scan(0, |sum, residents| Some(std::mem::replace(sum, *sum + residents)));
        let home = |before: u64| (before * u64::from(regions) / u64::from(ranks)).min(u64::from(regions) - 1);
        let mut hosts: Vec<RegionIndex> = before.map(|before| home(before) as RegionIndex).collect();
        self.accelerators.iter().for_each(|accelerators| accelerators.join_regions(&mut hosts));
        RegionPlan { hosts, count: regions, span: window, regions: None }
    }

    /// Returns whether iterations that repeat are skipped, on one process.
    pub(crate) fn fast_forwards(&self) -> bool {
        self.spec.fast_forward && self.execution(1).obstacle(Feature::FastForward).is_none()
    }

    /// Returns whether times by region are recorded: accelerators compute in some, and count by their loads.
    pub(crate) fn records_region_times(&self) -> bool {
        self.spec.region_times || self.spec.host_loads && self.accelerators.is_some()
    }

    /// Returns the specification of the run.
    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// Returns the platform, with the changes of the run.
    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    /// Returns the programs.
    pub(crate) fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Returns the programs of the run, each with its trace and the placement of its ranks.
    pub fn loaded_programs(&self) -> impl Iterator<Item = (&ProgramSpec, &Trace, &Placement)> {
        self.programs.iter().map(|program| (&program.spec, &program.trace, &program.placement))
    }

    /// Returns the host on which a rank of a program with a placement computes in a region: its own, or an accelerator.
    pub fn computing_host(&self, placement: &Placement, rank: Rank, region: &str) -> HostId {
        let accelerator = self.accelerators.as_ref().and_then(|all| all.host(placement, rank, region));
        accelerator.unwrap_or_else(|| placement.host(rank))
    }

    /// Returns the placement of the ranks of the first program of the run.
    pub fn placement(&self) -> &Placement {
        &self.programs.first().placement
    }

    /// Returns the trace of the first program of the run.
    pub fn trace(&self) -> &Trace {
        &self.programs.first().trace
    }

    /// Returns the number of actions of all programs of the run.
    pub fn actions(&self, outcome: &Outcome) -> u64 {
        self.actions_of_programs(outcome).iter().sum()
    }

    /// Returns the number of actions of each program of the run: those of its trace, or those that its ranks took if it is in code, or has
    /// died before its work was done.
    pub fn actions_of_programs(&self, outcome: &Outcome) -> Vec<u64> {
        let of_rank = |rank: &Statistics| rank.kinds().map(|kind| rank.count(kind)).sum::<u64>();
        let of_program = |(program, outcome): (&Program, &ProgramOutcome)| match program.trace.grows()
            || outcome.fatal_death().is_some()
        {
            true => outcome.statistics.iter().map(of_rank).sum(),
            false => program.trace.actions(),
        };
        self.programs.iter().zip(&outcome.programs).map(of_program).collect()
    }

    /// Returns the wall-clock time of loading.
    pub fn load_time(&self) -> Duration {
        self.load_time
    }

    /// Returns the network of a replay in the order of time.
    pub(crate) fn network(&self) -> &'static Network {
        self.spec.model.network(self.epochs().is_some()).expect("a run has ranks")
    }

    /// Returns the regions, if the platform is cut into some whatever the number of threads.
    pub(crate) fn regions(&self) -> Option<&RegionPlan> {
        self.regions.as_ref()
    }

    /// Returns the regions of a replay that has some.
    pub(crate) fn region_plan(&self) -> &RegionPlan {
        self.regions().expect("the mode of execution was chosen because there are regions")
    }

    /// Returns the epochs of the network model, if it has any.
    pub fn epochs(&self) -> Option<&RegionPlan> {
        self.regions.as_ref().filter(|_| self.spec.model.with_epochs.is_some())
    }

    /// Returns whether the wait states of ranks are analysed.
    pub(crate) fn analyses_waits(&self) -> bool {
        let are_few = self.programs.lps() <= MAX_RANKS_WITH_WAITS;
        self.spec.waits.unwrap_or(self.spec.histograms || are_few)
    }

    /// Returns whether the loads of links are recorded.
    pub(crate) fn records_links(&self) -> bool {
        let are_few = self.network().records_links && self.platform.links().len() <= MAX_RECORDED_LINKS;
        let are_recorded = self.spec.host_loads || self.spec.links.unwrap_or(are_few);
        self.network().capabilities.links && are_recorded
    }

    /// Returns whether ranks access files on storage devices.
    pub(crate) fn uses_storage(&self) -> bool {
        self.trace_features.contains(&Feature::Files)
    }

    /// Returns what is decided about files before a run.
    pub(crate) fn file_rules(&self) -> FileRules {
        FileRules::of(&self.programs, &self.platform)
    }

    /// Creates the engine for a replay without contention.
    pub(crate) fn engine(&self, partition: Partition) -> Engine {
        let engine = Engine::new(self.spec.threads).run_ahead(self.spec.run_ahead).partition(partition);
        let engine = self.batch.map_or(engine.clone(), |tokens| engine.batch(tokens));
        self.jitter.map_or(engine.clone(), |seed| engine.jitter(seed))
    }

    /// Creates the engine for a replay region by region.
    pub(crate) fn regional_engine(&self) -> RegionalEngine {
        let engine = RegionalEngine::new(self.spec.threads);
        self.jitter.map_or(engine.clone(), |seed| engine.jitter(seed))
    }
}

/// Returns the hosts on which ranks may compute: those that they have, or all if others may be chosen during the run.
fn computing_hosts(spec: &RunSpec, platform: &Platform, programs: &Programs) -> BTreeSet<HostId> {
    match spec.deaths.is_some() || programs.are_launched() {
        true => spec.computers(platform).into_iter().collect(),
        false => programs.lp_hosts().iter().copied().collect(),
    }
}

/// Cuts a platform into the regions of a network, if it has any.
fn plan_regions(
    network: Option<&Network>,
    spec: &RunSpec,
    platform: &Platform,
    for_workers: Option<(&[HostId], usize)>,
) -> Result<Option<RegionPlan>, RunError> {
    let plan = network.and_then(|network| network.regions?.plan);
    plan.map_or(Ok(None), |plan| plan(spec, platform, for_workers))
}

/// Returns the distinct sizes of the communicators of the ranks that are loaded.
fn communicator_sizes(trace: &Trace) -> BTreeSet<u32> {
    let held = trace.loaded_ranks();
    held.flat_map(|rank| trace.rank(rank).communicators())
        .map(|communicator| communicator.group.len())
        .collect()
}
