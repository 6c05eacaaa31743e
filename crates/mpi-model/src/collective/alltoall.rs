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
use super::member::Elements;
use super::mesh::{in_2d_exists, in_3d_exists};
use super::operation::{Entry, Operation, Selectable};
use super::selector::{impi, mpich, mvapich2, ompi};
use super::{Member, Schedule, analytic};

/// The arguments of an alltoall or alltoallv: the blocks for each rank and those from each rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args<'a> {
    pub(super) sent: Blocks<'a>,
    pub(super) received: Blocks<'a>,
}

pub(super) type Algorithm = for<'a> fn(Member<'a>, Args<'a>) -> Schedule<'a>;

/// The operation alltoall.
pub(super) enum Alltoall {}

impl Selectable for Alltoall {
    type Args<'a> = Args<'a>;
    type Algorithm = Algorithm;

    const OPERATION: Operation = Operation::Alltoall;
    const ALGORITHMS: &'static [Entry<Algorithm>] = &[
        Entry::table("default", &ompi::ALLTOALL),
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
        Entry::table("mvapich2", &mvapich2::ALLTOALL),
        Entry::new("mvapich2_scatter_dest", windows::including_self),
        Entry::table("ompi", &ompi::ALLTOALL),
        Entry::table("mpich", &mpich::ALLTOALL),
        Entry::table("impi", &impi::ALLTOALL),
        Entry::AUTOMATIC,
        Entry::new("analytic", analytic::alltoall),
    ];

    fn data(_: Member<'_>, args: Args<'_>) -> Elements {
        args.sent.elements(0)
    }

    fn run<'a>(algorithm: Algorithm, member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
        algorithm(member, args)
    }
}
