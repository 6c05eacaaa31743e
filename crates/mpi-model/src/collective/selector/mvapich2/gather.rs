//! MVAPICH2's decision table for gather.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::gather::{Algorithm, Args, binomial, in_turn as direct, two_level};
use crate::collective::{Member, Schedule};

/// Columns by the size of a block. Two levels are binomial on the nodes in all rows that have them.
const TABLE: DecisionTable<Algorithm> = &[
    (17, &[(524_289, direct), (REST, binomial)]),
    (33, &[(16385, direct), (131_073, binomial), (REST, two_level)]),
    (65, &[(257, two_level), (16385, direct), (REST, two_level)]),
    (MORE, &[(513, two_level), (16385, direct), (REST, two_level)]),
];

/// Returns the schedule that MVAPICH2 selects: by the table with block mapping, else MPICH's.
pub(in crate::collective) fn gather<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    if !member.layout.is_blocked() {
        return binomial(member, args);
    }
    look_up(TABLE, member.size, args.block(member.rank).bytes().get())(member, args)
}
