//! Allgather algorithms.

use super::member::Elements;
use super::operation::{Entry, Operation};
use super::{Member, Schedule, allgatherv};

/// The arguments of an allgather.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args {
    /// The block that this member contributes.
    pub(super) sent: Elements,
    /// The block received from each.
    pub(super) received: Elements,
}

pub(super) type Algorithm = for<'a> fn(Member<'a>, Args) -> Schedule<'a>;

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[Entry::new("default", linear)];

/// The algorithm that the communicator uses.
pub(super) fn selected<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let place = member.selection.place(Operation::Allgather, member.size, args.sent.bytes().get());
    (ALGORITHMS[place].algorithm)(member, args)
}

fn linear<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    allgatherv::all_at_once(member, args.sent.bytes(), move |_| args.received.bytes())
}
