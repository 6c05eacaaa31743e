//! Open MPI's decision table for allgather.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::allgather::direct::{pair, ring};
use crate::collective::allgather::doubling::{bruck, recursive};
use crate::collective::allgather::neighbors::neighbor_exchange;
use crate::collective::allgather::{Algorithm, Args};
use crate::collective::{Member, Schedule};

/// Columns by the size of a block.
const TABLE: DecisionTable<Algorithm> = &[
    (3, &[(REST, pair)]),
    (32, &[(REST, recursive)]),
    (64, &[(1024, recursive), (65536, neighbor_exchange), (REST, ring)]),
    (128, &[(512, recursive), (65536, neighbor_exchange), (REST, ring)]),
    (
        256,
        &[
            (512, recursive),
            (131_072, neighbor_exchange),
            (524_288, ring),
            (1_048_576, neighbor_exchange),
            (REST, ring),
        ],
    ),
    (
        512,
        &[
            (32, recursive),
            (128, bruck),
            (1024, recursive),
            (131_072, neighbor_exchange),
            (524_288, ring),
            (1_048_576, neighbor_exchange),
            (REST, ring),
        ],
    ),
    (1024, &[(64, recursive), (256, bruck), (2048, recursive), (REST, neighbor_exchange)]),
    (
        2048,
        &[
            (4, recursive),
            (8, bruck),
            (16, recursive),
            (32, bruck),
            (256, recursive),
            (512, bruck),
            (4096, recursive),
            (REST, neighbor_exchange),
        ],
    ),
    (4096, &[(32, bruck), (128, recursive), (512, bruck), (4096, recursive), (REST, neighbor_exchange)]),
    (
        MORE,
        &[
            (2, recursive),
            (8, bruck),
            (16, recursive),
            (512, bruck),
            (4096, recursive),
            (REST, neighbor_exchange),
        ],
    ),
];

/// Returns the schedule that Open MPI selects.
pub(in crate::collective) fn allgather<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    look_up(TABLE, member.size, args.sent.bytes().get())(member, args)
}
