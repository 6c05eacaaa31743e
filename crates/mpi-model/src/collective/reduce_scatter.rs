//! Reduce-scatter algorithms. The caller charges their computation.

pub(super) mod butterfly;
pub(super) mod halving;
pub(super) mod linear;
pub(super) mod rounds;

use super::automatic::power_of_two;
use super::blocks::Blocks;
use super::member::Elements;
use super::operation::{Entry, Operation, Selectable};
use super::selector::{impi, mpich, mvapich2, ompi};
use super::{Member, Schedule, analytic};

pub(super) type Algorithm = for<'a> fn(Member<'a>, Blocks<'a>) -> Schedule<'a>;

/// The operation reduce-scatter.
pub(super) enum ReduceScatter {}

impl Selectable for ReduceScatter {
    type Args<'a> = Blocks<'a>;
    type Algorithm = Algorithm;

    const OPERATION: Operation = Operation::ReduceScatter;
    // The argument of the algorithms is the blocks that the ranks keep.
    const ALGORITHMS: &'static [Entry<Algorithm>] = &[
        Entry::new("default", linear::by_regularity),
        Entry::table("ompi", &ompi::REDUCE_SCATTER),
        Entry::new("ompi_basic_recursivehalving", halving::recursive),
        Entry::new("ompi_ring", rounds::ring),
        Entry::new("ompi_butterfly", butterfly::butterfly),
        Entry::table("mpich", &mpich::REDUCE_SCATTER),
        Entry::new("mpich_pair", rounds::pair),
        Entry::new("mpich_rdb", halving::doubling),
        Entry::tried_if("mpich_noncomm", power_of_two, halving::non_commutative),
        Entry::table("mvapich2", &mvapich2::REDUCE_SCATTER),
        Entry::table("impi", &impi::REDUCE_SCATTER),
        Entry::AUTOMATIC,
        Entry::new("analytic", analytic::reduce_scatter),
    ];

    fn data(member: Member<'_>, blocks: Blocks<'_>) -> Elements {
        blocks.total(member.size)
    }

    fn run<'a>(algorithm: Algorithm, member: Member<'a>, blocks: Blocks<'a>) -> Schedule<'a> {
        algorithm(member, blocks)
    }
}
