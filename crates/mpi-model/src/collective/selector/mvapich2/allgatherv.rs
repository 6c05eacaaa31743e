//! MVAPICH2's decisions for allgatherv.

use super::super::{MORE, REST, Table, pick};
use crate::collective::allgather::doubling::recursive_or_bruck as doubling_or_bruck;
use crate::collective::allgather::{Algorithm, Args};
use crate::collective::allgatherv::segmented_ring::segmented_ring;
use crate::collective::{Member, Schedule};

/// By the mean bytes of a block.
const TABLE: Table<Algorithm> = &[
    (33, &[(513, doubling_or_bruck), (REST, segmented_ring)]),
    (MORE, &[(257, doubling_or_bruck), (REST, segmented_ring)]),
];

/// MVAPICH2's choice.
pub(in crate::collective) fn allgatherv<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let mean = args.blocks.total(member.size).bytes().get().div_ceil(member.size.into());
    pick(TABLE, member.size, mean)(member, args)
}
