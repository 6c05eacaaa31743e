//! Open MPI's decision table for allgatherv.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::allgather::direct::pair;
use crate::collective::allgather::doubling::bruck;
use crate::collective::allgather::gather_bcast::gather_bcast;
use crate::collective::allgather::neighbors::neighbor_exchange;
use crate::collective::allgather::{Algorithm, Args};
use crate::collective::allgatherv::segmented_ring::segmented_ring;
use crate::collective::{Member, Schedule};

/// Columns by the mean size of a block.
const TABLE: DecisionTable<Algorithm> = &[
    (3, &[(2048, segmented_ring), (4096, pair), (8192, segmented_ring), (REST, pair)]),
    (
        8,
        &[
            (256, gather_bcast),
            (4096, neighbor_exchange),
            (8192, segmented_ring),
            (16384, neighbor_exchange),
            (262_144, bruck),
            (REST, neighbor_exchange),
        ],
    ),
    (16, &[(1024, gather_bcast), (REST, bruck)]),
    (32, &[(128, gather_bcast), (262_144, bruck), (REST, segmented_ring)]),
    (64, &[(256, gather_bcast), (8192, bruck), (REST, segmented_ring)]),
    (128, &[(256, gather_bcast), (4096, bruck), (REST, segmented_ring)]),
    (256, &[(1024, bruck), (65536, neighbor_exchange), (REST, segmented_ring)]),
    (512, &[(1024, bruck), (REST, segmented_ring)]),
    (
        1024,
        &[
            (512, bruck),
            (1024, gather_bcast),
            (4096, bruck),
            (1_048_576, neighbor_exchange),
            (REST, segmented_ring),
        ],
    ),
    (MORE, &[(4096, bruck), (REST, neighbor_exchange)]),
];

/// Returns the schedule that Open MPI selects.
pub(in crate::collective) fn allgatherv<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let mean = args.blocks.total(member.size).bytes().get() / u64::from(member.size);
    look_up(TABLE, member.size, mean)(member, args)
}
