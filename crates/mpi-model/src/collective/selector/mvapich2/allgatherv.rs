//! MVAPICH2's decision table for allgatherv.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::allgather::doubling::recursive_or_bruck as doubling_or_bruck;
use crate::collective::allgather::{Algorithm, Args};
use crate::collective::allgatherv::segmented_ring::segmented_ring;
use crate::collective::{Member, Schedule};

/// Columns by the mean size of a block.
const TABLE: DecisionTable<Algorithm> = &[
    (33, &[(513, doubling_or_bruck), (REST, segmented_ring)]),
    (MORE, &[(257, doubling_or_bruck), (REST, segmented_ring)]),
];

/// Returns the schedule that MVAPICH2 selects.
pub(in crate::collective) fn allgatherv<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let mean = args.blocks.total(member.size).bytes().get().div_ceil(member.size.into());
    look_up(TABLE, member.size, mean)(member, args)
}
