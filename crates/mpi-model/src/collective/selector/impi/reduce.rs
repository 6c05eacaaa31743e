//! Intel MPI's decision table for reduce.

use super::super::{MORE, NodeDecisionTables, REST, look_up_by_node_size};
use crate::collective::reduce::{Algorithm, Args};
use crate::collective::selector::mvapich2::reduce as mvapich2;
use crate::collective::{Member, Schedule};

/// Tables by ranks per node; columns by the size of the vector.
#[rustfmt::skip]
const TABLES: NodeDecisionTables<Algorithm> = &[
    (1, &[
        (MORE, &[(REST, mvapich2)]),
    ]),
    (2, &[
        (3, &[(REST, mvapich2)]),
        (5, &[(REST, mvapich2)]),
        (MORE, &[(REST, mvapich2)]),
    ]),
    (4, &[
        (257, &[(REST, mvapich2)]),
        (MORE, &[(REST, mvapich2)]),
    ]),
    (8, &[
        (513, &[(REST, mvapich2)]),
        (MORE, &[(REST, mvapich2)]),
    ]),
    (16, &[
        (257, &[(REST, mvapich2)]),
        (MORE, &[(REST, mvapich2)]),
    ]),
];

/// Returns the schedule that Intel MPI selects.
pub(in crate::collective) fn reduce<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    look_up_by_node_size(TABLES, member, args.data.bytes().get())(member, args)
}
