//! Reduction algorithms, to one rank and to all.

use pdes_core::{Bytes, Rank};

use super::{Member, Schedule, Step, bcast, irecvs, isends};

/// Everybody sends the whole vector to the root.
///
/// P - 1 messages. Source: SimGrid's `default`.
pub(super) fn flat<'a>(member: Member, root: Rank, bytes: Bytes) -> Schedule<'a> {
    let everything = move |_| bytes;
    if member.is(root) {
        Box::new(irecvs(member.others(), everything).chain([Step::WaitAll]))
    } else {
        Box::new(isends(std::iter::once(root.get()), everything).chain([Step::WaitAll]))
    }
}

/// A flat reduction to rank 0, then a binomial broadcast from there.
///
/// 2 (P - 1) messages. Source: SimGrid's `default` allreduce.
pub(super) fn flat_then_binomial<'a>(member: Member, bytes: Bytes) -> Schedule<'a> {
    let root = Rank::new(0);
    Box::new(flat(member, root, bytes).chain(bcast::binomial_tree(member, root, bytes)))
}
