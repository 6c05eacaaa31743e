//! Reductions in segments up any tree: Open MPI's `reduce_generic` on several trees.

use pdes_core::Bytes;

use super::Args;
use crate::collective::member::empty_schedule;
use crate::collective::schedule_builder::{RequestHandle, build_rounds};
use crate::collective::tree::{self, Tree};
use crate::collective::{Member, Schedule, Steps, recv, send};

/// P / 2 chains in segments of 64 KiB.
///
/// Cost: about (1 + n / s) (alpha + s beta) + P / 2 s beta. Source: Open MPI's `chain`.
pub(in crate::collective) fn chains<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    generic(tree::chains(member, args.root, member.size / 2), args, 64 << 10)
}

/// One chain, in segments of 1, 32 or 64 KiB by a rule of thumb.
///
/// Cost: (P - 2 + n / s) (alpha + s beta). Source: Open MPI's `pipeline`.
pub(in crate::collective) fn pipeline<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let (size, bytes) = (f64::from(member.size), args.data.bytes().get() as f64);
    let segment = match () {
        () if size > 0.0410 / 1024.0 * bytes + 9.7128 => 1 << 10,
        () if size > 0.0033 / 1024.0 * bytes + 1.6761 => 32 << 10,
        () => 64 << 10,
    };
    generic(tree::chains(member, args.root, 1), args, segment)
}

/// A binary tree in segments of 32 KiB.
///
/// Cost: (2 log2 P + 2 n / s) (alpha + s beta). Source: Open MPI's `binary`.
pub(in crate::collective) fn binary<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    generic(tree::binary(member, args.root), args, 32 << 10)
}

/// A binomial tree, in segments of 1 KiB where there are many ranks for the size and the vector is not short.
///
/// Cost: ceil(log2 P) (alpha + n beta) without segments. Source: Open MPI's `binomial`.
pub(in crate::collective) fn binomial_segments<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let (size, bytes) = (member.size, args.data.bytes().get());
    let short = size < 8 && bytes < 20480 || bytes < 2048 || args.data.count <= 1;
    let segments = !short && f64::from(size) > 0.6016 / 1024.0 * bytes as f64 + 1.3496;
    generic(tree::binomial(member, args.root), args, if segments { 1 << 10 } else { 0 })
}

/// A binary tree that keeps the order of operands, without segments; the last rank sends the result to the root.
///
/// Cost: 2 log2 P (alpha + n beta). Source: Open MPI's `in_order_binary`.
pub(in crate::collective) fn in_order_binary<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let (last, bytes) = (member.size - 1, args.data.bytes());
    let reduced = generic(tree::in_order_binary(member), args, 0);
    let handed = match member.rank {
        _ if args.root == last || args.data.count == 0 => None,
        rank if rank == last => Some(send(args.root, bytes)),
        rank if rank == args.root => Some(recv(last, bytes)),
        _ => None,
    };
    Box::new(reduced.then(handed.into_iter()))
}

/// Returns the schedule of a reduction up a tree in segments of `segment` \[B\]; 0 stands for the whole vector.
///
/// An inner rank posts the receive of a segment from one child before it waits for the one from the child before; once it
/// has a segment from all children, it sends it to its parent.
fn generic<'a>(tree: Tree, args: Args, segment: u64) -> Schedule<'a> {
    let Tree { parent, children } = tree;
    let data = args.data;
    if data.count == 0 || parent.is_none() && children.is_empty() {
        return empty_schedule();
    }
    let segment = if segment == 0 { data.count } else { data.per_open_mpi_segment(segment) };
    let segments = data.count.div_ceil(segment);
    let bytes = move |index: u64| -> Bytes { data.size_of(segment.min(data.count - index * segment)) };
    let mut pending: Option<RequestHandle> = None;
    let levels = if children.is_empty() { 0 } else { 1 };
    build_rounds(segments + levels, move |round, steps| {
        let mut children_left = children.iter();
        if let Some(&first) = children_left.next() {
            // Double buffering across segments: the first child's next receive is posted before the last child's current
            // one is awaited.
            let next = (round < segments).then(|| steps.irecv(first, bytes(round)));
            pending.take().into_iter().for_each(|handle| steps.wait(handle));
            pending = next;
        }
        if let (Some(parent), Some(done)) = (parent, round.checked_sub(levels)) {
            steps.send(parent, bytes(done));
        }
        if round == segments {
            return;
        }
        for &child in children_left {
            let next = steps.irecv(child, bytes(round));
            pending.take().into_iter().for_each(|handle| steps.wait(handle));
            pending = Some(next);
        }
    })
}
