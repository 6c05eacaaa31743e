//! A barrier up and down a tree.

use pdes_core::Bytes;

use crate::collective::schedule_builder::build_schedule;
use crate::collective::{Member, Schedule};

/// Reports travel up a binomial tree to rank 0, and the release travels down again.
///
/// Cost: 2 ceil(log2 P) alpha. Source: Open MPI's `tree`.
pub(in crate::collective) fn tree(member: Member<'_>) -> Schedule<'_> {
    let Member { rank, size, .. } = member;
    let levels = u32::BITS - (size - 1).leading_zeros();
    // A rank with a lower bit set has left the tree at that level.
    let partner = move |bit: u32| Some(rank ^ 1 << bit).filter(|it| it & ((1 << bit) - 1) == 0 && *it < size);
    build_schedule(move |steps| {
        for partner in (0..levels).filter_map(partner) {
            if partner > rank {
                steps.recv(partner, Bytes::ZERO);
            } else {
                steps.send(partner, Bytes::ZERO);
            }
        }
        for partner in (0..levels).rev().filter_map(partner) {
            if partner > rank {
                steps.send(partner, Bytes::ZERO);
            } else {
                steps.recv(partner, Bytes::ZERO);
            }
        }
    })
}
