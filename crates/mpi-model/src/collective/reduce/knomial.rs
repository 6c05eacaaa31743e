//! Reduction up a k-nomial tree.

use super::Args;
use crate::collective::schedule_builder::build_schedule;
use crate::collective::{Member, Schedule};

/// Degree of the tree that MVAPICH2 assumes where no table has one.
const DEFAULT_DEGREE: u32 = 4;

/// A 4-nomial tree.
pub(in crate::collective) fn knomial<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    knomial_with_degree(DEFAULT_DEGREE, member, args)
}

/// Each rank receives from all of its children at once, then sends to its parent.
///
/// Cost: about log_k P (alpha + (k - 1) n beta). Source: MVAPICH2's `Reduce_knomial`.
pub(in crate::collective) fn knomial_with_degree<'a>(
    degree: u32,
    member: Member<'a>,
    args: Args,
) -> Schedule<'a> {
    let (size, degree, bytes) = (u64::from(member.size), u64::from(degree), args.data.bytes());
    let root = u64::from(args.root);
    let vrank = (u64::from(member.rank) + size - root) % size;
    let at = move |vrank: u64| ((vrank + root) % size) as u32;
    build_schedule(move |steps| {
        if args.data.count == 0 {
            return;
        }
        let mut distance = 1;
        while distance < size && vrank % (degree * distance) == 0 {
            // The farthest of the nearest generation first.
            for child in (1..degree).rev().map(|k| vrank + k * distance).filter(|&child| child < size) {
                steps.irecv(at(child), bytes);
            }
            distance *= degree;
        }
        steps.wait_all();
        if vrank > 0 {
            steps.isend(at(vrank / (degree * distance) * (degree * distance)), bytes);
            steps.wait_all();
        }
    })
}
