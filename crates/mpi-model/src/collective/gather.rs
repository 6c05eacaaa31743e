//! Gather algorithms.

mod binomial;
mod linear;
mod two_level;

use super::member::Elements;
use super::operation::{Entry, Operation, Selectable};
use super::selector::{impi, mvapich2, ompi};
use super::{Member, Schedule, analytic};

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

/// The operation gather.
pub(super) enum Gather {}

impl Selectable for Gather {
    type Args<'a> = Args;
    type Algorithm = Algorithm;

    const OPERATION: Operation = Operation::Gather;
    const ALGORITHMS: &'static [Entry<Algorithm>] = &[
        Entry::new("default", all_at_once),
        Entry::table("ompi", &ompi::GATHER),
        Entry::new("ompi_basic_linear", in_turn),
        Entry::new("ompi_binomial", binomial),
        Entry::new("ompi_linear_sync", synchronised),
        Entry::new("mpich", binomial),
        Entry::table("mvapich2", &mvapich2::GATHER),
        Entry::new("mvapich2_two_level", two_level),
        Entry::table("impi", &impi::GATHER),
        Entry::AUTOMATIC,
        Entry::new("analytic", analytic::gather),
    ];

    fn data(member: Member<'_>, args: Args) -> Elements {
        args.block(member.rank)
    }

    fn run<'a>(algorithm: Algorithm, member: Member<'a>, args: Args) -> Schedule<'a> {
        algorithm(member, args)
    }
}
