//! MVAPICH2's decision table for reduce.

use super::super::{DecisionTable, MORE, REST, look_up};
use crate::collective::member::empty_schedule;
use crate::collective::reduce::{
    Algorithm, Args, OnNode, binomial, knomial_with_degree, scatter_gather, two_level,
};
use crate::collective::{Member, Schedule};

/// The algorithm of the leaders after their nodes have reduced, or of all ranks.
#[derive(Clone, Copy)]
enum Choice {
    Leaders(Algorithm),
    All(Algorithm),
}

/// Degree of k-nomial trees, in all rows.
const DEGREE: u32 = 4;

fn knomial<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    knomial_with_degree(DEGREE, member, args)
}

/// A scatter and gather if there are at least as many elements as the largest power of two of ranks, else a binomial tree.
fn long<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let few = args.data.count < 1 << member.size.ilog2();
    if few { binomial(member, args) } else { scatter_gather(member, args) }
}

const KNOMIAL: Choice = Choice::Leaders(knomial);
const BINOMIAL: Choice = Choice::Leaders(binomial);
const FLAT_KNOMIAL: Choice = Choice::All(knomial);
const FLAT_BINOMIAL: Choice = Choice::All(binomial);
const LONG: Choice = Choice::All(long);

/// Columns by the size of the vector.
#[rustfmt::skip]
const TABLE: DecisionTable<Choice> = &[
    (17, &[(262_145, KNOMIAL), (1_048_577, FLAT_BINOMIAL), (REST, LONG)]),
    (33, &[
        (32769, KNOMIAL), (65537, BINOMIAL), (262_145, FLAT_KNOMIAL), (1_048_577, FLAT_BINOMIAL), (REST, LONG),
    ]),
    (65, &[(16385, KNOMIAL), (65537, BINOMIAL), (262_145, KNOMIAL), (REST, LONG)]),
    (129, &[
        (8193, KNOMIAL), (16385, FLAT_KNOMIAL), (65537, BINOMIAL), (262_145, FLAT_KNOMIAL), (1_048_577, BINOMIAL),
        (REST, LONG),
    ]),
    (257, &[
        (16385, KNOMIAL), (32769, BINOMIAL), (65537, FLAT_BINOMIAL), (1_048_577, BINOMIAL), (REST, LONG),
    ]),
    (513, &[(8193, KNOMIAL), (16385, FLAT_KNOMIAL), (1_048_577, BINOMIAL), (REST, LONG)]),
    (1025, &[(8193, KNOMIAL), (16385, FLAT_KNOMIAL), (REST, BINOMIAL)]),
    (MORE, &[(2049, KNOMIAL), (4097, FLAT_KNOMIAL), (REST, BINOMIAL)]),
];

/// Reduction in shared memory.
const SHARED: Option<Algorithm> = None;
const LOCAL_KNOMIAL: Option<Algorithm> = Some(knomial);
const LOCAL_BINOMIAL: Option<Algorithm> = Some(binomial);

/// The algorithm of the nodes before their leaders; columns by the size of the vector.
#[rustfmt::skip]
const ON_NODE: DecisionTable<Option<Algorithm>> = &[
    (17, &[(65537, SHARED), (REST, LOCAL_BINOMIAL)]),
    (33, &[(8193, SHARED), (16385, LOCAL_KNOMIAL), (262_145, SHARED), (REST, LOCAL_BINOMIAL)]),
    (1025, &[
        (8193, SHARED), (16385, LOCAL_KNOMIAL), (65537, SHARED), (262_145, LOCAL_KNOMIAL), (REST, LOCAL_BINOMIAL),
    ]),
    (MORE, &[(16385, SHARED), (65537, LOCAL_KNOMIAL), (131_073, LOCAL_BINOMIAL), (REST, SHARED)]),
];

/// Returns the schedule that MVAPICH2 selects.
pub(in crate::collective) fn reduce<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    if args.data.count == 0 {
        return empty_schedule();
    }
    let bytes = args.data.bytes().get();
    match look_up(TABLE, member.size, bytes) {
        Choice::Leaders(leaders) => {
            let algorithm = look_up(ON_NODE, member.size, bytes);
            two_level(member, args, leaders, OnNode { algorithm, degree: DEGREE })
        }
        Choice::All(algorithm) => algorithm(member, args),
    }
}
