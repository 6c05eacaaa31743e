//! Intel MPI's decision table for barrier.

use super::super::{MORE, NodeDecisionTables, REST, look_up_by_node_size};
use crate::collective::barrier::{Algorithm, linear, recursive_doubling as doubling};
use crate::collective::{Member, Schedule};

/// Tables by ranks per node.
#[rustfmt::skip]
const TABLES: NodeDecisionTables<Algorithm> = &[
    (1, &[
        (3, &[(REST, doubling)]),
        (5, &[(REST, linear)]),
        (9, &[(REST, linear)]),
        (65, &[(REST, doubling)]),
        (MORE, &[(REST, linear)]),
    ]),
    (2, &[
        (3, &[(REST, linear)]),
        (5, &[(REST, linear)]),
        (9, &[(REST, linear)]),
        (33, &[(REST, doubling)]),
        (129, &[(REST, linear)]),
        (MORE, &[(REST, doubling)]),
    ]),
    (4, &[
        (5, &[(REST, doubling)]),
        (9, &[(REST, linear)]),
        (33, &[(REST, doubling)]),
        (MORE, &[(REST, doubling)]),
    ]),
    (8, &[
        (9, &[(REST, linear)]),
        (33, &[(REST, doubling)]),
        (MORE, &[(REST, doubling)]),
    ]),
    (16, &[
        (5, &[(REST, doubling)]),
        (9, &[(REST, linear)]),
        (33, &[(REST, doubling)]),
        (MORE, &[(REST, doubling)]),
    ]),
];

/// Returns the schedule that Intel MPI selects.
pub(in crate::collective) fn barrier(member: Member<'_>) -> Schedule<'_> {
    look_up_by_node_size(TABLES, member, 1)(member)
}
