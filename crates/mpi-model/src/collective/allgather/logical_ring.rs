//! Allgathers round a ring: each block is forwarded from neighbour to neighbour. P - 1 rounds, (P - 1)(alpha + n beta).

use super::Args;
use crate::collective::{Member, Schedule, Step, exchange, irecv, isend};

/// Uses combined sends and receives. Source: Faraj's `NTSLR` (STAR-MPI).
pub(in crate::collective) fn blocking<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let (right, left) = (member.after(1), member.before(1));
    let block = move |distance| args.blocks.bytes_of(member.before(distance));
    Box::new((1..member.size).map(move |round| exchange(right, block(round - 1), left, block(round))))
}

/// Posts all receives first. Source: Faraj's `NTSLR_NB` (STAR-MPI).
pub(in crate::collective) fn non_blocking<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let (right, left) = (member.after(1), member.before(1));
    let block = move |distance| args.blocks.bytes_of(member.before(distance));
    let receives = (1..member.size).map(move |distance| irecv(left, block(distance)));
    let rounds = (0..member.size - 1).flat_map(move |round| {
        let send = member.size - 1 + round;
        [isend(right, block(round)), Step::Wait { request: round }, Step::Wait { request: send }]
    });
    Box::new(receives.chain(rounds))
}
