//! Scatter among the leaders, then on each node.

use pdes_core::Bytes;

use super::{Algorithm, Args, binomial, in_turn, linear};
use crate::collective::blocks::repeated;
use crate::collective::member::empty_schedule;
use crate::collective::{Member, Schedule, Steps, recv, send};

/// A linear scatter among the leaders, one after the other, and a binomial one on each node.
pub(in crate::collective) fn two_level_direct<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    two_level(member, args, in_turn, binomial)
}

/// Binomial scatters on both levels.
pub(in crate::collective) fn two_level_binomial<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    two_level(member, args, binomial, binomial)
}

/// The root sends everything to the leader of its node, the leaders scatter (all at once if nodes have different numbers of
/// ranks), then each node does. On one node the root sends to one rank after the other.
///
/// Cost: the sum of both levels, and alpha + P n beta if the root is no leader. Source: MVAPICH2's `Scatter_two_level`.
pub(in crate::collective) fn two_level<'a>(
    member: Member<'a>,
    args: Args,
    leaders: Algorithm,
    on_node: Algorithm,
) -> Schedule<'a> {
    let block = args.block(member.rank);
    let (layout, root) = (member.layout, args.root);
    if block.bytes() == Bytes::ZERO {
        return empty_schedule();
    }
    if layout.nodes() == 1 {
        return in_turn(member, args);
    }
    let bytes = move |blocks: u32| repeated(block, blocks.into());
    let node = layout.node_of(root);
    let (leader, all) = (layout.leader(node), bytes(member.size).bytes());
    let handed = match member.rank {
        _ if leader == root => None,
        rank if rank == leader => Some(recv(root, all)),
        rank if rank == root => Some(send(leader, all)),
        _ => None,
    };
    let of_node = move |node: u32| bytes(layout.node_size(node));
    let among = member.among_leaders(|leader| {
        let own = of_node(leader.rank);
        if layout.is_uniform() {
            return leaders(leader, Args { root: node, sent: own, received: own });
        }
        linear(leader, node, move |node| of_node(node).bytes(), own.bytes())
    });
    let local = member.on_node(|local| {
        let one = bytes(1);
        on_node(local, Args { root: 0, sent: one, received: one })
    });
    Box::new(handed.into_iter().then(among).then(local))
}
