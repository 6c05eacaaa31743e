//! Gather on each node, then among the leaders.

use pdes_core::Bytes;

use super::{Args, binomial, in_turn, linear};
use crate::collective::blocks::repeated;
use crate::collective::member::empty_schedule;
use crate::collective::{Member, Schedule, Steps, recv, send};

/// Each node gathers at its leader up a binomial tree, the leaders at the leader of the root's node (one after the other if
/// all nodes have the same number of ranks, else all at once), which sends everything to the root.
///
/// Cost: the sum of both levels, and alpha + P n beta if the root is no leader. Source: MVAPICH2's
/// `Gather_two_level_Direct`.
pub(in crate::collective) fn two_level<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let block = args.block(member.rank);
    if block.bytes() == Bytes::ZERO {
        return empty_schedule();
    }
    let (layout, root) = (member.layout, args.root);
    let bytes = move |blocks: u32| repeated(block, blocks.into());
    let local = member.on_node(|local| {
        let one = bytes(1);
        binomial(local, Args { root: 0, sent: one, received: one })
    });
    let node = layout.node_of(root);
    let of_node = move |node: u32| bytes(layout.node_size(node));
    let among = member.among_leaders(|leader| {
        let own = of_node(leader.rank);
        if layout.is_uniform() {
            return in_turn(leader, Args { root: node, sent: own, received: own });
        }
        linear(leader, node, own.bytes(), move |node| of_node(node).bytes())
    });
    let (leader, all) = (layout.leader(node), bytes(member.size).bytes());
    let handed = match member.rank {
        _ if leader == root => None,
        rank if rank == leader => Some(send(root, all)),
        rank if rank == root => Some(recv(leader, all)),
        _ => None,
    };
    Box::new(local.then(among).then(handed.into_iter()))
}
