//! Allreduce on each node, then among the leaders.

use super::{Algorithm, Allreduce, recursive_doubling};
use crate::collective::member::{Elements, empty_schedule};
use crate::collective::selector::mpich;
use crate::collective::{Bcast, Member, Reduce, Schedule, Selectable, Steps, bcast, reduce};

/// MPICH's allreduce on each node, recursive doubling among the leaders.
pub(in crate::collective) fn mpich_two_level(member: Member<'_>, data: Elements) -> Schedule<'_> {
    two_level(member, data, recursive_doubling, |member, data| {
        Allreduce::by_table(&mpich::ALLREDUCE, member, data)
    })
}

/// The communicator's reduction, as the first phase on nodes.
pub(in crate::collective) fn reduce_to_leader(local: Member<'_>, data: Elements) -> Schedule<'_> {
    Reduce::selected(local, reduce::Args { root: 0, data })
}

/// Runs `on_node` on each node, `leaders` among the leaders, and the communicator's broadcast on each node.
///
/// Cost: the sum of the three. Source: MVAPICH2's `Allreduce_two_level`, which MPICH's selector uses too in SimGrid.
pub(in crate::collective) fn two_level(
    member: Member<'_>,
    data: Elements,
    leaders: Algorithm,
    on_node: Algorithm,
) -> Schedule<'_> {
    if data.count == 0 {
        return empty_schedule();
    }
    let root = 0;
    let first = member.on_node(|local| on_node(local, data));
    let second = member.among_leaders(|leader| leaders(leader, data));
    Box::new(
        first.then(second).then(member.on_node(|local| Bcast::selected(local, bcast::Args { root, data }))),
    )
}
