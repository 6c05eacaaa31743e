//! All-to-all algorithms for blocks of any sizes.

use super::alltoall::{Algorithm, Args, linear, pairwise, windows};
use super::automatic::power_of_two;
use super::operation::{Entry, Operation};
use super::selector::{impi, ompi};
use super::{Member, Schedule, analytic, automatic};

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[
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
    Entry::new("ompi", ompi::alltoallv),
    Entry::new("mpich", windows::excluding_self),
    Entry::new("ompi_basic_linear", linear::in_order),
    Entry::new("mvapich2", pairwise::pair),
    Entry::new("impi", impi::alltoallv),
    Entry::new("automatic", automatic),
    Entry::new("analytic", analytic::alltoall),
];

/// Returns the schedule of all algorithms in turn; see [`automatic::run_all`].
fn automatic<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    automatic::run_all(member, ALGORITHMS, move |algorithm| algorithm(member, args))
}

/// Returns the schedule of the selected algorithm.
pub(super) fn selected<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let place = member.selection.algorithm_index(Operation::Alltoallv, member.size, 0);
    (ALGORITHMS[place].algorithm)(member, args)
}
