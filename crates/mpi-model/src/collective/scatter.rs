//! Scatter algorithms.

use pdes_core::{Bytes, Rank};

use super::{Member, Schedule, Step, irecvs, isends};

/// The root sends to everybody in the order of ranks.
///
/// P - 1 messages. `sent(rank)` is the block for a rank. Source: SimGrid's `default`.
pub(super) fn linear<'a>(
    member: Member,
    root: Rank,
    sent: impl Fn(u32) -> Bytes + Send + 'a,
    received: Bytes,
) -> Schedule<'a> {
    if member.is(root) {
        Box::new(isends(member.others(), sent).chain([Step::WaitAll]))
    } else {
        Box::new(irecvs(std::iter::once(root.get()), move |_| received).chain([Step::WaitAll]))
    }
}
