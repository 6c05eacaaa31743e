//! Pairwise all-to-alls: one peer per round, P - 1 rounds, (P - 1)(alpha + n beta), with or without synchronization of the
//! rounds.

use pdes_core::Bytes;

use super::Args;
use crate::collective::round_peers::{RoundPeers, pairwise_peers, ring_peers};
use crate::collective::steps::concatenate;
use crate::collective::{Barrier, Member, Schedule, Selectable, Step, Steps, exchange};

/// Sends to the rank `i` after, receives from that `i` before. Source: Faraj's `ring` (STAR-MPI); MPICH's for long
/// messages.
pub(in crate::collective) fn ring<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    rounds(member, args, ring_peers)
}

/// Exchanges with rank XOR `i`, or as [`ring`] if P is no power of two. Source: Faraj's `pair` (STAR-MPI); Open MPI's and
/// MPICH's `pairwise`.
pub(in crate::collective) fn pair<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    rounds(member, args, pairwise_peers)
}

/// [`ring`], with a byte after each round from the rank to which the next round sends. Source: Faraj's `ring_light_barrier`
/// (STAR-MPI).
pub(in crate::collective) fn ring_light_barrier<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    light_barriers(member, args, ring_peers)
}

/// [`pair`], with a byte after each round from the partner of the next one. Source: Faraj's `pair_light_barrier`
/// (STAR-MPI).
pub(in crate::collective) fn pair_light_barrier<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    light_barriers(member, args, pairwise_peers)
}

/// [`ring`], with the communicator's barrier before each round, including round 0 of a rank with itself. Source: Faraj's
/// `ring_mpi_barrier` (STAR-MPI).
pub(in crate::collective) fn ring_mpi_barrier<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    mpi_barriers(member, args, ring_peers)
}

/// [`pair`], with the communicator's barrier before each round, including round 0 of a rank with itself. Source: Faraj's
/// `pair_mpi_barrier` (STAR-MPI).
pub(in crate::collective) fn pair_mpi_barrier<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    mpi_barriers(member, args, pairwise_peers)
}

/// The communicator's barrier, then [`ring`]. Source: Faraj's `ring_one_barrier` (STAR-MPI).
pub(in crate::collective) fn ring_one_barrier<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    Box::new(Barrier::selected(member, ()).then(ring(member, args)))
}

/// The communicator's barrier, then [`pair`]. Source: Faraj's `pair_one_barrier` (STAR-MPI).
pub(in crate::collective) fn pair_one_barrier<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    Box::new(Barrier::selected(member, ()).then(pair(member, args)))
}

type Rounds = fn(Member<'_>, u32) -> RoundPeers;

fn rounds<'a>(member: Member<'a>, args: Args<'a>, partners: Rounds) -> Schedule<'a> {
    Box::new((1..member.size).map(move |round| blocks(args, partners(member, round))))
}

fn blocks(args: Args<'_>, (to, from): RoundPeers) -> Step {
    exchange(to, args.sent.bytes_of(to), from, args.received.bytes_of(from))
}

fn light_barriers<'a>(member: Member<'a>, args: Args<'a>, partners: Rounds) -> Schedule<'a> {
    Box::new((1..member.size).flat_map(move |round| {
        let ready = (round + 1 < member.size).then(|| {
            let (to, from) = partners(member, round + 1);
            exchange(from, Bytes::new(1), to, Bytes::new(1))
        });
        [blocks(args, partners(member, round))].into_iter().chain(ready)
    }))
}

fn mpi_barriers<'a>(member: Member<'a>, args: Args<'a>, partners: Rounds) -> Schedule<'a> {
    concatenate((0..member.size).map(move |round| -> Schedule<'a> {
        let exchange = (round > 0).then(|| blocks(args, partners(member, round)));
        Box::new(Barrier::selected(member, ()).then(exchange.into_iter()))
    }))
}
