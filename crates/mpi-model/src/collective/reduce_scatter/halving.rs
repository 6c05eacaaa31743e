//! Reduce-scatters by recursive halving or doubling.

use crate::collective::blocks::Blocks;
use crate::collective::doubling::recursive_doubling;
use crate::collective::halving::{PowerOfTwoCore, Representative};
use crate::collective::member::{Elements, empty_schedule};
use crate::collective::{Member, Schedule, Step, exchange, irecv, recv, send};

/// Recursive doubling: in round `k`, partners at distance 2^k exchange everything except what the sender's side of the tree
/// has reduced already.
///
/// Cost: about log2 P (alpha + P n beta). Source: MPICH's algorithm for non-commutative operators, which SimGrid uses for
/// all short vectors.
pub(in crate::collective) fn doubling<'a>(member: Member<'a>, blocks: Blocks<'a>) -> Schedule<'a> {
    let total = blocks.total(member.size);
    recursive_doubling(member, move |first, number| {
        total.with_count(total.count - blocks.span(first, number).count).bytes()
    })
}

/// Partners at distances 1, 2, 4 ... exchange halves of the remaining vector, in a block order that suits non-commutative
/// operators. Source: MPICH, for powers of two and equal blocks; elsewhere it uses [`doubling`].
///
/// Cost: log2 P alpha + (P - 1) n beta.
pub(in crate::collective) fn non_commutative<'a>(member: Member<'a>, blocks: Blocks<'a>) -> Schedule<'a> {
    let Member { rank, size, .. } = member;
    let first = blocks.elements(0).count;
    let regular = (1..size).all(|rank| blocks.elements(rank).count == first);
    if !size.is_power_of_two() || !regular {
        return doubling(member, blocks);
    }
    Box::new((0..size.ilog2()).map(move |level| {
        let half = blocks.span(0, size >> (level + 1)).bytes();
        let partner = rank ^ (1 << level);
        exchange(partner, half, partner, half)
    }))
}

/// Recursive halving among the power of two: partners at halving distances exchange the halves that the other side
/// keeps. Empty halves are not sent (SimGrid then sends neither).
///
/// Cost: log2 P alpha + (P - 1) n beta; elsewhere 2 alpha + (P + 1) n beta more. Source: Open MPI's `recursive_halving`.
pub(in crate::collective) fn recursive<'a>(member: Member<'a>, blocks: Blocks<'a>) -> Schedule<'a> {
    let Member { rank, size, .. } = member;
    let total = blocks.total(size);
    if total.count == 0 {
        return empty_schedule();
    }
    let core = PowerOfTwoCore::new(size, Representative::Odd);
    let Some(number) = core.virtual_rank(rank) else {
        let result = (blocks.elements(rank).count > 0).then(|| recv(rank + 1, blocks.bytes_of(rank)));
        return Box::new([send(rank + 1, total.bytes())].into_iter().chain(result));
    };
    let doubled = number < core.folded_pairs;
    let taken = doubled.then(|| recv(rank - 1, total.bytes()));
    let levels = (0..core.levels).rev().flat_map(move |level| halve(core, blocks, number, level));
    let returned = doubled && blocks.elements(rank - 1).count > 0;
    let result = returned.then(|| send(rank - 1, blocks.bytes_of(rank - 1)));
    Box::new(taken.into_iter().chain(levels).chain(result))
}

/// Returns the round in which partners are 2^`level` apart.
fn halve(
    core: PowerOfTwoCore,
    blocks: Blocks<'_>,
    number: u32,
    level: u32,
) -> impl Iterator<Item = Step> + Send {
    let distance = 1 << level;
    let half = |of: u32| core.span(blocks, of >> level << level, distance);
    let partner = number ^ distance;
    let (kept, given): (Elements, Elements) = (half(number), half(partner));
    let peer = core.rank(partner);
    let receive = (kept.count > 0).then(|| irecv(peer, kept.bytes()));
    let send = (given.count > 0).then(|| send(peer, given.bytes()));
    receive.into_iter().chain(send).chain([Step::WaitAll])
}
