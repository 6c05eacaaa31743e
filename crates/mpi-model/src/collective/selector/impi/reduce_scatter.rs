//! Intel MPI's decision table for reduce-scatter.

use super::super::{DecisionTable, MORE, NodeDecisionTables, REST, look_up_by_node_size};
use crate::collective::blocks::Blocks;
use crate::collective::reduce_scatter::Algorithm;
use crate::collective::reduce_scatter::halving::{doubling, recursive};
use crate::collective::reduce_scatter::linear::by_regularity;
use crate::collective::reduce_scatter::rounds::pair;
use crate::collective::{Member, Schedule};

/// Table for nodes of 4 ranks, and for those of 16.
const FOUR_OR_SIXTEEN: DecisionTable<Algorithm> = &[
    (
        5,
        &[
            (27, by_regularity),
            (49, doubling),
            (187, recursive),
            (405_673, doubling),
            (594_687, by_regularity),
            (REST, pair),
        ],
    ),
    (9, &[(24, by_regularity), (155, recursive), (204_501, doubling), (REST, by_regularity)]),
    (17, &[(63, recursive), (72, doubling), (264, recursive), (168_421, doubling), (REST, pair)]),
    (
        33,
        &[
            (4, by_regularity),
            (12, recursive),
            (18, by_regularity),
            (419, recursive),
            (188_739, doubling),
            (1_365_841, by_regularity),
            (2_430_194, pair),
            (REST, by_regularity),
        ],
    ),
    (
        65,
        &[
            (17, by_regularity),
            (635, recursive),
            (202_937, doubling),
            (1_389_874, by_regularity),
            (REST, pair),
        ],
    ),
    (
        129,
        &[
            (16, by_regularity),
            (1238, recursive),
            (280_097, doubling),
            (2_605_072, by_regularity),
            (REST, pair),
        ],
    ),
    (257, &[(16, by_regularity), (2418, recursive), (REST, doubling)]),
    (MORE, &[(16, by_regularity), (33182, recursive), (3_763_779, doubling), (REST, by_regularity)]),
];

/// Tables by ranks per node; columns by the size of the whole vector.
const TABLES: NodeDecisionTables<Algorithm> = &[
    (
        1,
        &[
            (
                3,
                &[
                    (5, by_regularity),
                    (522_429, pair),
                    (1_375_877, by_regularity),
                    (2_932_736, pair),
                    (REST, by_regularity),
                ],
            ),
            (
                5,
                &[
                    (4, by_regularity),
                    (15, recursive),
                    (120, doubling),
                    (651, recursive),
                    (12188, doubling),
                    (33890, recursive),
                    (572_117, pair),
                    (1_410_202, by_regularity),
                    (REST, pair),
                ],
            ),
            (
                9,
                &[
                    (4, by_regularity),
                    (2263, recursive),
                    (25007, doubling),
                    (34861, recursive),
                    (169_625, pair),
                    (2_734_000, by_regularity),
                    (REST, pair),
                ],
            ),
            (
                17,
                &[
                    (4, by_regularity),
                    (14228, recursive),
                    (46084, doubling),
                    (522_139, pair),
                    (REST, by_regularity),
                ],
            ),
            (
                33,
                &[
                    (4, by_regularity),
                    (27516, recursive),
                    (61693, doubling),
                    (2_483_469, pair),
                    (REST, by_regularity),
                ],
            ),
            (65, &[(4, by_regularity), (100_396, recursive), (REST, pair)]),
            (
                MORE,
                &[
                    (4, by_regularity),
                    (186_926, recursive),
                    (278_259, doubling),
                    (1_500_100, pair),
                    (REST, by_regularity),
                ],
            ),
        ],
    ),
    (
        2,
        &[
            (3, &[(6, recursive), (REST, pair)]),
            (
                5,
                &[
                    (13, by_regularity),
                    (59, doubling),
                    (76, recursive),
                    (91488, doubling),
                    (680_063, by_regularity),
                    (REST, pair),
                ],
            ),
            (
                9,
                &[
                    (11, by_regularity),
                    (31, recursive),
                    (69615, doubling),
                    (202_632, pair),
                    (1_495_696, by_regularity),
                    (REST, pair),
                ],
            ),
            (17, &[(4, by_regularity), (REST, recursive)]),
            (33, &[(4, by_regularity), (992, recursive), (71417, doubling), (REST, pair)]),
            (65, &[(4, by_regularity), (1472, recursive), (196_592, doubling), (REST, pair)]),
            (129, &[(4, by_regularity), (32892, recursive), (381_072, doubling), (REST, pair)]),
            (MORE, &[(4, by_regularity), (33262, recursive), (1_571_397, doubling), (REST, by_regularity)]),
        ],
    ),
    (4, FOUR_OR_SIXTEEN),
    (
        8,
        &[
            (
                9,
                &[
                    (5, by_regularity),
                    (494, recursive),
                    (97739, doubling),
                    (522_836, pair),
                    (554_174, by_regularity),
                    (REST, pair),
                ],
            ),
            (
                17,
                &[
                    (5, by_regularity),
                    (62, recursive),
                    (94, doubling),
                    (215, recursive),
                    (185_095, doubling),
                    (REST, by_regularity),
                ],
            ),
            (33, &[(4, by_regularity), (302, recursive), (250_841, doubling), (REST, by_regularity)]),
            (65, &[(41, by_regularity), (306, recursive), (332_405, doubling), (REST, by_regularity)]),
            (129, &[(39, by_regularity), (526, recursive), (487_878, doubling), (REST, by_regularity)]),
            (
                257,
                &[
                    (36, by_regularity),
                    (1382, recursive),
                    (424_162, doubling),
                    (632_881, by_regularity),
                    (1_127_566, doubling),
                    (REST, by_regularity),
                ],
            ),
            (513, &[(34, by_regularity), (5884, recursive), (REST, doubling)]),
            (MORE, &[(32, by_regularity), (25105, recursive), (REST, doubling)]),
        ],
    ),
    (16, FOUR_OR_SIXTEEN),
];

/// Returns the schedule that Intel MPI selects.
pub(in crate::collective) fn reduce_scatter<'a>(member: Member<'a>, args: Blocks<'a>) -> Schedule<'a> {
    look_up_by_node_size(TABLES, member, args.total(member.size).bytes().get())(member, args)
}
