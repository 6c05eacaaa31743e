//! Allreduce algorithms. The caller charges their computation.

mod composed;
mod doubling;
mod halving;
mod ring;
mod segmented_ring;
mod smp;
mod two_level;

use super::member::Elements;
use super::operation::{Entry, Operation, Selectable};
use super::selection::RankRequirement;
use super::selector::{impi, mpich, mvapich2, ompi};
use super::{Member, Schedule, Selection, analytic, in_network};

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

/// The operation allreduce.
pub(super) enum Allreduce {}

impl Selectable for Allreduce {
    type Args<'a> = Elements;
    type Algorithm = Algorithm;

    const OPERATION: Operation = Operation::Allreduce;
    const ALGORITHMS: &'static [Entry<Algorithm>] = &[
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
        Entry::table("ompi", &ompi::ALLREDUCE),
        Entry::new("ompi_ring_segmented", segmented_ring),
        Entry::table("mpich", &mpich::ALLREDUCE),
        Entry::table("mvapich2", &mvapich2::ALLREDUCE),
        Entry::new("mvapich2_rs", short_or_halving),
        Entry::new("mvapich2_two_level", mpich_two_level),
        Entry::table("impi", &impi::ALLREDUCE),
        Entry::new("rab", rabenseifner),
        Entry::AUTOMATIC,
        Entry::new("analytic", analytic::allreduce),
        Entry::new(Selection::IN_NETWORK, in_network::allreduce),
    ];

    fn data(_: Member<'_>, data: Elements) -> Elements {
        data
    }

    fn run<'a>(algorithm: Algorithm, member: Member<'a>, data: Elements) -> Schedule<'a> {
        algorithm(member, data)
    }
}
