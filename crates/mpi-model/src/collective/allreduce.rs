//! Reductions to all. Their computation is charged by the caller.

use super::member::Elements;
use super::operation::{Entry, Operation};
use super::{Member, Schedule, bcast, reduce};

pub(super) type Algorithm = for<'a> fn(Member<'a>, Elements) -> Schedule<'a>;

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[Entry::new("default", linear_then_binomial)];

/// The algorithm that the communicator uses.
pub(super) fn selected(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let place = member.selection.place(Operation::Allreduce, member.size, data.bytes().get());
    (ALGORITHMS[place].algorithm)(member, data)
}

/// A linear reduction to rank 0, then a binomial broadcast from there.
///
/// 2 (P - 1) messages. Source: SimGrid's `default`.
fn linear_then_binomial(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let reduced = reduce::linear(member, reduce::Args { root: 0, data });
    Box::new(reduced.chain(bcast::binomial_tree(member, bcast::Args { root: 0, data })))
}
