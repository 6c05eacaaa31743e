//! Reduction algorithms. Their computation is charged by the caller.

use super::member::Elements;
use super::operation::{Entry, Operation};
use super::{Member, Schedule, Step, irecvs, isends};

/// The arguments of a reduction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args {
    pub(super) root: u32,
    pub(super) data: Elements,
}

pub(super) type Algorithm = for<'a> fn(Member<'a>, Args) -> Schedule<'a>;

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[Entry::new("default", linear)];

/// The algorithm that the communicator uses.
pub(super) fn selected<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let place = member.selection.place(Operation::Reduce, member.size, args.data.bytes().get());
    (ALGORITHMS[place].algorithm)(member, args)
}

/// Everybody sends the whole vector to the root.
///
/// P - 1 messages; alpha + (P - 1) n beta. Source: SimGrid's `default`.
pub(super) fn linear<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let bytes = args.data.bytes();
    let everything = move |_| bytes;
    if member.rank == args.root {
        Box::new(irecvs(member.others(), everything).chain([Step::WaitAll]))
    } else {
        Box::new(isends(std::iter::once(args.root), everything).chain([Step::WaitAll]))
    }
}
