//! Intel MPI's decision table for allgatherv.

use super::super::{DecisionTable, MORE, NodeDecisionTables, REST, look_up_by_node_size};
use crate::collective::allgather::direct::ring;
use crate::collective::allgather::doubling::{bruck, recursive_unless_empty};
use crate::collective::allgather::gather_bcast::gather_bcast;
use crate::collective::allgather::{Algorithm, Args};
use crate::collective::{Member, Schedule};

/// Table for nodes of 4 ranks, and for those of 16.
const FOUR_OR_SIXTEEN: DecisionTable<Algorithm> = &[
    (9, &[(2554, recursive_unless_empty), (REST, ring)]),
    (17, &[(272, recursive_unless_empty), (657, bruck), (2078, recursive_unless_empty), (REST, ring)]),
    (33, &[(1081, recursive_unless_empty), (REST, ring)]),
    (65, &[(547, recursive_unless_empty), (REST, ring)]),
    (
        MORE,
        &[
            (19, recursive_unless_empty),
            (239, bruck),
            (327, recursive_unless_empty),
            (821, gather_bcast),
            (REST, ring),
        ],
    ),
];

/// Tables by ranks per node; columns by the size of all blocks.
const TABLES: NodeDecisionTables<Algorithm> = &[
    (
        1,
        &[
            (3, &[(259_668, ring), (635_750, gather_bcast), (REST, ring)]),
            (
                5,
                &[
                    (1, recursive_unless_empty),
                    (5, gather_bcast),
                    (46, recursive_unless_empty),
                    (2590, bruck),
                    (1_177_259, ring),
                    (2_767_234, gather_bcast),
                    (REST, ring),
                ],
            ),
            (
                9,
                &[
                    (99, bruck),
                    (143, recursive_unless_empty),
                    (4646, bruck),
                    (63522, ring),
                    (2_187_806, gather_bcast),
                    (REST, ring),
                ],
            ),
            (
                MORE,
                &[
                    (1, recursive_unless_empty),
                    (5, gather_bcast),
                    (46, recursive_unless_empty),
                    (2590, bruck),
                    (1_177_259, ring),
                    (2_767_234, gather_bcast),
                    (REST, ring),
                ],
            ),
        ],
    ),
    (
        2,
        &[
            (5, &[(3147, recursive_unless_empty), (5622, bruck), (REST, ring)]),
            (9, &[(975, recursive_unless_empty), (4158, bruck), (REST, ring)]),
            (17, &[(2146, recursive_unless_empty), (REST, ring)]),
            (33, &[(81, recursive_unless_empty), (414, bruck), (1190, recursive_unless_empty), (REST, ring)]),
            (
                MORE,
                &[(1, bruck), (3, recursive_unless_empty), (783, bruck), (1782, gather_bcast), (REST, ring)],
            ),
        ],
    ),
    (4, FOUR_OR_SIXTEEN),
    (
        8,
        &[
            (17, &[(55, recursive_unless_empty), (514, bruck), (REST, ring)]),
            (33, &[(53, recursive_unless_empty), (167, gather_bcast), (514, bruck), (REST, ring)]),
            (65, &[(13, recursive_unless_empty), (319, gather_bcast), (REST, ring)]),
            (
                129,
                &[
                    (2, recursive_unless_empty),
                    (11, bruck),
                    (48, recursive_unless_empty),
                    (201, bruck),
                    (304, recursive_unless_empty),
                    (1048, gather_bcast),
                    (REST, ring),
                ],
            ),
            (
                MORE,
                &[
                    (5, recursive_unless_empty),
                    (115, gather_bcast),
                    (129, recursive_unless_empty),
                    (451, gather_bcast),
                    (REST, ring),
                ],
            ),
        ],
    ),
    (16, FOUR_OR_SIXTEEN),
];

/// Returns the schedule that Intel MPI selects.
pub(in crate::collective) fn allgatherv<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    look_up_by_node_size(TABLES, member, args.blocks.total(member.size).bytes().get())(member, args)
}
