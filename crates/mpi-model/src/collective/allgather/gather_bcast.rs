//! Allgather as a gather at rank 0 and a broadcast from there.

use super::Args;
use crate::collective::blocks::Blocks;
use crate::collective::{Bcast, Gather, Member, Schedule, Selectable, Steps, bcast, gather};

/// The communicator's gather and broadcast; for blocks of different sizes, the linear gather. Source: Open MPI's `default`.
///
/// All blocks are broadcast; SimGrid's replay, whose traces have no displacements, broadcasts only as much as the largest
/// block of an allgatherv.
pub(in crate::collective) fn gather_bcast<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let gathered = match args.blocks {
        Blocks::Equal(received) => {
            Gather::selected(member, gather::Args { root: 0, sent: args.sent, received })
        }
        Blocks::PerRank { .. } | Blocks::PerNode { .. } | Blocks::OfFile { .. } => {
            gather::linear(member, 0, args.sent.bytes(), move |rank| args.blocks.bytes_of(rank))
        }
    };
    let all = args.blocks.total(member.size);
    Box::new(gathered.then(Bcast::selected(member, bcast::Args { root: 0, data: all })))
}
