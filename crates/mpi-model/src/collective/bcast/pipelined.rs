//! Broadcasts in segments of 8 KiB, from rank 0 down a chain or a binary tree.

use super::{Args, Bcast};
use crate::collective::member::empty_schedule;
use crate::collective::pipeline::{SendMode, forward_segments, store_and_forward};
use crate::collective::tree::Tree;
use crate::collective::{Member, Schedule, Selectable, Steps, recv, send};

/// Size of a segment \[B\].
const SEGMENT: u64 = 8192;

/// A pipeline along the chain of ranks.
///
/// Cost: (P - 2 + n / s) (alpha + s beta). Source: STAR-MPI's `NTSL`.
pub(in crate::collective) fn chain_pipeline<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let Member { rank, size, .. } = member;
    let child = (rank + 1 < size).then(|| rank + 1);
    from_rank_0(
        member,
        args,
        Tree { parent: rank.checked_sub(1), children: child.into_iter().collect() },
        SendMode::NonBlocking,
    )
}

/// A pipeline down the binary heap of ranks.
///
/// Cost: (2 log2 P + 2 n / s) (alpha + s beta). Source: STAR-MPI's `NTSB`.
pub(in crate::collective) fn binary_pipeline<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let Member { rank, size, .. } = member;
    let parent = rank.checked_sub(1).map(|below| below / 2);
    let children = [1, 2].map(|side| u64::from(rank) * 2 + side).into_iter();
    let children = children.filter(|&child| child < u64::from(size)).map(|child| child as u32).collect();
    from_rank_0(member, args, Tree { parent, children }, SendMode::NonBlocking)
}

/// Sends the vector to rank 0, from there its whole segments down a tree, and broadcasts the remainder with the
/// communicator's algorithm. A vector no longer than a segment is sent as a whole.
pub(super) fn from_rank_0<'a>(member: Member<'a>, args: Args, tree: Tree, sends: SendMode) -> Schedule<'a> {
    if member.size == 1 {
        return empty_schedule();
    }
    let (root, data) = (args.root, args.data);
    let to_0 = match member.rank {
        _ if root == 0 => None,
        0 => Some(recv(root, data.bytes())),
        rank if rank == root => Some(send(0, data.bytes())),
        _ => None,
    };
    let segment = data.per_segment(SEGMENT);
    if data.count <= segment {
        return Box::new(to_0.into_iter().then(store_and_forward(tree, data.bytes())));
    }
    let segments = forward_segments(tree, data.count / segment, data.size_of(segment), sends);
    let rest = data.with_count(data.count % segment);
    let rest = (rest.count > 0).then(|| Bcast::selected(member, Args { root, data: rest }));
    Box::new(to_0.into_iter().then(segments).then(rest.unwrap_or_else(empty_schedule)))
}
