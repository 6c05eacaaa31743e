//! Intel MPI's decision table for alltoall.

use super::super::{MORE, NodeDecisionTables, REST, look_up_by_node_size};
use crate::collective::alltoall::bruck::bruck;
use crate::collective::alltoall::pairwise::pair;
use crate::collective::alltoall::windows::including_self as scatter_dest;
use crate::collective::alltoall::{Algorithm, Args};
use crate::collective::selector::mvapich2::alltoall as mvapich2;
use crate::collective::{Member, Schedule};

/// Tables by ranks per node; columns by the size of the block for one rank.
const TABLES: NodeDecisionTables<Algorithm> = &[
    (
        1,
        &[
            (3, &[(REST, pair)]),
            (9, &[(REST, scatter_dest)]),
            (17, &[(84645, scatter_dest), (167_570, pair), (413_152, mvapich2), (REST, scatter_dest)]),
            (
                33,
                &[
                    (61, bruck),
                    (164, scatter_dest),
                    (696, bruck),
                    (143_254, scatter_dest),
                    (387_024, pair),
                    (REST, scatter_dest),
                ],
            ),
            (65, &[(523, bruck), (146_088, scatter_dest), (488_989, mvapich2), (REST, scatter_dest)]),
            (MORE, &[(270, bruck), (628, mvapich2), (REST, scatter_dest)]),
        ],
    ),
    (
        2,
        &[
            (5, &[(1, scatter_dest), (75, pair), (REST, scatter_dest)]),
            (9, &[(709, bruck), (REST, scatter_dest)]),
            (17, &[(40048, scatter_dest), (155_927, pair), (REST, mvapich2)]),
            (
                33,
                &[
                    (105, bruck),
                    (130, scatter_dest),
                    (1030, bruck),
                    (131_072, scatter_dest),
                    (271_838, pair),
                    (REST, scatter_dest),
                ],
            ),
            (
                MORE,
                &[
                    (521, bruck),
                    (2032, mvapich2),
                    (2412, scatter_dest),
                    (4112, mvapich2),
                    (61620, scatter_dest),
                    (427_408, pair),
                    (REST, mvapich2),
                ],
            ),
        ],
    ),
    (
        4,
        &[
            (9, &[(512, bruck), (REST, scatter_dest)]),
            (
                65,
                &[
                    (7, bruck),
                    (199, mvapich2),
                    (764, bruck),
                    (6409, mvapich2),
                    (20026, scatter_dest),
                    (32768, pair),
                    (221_643, mvapich2),
                    (REST, pair),
                ],
            ),
            (
                MORE,
                &[
                    (262, bruck),
                    (7592, mvapich2),
                    (22871, scatter_dest),
                    (47538, pair),
                    (101_559, mvapich2),
                    (REST, pair),
                ],
            ),
        ],
    ),
    (
        8,
        &[
            (
                17,
                &[
                    (973, bruck),
                    (5126, mvapich2),
                    (16898, scatter_dest),
                    (65456, mvapich2),
                    (REST, scatter_dest),
                ],
            ),
            (
                33,
                &[
                    (874, bruck),
                    (6727, mvapich2),
                    (17912, scatter_dest),
                    (41513, pair),
                    (199_604, mvapich2),
                    (REST, pair),
                ],
            ),
            (
                65,
                &[
                    (5, bruck),
                    (114, mvapich2),
                    (552, bruck),
                    (8130, mvapich2),
                    (34486, pair),
                    (160_113, mvapich2),
                    (REST, pair),
                ],
            ),
            (129, &[(270, bruck), (3679, mvapich2), (64367, pair), (146_595, mvapich2), (REST, pair)]),
            (MORE, &[(133, bruck), (4017, mvapich2), (32768, pair), (76351, mvapich2), (REST, pair)]),
        ],
    ),
    (
        16,
        &[
            (
                33,
                &[
                    (963, bruck),
                    (1818, mvapich2),
                    (20007, scatter_dest),
                    (54296, mvapich2),
                    (169_735, pair),
                    (REST, scatter_dest),
                ],
            ),
            (
                65,
                &[
                    (17, bruck),
                    (42, mvapich2),
                    (592, bruck),
                    (2015, mvapich2),
                    (2753, scatter_dest),
                    (6496, pair),
                    (20402, mvapich2),
                    (36246, pair),
                    (93229, mvapich2),
                    (REST, pair),
                ],
            ),
            (
                129,
                &[
                    (18, bruck),
                    (40, mvapich2),
                    (287, bruck),
                    (1308, mvapich2),
                    (6842, bruck),
                    (36986, pair),
                    (129_081, mvapich2),
                    (REST, pair),
                ],
            ),
            (
                257,
                &[
                    (135, bruck),
                    (1538, mvapich2),
                    (3267, bruck),
                    (4132, pair),
                    (31469, mvapich2),
                    (REST, pair),
                ],
            ),
            (
                MORE,
                &[
                    (66, bruck),
                    (1637, mvapich2),
                    (2626, bruck),
                    (4842, mvapich2),
                    (33963, pair),
                    (72978, mvapich2),
                    (REST, pair),
                ],
            ),
        ],
    ),
];

/// Returns the schedule that Intel MPI selects; in place of its `Plum's algorithm`, which is not public, that of MVAPICH2.
pub(in crate::collective) fn alltoall<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    look_up_by_node_size(TABLES, member, args.sent.bytes_of(0).get())(member, args)
}
