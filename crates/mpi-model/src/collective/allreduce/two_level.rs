//! Reduction to all on each node, then among the leaders.

use super::{Algorithm, recursive_doubling};
use crate::collective::member::{Elements, nothing};
use crate::collective::selector::mpich;
use crate::collective::{Member, Schedule, bcast, reduce};

/// What comes first, on the nodes.
#[derive(Clone, Copy, Debug)]
pub(in crate::collective) enum OnNode {
    /// An allreduce on each node.
    Algorithm(Algorithm),
    /// The communicator's reduction to rank 0, on all nodes together: what SimGrid makes of MVAPICH2's reduction in shared
    /// memory and by messages.
    ReduceAll,
}

/// MPICH's allreduce on each node, recursive doubling among the leaders.
pub(in crate::collective) fn two_level_of_mpich(member: Member<'_>, data: Elements) -> Schedule<'_> {
    two_level(member, data, recursive_doubling, OnNode::Algorithm(mpich::allreduce))
}

/// Reduces on the nodes, then to all leaders, and broadcasts on each node with the communicator's algorithm.
///
/// The sum of the three. Source: MVAPICH2's `Allreduce_two_level`, which MPICH's selector takes too in SimGrid.
pub(in crate::collective) fn two_level(
    member: Member<'_>,
    data: Elements,
    leaders: Algorithm,
    on_node: OnNode,
) -> Schedule<'_> {
    if data.count == 0 {
        return nothing();
    }
    let root = 0;
    let first = match on_node {
        OnNode::Algorithm(algorithm) => member.on_node(|local| algorithm(local, data)),
        OnNode::ReduceAll => reduce::selected(member, reduce::Args { root, data }),
    };
    let second = member.among_leaders(|leader| leaders(leader, data));
    Box::new(
        first.chain(second).chain(member.on_node(|local| bcast::selected(local, bcast::Args { root, data }))),
    )
}
