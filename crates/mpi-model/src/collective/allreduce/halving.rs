//! Allreduce by recursive halving and doubling.

use super::recursive_doubling;
use crate::collective::halving::{Core, Split, Taker};
use crate::collective::member::{Elements, nothing};
use crate::collective::reduce::{self, reduce_halves};
use crate::collective::script::script;
use crate::collective::{Member, Schedule};

/// A reduce-scatter by recursive halving, then an allgather by recursive doubling; the pairs beyond a power of two fold
/// before, the even rank sending its vector to the odd one, and unfold after.
///
/// Cost: 2 log2 P alpha + 2 (P - 1) / P n beta for a power of two. Source: MPICH's long allreduce (Thakur, Rabenseifner and
/// Gropp, IJHPCA 19(1) 2005).
pub(in crate::collective) fn halving_doubling(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let core = Core::new(member.size, Taker::Odd);
    let split = Split::Blocks { data, levels: core.levels };
    script(move |steps| {
        if let Some(place) = core.fold(member.rank, data.bytes(), steps) {
            core.halve(place, split, steps);
            core.double(place, split, steps);
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
        0 => nothing(),
        count if count < 1 << member.size.ilog2() => recursive_doubling(member, data),
        _ => halving_doubling(member, data),
    }
}

/// Halving and doubling of halves of halves, before which each folded pair of neighbours reduces one half each.
///
/// Cost: 2 log2 P alpha + 2 (P - 1) / P n beta for a power of two. Source: Rabenseifner's code of 1997, which SimGrid
/// offers as `rab` for vectors above its limits; here it serves all.
pub(in crate::collective) fn rabenseifner(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let core = Core::new(member.size, Taker::Even);
    let split = Split::Halves { data };
    script(move |steps| {
        let args = reduce::Args { root: 0, data };
        if let Some(place) = reduce_halves(core, member.rank, args, steps) {
            core.halve(place, split, steps);
            core.double(place, split, steps);
        }
        core.unfold(member.rank, data.bytes(), steps);
    })
}
