//! Modes of execution: one function says in which mode a replay runs, and why it cannot have what was asked for. Warnings, refusals and
//! the table of `docs/limits.md` come from it.

use std::collections::BTreeSet;

use netmodel::flow::windows::WindowError;
use pdes_core::SimDuration;

use crate::models::{Model, Network, Parallelism};

/// How a replay is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionMode {
    /// Ranks run on the threads of all processes: without contention the sender of a message knows its arrival.
    Uncontended,
    /// All ranks and the network run on one thread of the first process, in the order of time.
    InTimeOrder,
    /// Threads of the first process share exact contention, in windows of this length.
    Windows(SimDuration),
    /// Regions run on the threads of all processes, and rates change at epoch boundaries; in the order of time if a rank depends on the
    /// global event order.
    Epochs,
    /// Regions run on the threads of all processes without contention, each in the order of time.
    Regions,
    /// A GOAL schedule runs on one thread, with the costs of LogGOPSim.
    Schedule,
}

/// An option of a run or a property of its trace that does not combine with all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// Several threads.
    Threads,
    /// Several processes.
    Processes,
    /// Epochs.
    Epochs,
    /// Checkpoints.
    Checkpoints,
    /// Fast-forwarding.
    FastForward,
    /// Loads of links.
    LinkLoads,
    /// Loads of hosts.
    HostLoads,
    /// Noise of the operating systems of hosts.
    Noise,
    /// Computations on accelerators.
    Offload,
    /// Accelerators of several hosts.
    SharedAccelerators,
    /// Resources that change during the run.
    Changes,
    /// Messages that choose their routes.
    MessageRouting,
    /// A critical path.
    CriticalPath,
    /// A timeline.
    Timeline,
    /// A profile of the parallelism.
    Profile,
    /// A certificate.
    Certificate,
    /// An assignment of ranks to workers other than blocks.
    Partition,
    /// Costs of regions from a profile.
    RegionCosts,
    /// A trace in text, or in memory.
    Text,
    /// A program in code.
    Code,
    /// A program that is a graph: a GOAL schedule.
    Graph,
    /// Files on devices.
    Files,
    /// Files on file systems.
    FileSystems,
    /// Files on devices of other hosts than that of the rank.
    RemoteFiles,
    /// Files with shared pointers.
    SharedPointers,
    /// Calls on windows that exclude others: exclusive locks, and accesses that fetch.
    Locks,
    /// Several programs.
    Programs,
    /// Programs that start at instants which are decided during the run.
    Launches,
    /// Programs on hosts that a scheduler chooses during the run.
    Scheduling,
    /// Hosts that die during the run, with the programs that have ranks there.
    Deaths,
}

