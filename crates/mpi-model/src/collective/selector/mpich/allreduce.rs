//! MPICH's decision table for allreduce.

use crate::collective::allreduce::{halving_doubling, mpich_two_level, recursive_doubling};
use crate::collective::member::Elements;
use crate::collective::{Member, Schedule};

/// Largest vector that takes recursive doubling only \[B\].
const SHORT: u64 = 2048;

/// Returns the schedule that MPICH selects: two levels; within these recursive doubling for short vectors and those with
/// fewer elements than the largest power of two of ranks, else halving and doubling.
pub(in crate::collective) fn allreduce(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let few = data.count < 1 << member.size.ilog2();
    match () {
        () if !member.within_levels => mpich_two_level(member, data),
        () if few || data.bytes().get() <= SHORT => recursive_doubling(member, data),
        () => halving_doubling(member, data),
    }
}
