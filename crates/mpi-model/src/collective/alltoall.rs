//! All-to-all algorithms, many of which serve alltoallv too.

pub(super) mod bruck;
pub(super) mod linear;
mod mesh;
mod one_sided;
pub(super) mod pairwise;
pub(super) mod via_allgather;
pub(super) mod windows;

use super::automatic::power_of_two;
use super::blocks::Blocks;
use super::mesh::{in_2d_exists, in_3d_exists};
use super::operation::{Entry, Operation};
use super::selector::{impi, mpich, mvapich2, ompi};
use super::{Member, Schedule, analytic, automatic};

/// The arguments of an alltoall or alltoallv: the blocks for each rank and those from each rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args<'a> {
    pub(super) sent: Blocks<'a>,
    pub(super) received: Blocks<'a>,
}

pub(super) type Algorithm = for<'a> fn(Member<'a>, Args<'a>) -> Schedule<'a>;

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[
    Entry::new("default", ompi::alltoall),
    Entry::tried_if("2dmesh", in_2d_exists, mesh::in_two_dimensions),
    Entry::tried_if("3dmesh", in_3d_exists, mesh::in_three_dimensions),
    Entry::new("basic_linear", linear::from_next),
    Entry::new("bruck", bruck::bruck),
    Entry::tried_if("pair", power_of_two, pairwise::pair),
    Entry::new("pair_rma", one_sided::pair),
    Entry::tried_if("pair_light_barrier", power_of_two, pairwise::pair_light_barrier),
    Entry::tried_if("pair_mpi_barrier", power_of_two, pairwise::pair_mpi_barrier),
    Entry::tried_if("pair_one_barrier", power_of_two, pairwise::pair_one_barrier),
    Entry::new("rdb", via_allgather::doubling),
    Entry::new("ring", pairwise::ring),
    Entry::new("ring_light_barrier", pairwise::ring_light_barrier),
    Entry::new("ring_mpi_barrier", pairwise::ring_mpi_barrier),
    Entry::new("ring_one_barrier", pairwise::ring_one_barrier),
    Entry::new("mvapich2", mvapich2::alltoall),
    Entry::new("mvapich2_scatter_dest", windows::including_self),
    Entry::new("ompi", ompi::alltoall),
    Entry::new("mpich", mpich::alltoall),
    Entry::new("impi", impi::alltoall),
    Entry::new("automatic", automatic),
    Entry::new("analytic", analytic::alltoall),
];

/// Returns the schedule of all algorithms in turn; see [`automatic::run_all`].
fn automatic<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    automatic::run_all(member, ALGORITHMS, move |algorithm| algorithm(member, args))
}

/// Returns the schedule of the selected algorithm.
pub(super) fn selected<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let place = member.selection.algorithm_index(Operation::Alltoall, member.size, block(args));
    (ALGORITHMS[place].algorithm)(member, args)
}

/// Returns the size of the block for each rank.
fn block(args: Args<'_>) -> u64 {
    args.sent.bytes_of(0).get()
}
