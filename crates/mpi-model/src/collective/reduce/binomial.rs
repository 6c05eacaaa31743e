//! Reduction up a binomial tree.

use super::Args;
use crate::collective::schedule_builder::build_schedule;
use crate::collective::tree::{Tree, binomial as tree};
use crate::collective::{Member, Schedule};

/// Each rank receives from its children, the nearest first, and sends to its parent.
///
/// Cost: ceil(log2 P) (alpha + n beta). Source: MPICH's short reduction.
pub(in crate::collective) fn binomial<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let bytes = args.data.bytes();
    let Tree { parent, children } = tree(member, args.root);
    build_schedule(move |steps| {
        if args.data.count > 0 {
            children.iter().for_each(|&child| steps.recv(child, bytes));
            parent.into_iter().for_each(|parent| steps.send(parent, bytes));
        }
    })
}
