//! Open MPI's decision table for alltoallv.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::alltoall::linear::in_order;
use crate::collective::alltoall::pairwise::pair;
use crate::collective::alltoall::{Algorithm, Args};
use crate::collective::{Member, Schedule};

/// Rows by the number of ranks; the size does not matter.
const TABLE: DecisionTable<Algorithm> = &[
    (4, &[(REST, pair)]),
    (64, &[(REST, in_order)]),
    (128, &[(REST, pair)]),
    (256, &[(REST, in_order)]),
    (1024, &[(REST, pair)]),
    (MORE, &[(REST, in_order)]),
];

/// Returns the schedule that Open MPI selects.
pub(in crate::collective) fn alltoallv<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    look_up(TABLE, member.size, 0)(member, args)
}
