//! The errors of a run.

use std::path::PathBuf;

use mpi_model::collective::SelectionError;
use mpi_model::{ReplayError, ReplayErrorKind};
use netmodel::epoch::EpochError;
use netmodel::{ChangeError, RegionError, RouteError};
use pdes_core::{ClusterError, Rank, UnorderedConditional};
use timeline::TimelineError;
use trace_mmap::{RecordingNote, TraceError};

use crate::checkpoint::{CheckpointError, ForeignPast};
use crate::deadlock::Deadlock;
use crate::execution::Obstacle;
use crate::offload::OffloadError;
use crate::partition::PartitionError;
use crate::placement::PlacementError;
use crate::platforms::PlatformFileError;
use crate::profile::RegionCostsError;

/// The reason why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The states of another run are not those of this one.
    #[error(transparent)]
    Past(#[from] ForeignPast),
    /// Regions of programs cannot be computed on accelerators.
    #[error(transparent)]
    Offload(#[from] Box<OffloadError>),
    /// There are no regions that could run in parallel.
    #[error(
        "nothing runs in parallel: the platform is one region, or a rank depends on the global event order, which needs one thread for all"
    )]
    NoRegions,
    /// Something that was asked for cannot be had.
    #[error(transparent)]
    Refused(#[from] Obstacle),
    /// The checker of certificates does not know a call of the program.
    #[error(
        "rank {rank}, action {action}: a certificate (output.certificate) has no calls of {call}; the checker knows messages, waits for one or \
         all requests, and blocking collective operations"
    )]
    UncertifiedCall {
        /// The rank.
        rank: Rank,
        /// Index of the action.
        action: u64,
        /// The call.
        call: String,
    },
    /// The certificate cannot be written.
    #[error("the certificate {}: {source}", path.display())]
    Certificate {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The programs of a run have more ranks than can be numbered.
    #[error("the programs have more than {} ranks together", u32::MAX)]
    TooManyRanks,
    /// The amounts of a trace are in another unit than those of the run's.
    #[error(
        "{}: its amounts of computation count in another unit than those of the first program, whose trace.speed sets the \
         speed of all hosts: convert it (trace convert --speed)", trace.display()
    )]
    OtherSpeed {
        /// Path of the trace.
        trace: PathBuf,
    },
    /// The trace cannot be loaded.
    #[error("the trace: {0}")]
    Trace(#[from] TraceError),
    /// The platform cannot be loaded.
    #[error("the platform: {0}")]
    Platform(#[from] PlatformFileError),
    /// The platform cannot be changed as the run says.
    #[error(transparent)]
    PlatformChange(Box<dyn std::error::Error + Send + Sync>),
    /// A resource cannot change as the run says.
    #[error("the changes of resources: {0}")]
    Changes(#[from] ChangeError),
    /// The platform cannot be cut into regions.
    #[error(transparent)]
    Regions(#[from] RegionError),
    /// The epoch does not suit the regions.
    #[error("network.epoch_s: {0}")]
    Epoch(#[from] EpochError),
    /// The network model cannot simulate the platform.
    #[error(transparent)]
    Network(Box<dyn std::error::Error + Send + Sync>),
    /// A client cannot reach a file system, or the other way round.
    #[error("the file system {directory:?}: {source}")]
    FileSystemRoute {
        /// Directory of the file system.
        directory: String,
        /// The missing route.
        source: Box<RouteError>,
    },
    /// A rank depends on the order of events in all regions, which run in no common order.
    #[error("rank {} depends at {} s on the global event order", .0.lp, .0.at)]
    Unordered(UnorderedConditional),
    /// Regions are slower than one thread for all.
    #[error("one thread is faster")]
    Futile,
    /// A checkpoint of regions that were simulated in the order of time is for such a run.
    #[error("the checkpoint is of a run in the order of time")]
    InTimeOrder,
    /// Ranks cannot be placed.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// An algorithm that was chosen does not work for the ranks of the trace.
    #[error("the collective algorithms: {0}")]
    Collectives(#[from] SelectionError),
    /// An action of a rank cannot be replayed.
    #[error(
        "{place}: rank {}, action {}: {}{}", .error.rank, .error.action, describe(&.error.kind),
        .advice.as_ref().map_or(String::new(), |advice| format!("\n  {advice}"))
    )]
    Replay {
        /// Position of the action in the trace.
        place: String,
        /// Cause.
        error: Box<ReplayError<RouteError>>,
        /// Advice about receives from any source, or resources that are off for good, if they may have caused the error.
        advice: Option<String>,
    },
    /// The costs of the regions cannot be read.
    #[error(transparent)]
    RegionCosts(#[from] RegionCostsError),
    /// Ranks cannot be assigned to workers.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// The program was in a deadlock when it was recorded; the calls in which its ranks were.
    #[error(
        "deadlock in the program: no rank could proceed when its recording was ended from outside, so a replay has no end either{}",
        .0.iter().map(|call| format!("\n  {call}")).collect::<String>()
    )]
    RecordedDeadlock(Vec<RecordingNote>),
    /// The program deadlocks.
    #[error("{0}")]
    Deadlock(Box<Deadlock>),
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
        ReplayErrorKind::NoRoute { source, .. } | ReplayErrorKind::NoStorage { source } => {
            format!("{kind}: {source}")
        }
        _ => kind.to_string(),
    }
}
