//! Allgather algorithms, which also serve allgatherv.

pub(super) mod direct;
pub(super) mod doubling;
pub(super) mod gather_bcast;
pub(super) mod logical_ring;
mod mesh;
pub(super) mod neighbors;
mod smp;
pub(super) mod two_level;

use super::automatic::{self, power_of_two, uniform_and_blocked};
use super::blocks::Blocks;
use super::member::Elements;
use super::mesh::{in_2d_exists, in_3d_exists};
use super::operation::{Entry, Operation};
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

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[
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
    Entry::new("ompi", ompi::allgather),
    Entry::new("ompi_neighborexchange", neighbors::neighbor_exchange),
    Entry::new("mvapich2", mvapich2::allgather),
    Entry::tried_if("mvapich2_smp", uniform_and_blocked, two_level::two_level),
    Entry::new("mpich", mpich::allgather),
    Entry::new("impi", impi::allgather),
    Entry::new("automatic", automatic),
    Entry::new("analytic", analytic::allgather),
];

/// Returns the schedule of all algorithms in turn; see [`automatic::run_all`].
fn automatic<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    automatic::run_all(member, ALGORITHMS, move |algorithm| algorithm(member, args))
}

/// Returns the schedule of the selected algorithm.
pub(super) fn selected<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let place = member.selection.algorithm_index(Operation::Allgather, member.size, args.sent.bytes().get());
    (ALGORITHMS[place].algorithm)(member, args)
}
