//! Reductions in which every rank sends to the root.

use super::Args;
use crate::collective::{Member, Schedule, Step, irecvs, isends, recv, send};

/// All ranks send the whole vector to the root at once.
///
/// Cost: alpha + (P - 1) n beta. Source: SimGrid's `default`.
pub(in crate::collective) fn linear<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let bytes = args.data.bytes();
    let everything = move |_| bytes;
    if member.rank == args.root {
        Box::new(irecvs(member.others(), everything).chain([Step::WaitAll]))
    } else {
        Box::new(isends(std::iter::once(args.root), everything).chain([Step::WaitAll]))
    }
}

/// The root receives from one after the other, the last rank first.
///
/// Cost: (P - 1) (alpha + n beta). Source: Open MPI's `basic_linear`; STAR-MPI's `flat_tree`.
pub(in crate::collective) fn in_turn<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let (root, bytes) = (args.root, args.data.bytes());
    if member.rank == root {
        let others = (0..member.size).rev().filter(move |&other| other != root);
        Box::new(others.map(move |other| recv(other, bytes)))
    } else {
        Box::new(std::iter::once(send(root, bytes)))
    }
}
