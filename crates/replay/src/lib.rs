//! Replays: a [`RunSpec`] in, an [`Outcome`] out.
//!
//! A specification names a trace (`trace-mmap`), a platform with a network model (`netmodel`), and everything that decides how one is replayed on
//! the other. [`Simulation::load`] loads it; [`Simulation::replay`] runs it on this process, [`Simulation::run`] on a cluster of them: `mpi-model`
//! turns the actions into messages, and the engines of `pdes-core` run the ranks as logical processes, with the same result on any number of
//! threads. In place of a trace it may have a program in code, a [`CodeProgram`]. Configurations, from which specifications are made, and what is
//! made of outcomes are in `pdes-replay`.
//!
//! # Features
//! - `parquet`: timelines in Parquet.
//! - `mpi`: replays on several processes; needs an MPI library.
//! - `otf2`: timelines in OTF2; needs its library.
#![forbid(unsafe_code)]

mod acquisition_warnings;
mod allocation;
mod certificate;
mod checkpoint;
mod code;
mod concurrent;
mod contention;
mod contention_free;
mod deadlock;
mod digest;
mod execution;
mod fast_forward;
pub mod file_kind;
mod host_deaths;
mod launches;
mod loggops;
mod message_routing;
mod models;
pub mod names;
mod network_tag;
mod noise;
mod offload;
mod partition;
mod placement;
mod platforms;
mod presets;
mod profile;
mod programs;
mod recorded_speed;
mod region_adapter;
pub mod schema;
mod simulation;
mod spec;
mod storage;
mod timeline;
mod trace_file;

pub use ::timeline::{Counter, Format as TimelineFormat, Summary as TimelineSummary, TimelineError};
pub use certificate::CertificateSummary;
pub use checkpoint::{
    CheckpointError, CheckpointPlan, CheckpointSummary, CommonPast, ForeignPast, StopHandle,
};
pub use code::{CodeProgram, Data, Message, Mpi, Request, RunningProgram, Values};
pub use concurrent::run_all;
pub use contention::{HostPair, RegionPlan, SharedMachine, WorkRequest};
pub use contention_free::ContentionFreeMachine;
pub use deadlock::{Deadlock, WaitingRank};
pub use digest::Digest;
pub use execution::{Execution, ExecutionMode, Feature, Obstacle};
pub use fast_forward::FastForward;
pub use host_deaths::{HostDeaths, HostDeathsRun, ProgramDeath, Recovery};
pub use launches::{JobScheduler, MAX_DEATHS, SchedulerRun, Start};
pub use loggops::LogGopsSection;
pub use models::{
    MODELS, Model, ModelSection, Network, Parallelism, PlatformCheck, RegionPlanner, RegionalNetwork,
    RegionalReplayer, Replayer,
};
pub use mpi_model::ComputationNoise;
pub use network_tag::NetworkTag;
pub use noise::HostNoise;
pub use offload::{Offload, OffloadError};
pub use partition::{PartitionCut, PartitionError, PartitionSource, RankAssignment, order_by_halves};
pub use placement::{Placement, PlacementError, PlacementPolicy};
pub use platforms::{PlatformFileError, read_platform};
pub use presets::{NetworkPreset, OWN_DEFAULT, PRESETS, SIMGRID_DEFAULT};
pub use profile::{Measured, ParallelProfile, Predicted, PredictedRegions, RegionCostsError, RegionProfile};
pub use programs::ProgramSpec;
pub use recorded_speed::RecordedSpeed;
pub use simulation::{
    Delay, LinkBlame, OrderedReplay, Outcome, ProgramOutcome, RegionalOutcome, RegionalReplay, RegionsDone,
    RunError, ServerUse, Simulation, peak_rss_bytes,
};
pub use spec::{Epoch, LinkScale, PlatformChange, PlatformSource, Polling, RegionSource, RunSpec};
pub use timeline::{OpenTimeline, TimelineCounters, TimelineEstimate, TimelinePlan};
pub use trace_file::TraceFile;
