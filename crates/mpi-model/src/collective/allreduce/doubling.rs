//! Allreduce by recursive doubling.

use crate::collective::halving::{PowerOfTwoCore, Representative};
use crate::collective::member::Elements;
use crate::collective::schedule_builder::build_schedule;
use crate::collective::{Member, Schedule};

/// Partners at doubling distances exchange whole vectors; the pairs beyond a power of two fold before, the even rank
/// sending its vector to the odd one, and unfold after.
///
/// Cost: log2 P (alpha + n beta) for a power of two, and 2 (alpha + n beta) more for others. Source: MPICH's short
/// allreduce (Thakur, Rabenseifner and Gropp, IJHPCA 19(1) 2005).
pub(in crate::collective) fn recursive_doubling(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let (core, bytes) = (PowerOfTwoCore::new(member.size, Representative::Odd), data.bytes());
    build_schedule(move |steps| {
        if let Some(place) = core.fold(member.rank, bytes, steps) {
            core.exchange_whole(place, bytes, steps);
        }
        core.unfold(member.rank, bytes, steps);
    })
}
