//! Barrier algorithms.

mod dissemination;
mod linear;
mod pairwise;
mod ring;
mod tree;
mod two_level;

use super::operation::{Entry, Operation};
use super::selection::RankRequirement;
use super::selector::{impi, mpich, mvapich2, ompi};
use super::{Member, Schedule, analytic, automatic};

pub(super) use dissemination::dissemination;
pub(super) use linear::linear;
pub(super) use pairwise::{recursive_doubling, two_procs};
pub(super) use ring::double_ring;
pub(super) use tree::tree;
pub(super) use two_level::two_level;

pub(super) type Algorithm = for<'a> fn(Member<'a>) -> Schedule<'a>;

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[
    Entry::new("default", linear),
    Entry::new("ompi", ompi::barrier),
    Entry::new("ompi_basic_linear", linear),
    Entry::requiring(RankRequirement::AtMostTwo, "ompi_two_procs", two_procs),
    Entry::new("ompi_tree", tree),
    Entry::new("ompi_bruck", dissemination),
    Entry::new("ompi_recursivedoubling", recursive_doubling),
    Entry::new("ompi_doublering", double_ring),
    Entry::new("mpich_smp", two_level),
    Entry::new("mpich", mpich::barrier),
    Entry::new("mvapich2_pair", recursive_doubling),
    Entry::new("mvapich2", mvapich2::barrier),
    Entry::new("impi", impi::barrier),
    Entry::new("automatic", automatic),
    Entry::new("analytic", analytic::barrier),
];

/// Returns the schedule of all algorithms in turn; see [`automatic::run_all`].
fn automatic(member: Member<'_>) -> Schedule<'_> {
    automatic::run_all(member, ALGORITHMS, move |algorithm| algorithm(member))
}

/// Returns the schedule of the selected algorithm.
pub(super) fn selected(member: Member<'_>) -> Schedule<'_> {
    let place = member.selection.algorithm_index(Operation::Barrier, member.size, 0);
    (ALGORITHMS[place].algorithm)(member)
}