/// The reason why a feature cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// The model has no parts that threads could share.
    #[error("the model has one order of events")]
    OneOrder,
    /// Accesses to files have effects on other hosts at once.
    #[error("accesses to devices of other hosts, or at shared pointers, have one order of events")]
    OrderedFiles,
    /// Locks are taken in one order.
    #[error("exclusive locks of windows, and accesses that fetch, have one order of events")]
    LockOrder,
    /// Locks are taken in the order of time, which clocks of ranks are not.
    #[error(
        "without contention ranks stop at clocks of their own, and exclusive locks of windows and accesses that fetch are decided in the order of time"
    )]
    LocksAtOwnClocks,
    /// Messages depend on each other.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// Exact contention has no regions.
    #[error("messages share links in the order of time; regions with epochs (epoch_s = \"auto\") do not")]
    SharedLinks,
    /// There is nothing to distribute.
    #[error("the platform is one region, so that nothing runs in parallel")]
    OneRegion,
    /// The state of the network cannot be saved.
    #[error("the state of the model {0:?} is not saved: leave checkpoints out")]
    NotSaved(&'static str),
    /// The state of the network cannot be compared.
    #[error("with the model {0:?} what happens depends on more than how much later")]
    NotCompared(&'static str),
    /// Iterations are on the critical path.
    #[error("a critical path goes through every iteration (analysis.critical_path)")]
    CriticalPath,
    /// Iterations are in the timeline.
    #[error("a timeline shows every iteration (timeline.file)")]
    Timeline,
    /// The trace has no loops.
    #[error("only an archive has loops; convert the trace (trace convert)")]
    NoLoops,
    /// The ranks of a program in code share values in memory.
    #[error("the ranks of a program in code exchange values in memory, so that one process runs all of them")]
    CodeOnProcesses,
    /// The state of a program in code is that of its function.
    #[error("the state of a program in code is not saved: leave checkpoints out")]
    CodeNotSaved,
    /// The iterations of a program in code are not known before they run.
    #[error("what a program in code does next is not known before it runs")]
    CodeNotKnown,
    /// A certificate does not tell all that happens.
    #[error("a certificate (output.certificate): {0}")]
    NotCertified(&'static str),
    /// A certificate is written in the order of time.
    #[error("a certificate has one order of events (output.certificate)")]
    CertifiedOrder,
    /// A profile replays a trace many times.
    #[error("a profile is that of a trace: leave output.profile out with programs in code")]
    CodeNotProfiled,
    /// The messages of a program in code are not known before they are sent.
    #[error("the messages of a program in code are not known before it runs: workers have ranks in blocks")]
    CodeMessages,
    /// Positions of shared pointers grow.
    #[error("the positions of pointers that ranks share are not compared")]
    GrowingPointers,
    /// Programs have iterations of their own.
    #[error("several programs have no iterations in common")]
    OwnIterations,
    /// Starts of programs have one order.
    #[error("programs start when others end, die, or a scheduler decides, in one order of events")]
    LaunchOrder,
    /// Starts are decided in memory.
    #[error(
        "which programs start is decided during the run, in the memory of one process: run without mpirun"
    )]
    LaunchMemory,
    /// Decisions are not saved.
    #[error("which programs have started is not saved: leave checkpoints out")]
    LaunchNotSaved,
    /// Files belong to hosts.
    #[error(
        "the trace has calls on files, and the scheduler chooses hosts during the run: leave files out of jobs, or [storage] out of the platform"
    )]
    UnplacedFiles,
    /// Work cannot be taken back.
    #[error(
        "hosts that die: with the model {model:?}{}, the work of dead ranks stays in the network; take network.model = {names}, and network.epoch_s = 0",
        if *.has_epochs { " and epochs" } else { "" },
        names = Model::names_with(|able| able.abandonment)
    )]
    NoAbandonment {
        /// Name of the model.
        model: &'static str,
        /// It has epochs.
        has_epochs: bool,
    },
    /// Ranks cannot die in the midst of something.
    #[error("hosts that die with several jobs: {0}")]
    Immortal(&'static str),
    /// Outputs are of one program.
    #[error("{0} is of one program, and the run has several")]
    OneProgram(&'static str),
    /// Messages have links of their own.
    #[error(
        "analysis.links: the model {0:?} knows no links; take network.model = {names}",
        names = Model::names_with(|able| able.links)
    )]
    NoLinks(&'static str),
    /// Iterations do not recur.
    #[error("noise makes each iteration another one")]
    Noise,
    /// Operations of schedules are in no region.
    #[error(
        "compute.offload: the operations of GOAL schedules are in no region; place ranks on accelerators by a hosts file"
    )]
    NoRegions,
    /// Computations of several hosts share cores.
    #[error("accelerators that several hosts share have one order of events (compute.offload)")]
    SharedAccelerators,
    /// Hosts have no loads.
    #[error(
        "energy: the model {0:?} records no loads of hosts; take network.model = {names}",
        names = Model::names_with(|able| able.host_loads)
    )]
    NoHostLoads(&'static str),
    /// Resources stay as they are.
    #[error(
        "resources that change: the model {0:?} has none; take network.model = {names}",
        names = Model::names_with(|able| able.changes)
    )]
    NoChanges(&'static str),
    /// Messages have routes of the platform, or packets have ways of their own.
    #[error(
        "network.routing: the model {0:?} gives messages the routes of the platform{advice}; set network.model = \"flow\", or leave the key out",
        advice = if *.0 == "packets" { ", or packets those of packets.routing" } else { "" }
    )]
    OwnRoutes(&'static str),
    /// Regions know each other's loads at boundaries only.
    #[error(
        "network.routing: with epochs messages have one route for each pair of hosts, because regions know each other's loads at \
         boundaries only: set network.epoch_s = 0"
    )]
    RoutesWithEpochs,
    /// A critical path knows one time for each message.
    #[error(
        "a critical path compares messages with their times on a machine that does not change: leave analysis.critical_path out"
    )]
    ChangingPath,
    /// Ranks are bound to regions or to one thread.
    #[error(
        "a partition helps {free:?} only: the model {0:?} keeps ranks with their regions, or on one thread",
        free = Model::uncontended()
    )]
    BoundRanks(&'static str),
    /// There are no regions whose costs matter.
    #[error("parallel.region_costs is of no use without epochs (network.epoch_s above 0)")]
    NoEpochs,
    /// Accesses to files need an order that epochs do not have.
    #[error(
        "the trace has calls on files on devices of other hosts, or at shared pointers, which a replay with epochs cannot order: set network.epoch_s = 0, or network.model = \"contention-free\""
    )]
    FilesWithEpochs,
    /// A profile is measured on one process.
    #[error("a profile comes from one process, on any number of threads: run without mpirun")]
    ProfileOnProcesses,
    /// Actions of a graph do not follow each other.
    #[error("output.profile counts actions that follow each other: leave it out with GOAL schedules")]
    ProfileOfGraph,
    /// A profile needs parts that threads share; the reason why there are none.
    #[error("a profile needs what several threads need, and {0}; or set network.epoch_s = \"auto\"")]
    NotProfiled(Box<Obstacle>),
    /// The first process replays schedules.
    #[error("the model loggops runs on one process: run without mpirun, or set --model flow and a platform")]
    ScheduleOnProcesses,
    /// The state of a schedule is as large as itself.
    #[error(
        "the model loggops writes no checkpoints of GOAL schedules: leave --checkpoint out, or set --model flow and a platform"
    )]
    ScheduleCheckpoints,
    /// The states of ranks are not recorded.
    #[error("the replay of a GOAL schedule writes no timeline: leave --timeline out")]
    ScheduleTimeline,
    /// The feature is of traces.
    #[error("the model loggops replays GOAL schedules only, with options of their own")]
    ScheduleOnly,
}

