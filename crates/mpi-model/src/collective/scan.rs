//! Prefix reductions.

use pdes_core::Bytes;

use super::{Member, Schedule, Step, irecvs, isends};

/// Each rank sends its vector to all higher ranks and completes its requests in rank order.
///
/// Cost: P (P - 1) / 2 messages. Source: SimGrid's only algorithm for scan and exscan.
pub(super) fn linear(member: Member<'_>, bytes: Bytes) -> Schedule<'_> {
    let Member { rank, size, .. } = member;
    let lower = irecvs(0..rank, move |_| bytes);
    Box::new(lower.chain(isends(rank + 1..size, move |_| bytes)).chain([Step::WaitEach]))
}
