//! Broadcast algorithms.

mod binomial_tree;

use super::member::Elements;
use super::operation::{Entry, Operation};
use super::{Member, Schedule};

pub(super) use binomial_tree::binomial_tree;

/// The arguments of a broadcast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args {
    pub(super) root: u32,
    pub(super) data: Elements,
}

pub(super) type Algorithm = for<'a> fn(Member<'a>, Args) -> Schedule<'a>;

pub(super) const ALGORITHMS: &[Entry<Algorithm>] =
    &[Entry::new("default", binomial_tree), Entry::new("binomial_tree", binomial_tree)];

/// The algorithm that the communicator uses.
pub(super) fn selected<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let place = member.selection.place(Operation::Bcast, member.size, args.data.bytes().get());
    (ALGORITHMS[place].algorithm)(member, args)
}
