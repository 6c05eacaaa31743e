//! MVAPICH2's decision table for alltoall. It takes those for one rank per node on all.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::alltoall::bruck::bruck;
use crate::collective::alltoall::pairwise::pair;
use crate::collective::alltoall::via_allgather::doubling;
use crate::collective::alltoall::windows::including_self as scatter_dest;
use crate::collective::alltoall::{Algorithm, Args};
use crate::collective::{Member, Schedule};

/// Columns by the size of the block for one rank.
const TABLE: DecisionTable<Algorithm> = &[
    (3, &[(REST, pair)]),
    (5, &[(262_145, scatter_dest), (REST, pair)]),
    (9, &[(9, doubling), (REST, scatter_dest)]),
    (17, &[(65, doubling), (513, bruck), (REST, scatter_dest)]),
    (33, &[(33, doubling), (2049, bruck), (REST, scatter_dest)]),
    (MORE, &[(9, doubling), (1025, bruck), (REST, scatter_dest)]),
];

/// Returns the schedule that MVAPICH2 selects.
pub(in crate::collective) fn alltoall<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    look_up(TABLE, member.size, args.sent.bytes_of(0).get())(member, args)
}
