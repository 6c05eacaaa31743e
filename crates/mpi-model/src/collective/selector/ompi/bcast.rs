//! Open MPI's decision table for bcast.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::bcast::{
    Algorithm, Args, binary_pipeline as heap, binomial_tree as binomial, chain_by_two as pipeline,
    chain_pipeline as chain, doubling_allgather as doubling, knomial, split_binary as split,
};
use crate::collective::{Member, Schedule};

/// Columns by the size of the vector.
#[rustfmt::skip]
const TABLE: DecisionTable<Algorithm> = &[
    (4, &[
        (32, pipeline), (256, heap), (512, pipeline), (1024, knomial), (32768, chain), (131_072, heap),
        (262_144, pipeline), (524_288, chain), (1_048_576, binomial), (REST, heap),
    ]),
    (8, &[(64, heap), (128, binomial), (2048, heap), (8192, binomial), (1_048_576, chain), (REST, pipeline)]),
    (16, &[(8, knomial), (64, heap), (4096, knomial), (16384, heap), (32768, binomial), (REST, chain)]),
    (32, &[(4096, knomial), (1_048_576, binomial), (REST, doubling)]),
    (64, &[(2048, binomial), (REST, knomial)]),
    (128, &[(REST, knomial)]),
    (256, &[(2, binomial), (16384, heap), (32768, chain), (65536, heap), (REST, knomial)]),
    (1024, &[(16384, knomial), (32768, split), (REST, knomial)]),
    (2048, &[(524_288, knomial), (REST, doubling)]),
    (4096, &[(262_144, knomial), (REST, doubling)]),
    (MORE, &[(8192, knomial), (16384, heap), (262_144, knomial), (REST, doubling)]),
];

/// Returns the schedule that Open MPI selects.
pub(in crate::collective) fn bcast<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    look_up(TABLE, member.size, args.data.bytes().get())(member, args)
}
