//! Open MPI's decision table for scatter.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::scatter::{
    Algorithm, Args, binomial, in_turn as linear, linear_nonblocking as at_once,
};
use crate::collective::{Member, Schedule};

/// Columns by the size of a block.
#[rustfmt::skip]
const TABLE: DecisionTable<Algorithm> = &[
    (4, &[(2, at_once), (131_072, linear), (262_144, at_once), (REST, linear)]),
    (8, &[
        (2048, binomial), (4096, linear), (8192, binomial), (32768, linear), (1_048_576, at_once),
        (REST, linear),
    ]),
    (16, &[(16384, binomial), (1_048_576, at_once), (REST, linear)]),
    (32, &[(16384, binomial), (32768, linear), (REST, at_once)]),
    (64, &[(512, binomial), (8192, at_once), (16384, binomial), (REST, at_once)]),
    (MORE, &[(512, binomial), (REST, at_once)]),
];

/// Returns the schedule that Open MPI selects.
pub(in crate::collective) fn scatter<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    look_up(TABLE, member.size, args.block(member.rank).bytes().get())(member, args)
}
