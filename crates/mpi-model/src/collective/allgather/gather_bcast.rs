//! Gathers at rank 0 and broadcasts from there.

use super::Args;
use crate::collective::blocks::Blocks;
use crate::collective::{Member, Schedule, Steps, bcast, gather};

/// The communicator's own gather and broadcast; of blocks of different sizes, the linear gather. Source: Open MPI's
/// `default`.
///
/// The broadcast is that of all blocks; SimGrid's replay, where a trace has no displacements, broadcasts as much as the
/// largest block of an allgatherv.
pub(in crate::collective) fn gather_bcast<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let gathered = match args.blocks {
        Blocks::Equal(received) => {
            gather::selected(member, gather::Args { root: 0, sent: args.sent, received })
        }
        Blocks::Each { .. } | Blocks::OfNodes { .. } => {
            gather::linear(member, 0, args.sent.bytes(), move |rank| args.blocks.of(rank))
        }
    };
    let all = args.blocks.total(member.size);
    Box::new(gathered.then(bcast::selected(member, bcast::Args { root: 0, data: all })))
}
