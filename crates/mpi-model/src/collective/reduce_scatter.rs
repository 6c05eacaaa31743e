//! Reduce-scatter algorithms. The caller charges their computation.

pub(super) mod butterfly;
mod fold;
pub(super) mod halving;
pub(super) mod linear;
pub(super) mod rounds;

use super::automatic::power_of_two;
use super::blocks::Blocks;
use super::operation::{Entry, Operation};
use super::selector::{impi, mpich, mvapich2, ompi};
use super::{Member, Schedule, analytic, automatic};

pub(super) type Algorithm = for<'a> fn(Member<'a>, Blocks<'a>) -> Schedule<'a>;

/// The algorithms; their argument is the blocks that the ranks keep.
pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[
    Entry::new("default", linear::by_regularity),
    Entry::new("ompi", ompi::reduce_scatter),
    Entry::new("ompi_basic_recursivehalving", halving::recursive),
    Entry::new("ompi_ring", rounds::ring),
    Entry::new("ompi_butterfly", butterfly::butterfly),
    Entry::new("mpich", mpich::reduce_scatter),
    Entry::new("mpich_pair", rounds::pair),
    Entry::new("mpich_rdb", halving::doubling),
    Entry::tried_if("mpich_noncomm", power_of_two, halving::non_commutative),
    Entry::new("mvapich2", mvapich2::reduce_scatter),
    Entry::new("impi", impi::reduce_scatter),
    Entry::new("automatic", automatic),
    Entry::new("analytic", analytic::reduce_scatter),
];

/// Returns the schedule of all algorithms in turn; see [`automatic::run_all`].
fn automatic<'a>(member: Member<'a>, blocks: Blocks<'a>) -> Schedule<'a> {
    automatic::run_all(member, ALGORITHMS, move |algorithm| algorithm(member, blocks))
}

/// Returns the schedule of the selected algorithm.
pub(super) fn selected<'a>(member: Member<'a>, blocks: Blocks<'a>) -> Schedule<'a> {
    let bytes = blocks.total(member.size).bytes().get();
    let place = member.selection.algorithm_index(Operation::ReduceScatter, member.size, bytes);
    (ALGORITHMS[place].algorithm)(member, blocks)
}
