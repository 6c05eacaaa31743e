//! Open MPI's decisions for alltoallv.

use super::super::{MORE, REST, Table, pick};
use crate::collective::alltoall::linear::in_order;
use crate::collective::alltoall::pairwise::pair;
use crate::collective::alltoall::{Algorithm, Args};
use crate::collective::{Member, Schedule};

/// By the number of ranks alone.
const TABLE: Table<Algorithm> = &[
    (4, &[(REST, pair)]),
    (64, &[(REST, in_order)]),
    (128, &[(REST, pair)]),
    (256, &[(REST, in_order)]),
    (1024, &[(REST, pair)]),
    (MORE, &[(REST, in_order)]),
];

/// Open MPI's choice.
pub(in crate::collective) fn alltoallv<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    pick(TABLE, member.size, 0)(member, args)
}