/// How a replay is executed, and why not as it was asked for.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The mode.
    pub mode: ExecutionMode,
    /// Features that were asked for and cannot be had, each with the reason.
    pub obstacles: Vec<(Feature, Obstacle)>,
}

impl Execution {
    /// Chooses the mode for features of a run and of its trace. `regions` is the number of regions that depend on each other after a
    /// lookahead at the earliest, with epochs or without contention; 0 if there are none. `window` returns the length of the windows in
    /// which threads can share exact contention, or why they cannot; it is called if that matters.
    pub fn of(
        model: &'static Model,
        features: &BTreeSet<Feature>,
        regions: u32,
        window: impl FnOnce() -> Result<SimDuration, WindowError>,
    ) -> Self {
        let has = |feature| features.contains(&feature);
        let has_epochs = has(Feature::Epochs) && regions > 0 && model.with_epochs.is_some();
        let Some(Network { capabilities, .. }) = model.network(has_epochs) else {
            let obstacles =
                features.iter().filter_map(|&feature| Some((feature, schedule_obstacle(feature)?)));
            return Self { mode: ExecutionMode::Schedule, obstacles: obstacles.collect() };
        };
        let first = |reasons: &[(bool, Obstacle)]| {
            reasons.iter().find(|(is_so, _)| *is_so).map(|(_, obstacle)| obstacle.clone())
        };
        let is_launched = has(Feature::Launches) || has(Feature::Deaths);
        // Programs that start during the run are several, or one that a scheduler starts.
        let has_programs = has(Feature::Programs) || is_launched;
        let stepwise = first(&[
            (!capabilities.fast_forward, Obstacle::NotCompared(model.key)),
            (has(Feature::CriticalPath), Obstacle::CriticalPath),
            (has(Feature::Timeline), Obstacle::Timeline),
            (has(Feature::Noise), Obstacle::Noise),
            (has(Feature::Code), Obstacle::CodeNotKnown),
            (has(Feature::Text), Obstacle::NoLoops),
            (has(Feature::SharedPointers), Obstacle::GrowingPointers),
            (has_programs, Obstacle::OwnIterations),
        ]);
        let has_ordered_files = has(Feature::RemoteFiles) || has(Feature::SharedPointers);
        let has_queues = has(Feature::FileSystems) || has(Feature::SharedPointers);
        // A run that resumes from a checkpoint may have another number of threads.
        let has_parts = has(Feature::Threads) || has(Feature::Checkpoints);
        let why_not_certified = [
            (!capabilities.certificate, "its checker knows the models flow and contention-free only"),
            (has_epochs, "with epochs rates are not max-min at every event: set network.epoch_s = 0"),
            (
                has(Feature::Checkpoints),
                "the events before a checkpoint are not saved: leave checkpoints out",
            ),
            (has(Feature::Noise), "the checker knows no noise"),
            (has(Feature::Offload), "the checker knows no accelerators"),
            (has(Feature::Changes), "the checker knows no resources that change"),
            (
                has(Feature::MessageRouting),
                "the checker knows one route for each pair of hosts: leave network.routing out",
            ),
            (
                has(Feature::Timeline),
                "it takes the events of ranks in place of a timeline: write one of them",
            ),
            (has(Feature::Profile), "a profile replays again: leave output.profile out"),
            (has(Feature::Code), "the actions of a program in code are not known"),
            (has(Feature::Graph), "the checker knows actions that follow each other, not GOAL schedules"),
            (has(Feature::Files), "the checker knows no files"),
            (has_programs, "the checker knows one program"),
        ];
        let not_certified = why_not_certified.into_iter().find(|(is_so, _)| *is_so);
        let not_certified = not_certified.map(|(_, why)| Obstacle::NotCertified(why));
        // The mode in which several threads share the replay, or the reason why one has all of it.
        let shared = match model.parallelism {
            _ if has(Feature::Certificate) => Err(Obstacle::CertifiedOrder),
            _ if has_epochs && !is_launched && !has(Feature::Locks) => Ok(ExecutionMode::Epochs),
            Parallelism::Uncontended if !has_queues => Ok(ExecutionMode::Uncontended),
            _ if is_launched => Err(Obstacle::LaunchOrder),
            _ if has(Feature::Locks) => Err(Obstacle::LockOrder),
            _ if has_ordered_files => Err(Obstacle::OrderedFiles),
            _ if has(Feature::SharedAccelerators) => Err(Obstacle::SharedAccelerators),
            Parallelism::Uncontended | Parallelism::Regions if regions > 1 => Ok(ExecutionMode::Regions),
            Parallelism::Regions => Err(Obstacle::OneRegion),
            Parallelism::Windows if has(Feature::MessageRouting) => {
                Err(Obstacle::Window(WindowError::Routing))
            }
            Parallelism::Windows if has(Feature::Profile) || has_parts => {
                window().map(ExecutionMode::Windows).map_err(Obstacle::from)
            }
            _ => Err(Obstacle::OneOrder),
        };
        let mode = match shared {
            Ok(mode @ (ExecutionMode::Uncontended | ExecutionMode::Epochs)) => mode,
            Ok(mode) if has_parts || has(Feature::Processes) => mode,
            _ => ExecutionMode::InTimeOrder,
        };
        let locks_at_own_clocks = has(Feature::Locks) && mode == ExecutionMode::Uncontended;
        let stepwise = stepwise.or(locks_at_own_clocks.then_some(Obstacle::LocksAtOwnClocks));
        let one_process = match (mode, &shared) {
            _ if has(Feature::Code) => Some(Obstacle::CodeOnProcesses),
            _ if is_launched => Some(Obstacle::LaunchMemory),
            _ if has(Feature::Certificate) => Some(Obstacle::CertifiedOrder),
            (_, Err(Obstacle::LockOrder)) => Some(Obstacle::LockOrder),
            (ExecutionMode::Uncontended | ExecutionMode::Regions, _) => None,
            (ExecutionMode::Epochs, _) => (regions < 2).then_some(Obstacle::OneRegion),
            (_, Err(why)) if model.parallelism != Parallelism::Windows => Some(why.clone()),
            _ => Some(Obstacle::SharedLinks),
        };
        let not_profiled = match &shared {
            _ if has(Feature::Graph) => Some(Obstacle::ProfileOfGraph),
            _ if has_programs => Some(Obstacle::OneProgram("a profile")),
            _ if has(Feature::Code) => Some(Obstacle::CodeNotProfiled),
            _ if has(Feature::Processes) => Some(Obstacle::ProfileOnProcesses),
            Ok(ExecutionMode::Regions) if model.parallelism == Parallelism::Uncontended => {
                Some(Obstacle::NotProfiled(Box::new(Obstacle::OneOrder)))
            }
            Ok(_) => None,
            Err(_) if has(Feature::Epochs) => Some(Obstacle::OneRegion),
            Err(why) => Some(Obstacle::NotProfiled(Box::new(why.clone()))),
        };
        let not_saved = first(&[
            (has(Feature::Code), Obstacle::CodeNotSaved),
            (is_launched, Obstacle::LaunchNotSaved),
            (!capabilities.checkpoint, Obstacle::NotSaved(model.key)),
        ]);
        let not_partitioned = first(&[
            (mode != ExecutionMode::Uncontended, Obstacle::BoundRanks(model.key)),
            (has(Feature::Programs), Obstacle::OneProgram("a partition (parallel.partition)")),
            (has(Feature::Code), Obstacle::CodeMessages),
        ]);
        let one_route = first(&[
            (model.parallelism != Parallelism::Windows, Obstacle::OwnRoutes(model.key)),
            (has(Feature::Epochs), Obstacle::RoutesWithEpochs),
        ]);
        let immortal = first(&[
            (!capabilities.abandonment, Obstacle::NoAbandonment { model: model.key, has_epochs }),
            (
                has(Feature::Files),
                Obstacle::Immortal(
                    "an access to a file that is in progress has no end: leave files out of jobs",
                ),
            ),
            (
                has(Feature::Graph),
                Obstacle::Immortal("the operations of GOAL schedules do not end before they are done"),
            ),
            (has(Feature::Code), Obstacle::Immortal("programs in code do not begin anew")),
            (
                has(Feature::CriticalPath),
                Obstacle::Immortal(
                    "a critical path has the end of the work: leave analysis.critical_path out",
                ),
            ),
        ]);
        let obstacles = [
            (Feature::Threads, shared.err()),
            (Feature::Processes, one_process),
            (Feature::Checkpoints, not_saved),
            (Feature::FastForward, stepwise),
            (Feature::LinkLoads, (!capabilities.links).then_some(Obstacle::NoLinks(model.key))),
            (Feature::HostLoads, (!capabilities.host_loads).then_some(Obstacle::NoHostLoads(model.key))),
            (Feature::Offload, has(Feature::Graph).then_some(Obstacle::NoRegions)),
            (Feature::Changes, (!capabilities.changes).then_some(Obstacle::NoChanges(model.key))),
            (Feature::MessageRouting, one_route),
            (Feature::CriticalPath, has(Feature::Changes).then_some(Obstacle::ChangingPath)),
            (Feature::Profile, not_profiled),
            (Feature::Certificate, not_certified),
            (
                Feature::Timeline,
                has(Feature::Programs).then_some(Obstacle::OneProgram("a timeline (timeline.file)")),
            ),
            (Feature::Partition, not_partitioned),
            (Feature::RegionCosts, (!has_epochs).then_some(Obstacle::NoEpochs)),
            (Feature::RemoteFiles, has_epochs.then_some(Obstacle::FilesWithEpochs)),
            (Feature::SharedPointers, has_epochs.then_some(Obstacle::FilesWithEpochs)),
            (Feature::Files, has(Feature::Scheduling).then_some(Obstacle::UnplacedFiles)),
            (Feature::Deaths, immortal),
        ];
        let asked = obstacles.into_iter().filter(|(feature, _)| has(*feature));
        Self { mode, obstacles: asked.filter_map(|(feature, why)| Some((feature, why?))).collect() }
    }

