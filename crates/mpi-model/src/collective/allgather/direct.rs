//! Direct allgathers: each rank sends its own block to every other. P (P - 1) messages, (P - 1)(alpha + n beta) at each
//! rank.

use super::Args;
use crate::collective::round_peers::{RoundPeers, pairwise_peers, ring_peers};
use crate::collective::{Member, Schedule, Step, exchange, irecv, irecvs, isend, isends};

/// Posts all sends and receives at once in rank order, alternating. Source: SimGrid's `default`.
pub(in crate::collective) fn linear<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let sent = args.sent.bytes();
    let exchange = move |other| [isend(other, sent), irecv(other, args.blocks.bytes_of(other))];
    Box::new(member.others().flat_map(exchange).chain([Step::WaitAll]))
}

/// Posts all receives, then all sends, from the next rank on. Source: Faraj's `spreading_simple` (STAR-MPI).
pub(in crate::collective) fn spreading_simple<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let sent = args.sent.bytes();
    let others = (1..member.size).map(move |distance| member.after(distance));
    let receives = irecvs(others.clone(), move |rank| args.blocks.bytes_of(rank));
    Box::new(receives.chain(isends(others, move |_| sent)).chain([Step::WaitAll]))
}

/// Sends in round `i` to the rank `i` after, and receives from that `i` before; P - 1 rounds. Source: Faraj's `ring`
/// (STAR-MPI).
pub(in crate::collective) fn ring<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    in_rounds(member, args, ring_peers)
}

/// Exchanges in round `i` with rank XOR `i`; as [`ring`] if P is no power of two. P - 1 rounds. Source: Faraj's `pair`
/// (STAR-MPI).
pub(in crate::collective) fn pair<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    in_rounds(member, args, pairwise_peers)
}

fn in_rounds<'a>(
    member: Member<'a>,
    args: Args<'a>,
    partners: impl Fn(Member<'a>, u32) -> RoundPeers + Send + 'a,
) -> Schedule<'a> {
    Box::new((1..member.size).map(move |round| {
        let (to, from) = partners(member, round);
        exchange(to, args.sent.bytes(), from, args.blocks.bytes_of(from))
    }))
}
