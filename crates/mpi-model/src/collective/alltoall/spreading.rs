//! Everything spreads to all ranks.

use super::Args;
use crate::collective::blocks::times;
use crate::collective::doubling::doubling as recursive_doubling;
use crate::collective::{Member, Schedule};

/// An allgather of all blocks by recursive doubling, from which each rank takes its own.
///
/// ceil(log2 P) alpha + (P - 1) P n beta. Source: Faraj's `rdb` (STAR-MPI); MPICH's for short messages once.
pub(in crate::collective) fn doubling<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let own = times(args.sent.elements(0), member.size.into());
    recursive_doubling(member, move |_, number| times(own, number.into()).bytes())
}
