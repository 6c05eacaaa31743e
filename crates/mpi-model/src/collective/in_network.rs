//! Reductions and broadcasts by the switches of a tree (algorithm `in_network`), as SHARP's streaming trees and multicast in hardware do
//! them (Graham et al., "Scalable Hierarchical Aggregation and Reduction Protocol (SHARP) Streaming-Aggregation Hardware Design and
//! Evaluation", ISC 2020).
//!
//! A machine whose switches do so ([`Step::Switches`]) carries out the operation between the leaders of the nodes: members of a node reduce to
//! their leader, and get the result from there, by messages along a binomial tree. Otherwise there is a closed form.
//!
//! Each switch combines what its children send and passes it on; the switch at the root sends the result down to all. Data are on their
//! way once up and once down, whatever the number of members: a message between two members that are as far apart as any takes as long.
//! Members exchange tokens with times instead of data, as [`analytic`](super::analytic) ones do, so that other messages do not delay them.
//! `t` is the time of an uncontended message with its overheads.
//!
//! | operation | end |
//! |---|---|
//! | barrier, allreduce | the last entry, and the largest `t` between member 0 and another one |
//! | reduce | at a member its entry and its `t` to the root, at the root the last of these |
//! | bcast | at a member the later one of its entry and the root's, and its `t` from the root; at the root its entry |

use pdes_core::{Bytes, Rank};

use super::analytic::{BinomialTree, recv_token, send_token, uncontended_transfers};
use super::member::{Elements, empty_schedule};
use super::{Member, Schedule, Step, Steps as _, bcast, reduce};
use crate::machine::SwitchOperation;

pub(super) fn barrier(member: Member<'_>) -> Schedule<'_> {
    allreduce(member, Elements::NONE)
}

pub(super) fn allreduce(member: Member<'_>, data: Elements) -> Schedule<'_> {
    if !member.has_switches {
        return exchange(member, data.bytes());
    }
    let up = on_node(member, move |local| reduce::binomial(local, reduce::Args { root: 0, data }));
    let down = on_node(member, move |local| bcast::binomial_tree(local, bcast::Args { root: 0, data }));
    Box::new(up.then(by_switches(member, SwitchOperation::Allreduce, data)).then(down))
}

pub(super) fn reduce(member: Member<'_>, reduce::Args { root, data }: reduce::Args) -> Schedule<'_> {
    if member.has_switches {
        let on_node = reduce::OnNode { algorithm: Some(reduce::binomial), degree: 2 };
        let args = reduce::Args { root, data };
        let by_switches = |_, reduce::Args { root, .. }: reduce::Args| {
            switch_step(SwitchOperation::Reduce { to: Rank::new(root) }, data)
        };
        return reduce::two_level(member, args, by_switches, on_node);
    }
    match transfer(member, root, data.bytes()) {
        Some(transfer) => Box::new([transfer, send_token(root, None)].into_iter()),
        None => Box::new(member.others().map(recv_token)),
    }
}

pub(super) fn bcast(member: Member<'_>, args: bcast::Args) -> Schedule<'_> {
    if member.has_switches {
        return copy(member, args);
    }
    match transfer(member, args.root, args.data.bytes()) {
        Some(transfer) => Box::new([recv_token(args.root), transfer].into_iter()),
        None => Box::new(member.others().map(|other| send_token(other, None))),
    }
}

/// Broadcasts on the node of the root, by switches between nodes, and then on the others.
fn copy(member: Member<'_>, bcast::Args { root, data }: bcast::Args) -> Schedule<'_> {
    let (node, local_root) = (member.layout.node_of(root), member.layout.local_rank(root));
    let among = by_switches(member, SwitchOperation::Bcast { from: Rank::new(node) }, data);
    let local = |root| on_node(member, move |local| bcast::binomial_tree(local, bcast::Args { root, data }));
    match member.node() == node {
        true => Box::new(local(local_root).then(among)),
        false => Box::new(among.then(local(0))),
    }
}

/// Returns the part of this node in an operation of switches, if it is not alone.
fn by_switches(member: Member<'_>, operation: SwitchOperation<Rank>, data: Elements) -> Schedule<'_> {
    member.among_leaders(move |leader| match leader.size {
        1 => empty_schedule(),
        _ => switch_step(operation, data),
    })
}

fn switch_step<'a>(operation: SwitchOperation<Rank>, data: Elements) -> Schedule<'a> {
    Box::new([Step::Switches { operation, bytes: data.bytes() }].into_iter())
}

/// Returns a part of an operation among the members of this node, if there are others.
fn on_node<'a>(member: Member<'a>, part: impl FnOnce(Member<'a>) -> Schedule<'a>) -> Schedule<'a> {
    member.on_node(|local| if local.size == 1 { empty_schedule() } else { part(local) })
}

/// Waits for all members, then for the largest transfer between member 0 and another one, which crosses the root of the tree.
fn exchange(member: Member<'_>, bytes: Bytes) -> Schedule<'_> {
    let tree = BinomialTree::new(member, 0);
    let synchronize = move || tree.up(|_| None).chain(tree.down(|_| None));
    Box::new(synchronize().chain(transfer(member, 0, bytes)).chain(synchronize()))
}

/// Returns the transfer between a member and another one, which may be the same.
fn transfer(member: Member<'_>, peer: u32, bytes: Bytes) -> Option<Step> {
    (member.rank != peer).then(|| uncontended_transfers(peer, bytes, 1))
}
