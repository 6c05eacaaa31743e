//! Reduce-scatters with one block per round: P - 1 rounds, (P - 1)(alpha + n beta) for blocks of n bytes.

use crate::collective::blocks::Blocks;
use crate::collective::member::empty_schedule;
use crate::collective::round_peers::ring_peers;
use crate::collective::{Member, Schedule, Step, exchange, irecv, send};

/// In round `i` each rank sends the block of the rank `i` after to that rank, and receives its own from the rank `i`
/// before. Vectors without elements are not sent. Source: MPICH's pairwise exchange for long vectors.
pub(in crate::collective) fn pair<'a>(member: Member<'a>, blocks: Blocks<'a>) -> Schedule<'a> {
    if blocks.total(member.size).count == 0 {
        return empty_schedule();
    }
    let own = blocks.bytes_of(member.rank);
    Box::new((1..member.size).map(move |round| {
        let (to, from) = ring_peers(member, round);
        exchange(to, blocks.bytes_of(to), from, own)
    }))
}

/// Each block travels round a ring, is reduced on its way, and ends at its rank. The receive of the next block is posted
/// before the last one is awaited. Source: Open MPI's `ring`.
pub(in crate::collective) fn ring<'a>(member: Member<'a>, blocks: Blocks<'a>) -> Schedule<'a> {
    let (right, left) = (member.after(1), member.before(1));
    let passed = move |round| blocks.bytes_of(member.before(round));
    let rounds = (1..member.size).flat_map(move |round| {
        let last = (round > 1).then(|| Step::Wait { request: round - 2 });
        let post = [irecv(left, passed(round + 1))].into_iter();
        post.chain(last).chain([send(right, passed(round))])
    });
    Box::new(rounds.chain([Step::WaitAll]))
}
