//! Gathers in which every rank sends to the root.

use pdes_core::Bytes;

use super::Args;
use crate::collective::schedule_builder::{build_rounds, build_schedule};
use crate::collective::{Member, Schedule, Step, Steps, irecvs, isends, recv, send};

/// All ranks send to the root, which posts its receives in rank order, all at once.
///
/// Cost: alpha + (P - 1) n beta for blocks of n bytes. Source: SimGrid's `default`.
pub(in crate::collective) fn all_at_once<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    linear(member, args.root, args.sent.bytes(), move |_| args.received.bytes())
}

/// [`all_at_once`] with blocks of any sizes: `received(rank)` is the block that the root expects from a rank.
pub(in crate::collective) fn linear<'a>(
    member: Member<'a>,
    root: u32,
    sent: Bytes,
    received: impl Fn(u32) -> Bytes + Send + 'a,
) -> Schedule<'a> {
    if member.rank == root {
        Box::new(irecvs(member.others(), received).chain([Step::WaitAll]))
    } else {
        Box::new(isends(std::iter::once(root), move |_| sent).chain([Step::WaitAll]))
    }
}

/// The root receives from one rank after the other.
///
/// Cost: (P - 1) (alpha + n beta) for blocks of n bytes. Source: Open MPI's `basic_linear`.
pub(in crate::collective) fn in_turn<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    if member.rank == args.root {
        Box::new(member.others().map(move |other| recv(other, args.received.bytes())))
    } else {
        Box::new(std::iter::once(send(args.root, args.sent.bytes())))
    }
}

/// The root requests one block after the other with an empty message, waits for its first part (1 KiB of blocks up to
/// 92,160 bytes, 32 KiB of larger ones), and receives the rest meanwhile.
///
/// Cost: (P - 1) (2 alpha + n beta) for blocks of n bytes. Source: Open MPI's `linear_sync`.
pub(in crate::collective) fn synchronised<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let block = args.block(member.rank);
    let first = block.per_open_mpi_segment(if block.bytes().get() > 92160 { 32768 } else { 1024 });
    let (first, rest) = (block.size_of(first), block.size_of(block.count - first));
    if member.rank != args.root {
        return build_schedule(move |steps| {
            steps.recv(args.root, Bytes::ZERO);
            steps.send(args.root, first);
            steps.send(args.root, rest);
        });
    }
    let asked = build_rounds(u64::from(member.size), move |other, steps| {
        let other = other as u32;
        if other != member.rank {
            let head = steps.irecv(other, first);
            steps.send(other, Bytes::ZERO);
            steps.irecv(other, rest);
            steps.wait(head);
        }
    });
    Box::new(asked.then(std::iter::once(Step::WaitAll)))
}
