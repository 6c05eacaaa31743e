//! Intel MPI's decision table for allgather.

use super::super::{MORE, NodeDecisionTables, REST, look_up_by_node_size};
use crate::collective::allgather::direct::ring;
use crate::collective::allgather::doubling::{bruck, recursive};
use crate::collective::allgather::gather_bcast::gather_bcast;
use crate::collective::allgather::{Algorithm, Args};
use crate::collective::{Member, Schedule};

/// Tables by ranks per node; columns by the size of a block.
const TABLES: NodeDecisionTables<Algorithm> = &[
    (
        1,
        &[
            (
                5,
                &[
                    (1, gather_bcast),
                    (384, recursive),
                    (1533, gather_bcast),
                    (3296, recursive),
                    (10763, gather_bcast),
                    (31816, ring),
                    (193_343, gather_bcast),
                    (405_857, ring),
                    (597_626, gather_bcast),
                    (1_844_323, ring),
                    (REST, gather_bcast),
                ],
            ),
            (
                9,
                &[
                    (12, gather_bcast),
                    (46, recursive),
                    (205, gather_bcast),
                    (3422, bruck),
                    (4200, gather_bcast),
                    (8748, recursive),
                    (24080, ring),
                    (33244, gather_bcast),
                    (371_159, recursive),
                    (REST, ring),
                ],
            ),
            (
                17,
                &[
                    (3, gather_bcast),
                    (53, recursive),
                    (100, gather_bcast),
                    (170, recursive),
                    (6077, gather_bcast),
                    (127_644, recursive),
                    (143_741, gather_bcast),
                    (REST, ring),
                ],
            ),
            (
                MORE,
                &[
                    (184, recursive),
                    (320, gather_bcast),
                    (759, recursive),
                    (1219, gather_bcast),
                    (2633, recursive),
                    (8259, gather_bcast),
                    (123_678, recursive),
                    (160_801, gather_bcast),
                    (284_341, recursive),
                    (REST, gather_bcast),
                ],
            ),
        ],
    ),
    (
        2,
        &[
            (
                9,
                &[
                    (490, recursive),
                    (558, bruck),
                    (2319, recursive),
                    (46227, ring),
                    (2_215_101, recursive),
                    (REST, ring),
                ],
            ),
            (17, &[(1005, recursive), (1042, bruck), (2059, recursive), (REST, ring)]),
            (MORE, &[(2454, recursive), (REST, ring)]),
        ],
    ),
    (4, &[(9, &[(2861, recursive), (REST, ring)]), (MORE, &[(605, recursive), (REST, ring)])]),
    (
        8,
        &[
            (17, &[(66, recursive), (213, gather_bcast), (514, recursive), (REST, ring)]),
            (33, &[(91, recursive), (213, gather_bcast), (514, recursive), (REST, ring)]),
            (65, &[(71, recursive), (213, gather_bcast), (514, recursive), (REST, ring)]),
            (129, &[(305, recursive), (REST, ring)]),
            (MORE, &[(213, recursive), (REST, ring)]),
        ],
    ),
    (16, &[(9, &[(2861, recursive), (REST, ring)]), (MORE, &[(605, recursive), (REST, ring)])]),
];

/// Returns the schedule that Intel MPI selects.
pub(in crate::collective) fn allgather<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    look_up_by_node_size(TABLES, member, args.sent.bytes().get())(member, args)
}
