//! Broadcasts among the leaders of the nodes, then on each node.

use super::{Algorithm, Args, Bcast, binomial_tree, knomial, ring_allgather};
use crate::collective::member::empty_schedule;
use crate::collective::selector::mpich;
use crate::collective::{Member, Schedule, Selectable, Steps, recv, send};

/// Algorithms of the two levels.
#[derive(Clone, Copy)]
pub(in crate::collective) struct Levels<Leaders, Node> {
    pub(in crate::collective) leaders: Leaders,
    pub(in crate::collective) node: Node,
}

/// The root sends the vector to the leader of its node, the leaders broadcast it, then each node does.
///
/// Cost: the sum of both levels, and alpha + n beta if the root is no leader. Source: MVAPICH2's `Bcast_inter_node_helper`.
pub(in crate::collective) fn two_level<'a>(
    member: Member<'a>,
    args: Args,
    levels: Levels<
        impl FnOnce(Member<'a>, Args) -> Schedule<'a>,
        impl FnOnce(Member<'a>, Args) -> Schedule<'a>,
    >,
) -> Schedule<'a> {
    let Args { root, data } = args;
    let node = member.layout.node_of(root);
    let leader = member.layout.leader(node);
    let to_leader = match member.rank {
        _ if leader == root => None,
        rank if rank == root => Some(send(leader, data.bytes())),
        rank if rank == leader => Some(recv(root, data.bytes())),
        _ => None,
    };
    let among_leaders = member.among_leaders(|leader| (levels.leaders)(leader, Args { root: node, data }));
    let on_node = member.on_node(|local| (levels.node)(local, Args { root: 0, data }));
    Box::new(to_leader.into_iter().then(among_leaders).then(on_node))
}

/// MPICH's selection on both levels, except that nodes take a 4-nomial tree above 128 KiB.
///
/// Source: MVAPICH2's helper for the leaders alone, under whose name SimGrid offers it; here the nodes follow, so that all
/// ranks get the vector.
pub(in crate::collective) fn inter_node<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let leaders: Algorithm = |member, args| Bcast::by_table(&mpich::BCAST, member, args);
    let node = if args.data.bytes().get() > 131_072 { knomial } else { leaders };
    two_level(member, args, Levels { leaders, node })
}

/// Two levels between 16 and 512 KiB, and for more than 64 ranks; a binomial tree below; scatter and allgather above.
///
/// Source: MVAPICH2's untuned broadcast.
pub(in crate::collective) fn intra_node<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let bytes = args.data.bytes().get();
    match bytes {
        _ if args.data.count == 0 => empty_schedule(),
        _ if member.size > 64 || (bytes > 16384 && bytes < 512 << 10) => inter_node(member, args),
        0..=16384 => binomial_tree(member, args),
        _ => ring_allgather(member, args),
    }
}
