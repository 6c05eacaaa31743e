//! Barrier algorithms.

mod dissemination;
mod linear;
mod pairwise;
mod ring;
mod tree;
mod two_level;

use super::member::Elements;
use super::operation::{Entry, Operation, Selectable};
use super::selection::RankRequirement;
use super::selector::{impi, ompi};
use super::{Member, Schedule, Selection, analytic, in_network};

pub(super) use dissemination::dissemination;
pub(super) use linear::linear;
pub(super) use pairwise::{recursive_doubling, two_procs};
pub(super) use ring::double_ring;
pub(super) use tree::tree;
pub(super) use two_level::two_level;

pub(super) type Algorithm = for<'a> fn(Member<'a>) -> Schedule<'a>;

/// The operation barrier.
pub(super) enum Barrier {}

impl Selectable for Barrier {
    type Args<'a> = ();
    type Algorithm = Algorithm;

    const OPERATION: Operation = Operation::Barrier;
    const ALGORITHMS: &'static [Entry<Algorithm>] = &[
        Entry::new("default", linear),
        Entry::table("ompi", &ompi::BARRIER),
        Entry::new("ompi_basic_linear", linear),
        Entry::requiring(RankRequirement::AtMostTwo, "ompi_two_procs", two_procs),
        Entry::new("ompi_tree", tree),
        Entry::new("ompi_bruck", dissemination),
        Entry::new("ompi_recursivedoubling", recursive_doubling),
        Entry::new("ompi_doublering", double_ring),
        Entry::new("mpich_smp", two_level),
        Entry::new("mpich", dissemination),
        Entry::new("mvapich2_pair", recursive_doubling),
        Entry::new("mvapich2", recursive_doubling),
        Entry::table("impi", &impi::BARRIER),
        Entry::AUTOMATIC,
        Entry::new("analytic", analytic::barrier),
        Entry::new(Selection::IN_NETWORK, in_network::barrier),
    ];

    fn data(_: Member<'_>, (): ()) -> Elements {
        Elements::NONE
    }

    fn run<'a>(algorithm: Algorithm, member: Member<'a>, (): ()) -> Schedule<'a> {
        algorithm(member)
    }
}
