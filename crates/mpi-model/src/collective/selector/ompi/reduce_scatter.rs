//! Open MPI's decision table for reduce-scatter.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::blocks::Blocks;
use crate::collective::reduce_scatter::Algorithm;
use crate::collective::reduce_scatter::butterfly::butterfly;
use crate::collective::reduce_scatter::halving::recursive;
use crate::collective::reduce_scatter::linear::by_regularity;
use crate::collective::reduce_scatter::rounds::ring;
use crate::collective::{Member, Schedule};

/// Columns by the size of the whole vector.
const TABLE: DecisionTable<Algorithm> = &[
    (4, &[(65536, ring), (131_072, butterfly), (REST, ring)]),
    (8, &[(8, by_regularity), (262_144, recursive), (REST, ring)]),
    (32, &[(262_144, recursive), (REST, ring)]),
    (64, &[(64, by_regularity), (2048, recursive), (524_288, butterfly), (REST, ring)]),
    (128, &[(256, by_regularity), (512, recursive), (2048, butterfly), (4096, recursive), (REST, butterfly)]),
    (256, &[(256, by_regularity), (512, recursive), (REST, butterfly)]),
    (512, &[(256, by_regularity), (1024, recursive), (REST, butterfly)]),
    (
        1024,
        &[(512, by_regularity), (2048, recursive), (8192, butterfly), (16384, recursive), (REST, butterfly)],
    ),
    (
        2048,
        &[(512, by_regularity), (4096, recursive), (16384, butterfly), (32768, recursive), (REST, butterfly)],
    ),
    (4096, &[(512, by_regularity), (4096, recursive), (REST, butterfly)]),
    (MORE, &[(1024, by_regularity), (8192, recursive), (REST, butterfly)]),
];

/// Returns the schedule that Open MPI selects.
pub(in crate::collective) fn reduce_scatter<'a>(member: Member<'a>, args: Blocks<'a>) -> Schedule<'a> {
    look_up(TABLE, member.size, args.total(member.size).bytes().get())(member, args)
}
