//! Allreduce algorithms. The caller charges their computation.

mod composed;
mod doubling;
mod halving;
mod ring;
mod segmented_ring;
mod smp;
mod two_level;

use super::member::Elements;
use super::operation::{Entry, Operation};
use super::selection::RankRequirement;
use super::selector::{impi, mpich, mvapich2, ompi};
use super::{Member, Schedule, analytic, automatic};

pub(super) use composed::{
    alltoall_then_allgather, halve_then_allgather, linear_then_binomial, reduce_broadcast,
};
pub(super) use doubling::recursive_doubling;
pub(super) use halving::{halving_doubling, rabenseifner, short_or_halving};
pub(super) use ring::ring;
pub(super) use segmented_ring::segmented_ring;
pub(super) use smp::{
    smp_binomial, smp_binomial_pipeline, smp_halving, smp_recursive_doubling, smp_ring, smp_whole_ring,
};
pub(super) use two_level::{mpich_two_level, reduce_to_leader, two_level};

pub(super) type Algorithm = for<'a> fn(Member<'a>, Elements) -> Schedule<'a>;

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[
    Entry::new("default", linear_then_binomial),
    Entry::new("lr", ring),
    Entry::requiring(RankRequirement::PowerOfTwo, "rab1", halve_then_allgather),
    Entry::new("rab2", alltoall_then_allgather),
    Entry::new("rab_rdb", halving_doubling),
    Entry::new("rdb", recursive_doubling),
    Entry::new("smp_binomial", smp_binomial),
    Entry::new("smp_binomial_pipeline", smp_binomial_pipeline),
    Entry::new("smp_rdb", smp_recursive_doubling),
    Entry::new("smp_rsag", smp_ring),
    Entry::new("smp_rsag_lr", smp_whole_ring),
    Entry::requiring(RankRequirement::PowerOfTwo, "smp_rsag_rab", smp_halving),
    Entry::new("redbcast", reduce_broadcast),
    Entry::new("ompi", ompi::allreduce),
    Entry::new("ompi_ring_segmented", segmented_ring),
    Entry::new("mpich", mpich::allreduce),
    Entry::new("mvapich2", mvapich2::allreduce),
    Entry::new("mvapich2_rs", short_or_halving),
    Entry::new("mvapich2_two_level", mpich_two_level),
    Entry::new("impi", impi::allreduce),
    Entry::new("rab", rabenseifner),
    Entry::new("automatic", automatic),
    Entry::new("analytic", analytic::allreduce),
];

/// Returns the schedule of all algorithms in turn; see [`automatic::run_all`].
fn automatic<'a>(member: Member<'a>, data: Elements) -> Schedule<'a> {
    automatic::run_all(member, ALGORITHMS, move |algorithm| algorithm(member, data))
}

/// Returns the schedule of the selected algorithm.
pub(super) fn selected(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let place = member.selection.algorithm_index(Operation::Allreduce, member.size, data.bytes().get());
    (ALGORITHMS[place].algorithm)(member, data)
}
