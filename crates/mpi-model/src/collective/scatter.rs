//! Scatter algorithms.

mod binomial;
mod linear;
mod two_level;

use super::member::Elements;
use super::operation::{Entry, Operation, Selectable};
use super::selector::{impi, mvapich2, ompi};
use super::{Member, Schedule, analytic};

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

/// The operation scatter.
pub(super) enum Scatter {}

impl Selectable for Scatter {
    type Args<'a> = Args;
    type Algorithm = Algorithm;

    const OPERATION: Operation = Operation::Scatter;
    const ALGORITHMS: &'static [Entry<Algorithm>] = &[
        Entry::new("default", all_at_once),
        Entry::table("ompi", &ompi::SCATTER),
        Entry::new("ompi_basic_linear", in_turn),
        Entry::new("ompi_linear_nb", linear_nonblocking),
        Entry::new("ompi_binomial", binomial),
        Entry::new("mpich", binomial),
        Entry::table("mvapich2", &mvapich2::SCATTER),
        Entry::new("mvapich2_two_level_binomial", two_level_binomial),
        Entry::new("mvapich2_two_level_direct", two_level_direct),
        Entry::table("impi", &impi::SCATTER),
        Entry::AUTOMATIC,
        Entry::new("analytic", analytic::scatter),
    ];

    fn data(member: Member<'_>, args: Args) -> Elements {
        args.block(member.rank)
    }

    fn run<'a>(algorithm: Algorithm, member: Member<'a>, args: Args) -> Schedule<'a> {
        algorithm(member, args)
    }
}
