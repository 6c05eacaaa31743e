//! Reduce-scatter by a butterfly in bit-reversed block order.

use crate::collective::blocks::Blocks;
use crate::collective::halving::{PowerOfTwoCore, Representative};
use crate::collective::round_peers::bit_reversed;
use crate::collective::{Member, Schedule, Step, exchange, recv, send};

/// Among the power of two, partners at distances 1, 2, 4 ... exchange halves of the remaining vector, after which each has
/// the blocks of the rank with its bits reversed and sends them there.
///
/// Cost: (log2 P + 1) alpha + P n beta; elsewhere alpha + P n beta more. Source: Open MPI's `butterfly`; Träff, EuroPVM/MPI
/// 2005.
pub(in crate::collective) fn butterfly<'a>(member: Member<'a>, blocks: Blocks<'a>) -> Schedule<'a> {
    let Member { rank, size, .. } = member;
    let core = PowerOfTwoCore::new(size, Representative::Odd);
    let everything = blocks.total(size).bytes();
    let Some(number) = core.virtual_rank(rank) else {
        let owner = core.rank(bit_reversed(rank / 2, core.levels));
        return Box::new([send(rank + 1, everything), recv(owner, blocks.bytes_of(rank))].into_iter());
    };
    let taken = (number < core.folded_pairs).then(|| recv(rank - 1, everything));
    let rounds = (0..core.levels).map(move |level| round(core, blocks, number, level));
    Box::new(taken.into_iter().chain(rounds).chain(deliver(core, blocks, rank, number)))
}

/// Returns the round in which partners are 2^`level` apart.
fn round(core: PowerOfTwoCore, blocks: Blocks<'_>, number: u32, level: u32) -> Step {
    let left = 1 << (core.levels - level - 1);
    let kept = |of: u32| core.span(blocks, bit_reversed(of % (2 << level), core.levels), left).bytes();
    let partner = number ^ (1 << level);
    exchange(core.rank(partner), kept(partner), core.rank(partner), kept(number))
}

/// Returns the delivery of the blocks that a rank has at the end to the ranks that keep them.
fn deliver(
    core: PowerOfTwoCore,
    blocks: Blocks<'_>,
    rank: u32,
    number: u32,
) -> impl Iterator<Item = Step> + Send {
    let owner = bit_reversed(number, core.levels);
    let peer = core.rank(owner);
    let to_left = (owner < core.folded_pairs).then(|| send(peer - 1, blocks.bytes_of(peer - 1)));
    let swap = (owner != number).then(|| exchange(peer, blocks.bytes_of(peer), peer, blocks.bytes_of(rank)));
    to_left.into_iter().chain(swap)
}
