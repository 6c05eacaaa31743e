//! Intel MPI's decision table for scatter.

use super::super::{MORE, NodeDecisionTables, REST, look_up_by_node_size};
use crate::collective::scatter::{Algorithm, Args, binomial};
use crate::collective::selector::mvapich2::scatter as mvapich2;
use crate::collective::{Member, Schedule};

/// Tables by ranks per node; columns by the size of a block.
#[rustfmt::skip]
const TABLES: NodeDecisionTables<Algorithm> = &[
    (1, &[
        (3, &[(16391, binomial), (REST, mvapich2)]),
        (5, &[
            (16723, mvapich2), (153_541, binomial), (425_631, mvapich2), (794_142, binomial),
            (1_257_027, mvapich2), (REST, binomial),
        ]),
        (9, &[
            (2633, mvapich2), (6144, binomial), (14043, mvapich2), (24576, binomial), (107_995, mvapich2),
            (1_752_729, binomial), (REST, mvapich2),
        ]),
        (17, &[
            (2043, mvapich2), (2252, binomial), (17749, mvapich2), (106_020, binomial), (628_654, mvapich2),
            (3_751_354, binomial), (REST, mvapich2),
        ]),
        (MORE, &[(65907, mvapich2), (245_132, binomial), (1_042_439, mvapich2), (REST, binomial)]),
    ]),
    (2, &[
        (MORE, &[(REST, mvapich2)]),
    ]),
    (4, &[
        (9, &[(REST, mvapich2)]),
        (17, &[(140, mvapich2), (1302, binomial), (REST, mvapich2)]),
        (33, &[(159, mvapich2), (486, binomial), (REST, mvapich2)]),
        (65, &[(149, binomial), (REST, mvapich2)]),
        (MORE, &[(139, binomial), (REST, mvapich2)]),
    ]),
    (8, &[
        (17, &[(2102, binomial), (REST, mvapich2)]),
        (33, &[(2065, binomial), (REST, mvapich2)]),
        (65, &[(2069, binomial), (REST, mvapich2)]),
        (129, &[(796, binomial), (REST, mvapich2)]),
        (MORE, &[(139, binomial), (REST, mvapich2)]),
    ]),
    (16, &[
        (9, &[(REST, mvapich2)]),
        (17, &[(140, mvapich2), (1302, binomial), (REST, mvapich2)]),
        (33, &[(159, mvapich2), (486, binomial), (REST, mvapich2)]),
        (65, &[(149, binomial), (REST, mvapich2)]),
        (MORE, &[(139, binomial), (REST, mvapich2)]),
    ]),
];

/// Returns the schedule that Intel MPI selects.
pub(in crate::collective) fn scatter<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    look_up_by_node_size(TABLES, member, args.block(member.rank).bytes().get())(member, args)
}
