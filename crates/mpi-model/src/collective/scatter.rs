//! Scatter algorithms.

mod binomial;
mod linear;
mod two_level;

use super::member::Elements;
use super::operation::{Entry, Operation};
use super::selector::{impi, mpich, mvapich2, ompi};
use super::{Member, Schedule, analytic, automatic};

pub(super) use binomial::binomial;
pub(super) use linear::{all_at_once, in_turn, linear, linear_nonblocking};
pub(super) use two_level::{two_level, two_level_binomial, two_level_direct};

/// The arguments of a scatter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args {
    pub(super) root: u32,
    /// Block that the root sends to each rank.
    pub(super) sent: Elements,
    /// Block that this member receives.
    pub(super) received: Elements,
}

impl Args {
    /// Returns the block as described by this member's arguments.
    pub(super) fn block(&self, rank: u32) -> Elements {
        if rank == self.root { self.sent } else { self.received }
    }
}

pub(super) type Algorithm = for<'a> fn(Member<'a>, Args) -> Schedule<'a>;

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[
    Entry::new("default", all_at_once),
    Entry::new("ompi", ompi::scatter),
    Entry::new("ompi_basic_linear", in_turn),
    Entry::new("ompi_linear_nb", linear_nonblocking),
    Entry::new("ompi_binomial", binomial),
    Entry::new("mpich", mpich::scatter),
    Entry::new("mvapich2", mvapich2::scatter),
    Entry::new("mvapich2_two_level_binomial", two_level_binomial),
    Entry::new("mvapich2_two_level_direct", two_level_direct),
    Entry::new("impi", impi::scatter),
    Entry::new("automatic", automatic),
    Entry::new("analytic", analytic::scatter),
];

/// Returns the schedule of all algorithms in turn; see [`automatic::run_all`].
fn automatic<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    automatic::run_all(member, ALGORITHMS, move |algorithm| algorithm(member, args))
}

/// Returns the schedule of the selected algorithm.
pub(super) fn selected<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let block = args.block(member.rank).bytes().get();
    let place = member.selection.algorithm_index(Operation::Scatter, member.size, block);
    (ALGORITHMS[place].algorithm)(member, args)
}
