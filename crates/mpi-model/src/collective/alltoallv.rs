//! All-to-all algorithms for blocks of any sizes.

use super::alltoall::{Algorithm, Args, linear, pairwise, windows};
use super::automatic::power_of_two;
use super::member::Elements;
use super::operation::{Entry, Operation, Selectable};
use super::selector::{impi, ompi};
use super::{Member, Schedule, analytic};

/// The operation alltoallv.
pub(super) enum Alltoallv {}

impl Selectable for Alltoallv {
    type Args<'a> = Args<'a>;
    type Algorithm = Algorithm;

    const OPERATION: Operation = Operation::Alltoallv;
    const ALGORITHMS: &'static [Entry<Algorithm>] = &[
        Entry::new("default", linear::in_order),
        Entry::new("bruck", windows::excluding_self),
        Entry::tried_if("pair", power_of_two, pairwise::pair),
        Entry::tried_if("pair_light_barrier", power_of_two, pairwise::pair_light_barrier),
        Entry::tried_if("pair_mpi_barrier", power_of_two, pairwise::pair_mpi_barrier),
        Entry::tried_if("pair_one_barrier", power_of_two, pairwise::pair_one_barrier),
        // SimGrid's ring exchanges in pairs where P is a power of two.
        Entry::new("ring", pairwise::pair),
        Entry::new("ring_light_barrier", pairwise::ring_light_barrier),
        Entry::new("ring_mpi_barrier", pairwise::ring_mpi_barrier),
        Entry::new("ring_one_barrier", pairwise::ring_one_barrier),
        Entry::table("ompi", &ompi::ALLTOALLV),
        Entry::new("mpich", windows::excluding_self),
        Entry::new("ompi_basic_linear", linear::in_order),
        Entry::new("mvapich2", pairwise::pair),
        Entry::table("impi", &impi::ALLTOALLV),
        Entry::AUTOMATIC,
        Entry::new("analytic", analytic::alltoall),
    ];

    fn data(_: Member<'_>, _: Args<'_>) -> Elements {
        Elements::NONE
    }

    fn run<'a>(algorithm: Algorithm, member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
        algorithm(member, args)
    }
}
