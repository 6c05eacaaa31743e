//! Gather algorithms.

use pdes_core::Bytes;

use super::member::Elements;
use super::operation::{Entry, Operation};
use super::{Member, Schedule, Step, irecvs, isends};

/// The arguments of a gather.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args {
    pub(super) root: u32,
    /// The block that this member sends.
    pub(super) sent: Elements,
    /// The block that the root receives from each.
    pub(super) received: Elements,
}

pub(super) type Algorithm = for<'a> fn(Member<'a>, Args) -> Schedule<'a>;

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[Entry::new("default", linear_of_equals)];

/// The algorithm that the communicator uses.
pub(super) fn selected<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let block = if member.rank == args.root { args.received } else { args.sent };
    let place = member.selection.place(Operation::Gather, member.size, block.bytes().get());
    (ALGORITHMS[place].algorithm)(member, args)
}

fn linear_of_equals<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    linear(member, args.root, args.sent.bytes(), move |_| args.received.bytes())
}

/// Everybody sends to the root, which receives in the order of ranks.
///
/// P - 1 messages. `received(rank)` is the block that the root expects from a rank. Source: SimGrid's `default`.
pub(super) fn linear<'a>(
    member: Member<'a>,
    root: u32,
    sent: Bytes,
    received: impl Fn(u32) -> Bytes + Send + 'a,
) -> Schedule<'a> {
    if member.rank == root {
        Box::new(irecvs(member.others(), received).chain([Step::WaitAll]))
    } else {
        Box::new(isends(std::iter::once(root), move |_| sent).chain([Step::WaitAll]))
    }
}
