//! Allgather algorithms for blocks of any sizes.

pub(super) mod segmented_ring;

use super::allgather::{Algorithm, Args, direct, doubling, gather_bcast, neighbors};
use super::automatic::power_of_two;
use super::operation::{Entry, Operation};
use super::selector::{impi, mpich, mvapich2, ompi};
use super::{Member, Schedule, analytic, automatic};

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[
    Entry::new("default", direct::linear),
    Entry::new("GB", gather_bcast::gather_bcast),
    Entry::tried_if("pair", power_of_two, direct::pair),
    Entry::new("ring", direct::ring),
    Entry::new("ompi", ompi::allgatherv),
    Entry::new("ompi_neighborexchange", neighbors::neighbor_exchange),
    Entry::new("ompi_bruck", doubling::bruck),
    Entry::new("mpich", mpich::allgatherv),
    Entry::new("mpich_rdb", doubling::recursive_unless_empty),
    Entry::new("mpich_ring", segmented_ring::segmented_ring),
    Entry::new("mvapich2", mvapich2::allgatherv),
    Entry::new("impi", impi::allgatherv),
    Entry::new("automatic", automatic),
    Entry::new("analytic", analytic::allgather),
];

/// Returns the schedule of all algorithms in turn; see [`automatic::run_all`].
fn automatic<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    automatic::run_all(member, ALGORITHMS, move |algorithm| algorithm(member, args))
}

/// Returns the schedule of the selected algorithm.
pub(super) fn selected<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let mean = args.blocks.total(member.size).bytes().get() / u64::from(member.size);
    let place = member.selection.algorithm_index(Operation::Allgatherv, member.size, mean);
    (ALGORITHMS[place].algorithm)(member, args)
}
