//! Gather algorithms.

use pdes_core::{Bytes, Rank};

use super::{Member, Schedule, Step, irecvs, isends};

/// Everybody sends to the root, which receives in the order of ranks.
///
/// P - 1 messages. `received(rank)` is the block that the root expects from a rank. Source: SimGrid's `default`.
pub(super) fn linear<'a>(
    member: Member,
    root: Rank,
    sent: Bytes,
    received: impl Fn(u32) -> Bytes + Send + 'a,
) -> Schedule<'a> {
    if member.is(root) {
        Box::new(irecvs(member.others(), received).chain([Step::WaitAll]))
    } else {
        Box::new(isends(std::iter::once(root.get()), move |_| sent).chain([Step::WaitAll]))
    }
}
