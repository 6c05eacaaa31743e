//! Allgather algorithms.

use pdes_core::{Bytes, Rank};

use super::{Member, Schedule, Step};

/// Everybody sends its block to everybody, in the order of ranks, sends and receives alternating.
///
/// P (P - 1) messages at once. Source: SimGrid's `default`.
pub(super) fn linear<'a>(
    member: Member,
    sent: Bytes,
    received: impl Fn(u32) -> Bytes + Send + 'a,
) -> Schedule<'a> {
    let exchange = move |other| {
        let peer = Rank::new(other);
        [Step::Isend { to: peer, bytes: sent }, Step::Irecv { from: peer, bytes: received(other) }]
    };
    Box::new(member.others().flat_map(exchange).chain([Step::WaitAll]))
}
