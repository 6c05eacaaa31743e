//! Functions of MPI by their names.

use trace_mmap::SendMode;
use trace_mmap::table::CollectiveKind;

/// A function of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Init,
    Finalize,
    /// No communication that a trace tells of, such as `MPI_Comm_rank` or `MPI_Comm_split`.
    Local,
    Send(SendMode),
    Recv,
    SendRecv,
    Isend(SendMode),
    Irecv,
    SendInit(SendMode),
    RecvInit,
    /// `MPI_Request_free`.
    Free,
    /// `MPI_Start`, `MPI_Startall`: any number of messages in both directions.
    Start,
    Wait(Requests),
    Test(Requests),
    Collective {
        kind: CollectiveKind,
        is_nonblocking: bool,
    },
    /// Any other function.
    Other,
}

/// Number of requests that a call completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requests {
    One,
    Some,
    All,
}

/// Starts of the names of functions that only make or ask for objects, in lower case.
const LOCAL: [&str; 20] = [
    "mpi_comm_",
    "mpi_cart_",
    "mpi_graph_",
    "mpi_dist_graph_",
    "mpi_group_",
    "mpi_type_",
    "mpi_dims_",
    "mpi_topo_",
    "mpi_get_",
    "mpi_op_",
    "mpi_info_",
    "mpi_error_",
    "mpi_errhandler_",
    "mpi_attr_",
    "mpi_keyval_",
    "mpi_pack",
    "mpi_unpack",
    "mpi_buffer_",
    "mpi_status_",
    "mpi_add_error_",
];

/// Starts of the names of functions with those of [`LOCAL`] that communicate with other programs, in lower case.
const NOT_LOCAL: [&str; 6] = [
    "mpi_get_accumulate",
    "mpi_comm_spawn",
    "mpi_comm_accept",
    "mpi_comm_connect",
    "mpi_comm_disconnect",
    "mpi_comm_join",
];

impl Function {
    /// Finds a function by its name; letters of either case are equal.
    pub(crate) fn of(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "mpi_init" | "mpi_init_thread" => Self::Init,
            "mpi_finalize" => Self::Finalize,
            "mpi_send" => Self::Send(SendMode::Standard),
            "mpi_ssend" => Self::Send(SendMode::Synchronous),
            "mpi_bsend" => Self::Send(SendMode::Buffered),
            "mpi_rsend" => Self::Send(SendMode::Ready),
            "mpi_isend" => Self::Isend(SendMode::Standard),
            "mpi_issend" => Self::Isend(SendMode::Synchronous),
            "mpi_ibsend" => Self::Isend(SendMode::Buffered),
            "mpi_irsend" => Self::Isend(SendMode::Ready),
            "mpi_recv" | "mpi_mrecv" => Self::Recv,
            "mpi_irecv" | "mpi_imrecv" => Self::Irecv,
            "mpi_sendrecv" | "mpi_sendrecv_replace" => Self::SendRecv,
            "mpi_start" | "mpi_startall" => Self::Start,
            "mpi_wait" | "mpi_waitany" => Self::Wait(Requests::One),
            "mpi_waitsome" => Self::Wait(Requests::Some),
            "mpi_waitall" => Self::Wait(Requests::All),
            "mpi_test" | "mpi_testany" => Self::Test(Requests::One),
            "mpi_testsome" => Self::Test(Requests::Some),
            "mpi_testall" => Self::Test(Requests::All),
            "mpi_send_init" => Self::SendInit(SendMode::Standard),
            "mpi_ssend_init" => Self::SendInit(SendMode::Synchronous),
            "mpi_bsend_init" => Self::SendInit(SendMode::Buffered),
            "mpi_rsend_init" => Self::SendInit(SendMode::Ready),
            "mpi_recv_init" => Self::RecvInit,
            "mpi_request_free" => Self::Free,
            "mpi_cancel" | "mpi_test_cancelled" | "mpi_pcontrol" | "mpi_wtime" | "mpi_wtick"
            | "mpi_address" | "mpi_initialized" | "mpi_finalized" | "mpi_is_thread_main"
            | "mpi_query_thread" => Self::Local,
            _ => Self::collective(&name).unwrap_or_else(|| {
                let starts = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
                if starts(&LOCAL) && !starts(&NOT_LOCAL) { Self::Local } else { Self::Other }
            }),
        }
    }

    fn collective(name: &str) -> Option<Self> {
        let kind = |name: &str| {
            Some(match name {
                "barrier" => CollectiveKind::Barrier,
                "bcast" => CollectiveKind::Bcast,
                "reduce" => CollectiveKind::Reduce,
                "allreduce" => CollectiveKind::Allreduce,
                "alltoall" => CollectiveKind::Alltoall,
                "alltoallv" | "alltoallw" => CollectiveKind::Alltoallv,
                "gather" => CollectiveKind::Gather,
                "gatherv" => CollectiveKind::Gatherv,
                "scatter" => CollectiveKind::Scatter,
                "scatterv" => CollectiveKind::Scatterv,
                "allgather" => CollectiveKind::Allgather,
                "allgatherv" => CollectiveKind::Allgatherv,
                "reduce_scatter" | "reduce_scatter_block" => CollectiveKind::ReduceScatter,
                "scan" => CollectiveKind::Scan,
                "exscan" => CollectiveKind::Exscan,
                _ => return None,
            })
        };
        let name = name.strip_prefix("mpi_")?;
        let blocking = kind(name).map(|kind| Self::Collective { kind, is_nonblocking: false });
        blocking
            .or_else(|| Some(Self::Collective { kind: kind(name.strip_prefix('i')?)?, is_nonblocking: true }))
    }

    /// Returns whether a message may be sent in a call.
    pub(crate) fn sends(self) -> bool {
        matches!(self, Self::Send(_) | Self::Isend(_) | Self::SendRecv | Self::Start)
    }

    /// Returns whether a message may be received, or its receive be posted, in a call.
    pub(crate) fn receives(self) -> bool {
        matches!(self, Self::Recv | Self::Irecv | Self::SendRecv | Self::Start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_their_names() {
        let collective = |kind, is_nonblocking| Function::Collective { kind, is_nonblocking };
        let functions = [
            ("MPI_Init_thread", Function::Init),
            ("MPI_ISend", Function::Isend(SendMode::Standard)),
            ("MPI_Ibarrier", collective(CollectiveKind::Barrier, true)),
            ("MPI_Alltoallw", collective(CollectiveKind::Alltoallv, false)),
            ("MPI_Ireduce_scatter_block", collective(CollectiveKind::ReduceScatter, true)),
            ("MPI_Comm_split", Function::Local),
            ("MPI_Comm_spawn_multiple", Function::Other),
            ("MPI_Put", Function::Other),
            ("MPI_Neighbor_alltoall", Function::Other),
            ("Barrier", Function::Other),
        ];
        for (name, function) in functions {
            assert_eq!(Function::of(name), function, "{name}");
        }
    }
}
