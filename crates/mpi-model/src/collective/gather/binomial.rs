//! Gather up a binomial tree.

use super::Args;
use crate::collective::blocks::repeated;
use crate::collective::schedule_builder::build_schedule;
use crate::collective::tree::{self, Tree};
use crate::collective::{Member, Schedule};

/// Each rank receives the blocks of its children's subtrees, the nearest child first, and sends all that it has to its parent.
///
/// Cost: ceil(log2 P) alpha + (P - 1) n beta for blocks of n bytes. Source: MPICH; Open MPI's `binomial`.
pub(in crate::collective) fn binomial<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let block = args.block(member.rank);
    let Tree { parent, children } = tree::binomial(member, args.root);
    let bytes = move |rank: u32| repeated(block, tree::binomial_weight(member, args.root, rank)).bytes();
    build_schedule(move |steps| {
        children.iter().for_each(|&child| steps.recv(child, bytes(child)));
        parent.into_iter().for_each(|parent| steps.send(parent, bytes(member.rank)));
    })
}
