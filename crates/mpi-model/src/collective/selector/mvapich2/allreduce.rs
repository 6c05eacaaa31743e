//! MVAPICH2's decisions for allreduce.

use super::super::{MORE, REST, Table, pick};
use crate::collective::allreduce::{
    Algorithm, recursive_doubling as doubling, reduce_to_leader, short_or_halving as halving, two_level,
};
use crate::collective::member::{Elements, nothing};
use crate::collective::{Member, Schedule};

/// What the leaders do after nodes have reduced to them, or everybody at once.
#[derive(Clone, Copy)]
enum Choice {
    Leaders(Algorithm),
    All(Algorithm),
}

/// Multicasts, which no table offers without hardware for them, are doubling as well.
const DOUBLING: Choice = Choice::Leaders(doubling);
const HALVING: Choice = Choice::Leaders(halving);
const FLAT_HALVING: Choice = Choice::All(halving);

/// By the bytes of the vector.
const TABLE: Table<Choice> = &[
    (17, &[(1025, DOUBLING), (REST, FLAT_HALVING)]),
    (513, &[(16385, DOUBLING), (REST, FLAT_HALVING)]),
    (1025, &[(8193, DOUBLING), (65537, HALVING), (REST, FLAT_HALVING)]),
    (MORE, &[(65, DOUBLING), (513, HALVING), (4097, DOUBLING), (REST, FLAT_HALVING)]),
];

/// MVAPICH2's choice.
pub(in crate::collective) fn allreduce(member: Member<'_>, data: Elements) -> Schedule<'_> {
    if data.count == 0 {
        return nothing();
    }
    match pick(TABLE, member.size, data.bytes().get()) {
        Choice::Leaders(leaders) => two_level(member, data, leaders, reduce_to_leader),
        Choice::All(algorithm) => algorithm(member, data),
    }
}
