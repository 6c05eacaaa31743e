//! The processes of one replay that a launcher such as `mpirun` has started.

use anyhow::Result;
use pdes_core::{Cluster, ClusterError};
use pdes_replay::RunError;

/// Environment variables of launchers: number of processes, and number of this process.
const LAUNCHERS: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_SIZE", "PMI_RANK"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
];

/// Returns the number of processes started together, and the number of this one.
fn launched() -> Option<(usize, usize)> {
    let number = |name| std::env::var(name).ok()?.trim().parse().ok();
    LAUNCHERS.iter().find_map(|(size, rank)| Some((number(size)?, number(rank)?)))
}

/// Returns whether output that must appear once is left to another process of the same command.
pub(crate) fn is_not_first() -> bool {
    launched().is_some_and(|(_, number)| number > 0)
}

/// Joins the processes that were started together, or makes a cluster of this one.
///
/// Without an MPI library every process would repeat the whole run, which is never intended.
#[cfg(feature = "mpi")]
pub(crate) fn join() -> Result<Cluster> {
    match launched() {
        Some((2.., _)) => Ok(Cluster::from_mpi()?),
        _ => Ok(Cluster::alone()),
    }
}

/// Joins the processes that were started together, or makes a cluster of this one.
///
/// Without an MPI library every process would repeat the whole run, which is never intended.
#[cfg(not(feature = "mpi"))]
pub(crate) fn join() -> Result<Cluster> {
    let Some((processes @ 2.., number)) = launched() else { return Ok(Cluster::alone()) };
    if number > 0 {
        // The launcher ends all processes when the first of them fails: leave process 0 the time to report the error.
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    anyhow::bail!(
        "started as one of {processes} processes, but this program was built without MPI; build it with `cargo build --release \
         --features mpi`, or start one process with --threads N"
    )
}

/// Makes all processes succeed or fail together. If several have failed, the first of them reports its error.
pub(crate) fn agree<T>(cluster: &mut Cluster, own: Result<T>) -> Result<T> {
    let first = cluster.first_failure(own.is_ok()).map_err(RunError::from)?;
    match (own, first.filter(|&process| process != cluster.member())) {
        (own, None) => own,
        (Ok(_), Some(process)) => Err(RunError::OtherProcess { process }.into()),
        // The process keeps its own error, which determines its exit status.
        (Err(error), Some(process)) => Err(error.context(RunError::OtherProcess { process })),
    }
}

/// Returns whether another process reports an error.
pub(crate) fn is_reported_elsewhere(error: &anyhow::Error, cluster: Option<&Cluster>) -> bool {
    let Some(cluster) = cluster else { return is_not_first() };
    match error.downcast_ref() {
        Some(RunError::OtherProcess { .. }) => true,
        // A process that panics reports it itself.
        Some(RunError::Cluster(ClusterError::MemberLeft { message: Some(_), .. })) => true,
        Some(RunError::Cluster(ClusterError::MemberLeft { member, .. })) => {
            cluster.member() != usize::from(*member == 0)
        }
        Some(RunError::Cluster(ClusterError::Mismatch { .. })) => cluster.member() != 0,
        _ => false,
    }
}
