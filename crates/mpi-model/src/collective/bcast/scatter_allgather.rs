//! Broadcasts by a binomial scatter and an allgather.

use pdes_core::Bytes;

use super::Args;
use crate::collective::doubling::recursive_doubling;
use crate::collective::schedule_builder::{ScheduleBuilder, build_schedule};
use crate::collective::{Member, Schedule, Steps, exchange, member};

/// A binomial scatter, then a ring allgather: P - 1 rounds in which each rank forwards a block to its right neighbour.
///
/// Cost: (log2 P + P - 1) alpha + 2 (P - 1) / P n beta. Source: MPICH's long broadcast (van de Geijn).
pub(in crate::collective) fn ring_allgather<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let blocks = Blocks::new(member, args);
    let size = u64::from(member.size);
    let (right, left) = (member.after(1), member.before(1));
    // In round `i` each rank forwards the block of virtual rank `i` before its own.
    let block =
        move |back: u64| blocks.span_bytes((u64::from(blocks.virtual_rank) + 2 * size - back) % size, 1);
    let ring = (0..size - 1).map(move |round| exchange(right, block(round), left, block(round + 1)));
    Box::new(build_schedule(move |steps| blocks.scatter(steps)).then(ring))
}

/// A binomial scatter, then an allgather by recursive doubling: partners at doubling distances exchange all that they have.
/// If a partner does not exist, those that have its blocks forward them down a binomial tree to those of their side that
/// have not.
///
/// Cost: 2 log2 P alpha + 2 (P - 1) / P n beta for a power of two. Source: MPICH's broadcast of medium size.
pub(in crate::collective) fn doubling_allgather<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    if args.data.bytes() == Bytes::ZERO {
        return member::empty_schedule();
    }
    let blocks = Blocks::new(member, args);
    let placed = Member { rank: blocks.virtual_rank, ..member };
    let piece = move |first: u32, number: u32| blocks.span_bytes(first.into(), number.into());
    let collected = recursive_doubling(placed, piece).renumbered(move |place| blocks.rank(place));
    Box::new(build_schedule(move |steps| blocks.scatter(steps)).then(collected))
}

/// Blocks of the vector, one per virtual rank; all have the same size except the last ones.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    virtual_rank: u32,
    size: u32,
    root: u32,
    bytes: u64,
}

impl Blocks {
    fn new(member: Member<'_>, args: Args) -> Self {
        let place = (member.rank + member.size - args.root) % member.size;
        Self { virtual_rank: place, size: member.size, root: args.root, bytes: args.data.bytes().get() }
    }

    fn rank(self, place: u32) -> u32 {
        ((u64::from(place) + u64::from(self.root)) % u64::from(self.size)) as u32
    }

    /// Returns the size of `blocks` blocks from that of virtual rank `first` on.
    fn span_bytes(self, first: u64, blocks: u64) -> Bytes {
        let block = self.bytes.div_ceil(u64::from(self.size));
        let end = |place: u64| (place * block).min(self.bytes);
        Bytes::new(end(first + blocks) - end(first))
    }

    /// Returns the size of the blocks of a virtual rank's binomial subtree.
    fn subtree(self, place: u32) -> Bytes {
        self.span_bytes(u64::from(place), 1 << place.trailing_zeros())
    }

    fn scatter(self, steps: &mut ScheduleBuilder) {
        let place = self.virtual_rank;
        let levels = u32::BITS - (self.size - 1).leading_zeros();
        let own = if place == 0 { levels } else { place.trailing_zeros() };
        if place > 0 && self.subtree(place) > Bytes::ZERO {
            steps.recv(self.rank(place & (place - 1)), self.subtree(place));
        }
        let children = (0..own).rev().map(|bit| place | 1 << bit);
        for child in children.filter(|&child| child < self.size && self.subtree(child) > Bytes::ZERO) {
            steps.send(self.rank(child), self.subtree(child));
        }
    }
}
