//! Broadcasts in which the root sends to every rank itself.

use super::Args;
use crate::collective::schedule_builder::{build_rounds, build_schedule};
use crate::collective::{Member, Schedule, Step, Steps, isends, send};

/// The root sends to all ranks at once.
///
/// Cost: alpha + (P - 1) n beta. Source: STAR-MPI's `flattree`.
pub(in crate::collective) fn flat<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let (root, bytes) = (args.root, args.data.bytes());
    if member.rank == root {
        Box::new(isends(member.others(), move |_| bytes).chain([Step::WaitAll]))
    } else {
        build_schedule(move |steps| steps.recv(root, bytes))
    }
}

/// The root sends segments of 8 KiB to one rank after the other.
///
/// Cost: (P - 1) (n / s) (alpha + s beta). Source: STAR-MPI's `flattree_pipeline`, which leaves out the elements beyond the
/// last whole segment.
pub(in crate::collective) fn flat_pipelined<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let (root, segment) = (args.root, args.data.per_segment(8192));
    let (segments, bytes) = (args.data.count / segment, args.data.size_of(segment));
    // A vector shorter than a segment is sent as a whole.
    if segments == 0 {
        return flat(member, args);
    }
    if member.rank == root {
        let to_all = move |other| (0..segments).map(move |_| send(other, bytes));
        return Box::new(member.others().flat_map(to_all));
    }
    let receives = build_rounds(segments, move |_, steps| {
        steps.irecv(root, bytes);
    });
    Box::new(receives.then(std::iter::once(Step::WaitAll)))
}
