//! Which algorithm a collective operation uses.

use pdes_core::Bytes;
use trace_mmap::Collective;

use super::member::size_of;
use super::{
    Member, Schedule, allgather, alltoall, barrier, bcast, gather, reduce, reduce_scatter, reduction, scan,
    scatter,
};

/// A rule that picks algorithms by operation, size and number of ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selector {
    /// SimGrid's `default`: linear and binomial algorithms whatever the size, with Open MPI's table for alltoall.
    #[default]
    Default,
}

impl Selector {
    /// Returns the name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
        }
    }

    /// Returns the steps of one member of an operation.
    ///
    /// # Panics
    /// Where a vector of the operation has fewer entries than there are members.
    pub fn schedule<'a>(self, member: Member, operation: &'a Collective) -> Schedule<'a> {
        match self {
            Self::Default => default(member, operation),
        }
    }
}

/// Source: SimGrid 3.32, `smpi_default_selector.cpp`.
fn default(member: Member, operation: &Collective) -> Schedule<'_> {
    match *operation {
        Collective::Barrier => barrier::linear(member),
        Collective::Bcast { count, root, datatype } => {
            bcast::binomial_tree(member, root, size_of(count, datatype))
        }
        Collective::Reduce { count, flops, root, datatype } => {
            Box::new(reduce::flat(member, root, size_of(count, datatype)).chain(reduction(flops)))
        }
        Collective::Allreduce { count, flops, datatype } => {
            Box::new(reduce::flat_then_binomial(member, size_of(count, datatype)).chain(reduction(flops)))
        }
        Collective::Alltoall { send_count, recv_count, send_type, recv_type } => {
            default_alltoall(member, size_of(send_count, send_type), size_of(recv_count, recv_type))
        }
        Collective::Alltoallv { ref send_counts, ref recv_counts, send_type, recv_type } => {
            alltoall::linear_v(
                member,
                move |rank| size_of(send_counts[rank as usize], send_type),
                move |rank| size_of(recv_counts[rank as usize], recv_type),
            )
        }
        Collective::Gather { send_count, recv_count, root, send_type, recv_type } => {
            let received = size_of(recv_count, recv_type);
            gather::linear(member, root, size_of(send_count, send_type), move |_| received)
        }
        Collective::Gatherv { send_count, ref recv_counts, root, send_type, recv_type } => {
            let received = move |rank: u32| size_of(recv_counts[rank as usize], recv_type);
            gather::linear(member, root, size_of(send_count, send_type), received)
        }
        Collective::Scatter { send_count, recv_count, root, send_type, recv_type } => {
            let sent = size_of(send_count, send_type);
            scatter::linear(member, root, move |_| sent, size_of(recv_count, recv_type))
        }
        Collective::Scatterv { ref send_counts, recv_count, root, send_type, recv_type } => {
            let sent = move |rank: u32| size_of(send_counts[rank as usize], send_type);
            scatter::linear(member, root, sent, size_of(recv_count, recv_type))
        }
        Collective::Allgather { send_count, recv_count, send_type, recv_type } => {
            let received = size_of(recv_count, recv_type);
            allgather::linear(member, size_of(send_count, send_type), move |_| received)
        }
        Collective::Allgatherv { send_count, ref recv_counts, send_type, recv_type } => {
            let received = move |rank: u32| size_of(recv_counts[rank as usize], recv_type);
            allgather::linear(member, size_of(send_count, send_type), received)
        }
        Collective::ReduceScatter { ref recv_counts, flops, datatype } => {
            let algorithm = match () {
                () if recv_counts.windows(2).all(|pair| pair[0] == pair[1]) => {
                    reduce_scatter::flat_then_scatter
                }
                () if recv_counts.iter().sum::<u64>() > 524_288 => reduce_scatter::pair,
                () => reduce_scatter::recursive_doubling,
            };
            Box::new(algorithm(member, recv_counts, datatype).chain(reduction(flops)))
        }
        Collective::Scan { count, flops, datatype } | Collective::Exscan { count, flops, datatype } => {
            Box::new(scan::linear(member, size_of(count, datatype)).chain(reduction(flops)))
        }
    }
}

fn default_alltoall<'a>(member: Member, sent: Bytes, received: Bytes) -> Schedule<'a> {
    match open_mpi_alltoall(member.size, sent.get()) {
        Alltoall::Linear => alltoall::basic_linear(member, sent, received),
        Alltoall::Pair => alltoall::pair(member, sent, received),
        Alltoall::Bruck => alltoall::bruck(member, sent),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alltoall {
    Linear,
    Pair,
    Bruck,
}

/// Rows of a decision table: below this many ranks, below this many bytes to each peer, this algorithm.
type Rows = &'static [(u32, &'static [(u64, Alltoall)])];

/// Open MPI 4's fixed decision for alltoall (its `linear_sync` counts as linear, as in SimGrid).
const OPEN_MPI_ALLTOALL: Rows = {
    use Alltoall::{Bruck, Linear, Pair};
    const REST: u64 = u64::MAX;
    &[
        (
            3,
            &[
                (2, Pair),
                (4, Linear),
                (16, Pair),
                (64, Linear),
                (256, Pair),
                (4096, Linear),
                (32768, Pair),
                (1_048_576, Linear),
                (REST, Pair),
            ],
        ),
        (8, &[(524_288, Linear), (1_048_576, Pair), (REST, Linear)]),
        (16, &[(REST, Linear)]),
        (32, &[(4, Linear), (512, Bruck), (REST, Linear)]),
        (64, &[(512, Bruck), (REST, Linear)]),
        (128, &[(1024, Bruck), (262_144, Linear), (REST, Pair)]),
        (256, &[(1024, Bruck), (262_144, Linear), (REST, Pair)]),
        (512, &[(1024, Bruck), (32768, Linear), (REST, Pair)]),
        (1024, &[(512, Bruck), (262_144, Linear), (REST, Pair)]),
        (2048, &[(512, Bruck), (REST, Linear)]),
        (4096, &[(1024, Bruck), (REST, Linear)]),
        (u32::MAX, &[(2048, Bruck), (REST, Linear)]),
    ]
};

fn open_mpi_alltoall(size: u32, bytes: u64) -> Alltoall {
    let row = OPEN_MPI_ALLTOALL.iter().find(|&&(below, _)| size < below);
    let column = row.and_then(|(_, columns)| columns.iter().find(|&&(below, _)| bytes < below));
    column.map_or(Alltoall::Linear, |&(_, algorithm)| algorithm)
}
