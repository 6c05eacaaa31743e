//! Allreduce by recursive halving and doubling.

use super::recursive_doubling;
use crate::collective::halving::{PowerOfTwoCore, Representative, Split};
use crate::collective::member::{Elements, empty_schedule};
use crate::collective::reduce::{self, fold_halves};
use crate::collective::schedule_builder::build_schedule;
use crate::collective::{Member, Schedule};

/// A reduce-scatter by recursive halving, then an allgather by recursive doubling; the pairs beyond a power of two fold
/// before, the even rank sending its vector to the odd one, and unfold after.
///
/// Cost: 2 log2 P alpha + 2 (P - 1) / P n beta for a power of two. Source: MPICH's long allreduce (Thakur, Rabenseifner and
/// Gropp, IJHPCA 19(1) 2005).
pub(in crate::collective) fn halving_doubling(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let core = PowerOfTwoCore::new(member.size, Representative::Odd);
    let split = Split::Blocks { data, levels: core.levels };
    build_schedule(move |steps| {
        if let Some(place) = core.fold(member.rank, data.bytes(), steps) {
            core.reduce_scatter(place, split, steps);
            core.allgather(place, split, steps);
        }
        core.unfold(member.rank, data.bytes(), steps);
    })
}

/// [`halving_doubling`], except that vectors with fewer elements than the largest power of two of ranks take recursive
/// doubling only.
///
/// Source: MVAPICH2's `Allreduce_pt2pt_rs`.
pub(in crate::collective) fn short_or_halving(member: Member<'_>, data: Elements) -> Schedule<'_> {
    match data.count {
        0 => empty_schedule(),
        count if count < 1 << member.size.ilog2() => recursive_doubling(member, data),
        _ => halving_doubling(member, data),
    }
}

/// Halving and doubling of halves of halves, before which each folded pair of neighbours reduces one half each.
///
/// Cost: 2 log2 P alpha + 2 (P - 1) / P n beta for a power of two. Source: Rabenseifner's code of 1997, which SimGrid
/// offers as `rab` for vectors above its limits; here it serves all.
pub(in crate::collective) fn rabenseifner(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let core = PowerOfTwoCore::new(member.size, Representative::Even);
    let split = Split::Halves { data };
    build_schedule(move |steps| {
        let args = reduce::Args { root: 0, data };
        if let Some(place) = fold_halves(core, member.rank, args, steps) {
            core.reduce_scatter(place, split, steps);
            core.allgather(place, split, steps);
        }
        core.unfold(member.rank, data.bytes(), steps);
    })
}
