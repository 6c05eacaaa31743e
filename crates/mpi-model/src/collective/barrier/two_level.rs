//! A barrier on the nodes and among them.

use pdes_core::Bytes;

use super::dissemination;
use crate::collective::member::Elements;
use crate::collective::selector::mpich;
use crate::collective::{Bcast, Member, Schedule, Selectable, Steps, bcast};

/// A barrier on each node, one among the leaders, and a broadcast of one byte on each node.
///
/// Cost: (ceil(log2 N) + 2 ceil(log2 C)) alpha on N nodes of C ranks. Source: MPICH's SMP barrier.
pub(in crate::collective) fn two_level(member: Member<'_>) -> Schedule<'_> {
    let release = bcast::Args { root: 0, data: Elements { count: 1, element_size: Bytes::new(1) } };
    let gathered = member.on_node(dissemination).then(member.among_leaders(dissemination));
    Box::new(gathered.then(member.on_node(move |member| Bcast::by_table(&mpich::BCAST, member, release))))
}
