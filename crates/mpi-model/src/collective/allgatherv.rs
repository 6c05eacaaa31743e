//! Allgather algorithms for blocks of any sizes.

pub(super) mod segmented_ring;

use super::allgather::{Algorithm, Args, direct, doubling, gather_bcast, neighbors};
use super::automatic::power_of_two;
use super::decision_table::Measure;
use super::member::Elements;
use super::operation::{Entry, Operation, Selectable};
use super::selector::{impi, mpich, mvapich2, ompi};
use super::{Member, Schedule, analytic};

/// The operation allgatherv.
pub(super) enum Allgatherv {}

impl Selectable for Allgatherv {
    type Args<'a> = Args<'a>;
    type Algorithm = Algorithm;

    const OPERATION: Operation = Operation::Allgatherv;
    const SIZE: Measure = Measure::BytesPerRank;
    const ALGORITHMS: &'static [Entry<Algorithm>] = &[
        Entry::new("default", direct::linear),
        Entry::new("GB", gather_bcast::gather_bcast),
        Entry::tried_if("pair", power_of_two, direct::pair),
        Entry::new("ring", direct::ring),
        Entry::table("ompi", &ompi::ALLGATHERV),
        Entry::new("ompi_neighborexchange", neighbors::neighbor_exchange),
        Entry::new("ompi_bruck", doubling::bruck),
        Entry::table("mpich", &mpich::ALLGATHERV),
        Entry::new("mpich_rdb", doubling::recursive_unless_empty),
        Entry::new("mpich_ring", segmented_ring::segmented_ring),
        Entry::table("mvapich2", &mvapich2::ALLGATHERV),
        Entry::table("impi", &impi::ALLGATHERV),
        Entry::AUTOMATIC,
        Entry::new("analytic", analytic::allgather),
    ];

    fn data(member: Member<'_>, args: Args<'_>) -> Elements {
        args.blocks.total(member.size)
    }

    fn run<'a>(algorithm: Algorithm, member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
        algorithm(member, args)
    }
}
