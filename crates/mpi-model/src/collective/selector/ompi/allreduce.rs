//! Open MPI's decision table for allreduce.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::allreduce::{
    Algorithm, halving_doubling as halving, recursive_doubling as doubling, reduce_broadcast as redbcast,
    ring, segmented_ring as segmented,
};
use crate::collective::member::Elements;
use crate::collective::{Member, Schedule};

/// Columns by the size of the vector.
#[rustfmt::skip]
const TABLE: DecisionTable<Algorithm> = &[
    (4, &[
        (8, ring), (4096, doubling), (8192, ring), (16384, doubling), (65536, ring), (262_144, segmented),
        (REST, halving),
    ]),
    (8, &[(16, ring), (8192, doubling), (REST, halving)]),
    (16, &[(8192, doubling), (REST, halving)]),
    (32, &[(64, segmented), (4096, doubling), (REST, halving)]),
    (64, &[(128, segmented), (REST, halving)]),
    (128, &[(262_144, doubling), (REST, halving)]),
    (256, &[(131_072, redbcast), (262_144, doubling), (REST, halving)]),
    (512, &[(4096, redbcast), (REST, halving)]),
    (2048, &[(2048, redbcast), (16384, doubling), (REST, halving)]),
    (4096, &[(2048, redbcast), (4096, segmented), (16384, doubling), (REST, halving)]),
    (MORE, &[(2048, redbcast), (16384, segmented), (32768, doubling), (REST, halving)]),
];

/// Returns the schedule that Open MPI selects.
pub(in crate::collective) fn allreduce(member: Member<'_>, data: Elements) -> Schedule<'_> {
    look_up(TABLE, member.size, data.bytes().get())(member, data)
}
