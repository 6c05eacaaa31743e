//! Allgather in two levels: leaders gather, exchange and broadcast.

use super::{Allgather, Args};
use crate::collective::blocks::{Blocks, repeated};
use crate::collective::member::empty_schedule;
use crate::collective::selector::mpich;
use crate::collective::{Allgatherv, Bcast, Gather, Member, Schedule, Selectable, Steps, bcast, gather};

/// A gather on each node, an allgather of the blocks of whole nodes among the leaders (MPICH's; if nodes have different
/// numbers of ranks, the communicator's allgatherv), a broadcast of all blocks on each node.
///
/// Cost: between nodes about log2 N alpha + (N - 1) c n beta. Source: MVAPICH2's two-level allgather. Without block
/// mapping, which SimGrid refuses, the blocks are sent all the same and sorted at their destination, for free.
pub(in crate::collective) fn two_level<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let Blocks::Equal(block) = args.blocks else { unreachable!("the blocks of an allgather are equal") };
    if block.count == 0 {
        return empty_schedule();
    }
    let layout = member.layout;
    let gathered = member
        .on_node(|local| Gather::selected(local, gather::Args { root: 0, sent: args.sent, received: block }));
    let own = repeated(block, layout.node_size(member.node()).into());
    let exchanged = member.among_leaders(|leader| {
        if layout.is_uniform() {
            Allgather::by_table(&mpich::ALLGATHER, leader, Args { sent: own, blocks: Blocks::Equal(own) })
        } else {
            Allgatherv::selected(leader, Args { sent: own, blocks: Blocks::PerNode { block, layout } })
        }
    });
    let all = repeated(block, member.size.into());
    let spread = member.on_node(|local| Bcast::selected(local, bcast::Args { root: 0, data: all }));
    Box::new(gathered.then(exchanged).then(spread))
}

/// [`two_level`] with block mapping, else MPICH's selection. Source: MVAPICH2.
pub(in crate::collective) fn if_blocked<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    if member.layout.is_blocked() {
        two_level(member, args)
    } else {
        Allgather::by_table(&mpich::ALLGATHER, member, args)
    }
}
