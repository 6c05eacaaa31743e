//! Scatters in which the root sends to every rank itself.

use pdes_core::Bytes;

use super::Args;
use crate::collective::{Member, Schedule, Step, irecvs, isends, recv, send};

/// The root posts sends to all ranks in rank order, all at once; receives do not block either.
///
/// Cost: alpha + (P - 1) n beta for blocks of n bytes. Source: SimGrid's `default`.
pub(in crate::collective) fn all_at_once<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    linear(member, args.root, move |_| args.sent.bytes(), args.received.bytes())
}

/// [`all_at_once`] with blocks of any sizes: `sent(rank)` is the block for a rank.
pub(in crate::collective) fn linear<'a>(
    member: Member<'a>,
    root: u32,
    sent: impl Fn(u32) -> Bytes + Send + 'a,
    received: Bytes,
) -> Schedule<'a> {
    if member.rank == root {
        Box::new(isends(member.others(), sent).chain([Step::WaitAll]))
    } else {
        Box::new(irecvs(std::iter::once(root), move |_| received).chain([Step::WaitAll]))
    }
}

/// The root sends to one rank after the other.
///
/// Cost: (P - 1) (alpha + n beta) for blocks of n bytes. Source: Open MPI's `basic_linear`.
pub(in crate::collective) fn in_turn<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    if member.rank == args.root {
        Box::new(member.others().map(move |other| send(other, args.sent.bytes())))
    } else {
        Box::new(std::iter::once(recv(args.root, args.received.bytes())))
    }
}

/// The root sends to all ranks at once; receives block.
///
/// Cost: alpha + (P - 1) n beta for blocks of n bytes. Source: Open MPI's `linear_nb`.
pub(in crate::collective) fn linear_nonblocking<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    if member.rank == args.root {
        Box::new(isends(member.others(), move |_| args.sent.bytes()).chain([Step::WaitAll]))
    } else {
        Box::new(std::iter::once(recv(args.root, args.received.bytes())))
    }
}
