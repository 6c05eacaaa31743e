//! MVAPICH2's decision table for allgather.

use super::super::{MORE, NodeDecisionTables, REST, look_up_by_node_size};
use crate::collective::allgather::direct::ring;
use crate::collective::allgather::doubling::recursive;
use crate::collective::allgather::two_level::if_blocked as two_level;
use crate::collective::allgather::{Algorithm, Args};
use crate::collective::{Member, Schedule};

/// Tables by ranks per node; columns by the size of a block.
const TABLES: NodeDecisionTables<Algorithm> = &[
    (
        1,
        &[
            (3, &[(REST, ring)]),
            (5, &[(262_145, recursive), (REST, ring)]),
            (17, &[(131_073, recursive), (REST, ring)]),
            (33, &[(65537, recursive), (REST, ring)]),
            (MORE, &[(32769, recursive), (REST, ring)]),
        ],
    ),
    (
        2,
        &[
            (5, &[(524_289, recursive), (REST, ring)]),
            (9, &[(32769, recursive), (REST, two_level)]),
            (17, &[(16385, recursive), (REST, two_level)]),
            (MORE, &[(REST, two_level)]),
        ],
    ),
    (16, &[(MORE, &[(1025, recursive), (REST, ring)])]),
];

/// Returns the schedule that MVAPICH2 selects.
pub(in crate::collective) fn allgather<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    look_up_by_node_size(TABLES, member, args.sent.bytes().get())(member, args)
}
