//! Allgather algorithms, which also serve allgatherv.

pub(super) mod direct;
pub(super) mod doubling;
pub(super) mod gather_bcast;
pub(super) mod logical_ring;
mod mesh;
pub(super) mod neighbors;
mod smp;
pub(super) mod two_level;

use super::automatic::{power_of_two, uniform_and_blocked};
use super::blocks::Blocks;
use super::member::Elements;
use super::mesh::{in_2d_exists, in_3d_exists};
use super::operation::{Entry, Operation, Selectable};
use super::selector::{impi, mpich, mvapich2, ompi};
use super::{Member, RankRequirement, Schedule, analytic};

/// The arguments of an allgather or allgatherv.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args<'a> {
    /// Block that this member contributes.
    pub(super) sent: Elements,
    /// Block received from each rank.
    pub(super) blocks: Blocks<'a>,
}

pub(super) type Algorithm = for<'a> fn(Member<'a>, Args<'a>) -> Schedule<'a>;

/// The operation allgather.
pub(super) enum Allgather {}

impl Selectable for Allgather {
    type Args<'a> = Args<'a>;
    type Algorithm = Algorithm;

    const OPERATION: Operation = Operation::Allgather;
    const ALGORITHMS: &'static [Entry<Algorithm>] = &[
        Entry::new("default", direct::linear),
        Entry::tried_if("2dmesh", in_2d_exists, mesh::in_two_dimensions),
        Entry::tried_if("3dmesh", in_3d_exists, mesh::in_three_dimensions),
        Entry::new("bruck", doubling::bruck),
        Entry::new("GB", gather_bcast::gather_bcast),
        Entry::new("loosely_lr", smp::loose_rings),
        Entry::new("NTSLR", logical_ring::blocking),
        Entry::new("NTSLR_NB", logical_ring::non_blocking),
        Entry::tried_if("pair", power_of_two, direct::pair),
        Entry::new("rdb", doubling::recursive),
        Entry::requiring(RankRequirement::PowerOfTwo, "rhv", doubling::halving_distance),
        Entry::new("ring", direct::ring),
        Entry::new("SMP_NTS", smp::ring_of_nodes),
        Entry::new("smp_simple", smp::simple),
        Entry::new("spreading_simple", direct::spreading_simple),
        Entry::table("ompi", &ompi::ALLGATHER),
        Entry::new("ompi_neighborexchange", neighbors::neighbor_exchange),
        Entry::table("mvapich2", &mvapich2::ALLGATHER),
        Entry::tried_if("mvapich2_smp", uniform_and_blocked, two_level::two_level),
        Entry::table("mpich", &mpich::ALLGATHER),
        Entry::table("impi", &impi::ALLGATHER),
        Entry::AUTOMATIC,
        Entry::new("analytic", analytic::allgather),
    ];

    fn data(_: Member<'_>, args: Args<'_>) -> Elements {
        args.sent
    }

    fn run<'a>(algorithm: Algorithm, member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
        algorithm(member, args)
    }
}
