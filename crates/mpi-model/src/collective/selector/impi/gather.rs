//! Intel MPI's decision table for gather.

use super::super::{MORE, NodeDecisionTables, REST, look_up_by_node_size};
use crate::collective::gather::{Algorithm, Args, binomial};
use crate::collective::selector::mvapich2::gather as mvapich2;
use crate::collective::{Member, Schedule};

/// Tables by ranks per node; columns by the size of a block.
#[rustfmt::skip]
const TABLES: NodeDecisionTables<Algorithm> = &[
    (1, &[
        (9, &[(17561, mvapich2), (44791, binomial), (REST, mvapich2)]),
        (17, &[
            (16932, mvapich2), (84425, binomial), (158_363, mvapich2), (702_801, binomial),
            (1_341_444, mvapich2), (2_413_569, binomial), (REST, mvapich2),
        ]),
        (MORE, &[(47187, mvapich2), (349_696, binomial), (REST, mvapich2), (REST, binomial)]),
    ]),
    (2, &[
        (MORE, &[(REST, mvapich2)]),
    ]),
    (4, &[
        (MORE, &[(REST, mvapich2)]),
    ]),
    (8, &[
        (17, &[(REST, mvapich2)]),
        (33, &[(9, binomial), (REST, mvapich2)]),
        (65, &[(784, binomial), (REST, mvapich2)]),
        (129, &[(160, mvapich2), (655, binomial), (REST, mvapich2)]),
        (MORE, &[(REST, mvapich2)]),
    ]),
    (16, &[
        (MORE, &[(REST, mvapich2)]),
    ]),
];

/// Returns the schedule that Intel MPI selects.
pub(in crate::collective) fn gather<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    look_up_by_node_size(TABLES, member, args.block(member.rank).bytes().get())(member, args)
}
