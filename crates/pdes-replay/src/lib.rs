//! pdes-replay: how long would this MPI program run on that machine, and where would it wait?
//!
//! The input is a trace of the actions of each rank (`trace-mmap`) and a platform with a network model (`netmodel`).
//! `mpi-model` turns the actions into messages, and the engine of `pdes-core` runs the ranks as logical processes, with
//! the same result on any number of threads. This crate ties them together and contains the command line.
//!
//! The entry point is a [`Config`]: [`Config::resolve`] checks it and returns a [`RunSpec`], [`Simulation::load`] loads the
//! run, [`Simulation::replay`] runs it on this process, [`Simulation::run`] on a cluster of them, and a [`Report`] presents the
//! [`Outcome`].
//!
//! ```
//! use pdes_core::Progress;
//! use pdes_replay::{Config, Simulation};
//!
//! let directory = tempfile::tempdir()?;
//! let trace = directory.path().join("trace.txt");
//! std::fs::write(&trace, "0 init\n1 init\n0 compute 1e6\n0 send 1 0 984\n1 recv 0 0 984\n")?;
//!
//! let mut config = Config::default();
//! config.set(&format!("trace.path={trace:?}"))?;
//! config.set("platform.topology={ kind = 'cluster', hosts = 2, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }")?;
//! config.set("network.preset='raw'")?;
//! let spec = config.resolve()?;
//!
//! let simulation = Simulation::load(&spec)?;
//! let outcome = simulation.replay(&Progress::new(spec.threads))?;
//! // 1 ms of computation, two links of 1 us each, and 984 + 16 bytes at 1 ns each.
//! assert_eq!(outcome.simulated_time().to_string(), "0.001003000000");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//! - `pictures` (default): pages and pictures of reports, sweeps and calibrations.
//! - `parquet` (default): tables in Parquet, of sweeps and of timelines.
//! - `mpi`: replays on several processes, and measurements; needs an MPI library.
//! - `otf2`: timelines in OTF2; needs its library.
#![forbid(unsafe_code)]

mod config;
mod diagnosis;
mod ensemble;
mod generate;
mod report;
mod sweep;
mod validation;
mod what_if;

pub use config::schema::config_schema;
pub use config::{Config, ConfigError, OnlineClock, OnlineComputation, OnlineSection, available_threads};
pub use diagnosis::{
    ClassTolerance, DiagnosedRun, Diagnosis, DiagnosisError, Place, PlacePair, Pop, Problem,
    RegionEfficiency, Relation, Rule, RuleError, Scaling, Scope, Sensitivity, Tolerance, ToleranceLimit,
};
pub use ensemble::{Ensemble, EnsembleError, EnsembleResults, MemberResult, Members};
#[cfg(feature = "pictures")]
pub use figures::{PictureFormat, WriteError};
pub use generate::{ProgramArguments, ProgramError};
pub use outputs::write_json;
pub use replay::file_kind::{FileKind, other_suffix, recognize};
pub use replay::names::{Mismatch, MismatchKind, Origin, nearest};
pub use replay::schema::platform_schema;
pub use replay::{
    CertificateSummary, CheckpointError, CheckpointPlan, CheckpointSummary, CodeProgram,
    ContentionFreeMachine, Data, Deadlock, Delay, Digest, Epoch, Execution, ExecutionMode, FastForward,
    Feature, HostPair, JobScheduler, LinkScale, LogGopsSection, MODELS, Measured, Message, Model,
    ModelSection, Mpi, Network, NetworkPreset, NetworkTag, Obstacle, OrderedReplay, Outcome, PRESETS,
    ParallelProfile, Parallelism, PartitionCut, PartitionError, PartitionSource, Placement, PlacementError,
    PlacementPolicy, PlatformFileError, PlatformSource, Polling, Predicted, PredictedRegions, ProgramOutcome,
    ProgramSpec, RankAssignment, RegionCostsError, RegionPlan, RegionPlanner, RegionProfile, RegionalNetwork,
    RegionalOutcome, RegionalReplay, RegionalReplayer, RegionsDone, Replayer, Request, RunError, RunSpec,
    RunningProgram, SchedulerRun, ServerUse, SharedMachine, Simulation, Start, StopHandle, TimelineError,
    TimelineEstimate, TimelineFormat, TimelinePlan, TimelineSummary, TraceFile, Values, WaitingRank,
    WorkRequest, peak_rss_bytes, read_platform,
};
pub use report::{
    ActionTotal, AllLinks, Breakdown, CallNode, CallParts, CallTree, Column, Communication, ContendedLink,
    CriticalPath, CsvTable, Energy, Epochs, FailedJob, Failures, FailuresError, FileServers, Fractions,
    Histogram, Histograms, IdealMachines, Imbalance, Job, JobEnd, Jobs, Links, LostTime, Parameters,
    PartEnergy, Parts, PathCall, PathParts, PathRank, PathSegment, RankCall, RankEnd, RankParts, RegionParts,
    Report, ReportError, RunTimePart, Sampling, SavedActionTotal, SavedReport, Sections, TableRow, Training,
};
#[cfg(feature = "pictures")]
pub use report::{Presentation, Timeline as SavedTimeline, TimelineError as SavedTimelineError};
#[cfg(feature = "parquet")]
pub use sweep::write_parquet;
pub use sweep::{RunResult, Sweep, SweepError, SweepResults, SweepRow, sweep_schema, write_csv};
pub use validation::{
    CallFit, Prediction, Residual, Share, TimeComparison, Validation, ValidationError, fit_calls,
    measured_computations,
};
#[cfg(feature = "pictures")]
pub use what_if::PageError;
pub use what_if::{
    Deviation, HopBytes, HypothesisResult, Verification, WhatIf, WhatIfError, WhatIfResults,
    hypotheses_schema,
};
