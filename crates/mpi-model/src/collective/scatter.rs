//! Scatter algorithms.

use pdes_core::Bytes;

use super::member::Elements;
use super::operation::{Entry, Operation};
use super::{Member, Schedule, Step, irecvs, isends};

/// The arguments of a scatter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args {
    pub(super) root: u32,
    /// The block that the root sends to each.
    pub(super) sent: Elements,
    /// The block that this member receives.
    pub(super) received: Elements,
}

pub(super) type Algorithm = for<'a> fn(Member<'a>, Args) -> Schedule<'a>;

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[Entry::new("default", linear_of_equals)];

/// The algorithm that the communicator uses.
pub(super) fn selected<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let block = if member.rank == args.root { args.sent } else { args.received };
    let place = member.selection.place(Operation::Scatter, member.size, block.bytes().get());
    (ALGORITHMS[place].algorithm)(member, args)
}

fn linear_of_equals<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    linear(member, args.root, move |_| args.sent.bytes(), args.received.bytes())
}

/// The root sends to everybody in the order of ranks.
///
/// P - 1 messages. `sent(rank)` is the block for a rank. Source: SimGrid's `default`.
pub(super) fn linear<'a>(
    member: Member<'a>,
    root: u32,
    sent: impl Fn(u32) -> Bytes + Send + 'a,
    received: Bytes,
) -> Schedule<'a> {
    if member.rank == root {
        Box::new(isends(member.others(), sent).chain([Step::WaitAll]))
    } else {
        Box::new(irecvs(std::iter::once(root), move |_| received).chain([Step::WaitAll]))
    }
}
