//! Reduction on each node, then among the leaders.

use super::{Algorithm, Args, Reduce, in_turn, knomial_with_degree};
use crate::collective::member::{Elements, empty_schedule};
use crate::collective::selector::mpich;
use crate::collective::{Member, Schedule, Selectable, Steps, recv, send};

/// Reduction on a node.
#[derive(Clone, Copy, Debug)]
pub(in crate::collective) struct OnNode {
    /// The algorithm; `None` stands for shared memory, which is modelled as a linear reduction of short vectors and a
    /// k-nomial one of long ones.
    pub(in crate::collective) algorithm: Option<Algorithm>,
    /// The degree of k-nomial trees.
    pub(in crate::collective) degree: u32,
}

/// MPICH's selection on both levels.
pub(in crate::collective) fn mpich_two_level<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let mpich: Algorithm = |member, args| Reduce::by_table(&mpich::REDUCE, member, args);
    two_level(member, args, mpich, OnNode { algorithm: Some(mpich), degree: 4 })
}

/// Each node reduces to its leader, the leaders reduce to the leader of the root's node, and that sends to the root.
///
/// Cost: the sum of both levels, and alpha + n beta if the root is no leader. On one node, vectors of more than 2 KiB take
/// a k-nomial tree, shorter ones shared memory. Source: MVAPICH2's `Reduce_two_level_helper`, which MPICH's selector uses
/// too in SimGrid.
pub(in crate::collective) fn two_level<'a>(
    member: Member<'a>,
    args: Args,
    leaders: impl FnOnce(Member<'a>, Args) -> Schedule<'a>,
    on_node: OnNode,
) -> Schedule<'a> {
    let Args { root, data } = args;
    let (layout, bytes) = (member.layout, data.bytes());
    if layout.nodes() == 1 && bytes.get() > 2048 {
        return knomial_with_degree(on_node.degree, member, args);
    }
    let node = layout.node_of(root);
    let leader = layout.leader(node);
    let handed = match member.rank {
        _ if leader == root => None,
        rank if rank == leader => Some(send(root, bytes)),
        rank if rank == root => Some(recv(leader, bytes)),
        _ => None,
    };
    let shared = if layout.nodes() == 1 { None } else { on_node.algorithm };
    let local =
        member.on_node(move |local| on_one_node(local, data, OnNode { algorithm: shared, ..on_node }));
    let among = member.among_leaders(|leader| match leader.size {
        1 => empty_schedule(),
        _ => leaders(leader, Args { root: node, data }),
    });
    Box::new(local.then(among).then(handed.into_iter()))
}

fn on_one_node<'a>(local: Member<'a>, data: Elements, on_node: OnNode) -> Schedule<'a> {
    let args = Args { root: 0, data };
    match on_node.algorithm {
        _ if local.size == 1 => empty_schedule(),
        Some(algorithm) => algorithm(local, args),
        None if data.bytes().get() < u64::from(local.size) << 17 => in_turn(local, args),
        None => knomial_with_degree(on_node.degree, local, args),
    }
}
