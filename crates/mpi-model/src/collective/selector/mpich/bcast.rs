//! MPICH's decision table for bcast.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::bcast::{
    Algorithm, Args, binomial_tree as binomial, doubling_allgather as doubling, ring_allgather as ring,
    smp_binomial,
};
use crate::collective::{Member, Schedule};

/// Table for an even number of ranks; columns by the size of the vector.
const EVEN: DecisionTable<Algorithm> =
    &[(9, &[(REST, binomial)]), (MORE, &[(12288, binomial), (524_288, doubling), (REST, ring)])];

/// Table for an odd number of ranks.
const ODD: DecisionTable<Algorithm> = &[(9, &[(REST, binomial)]), (MORE, &[(12288, binomial), (REST, ring)])];

/// Returns the schedule that MPICH selects: if all nodes have the same number of ranks, binomial trees over the nodes and
/// on each; otherwise, and within two-level algorithms, by the tables.
pub(in crate::collective) fn bcast<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    if !member.within_levels && member.layout.is_uniform() {
        return smp_binomial(member, args);
    }
    let table = if member.size.is_multiple_of(2) { EVEN } else { ODD };
    look_up(table, member.size, args.data.bytes().get())(member, args)
}
