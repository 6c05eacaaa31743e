//! Reduction by recursive halving, and a gather of the parts.

use pdes_core::Bytes;

use super::Args;
use crate::collective::halving::{PowerOfTwoCore, Representative, Split};
use crate::collective::schedule_builder::{ScheduleBuilder, build_schedule};
use crate::collective::{Member, Schedule};

/// Recursive halving among a power of two of ranks, then a binomial gather of the parts to the root.
///
/// Cost: 2 log2 P alpha + 2 (P - 1) / P n beta for a power of two, and alpha + n beta more for others. Source: MPICH's long
/// reduction (Thakur, Rabenseifner and Gropp, IJHPCA 19(1) 2005); vectors shorter than one element per rank are padded.
pub(in crate::collective) fn scatter_gather<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let data = args.data.with_count(args.data.count.max(u64::from(member.size)));
    let core = PowerOfTwoCore::new(member.size, Representative::Even);
    let split = Split::Blocks { data, levels: core.levels };
    build_schedule(move |steps| {
        if args.data.count == 0 {
            return;
        }
        let place = core.fold(member.rank, data.bytes(), steps);
        if let Some(place) = place {
            core.reduce_scatter(place, split, steps);
        }
        let gather = Gather::new(core, args.root);
        if let Some(place) = gather.take_virtual_rank(member.rank, place, split.part(0, core.levels), steps) {
            gather.run(place, split, steps);
        }
    })
}

/// Gather to a root that may be folded away: then it takes over virtual rank 0.
struct Gather {
    core: PowerOfTwoCore,
    root: u32,
    root_virtual_rank: u32,
}

impl Gather {
    fn new(core: PowerOfTwoCore, root: u32) -> Self {
        Self { core, root, root_virtual_rank: core.virtual_rank(root).unwrap_or(0) }
    }

    /// Appends the hand-over of virtual rank 0 to a root without one; returns the virtual rank of `rank` in the gather.
    fn take_virtual_rank(
        &self,
        rank: u32,
        place: Option<u32>,
        part: Bytes,
        steps: &mut ScheduleBuilder,
    ) -> Option<u32> {
        if self.core.virtual_rank(self.root).is_some() {
            return place;
        }
        if rank == self.root {
            steps.recv(self.core.rank(0), part);
            return Some(0);
        }
        if place == Some(0) {
            steps.send(self.root, part);
            return None;
        }
        place
    }

    fn rank(&self, place: u32) -> u32 {
        if place == self.root_virtual_rank { self.root } else { self.core.rank(place) }
    }

    fn run(&self, place: u32, split: Split, steps: &mut ScheduleBuilder) {
        for level in (0..self.core.levels).rev() {
            let other = place ^ 1 << level;
            if other >> level == self.root_virtual_rank >> level {
                steps.send(self.rank(other), split.part(place, level + 1));
                return;
            }
            steps.recv(self.rank(other), split.part(other, level + 1));
        }
    }
}
