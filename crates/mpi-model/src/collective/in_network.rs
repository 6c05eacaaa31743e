//! Reductions and broadcasts by the switches of a tree (algorithm `in_network`), as SHARP's streaming trees and multicast in hardware do
//! them (Graham et al., "Scalable Hierarchical Aggregation and Reduction Protocol (SHARP) Streaming-Aggregation Hardware Design and
//! Evaluation", ISC 2020).
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

use pdes_core::Bytes;

use super::analytic::{BinomialTree, recv_token, send_token, uncontended_transfers};
use super::member::Elements;
use super::{Member, Schedule, Step, bcast, reduce};

pub(super) fn barrier(member: Member<'_>) -> Schedule<'_> {
    exchange(member, Bytes::ZERO)
}

pub(super) fn allreduce(member: Member<'_>, data: Elements) -> Schedule<'_> {
    exchange(member, data.bytes())
}

pub(super) fn reduce(member: Member<'_>, reduce::Args { root, data }: reduce::Args) -> Schedule<'_> {
    match transfer(member, root, data.bytes()) {
        Some(transfer) => Box::new([transfer, send_token(root, None)].into_iter()),
        None => Box::new(member.others().map(recv_token)),
    }
}

pub(super) fn bcast(member: Member<'_>, args: bcast::Args) -> Schedule<'_> {
    match transfer(member, args.root, args.data.bytes()) {
        Some(transfer) => Box::new([recv_token(args.root), transfer].into_iter()),
        None => Box::new(member.others().map(|other| send_token(other, None))),
    }
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
