//! All-to-all as an allgather of all blocks.

use super::Args;
use crate::collective::blocks::repeated;
use crate::collective::doubling::recursive_doubling;
use crate::collective::{Member, Schedule};

/// An allgather of all blocks by recursive doubling, of which each rank keeps its own.
///
/// Cost: ceil(log2 P) alpha + (P - 1) P n beta. Source: Faraj's `rdb` (STAR-MPI); formerly MPICH's for short messages.
pub(in crate::collective) fn doubling<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let own = repeated(args.sent.elements(0), member.size.into());
    recursive_doubling(member, move |_, number| repeated(own, number.into()).bytes())
}
