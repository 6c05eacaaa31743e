//! Reduction in segments along the ring of ranks.

use super::{Args, linear};
use crate::collective::member::empty_schedule;
use crate::collective::pipeline::{SendMode, forward_segments, store_and_forward};
use crate::collective::tree::Tree;
use crate::collective::{Member, Schedule, Steps};

/// A pipeline of 8 KiB segments from the rank before the root downwards round the ring; the remainder is reduced by
/// SimGrid's `default`. A vector no longer than a segment is sent as a whole.
///
/// Cost: (P - 2 + n / s) (alpha + s beta). Source: STAR-MPI's `NTSL`.
pub(in crate::collective) fn chain_pipeline<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    if member.size == 1 {
        return empty_schedule();
    }
    let data = args.data;
    // The tree of `pipeline` points away from the source: the member that this one sends to is its child.
    let first = (args.root + member.size - 1) % member.size;
    let parent = (member.rank != first).then(|| member.after(1));
    let child = (member.rank != args.root).then(|| member.before(1));
    let tree = Tree { parent, children: child.into_iter().collect() };
    let segment = data.per_segment(8192);
    if data.count <= segment {
        return store_and_forward(tree, data.bytes());
    }
    let segments = forward_segments(tree, data.count / segment, data.size_of(segment), SendMode::NonBlocking);
    let rest = data.with_count(data.count % segment);
    let rest = (rest.count > 0).then(|| linear(member, Args { data: rest, ..args }));
    Box::new(segments.then(rest.unwrap_or_else(empty_schedule)))
}