    /// Returns the reason why a feature that was asked for cannot be had.
    pub fn obstacle(&self, feature: Feature) -> Option<&Obstacle> {
        self.obstacles.iter().find(|(of, _)| *of == feature).map(|(_, obstacle)| obstacle)
    }

    /// Checks that the run lacks no result, and has no wrong one. Without other features it takes longer, or lacks an analysis, of which a
    /// warning tells.
    ///
    /// # Errors
    /// Returns the reason why the run is to be refused.
    pub fn check(&self) -> Result<(), Obstacle> {
        let required = [
            Feature::Checkpoints,
            Feature::Certificate,
            Feature::Changes,
            Feature::CriticalPath,
            Feature::Deaths,
            Feature::Files,
            Feature::HostLoads,
            Feature::MessageRouting,
            Feature::Offload,
            Feature::Profile,
            Feature::RemoteFiles,
            Feature::SharedPointers,
            Feature::Timeline,
        ];
        required.iter().find_map(|feature| self.obstacle(*feature)).map_or(Ok(()), |why| Err(why.clone()))
    }
}

/// Returns the reason why a feature cannot be had with a GOAL schedule.
fn schedule_obstacle(feature: Feature) -> Option<Obstacle> {
    Some(match feature {
        Feature::Graph | Feature::Noise => return None,
        Feature::Threads => Obstacle::OneOrder,
        Feature::Offload => Obstacle::NoRegions,
        Feature::Processes => Obstacle::ScheduleOnProcesses,
        Feature::Checkpoints => Obstacle::ScheduleCheckpoints,
        Feature::Timeline => Obstacle::ScheduleTimeline,
        Feature::Profile => Obstacle::ProfileOfGraph,
        Feature::Certificate => {
            Obstacle::NotCertified("the checker knows actions that follow each other, not GOAL schedules")
        }
        _ => Obstacle::ScheduleOnly,
    })
}
