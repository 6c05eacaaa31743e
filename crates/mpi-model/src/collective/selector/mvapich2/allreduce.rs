//! MVAPICH2's decision table for allreduce.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::allreduce::{
    Algorithm, recursive_doubling as doubling, reduce_to_leader, short_or_halving as halving, two_level,
};
use crate::collective::member::{Elements, empty_schedule};
use crate::collective::{Member, Schedule};

/// The algorithm of the leaders after nodes have reduced to them, or of all ranks.
#[derive(Clone, Copy)]
enum Choice {
    Leaders(Algorithm),
    All(Algorithm),
}

/// Multicasts, which no table offers without hardware support, are recursive doubling as well.
const DOUBLING: Choice = Choice::Leaders(doubling);
const HALVING: Choice = Choice::Leaders(halving);
const FLAT_HALVING: Choice = Choice::All(halving);

/// Columns by the size of the vector.
const TABLE: DecisionTable<Choice> = &[
    (17, &[(1025, DOUBLING), (REST, FLAT_HALVING)]),
    (513, &[(16385, DOUBLING), (REST, FLAT_HALVING)]),
    (1025, &[(8193, DOUBLING), (65537, HALVING), (REST, FLAT_HALVING)]),
    (MORE, &[(65, DOUBLING), (513, HALVING), (4097, DOUBLING), (REST, FLAT_HALVING)]),
];

/// Returns the schedule that MVAPICH2 selects.
pub(in crate::collective) fn allreduce(member: Member<'_>, data: Elements) -> Schedule<'_> {
    if data.count == 0 {
        return empty_schedule();
    }
    match look_up(TABLE, member.size, data.bytes().get()) {
        Choice::Leaders(leaders) => two_level(member, data, leaders, reduce_to_leader),
        Choice::All(algorithm) => algorithm(member, data),
    }
}
