//! MPICH's decision table for reduce.

use crate::collective::reduce::{Args, binomial, mpich_two_level, scatter_gather};
use crate::collective::{Member, Schedule};

/// Size below which vectors take a binomial tree \[B\].
const SHORT: u64 = 2048;

/// Returns the schedule that MPICH selects: two levels; within these a binomial tree for short vectors and those with fewer
/// elements than the largest power of two of ranks, else scatter and gather.
pub(in crate::collective) fn reduce<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let few = args.data.count < 1 << member.size.ilog2();
    match () {
        () if !member.within_levels => mpich_two_level(member, args),
        () if few || args.data.bytes().get() < SHORT => binomial(member, args),
        () => scatter_gather(member, args),
    }
}
