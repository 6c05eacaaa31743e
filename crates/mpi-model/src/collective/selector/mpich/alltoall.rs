//! MPICH's decision table for alltoall.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::alltoall::bruck::bruck;
use crate::collective::alltoall::pairwise::ring;
use crate::collective::alltoall::windows::including_self as scatter_dest;
use crate::collective::alltoall::{Algorithm, Args};
use crate::collective::{Member, Schedule};

/// Columns by the size of the block for one rank.
///
/// MPICH exchanges long messages in pairs if P is a power of two, and round the ring otherwise. SimGrid tests for an odd P
/// instead, for which a pairwise exchange is never possible; so this is the ring for all.
const TABLE: DecisionTable<Algorithm> = &[
    (8, &[(32768, scatter_dest), (REST, ring)]),
    (MORE, &[(256, bruck), (32768, scatter_dest), (REST, ring)]),
];

/// Returns the schedule that MPICH selects.
pub(in crate::collective) fn alltoall<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    look_up(TABLE, member.size, args.sent.bytes_of(0).get())(member, args)
}
