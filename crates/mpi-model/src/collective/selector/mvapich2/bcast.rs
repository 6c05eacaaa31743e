//! MVAPICH2's decision table for bcast.

use super::super::mpich;
use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::bcast::{
    Algorithm, Args, Levels, binomial_tree, doubling_allgather as doubling, ring_allgather as ring, two_level,
};
use crate::collective::member::empty_schedule;
use crate::collective::{Member, Schedule};

/// The algorithm of the leaders before their nodes broadcast, or of all ranks.
#[derive(Clone, Copy)]
enum Choice {
    Leaders(Algorithm),
    All(Algorithm),
}

/// MVAPICH2's pipelines, in place of which SimGrid uses MPICH's selection.
const PIPELINE: Choice = Choice::Leaders(mpich::bcast);
const BINOMIAL: Choice = Choice::Leaders(binomial_tree);
const RING: Choice = Choice::Leaders(ring);
const DOUBLING: Choice = Choice::Leaders(doubling);
const FLAT_RING: Choice = Choice::All(ring);

/// Columns by the size of the vector.
#[rustfmt::skip]
const TABLE: DecisionTable<Choice> = &[
    (17, &[
        (8193, PIPELINE), (16385, BINOMIAL), (65537, PIPELINE), (262_145, RING), (524_289, DOUBLING), (REST, RING),
    ]),
    (65, &[(REST, PIPELINE)]),
    (129, &[(524_289, PIPELINE), (REST, FLAT_RING)]),
    (257, &[(131_073, PIPELINE), (262_145, RING), (524_289, PIPELINE), (REST, RING)]),
    (513, &[(262_145, PIPELINE), (REST, RING)]),
    (MORE, &[(524_289, PIPELINE), (REST, RING)]),
];

/// Returns the schedule that MVAPICH2 selects. Nodes take MPICH's selection in place of shared memory.
pub(in crate::collective) fn bcast<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    if args.data.count == 0 {
        return empty_schedule();
    }
    match look_up(TABLE, member.size, args.data.bytes().get()) {
        Choice::Leaders(leaders) => two_level(member, args, Levels { leaders, node: mpich::bcast }),
        Choice::All(algorithm) => algorithm(member, args),
    }
}
