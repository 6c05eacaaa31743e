//! Open MPI's decision table for reduce.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::reduce::{
    Algorithm, Args, binary, binomial_segments as binomial, chains, in_order_binary as in_order,
    in_turn as linear, pipeline,
};
use crate::collective::{Member, Schedule};

/// Columns by the size of the vector.
#[rustfmt::skip]
const TABLE: DecisionTable<Algorithm> = &[
    (4, &[
        (8, linear), (16, binary), (32, pipeline), (262_144, linear), (524_288, pipeline),
        (1_048_576, chains), (REST, pipeline),
    ]),
    (8, &[
        (4096, binary), (65536, chains), (262_144, binomial), (524_288, linear), (1_048_576, binomial),
        (REST, linear),
    ]),
    (16, &[(8192, binary), (REST, binomial)]),
    (32, &[(4096, binary), (REST, binomial)]),
    (256, &[(REST, binomial)]),
    (512, &[(8192, binomial), (16384, in_order), (REST, binomial)]),
    (2048, &[(REST, binomial)]),
    (4096, &[(512, binomial), (1024, in_order), (8192, binomial), (16384, in_order), (REST, binomial)]),
    (MORE, &[
        (16, binomial), (32, in_order), (1024, binomial), (2048, in_order), (8192, binomial),
        (16384, in_order), (REST, binomial),
    ]),
];

/// Returns the schedule that Open MPI selects.
pub(in crate::collective) fn reduce<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    look_up(TABLE, member.size, args.data.bytes().get())(member, args)
}
