//! Open MPI's decision table for alltoall. Its `linear_sync` counts as linear.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::alltoall::bruck::bruck;
use crate::collective::alltoall::linear::from_next as linear;
use crate::collective::alltoall::pairwise::pair;
use crate::collective::alltoall::{Algorithm, Args};
use crate::collective::{Member, Schedule};

/// Columns by the size of the block for one rank.
const TABLE: DecisionTable<Algorithm> = &[
    (
        3,
        &[
            (2, pair),
            (4, linear),
            (16, pair),
            (64, linear),
            (256, pair),
            (4096, linear),
            (32768, pair),
            (1_048_576, linear),
            (REST, pair),
        ],
    ),
    (8, &[(524_288, linear), (1_048_576, pair), (REST, linear)]),
    (16, &[(REST, linear)]),
    (32, &[(4, linear), (512, bruck), (REST, linear)]),
    (64, &[(512, bruck), (REST, linear)]),
    (256, &[(1024, bruck), (262_144, linear), (REST, pair)]),
    (512, &[(1024, bruck), (32768, linear), (REST, pair)]),
    (1024, &[(512, bruck), (262_144, linear), (REST, pair)]),
    (2048, &[(512, bruck), (REST, linear)]),
    (4096, &[(1024, bruck), (REST, linear)]),
    (MORE, &[(2048, bruck), (REST, linear)]),
];

/// Returns the schedule that Open MPI selects.
pub(in crate::collective) fn alltoall<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    look_up(TABLE, member.size, args.sent.bytes_of(0).get())(member, args)
}
