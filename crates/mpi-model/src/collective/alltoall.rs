//! All-to-all algorithms.

use pdes_core::Bytes;

use super::member::Elements;
use super::operation::{Entry, Operation};
use super::selector::{ompi, pick};
use super::{Member, Schedule, Step, exchange, irecvs, isends};

/// The arguments of an all-to-all: the blocks for and from one peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args {
    pub(super) sent: Elements,
    pub(super) received: Elements,
}

pub(super) type Algorithm = for<'a> fn(Member<'a>, Args) -> Schedule<'a>;

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[
    Entry::new("default", of_open_mpi),
    Entry::new("ompi", of_open_mpi),
    Entry::new("basic_linear", basic_linear),
    Entry::new("pair", pair),
    Entry::new("bruck", bruck),
];

/// The algorithm that the communicator uses.
pub(super) fn selected<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let place = member.selection.place(Operation::Alltoall, member.size, args.sent.bytes().get());
    (ALGORITHMS[place].algorithm)(member, args)
}

fn of_open_mpi<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    pick(ompi::ALLTOALL, member.size, args.sent.bytes().get())(member, args)
}

/// All receives upwards from the next rank, then all sends downwards from the previous one.
///
/// P (P - 1) messages at once. Source: Open MPI's `basic_linear`.
pub(super) fn basic_linear<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let (sent, received) = (args.sent.bytes(), args.received.bytes());
    let upwards = (1..member.size).map(move |distance| member.after(distance));
    let downwards = (1..member.size).map(move |distance| member.before(distance));
    Box::new(
        irecvs(upwards, move |_| received).chain(isends(downwards, move |_| sent)).chain([Step::WaitAll]),
    )
}

/// P - 1 rounds of an exchange with one partner each.
///
/// On a power of two the partner of round `i` is the rank with the bits of `i` flipped, as in SimGrid's `pair`, which
/// refuses other numbers of ranks; there, rank `r` sends to `r + i` and receives from `r - i`, as Open MPI's
/// `pairwise` does.
pub(super) fn pair<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let (sent, received) = (args.sent.bytes(), args.received.bytes());
    let flips = member.size.is_power_of_two();
    let round = move |i| {
        let (to, from) =
            if flips { (member.rank ^ i, member.rank ^ i) } else { (member.after(i), member.before(i)) };
        exchange(to, sent, from, received)
    };
    Box::new((1..member.size).map(round))
}

/// Bruck's algorithm: in round `k`, all blocks whose distance has bit `k` set travel 2^k ranks on, packed together.
///
/// ceil(log2 P) messages per rank. Source: Bruck et al., IEEE TPDS 8(11) 1997.
pub(super) fn bruck<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let rounds = (0..u32::BITS).map(|bit| 1_u32 << bit).take_while(move |&distance| distance < member.size);
    let round = move |distance: u32| {
        let blocks = blocks_with_bit(member.size, distance);
        let bytes = Bytes::new(args.sent.bytes().get() * blocks);
        exchange(member.after(distance), bytes, member.before(distance), bytes)
    };
    Box::new(rounds.map(round))
}

/// How many numbers below `size` have this bit set.
fn blocks_with_bit(size: u32, bit: u32) -> u64 {
    let (size, bit) = (u64::from(size), u64::from(bit));
    size / (2 * bit) * bit + (size % (2 * bit)).saturating_sub(bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blocks_of_a_round_are_counted_in_closed_form() {
        for size in 1..70_u32 {
            for bit in [1_u32, 2, 4, 8, 16, 32, 64] {
                let counted = (0..size).filter(|block| block & bit != 0).count() as u64;
                assert_eq!(blocks_with_bit(size, bit), counted, "{size} {bit}");
            }
        }
    }
}
