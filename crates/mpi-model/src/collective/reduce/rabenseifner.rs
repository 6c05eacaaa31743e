//! Rabenseifner's reduction.

use super::Args;
use crate::collective::halving::{PowerOfTwoCore, Representative, Split};
use crate::collective::schedule_builder::{ScheduleBuilder, build_schedule};
use crate::collective::{Member, Schedule};

/// Recursive halving among the largest power of two of ranks, before which each folded pair of neighbours reduces one half
/// each, then a gather of the parts to the root.
///
/// Cost: 2 log2 P alpha + 2 (P - 1) / P n beta for a power of two. Source: Rabenseifner's code of 1997, which SimGrid
/// offers as `rab` for vectors above its limits; here it serves all. In the gather, ranks continue to exchange parts after
/// they have sent theirs, as that code does.
pub(in crate::collective) fn rabenseifner<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let core = PowerOfTwoCore::new(member.size, Representative::Even);
    let split = Split::Halves { data: args.data };
    build_schedule(move |steps| {
        let mut place = fold_halves(core, member.rank, args, steps);
        if let Some(place) = place {
            core.reduce_scatter(place, split, steps);
        }
        let root_place = core.virtual_rank(args.root).unwrap_or(0);
        if core.virtual_rank(args.root).is_none() {
            let part = split.part(0, core.levels);
            if member.rank == 0 {
                steps.send(args.root, part);
                place = None;
            } else if member.rank == args.root {
                steps.recv(0, part);
                place = Some(0);
            }
        }
        let rank = |place: u32| if place == root_place { args.root } else { core.rank(place) };
        let Some(place) = place else { return };
        for level in (0..core.levels).rev() {
            let other = place ^ 1 << level;
            if (place ^ root_place) >> level & 1 == 1 {
                steps.send(rank(other), split.part(place, level + 1));
            } else {
                steps.recv(rank(other), split.part(other, level + 1));
            }
        }
    })
}

/// Appends the fold by halves: the neighbours of a pair exchange halves, and the odd one sends the half that it has
/// reduced. Returns the virtual rank of a rank, if it keeps one.
pub(in crate::collective) fn fold_halves(
    core: PowerOfTwoCore,
    rank: u32,
    args: Args,
    steps: &mut ScheduleBuilder,
) -> Option<u32> {
    let data = args.data;
    let (lower, upper) = (data.size_of(data.count / 2), data.size_of(data.count.div_ceil(2)));
    let place = core.virtual_rank(rank);
    if let Some(partner) = core.fold_partner(rank) {
        match place {
            Some(_) => {
                steps.exchange(partner, upper, partner, lower);
                steps.recv(partner, upper);
            }
            None => {
                steps.exchange(partner, lower, partner, upper);
                steps.send(partner, upper);
            }
        }
    }
    place
}
