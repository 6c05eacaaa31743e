//! Allreduces composed of other operations.

use crate::collective::blocks::Blocks;
use crate::collective::member::{Elements, empty_schedule};
use crate::collective::schedule_builder::build_schedule;
use crate::collective::{
    Allgather, Alltoall, Bcast, Member, Reduce, Schedule, Selectable, Steps, allgather, alltoall, bcast,
    reduce,
};

/// A linear reduction to rank 0, then a binomial broadcast from there.
///
/// Cost: (1 + ceil(log2 P)) alpha + (P - 1 + ceil(log2 P)) n beta. Source: SimGrid's `default`.
pub(in crate::collective) fn linear_then_binomial(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let reduced = reduce::linear(member, reduce::Args { root: 0, data });
    Box::new(reduced.then(bcast::binomial_tree(member, bcast::Args { root: 0, data })))
}

/// The communicator's reduction to rank 0, then its broadcast from there.
///
/// Cost: the sum of both. Source: Open MPI's `nonoverlapping`; STAR-MPI's `redbcast`.
pub(in crate::collective) fn reduce_broadcast(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let reduced = Reduce::selected(member, reduce::Args { root: 0, data });
    Box::new(reduced.then(Bcast::selected(member, bcast::Args { root: 0, data })))
}

/// Recursive halving, farthest partner first, then the communicator's allgather of the parts.
///
/// Cost: log2 P alpha + (P - 1) / P n beta, and the allgather. If the vector does not divide evenly, parts are rounded up.
/// For powers of two of ranks. Source: STAR-MPI's `rab1`.
pub(in crate::collective) fn halve_then_allgather(member: Member<'_>, data: Elements) -> Schedule<'_> {
    if member.size == 1 {
        return empty_schedule();
    }
    let part = data.with_count(part(member.size, data.count));
    let reduced = build_schedule(move |steps| {
        for level in (0..member.size.ilog2()).rev() {
            let (partner, bytes) = (member.rank ^ 1 << level, part.size_of(part.count << level));
            steps.exchange(partner, bytes, partner, bytes);
        }
    });
    Box::new(
        reduced
            .then(Allgather::selected(member, allgather::Args { sent: part, blocks: Blocks::Equal(part) })),
    )
}

/// The communicator's all-to-all of the parts, which each rank reduces, then its allgather of the results.
///
/// Cost: the sum of both with n / P bytes to each. If the vector does not divide evenly, parts are rounded up, and have P
/// elements if there are fewer elements than ranks. Source: STAR-MPI's `rab2`.
pub(in crate::collective) fn alltoall_then_allgather(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let size = u64::from(member.size);
    let filled = if !data.count.is_multiple_of(size) && data.count < size {
        size
    } else {
        part(member.size, data.count)
    };
    let part = data.with_count(filled);
    let blocks = Blocks::Equal(part);
    let exchanged = Alltoall::selected(member, alltoall::Args { sent: blocks, received: blocks });
    Box::new(
        exchanged
            .then(Allgather::selected(member, allgather::Args { sent: part, blocks: Blocks::Equal(part) })),
    )
}

/// Returns the number of elements of a part.
fn part(size: u32, count: u64) -> u64 {
    let size = u64::from(size);
    count / size + u64::from(!count.is_multiple_of(size))
}
