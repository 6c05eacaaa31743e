//! MVAPICH2's decision table for reduce-scatter.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::blocks::Blocks;
use crate::collective::reduce_scatter::Algorithm;
use crate::collective::reduce_scatter::halving::recursive;
use crate::collective::reduce_scatter::linear::by_regularity;
use crate::collective::reduce_scatter::rounds::pair;
use crate::collective::{Member, Schedule};

/// Columns by the size of the whole vector.
const TABLE: DecisionTable<Algorithm> = &[
    (17, &[(65, by_regularity), (65537, recursive), (REST, pair)]),
    (33, &[(65, by_regularity), (131_073, recursive), (REST, pair)]),
    (65, &[(1025, by_regularity), (262_145, recursive), (REST, pair)]),
    (257, &[(129, by_regularity), (REST, recursive)]),
    (MORE, &[(257, by_regularity), (REST, recursive)]),
];

/// Returns the schedule that MVAPICH2 selects for commutative operators.
pub(in crate::collective) fn reduce_scatter<'a>(member: Member<'a>, args: Blocks<'a>) -> Schedule<'a> {
    look_up(TABLE, member.size, args.total(member.size).bytes().get())(member, args)
}
