//! Gather algorithms.

mod binomial;
mod linear;
mod two_level;

use super::member::Elements;
use super::operation::{Entry, Operation};
use super::selector::{impi, mpich, mvapich2, ompi};
use super::{Member, Schedule, analytic, automatic};

pub(super) use binomial::binomial;
pub(super) use linear::{all_at_once, in_turn, linear, synchronised};
pub(super) use two_level::two_level;

/// The arguments of a gather.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args {
    pub(super) root: u32,
    /// Block that this member sends.
    pub(super) sent: Elements,
    /// Block that the root receives from each rank.
    pub(super) received: Elements,
}

impl Args {
    /// Returns the block as described by this member's arguments.
    pub(super) fn block(&self, rank: u32) -> Elements {
        if rank == self.root { self.received } else { self.sent }
    }
}

pub(super) type Algorithm = for<'a> fn(Member<'a>, Args) -> Schedule<'a>;

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[
    Entry::new("default", all_at_once),
    Entry::new("ompi", ompi::gather),
    Entry::new("ompi_basic_linear", in_turn),
    Entry::new("ompi_binomial", binomial),
    Entry::new("ompi_linear_sync", synchronised),
    Entry::new("mpich", mpich::gather),
    Entry::new("mvapich2", mvapich2::gather),
    Entry::new("mvapich2_two_level", two_level),
    Entry::new("impi", impi::gather),
    Entry::new("automatic", automatic),
    Entry::new("analytic", analytic::gather),
];

/// Returns the schedule of all algorithms in turn; see [`automatic::run_all`].
fn automatic<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    automatic::run_all(member, ALGORITHMS, move |algorithm| algorithm(member, args))
}

/// Returns the schedule of the selected algorithm.
pub(super) fn selected<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let block = args.block(member.rank).bytes().get();
    let place = member.selection.algorithm_index(Operation::Gather, member.size, block);
    (ALGORITHMS[place].algorithm)(member, args)
}
