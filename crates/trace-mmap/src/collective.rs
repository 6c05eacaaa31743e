//! Collective operations with their arguments.

use pdes_core::Rank;

use crate::datatype::Datatype;

/// A collective operation, as one rank calls it.
///
/// Counts are in elements; a boxed slice has one count per rank of the communicator. The root is a rank of the communicator.
/// `flops` is the computation of a reduction on this rank \[flop\]. A count times the size of its datatype is at most 2^48 bytes.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields are the arguments of the MPI function that each variant names")]
pub enum Collective {
    /// `MPI_Barrier`.
    Barrier,
    /// `MPI_Bcast`.
    Bcast { count: u64, root: Rank, datatype: Datatype },
    /// `MPI_Reduce`.
    Reduce { count: u64, flops: f64, root: Rank, datatype: Datatype },
    /// `MPI_Allreduce`.
    Allreduce { count: u64, flops: f64, datatype: Datatype },
    /// `MPI_Alltoall`: the counts are per peer.
    Alltoall { send_count: u64, recv_count: u64, send_type: Datatype, recv_type: Datatype },
    /// `MPI_Alltoallv`.
    Alltoallv { send_counts: Box<[u64]>, recv_counts: Box<[u64]>, send_type: Datatype, recv_type: Datatype },
    /// `MPI_Gather`: the receive count is per rank.
    Gather { send_count: u64, recv_count: u64, root: Rank, send_type: Datatype, recv_type: Datatype },
    /// `MPI_Scatter`: the send count is per rank.
    Scatter { send_count: u64, recv_count: u64, root: Rank, send_type: Datatype, recv_type: Datatype },
    /// `MPI_Allgather`: the receive count is per rank.
    Allgather { send_count: u64, recv_count: u64, send_type: Datatype, recv_type: Datatype },
    /// `MPI_Gatherv`.
    Gatherv { send_count: u64, recv_counts: Box<[u64]>, root: Rank, send_type: Datatype, recv_type: Datatype },
    /// `MPI_Scatterv`.
    Scatterv {
        send_counts: Box<[u64]>,
        recv_count: u64,
        root: Rank,
        send_type: Datatype,
        recv_type: Datatype,
    },
    /// `MPI_Allgatherv`.
    Allgatherv { send_count: u64, recv_counts: Box<[u64]>, send_type: Datatype, recv_type: Datatype },
    /// `MPI_Reduce_scatter`.
    ReduceScatter { recv_counts: Box<[u64]>, flops: f64, datatype: Datatype },
    /// `MPI_Scan`.
    Scan { count: u64, flops: f64, datatype: Datatype },
    /// `MPI_Exscan`.
    Exscan { count: u64, flops: f64, datatype: Datatype },
}

impl Collective {
    /// Returns the name of the action in a trace, such as `bcast`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Bcast { .. } => "bcast",
            Self::Reduce { .. } => "reduce",
            Self::Allreduce { .. } => "allreduce",
            Self::Alltoall { .. } => "alltoall",
            Self::Alltoallv { .. } => "alltoallv",
            Self::Gather { .. } => "gather",
            Self::Scatter { .. } => "scatter",
            Self::Allgather { .. } => "allgather",
            Self::Gatherv { .. } => "gatherv",
            Self::Scatterv { .. } => "scatterv",
            Self::Allgatherv { .. } => "allgatherv",
            Self::ReduceScatter { .. } => "reducescatter",
            Self::Scan { .. } => "scan",
            Self::Exscan { .. } => "exscan",
        }
    }

    /// Returns the name of the nonblocking action, such as `ibcast`.
    pub fn nonblocking_name(&self) -> &'static str {
        match self {
            Self::Barrier => "ibarrier",
            Self::Bcast { .. } => "ibcast",
            Self::Reduce { .. } => "ireduce",
            Self::Allreduce { .. } => "iallreduce",
            Self::Alltoall { .. } => "ialltoall",
            Self::Alltoallv { .. } => "ialltoallv",
            Self::Gather { .. } => "igather",
            Self::Scatter { .. } => "iscatter",
            Self::Allgather { .. } => "iallgather",
            Self::Gatherv { .. } => "igatherv",
            Self::Scatterv { .. } => "iscatterv",
            Self::Allgatherv { .. } => "iallgatherv",
            Self::ReduceScatter { .. } => "ireducescatter",
            Self::Scan { .. } => "iscan",
            Self::Exscan { .. } => "iexscan",
        }
    }

    /// Returns the root, if the operation has one.
    pub fn root(&self) -> Option<Rank> {
        match self {
            Self::Bcast { root, .. }
            | Self::Reduce { root, .. }
            | Self::Gather { root, .. }
            | Self::Scatter { root, .. }
            | Self::Gatherv { root, .. }
            | Self::Scatterv { root, .. } => Some(*root),
            _ => None,
        }
    }

    /// Returns the computation of a reduction on this rank \[flop\].
    pub fn flops(&self) -> Option<f64> {
        match self {
            Self::Reduce { flops, .. }
            | Self::Allreduce { flops, .. }
            | Self::ReduceScatter { flops, .. }
            | Self::Scan { flops, .. }
            | Self::Exscan { flops, .. } => Some(*flops),
            _ => None,
        }
    }

    /// Returns the vectors of counts, each with one count per rank.
    pub fn vectors(&self) -> Vec<&[u64]> {
        match self {
            Self::Alltoallv { send_counts, recv_counts, .. } => vec![send_counts, recv_counts],
            Self::Gatherv { recv_counts, .. }
            | Self::Allgatherv { recv_counts, .. }
            | Self::ReduceScatter { recv_counts, .. } => vec![recv_counts],
            Self::Scatterv { send_counts, .. } => vec![send_counts],
            _ => Vec::new(),
        }
    }
}
