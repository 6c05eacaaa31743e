//! Open MPI's decision table for gather.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::gather::{Algorithm, Args, binomial, in_turn as linear, synchronised as sync};
use crate::collective::{Member, Schedule};

/// Columns by the size of a block.
#[rustfmt::skip]
const TABLE: DecisionTable<Algorithm> = &[
    (4, &[(2, sync), (4, linear), (32768, binomial), (65536, linear), (131_072, binomial), (REST, sync)]),
    (8, &[(1024, binomial), (8192, linear), (32768, binomial), (262_144, linear), (REST, sync)]),
    (256, &[(REST, binomial)]),
    (512, &[(2048, binomial), (8192, linear), (REST, binomial)]),
    (MORE, &[(REST, binomial)]),
];

/// Returns the schedule that Open MPI selects.
pub(in crate::collective) fn gather<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    look_up(TABLE, member.size, args.block(member.rank).bytes().get())(member, args)
}
