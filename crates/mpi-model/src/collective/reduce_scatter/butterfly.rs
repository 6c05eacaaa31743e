//! Reduce-scatter by a butterfly in bit-reversed block order.

use super::fold::{Fold, Role};
use crate::collective::blocks::Blocks;
use crate::collective::round_peers::bit_reversed;
use crate::collective::{Member, Schedule, Step, exchange, recv, send};

/// Among the power of two, partners at distances 1, 2, 4 ... exchange halves of the remaining vector, after which each has
/// the blocks of the rank with its bits reversed and sends them there.
///
/// Cost: (log2 P + 1) alpha + P n beta; elsewhere alpha + P n beta more. Source: Open MPI's `butterfly`; Träff, EuroPVM/MPI
/// 2005.
pub(in crate::collective) fn butterfly<'a>(member: Member<'a>, blocks: Blocks<'a>) -> Schedule<'a> {
    let Member { rank, size, .. } = member;
    let fold = Fold::new(member, blocks);
    let everything = blocks.total(size).bytes();
    match fold.role(rank) {
        Role::FoldedAway => {
            let owner = fold.rank(bit_reversed(rank / 2, fold.levels()));
            Box::new([send(rank + 1, everything), recv(owner, blocks.bytes_of(rank))].into_iter())
        }
        Role::Participates(number) => {
            let taken = (number < fold.folded_pairs).then(|| recv(rank - 1, everything));
            let rounds = (0..fold.levels()).map(move |level| round(fold, number, level));
            Box::new(taken.into_iter().chain(rounds).chain(deliver(fold, rank, number)))
        }
    }
}

/// Returns the round in which partners are 2^`level` apart.
fn round(fold: Fold<'_>, number: u32, level: u32) -> Step {
    let left = fold.virtual_ranks >> (level + 1);
    let kept = |of: u32| fold.span(bit_reversed(of % (2 << level), fold.levels()), left).bytes();
    let partner = number ^ (1 << level);
    exchange(fold.rank(partner), kept(partner), fold.rank(partner), kept(number))
}

/// Returns the delivery of the blocks that a rank has at the end to the ranks that keep them.
fn deliver(fold: Fold<'_>, rank: u32, number: u32) -> impl Iterator<Item = Step> + Send {
    let owner = bit_reversed(number, fold.levels());
    let peer = fold.rank(owner);
    let to_left = (owner < fold.folded_pairs).then(|| send(peer - 1, fold.blocks.bytes_of(peer - 1)));
    let swap = (owner != number)
        .then(|| exchange(peer, fold.blocks.bytes_of(peer), peer, fold.blocks.bytes_of(rank)));
    to_left.into_iter().chain(swap)
}
