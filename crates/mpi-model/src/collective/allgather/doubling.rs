//! Allgathers by doubling: ceil(log2 P) alpha + (P - 1) n beta.

use super::Args;
use crate::collective::doubling::recursive_doubling;
use crate::collective::member::empty_schedule;
use crate::collective::round_peers::bit_reversed;
use crate::collective::{Member, Schedule, exchange};

/// Bruck's algorithm: round `k` receives the blocks of the next 2^k ranks from the rank 2^k after, the last round only the
/// remaining ones. Source: Bruck et al., IEEE TPDS 8(11) 1997.
pub(in crate::collective) fn bruck<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let distances = (0..31).map(|bit| 1_u32 << bit).take_while(move |&distance| distance < member.size);
    Box::new(distances.map(move |distance| {
        let number = distance.min(member.size - distance);
        let (to, from) = (member.before(distance), member.after(distance));
        let blocks = |first| args.blocks.span(first, number).bytes();
        exchange(to, blocks(member.rank), from, blocks(from))
    }))
}

/// Recursive doubling; [`recursive_doubling`] describes numbers of ranks that are no power of two.
pub(in crate::collective) fn recursive<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    recursive_doubling(member, move |first, number| args.blocks.span(first, number).bytes())
}

/// [`recursive`], except that nothing is sent if all blocks are empty. Source: MPICH's for allgatherv.
pub(in crate::collective) fn recursive_unless_empty<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    if args.blocks.total(member.size).count == 0 { empty_schedule() } else { recursive(member, args) }
}

/// Sends each block to the rank with the bits of its number reversed; then partners exchange at halving distances, farthest
/// first, so that the largest messages are between neighbours. Only for powers of two and equal blocks.
///
/// Cost: one alpha + n beta more than the others. Source: Faraj's `rhv` (STAR-MPI).
pub(in crate::collective) fn halving_distance<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let Member { rank, size, .. } = member;
    let levels = size.trailing_zeros();
    let mirrored = bit_reversed(rank, levels);
    let moved = exchange(mirrored, args.sent.bytes(), mirrored, args.blocks.bytes_of(mirrored));
    let rounds = (0..levels).rev().map(move |level| {
        let partner = rank ^ (1 << level);
        let known = args.blocks.span(0, size >> (level + 1)).bytes();
        exchange(partner, known, partner, known)
    });
    Box::new([moved].into_iter().chain(rounds))
}

/// [`recursive_unless_empty`] if P is a power of two, else [`bruck`]. Source: MVAPICH2's allgatherv.
pub(in crate::collective) fn recursive_or_bruck<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    if member.size.is_power_of_two() { recursive_unless_empty(member, args) } else { bruck(member, args) }
}
