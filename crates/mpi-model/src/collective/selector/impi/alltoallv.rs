//! Intel MPI's decision table for alltoallv.

use super::super::{MORE, NodeDecisionTables, REST, look_up_by_node_size};
use crate::collective::alltoall::linear::in_order;
use crate::collective::alltoall::windows::excluding_self as windows;
use crate::collective::alltoall::{Algorithm, Args};
use crate::collective::{Member, Schedule};

/// Tables by ranks per node. Sizes count as one byte, as in SimGrid, since each rank has its own.
const TABLES: NodeDecisionTables<Algorithm> = &[
    (1, &[(MORE, &[(REST, in_order)])]),
    (2, &[(MORE, &[(REST, in_order)])]),
    (4, &[(MORE, &[(REST, in_order)])]),
    (8, &[(17, &[(REST, in_order)]), (MORE, &[(REST, windows)])]),
    (16, &[(MORE, &[(REST, in_order)])]),
];

/// Returns the schedule that Intel MPI selects.
pub(in crate::collective) fn alltoallv<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    look_up_by_node_size(TABLES, member, 0)(member, args)
}
