//! Intel MPI's decision table for bcast.

use super::super::{MORE, NodeDecisionTables, REST, look_up_by_node_size};
use crate::collective::bcast::{
    Algorithm, Args, binomial_tree as binomial, chain_pipeline as chain, smp_binomial, smp_linear,
};
use crate::collective::selector::mvapich2::bcast as mvapich2;
use crate::collective::{Member, Schedule};

/// Tables by ranks per node; columns by the size of the vector.
#[rustfmt::skip]
const TABLES: NodeDecisionTables<Algorithm> = &[
    (1, &[
        (3, &[
            (1, chain), (402, mvapich2), (682, chain), (1433, smp_binomial), (5734, mvapich2),
            (21845, binomial), (95963, smp_linear), (409_897, chain), (REST, binomial),
        ]),
        (5, &[(REST, mvapich2)]),
        (9, &[
            (3, smp_linear), (4, mvapich2), (25, smp_linear), (256, binomial), (682, smp_linear),
            (1264, binomial), (2234, smp_linear), (6655, chain), (16336, binomial), (3_998_434, mvapich2),
            (REST, smp_linear),
        ]),
        (MORE, &[(REST, mvapich2)]),
    ]),
    (2, &[
        (5, &[
            (806, smp_binomial), (18093, mvapich2), (51366, smp_linear), (182_526, smp_binomial),
            (618_390, binomial), (REST, mvapich2),
        ]),
        (9, &[
            (24, binomial), (74, smp_binomial), (18137, binomial), (614_661, mvapich2),
            (1_284_626, binomial), (REST, chain),
        ]),
        (17, &[(1, binomial), (158, mvapich2), (16955, binomial), (REST, mvapich2)]),
        (33, &[(242, mvapich2), (10345, binomial), (REST, mvapich2)]),
        (MORE, &[(1, binomial), (737, mvapich2), (5340, binomial), (REST, mvapich2)]),
    ]),
    (4, &[
        (9, &[(256, smp_binomial), (17181, binomial), (REST, mvapich2)]),
        (MORE, &[(REST, mvapich2)]),
    ]),
    (8, &[
        (17, &[(3, binomial), (318, mvapich2), (1505, binomial), (REST, mvapich2)]),
        (33, &[(422, mvapich2), (851, binomial), (REST, mvapich2)]),
        (65, &[(468, mvapich2), (699, binomial), (REST, mvapich2)]),
        (MORE, &[(REST, mvapich2)]),
    ]),
    (16, &[
        (9, &[(256, smp_binomial), (17181, binomial), (REST, mvapich2)]),
        (MORE, &[(REST, mvapich2)]),
    ]),
];

/// Returns the schedule that Intel MPI selects.
pub(in crate::collective) fn bcast<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    look_up_by_node_size(TABLES, member, args.data.bytes().get())(member, args)
}
