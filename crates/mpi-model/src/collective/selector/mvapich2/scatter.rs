//! MVAPICH2's decision table for scatter.

use super::super::{MORE, NodeDecisionTables, REST, look_up_by_node_size};
use crate::collective::scatter::{Algorithm, Args, binomial, in_turn as direct, two_level};
use crate::collective::{Member, Schedule};

/// One algorithm for all ranks, or one among the leaders and one on each node.
#[derive(Clone, Copy)]
enum Choice {
    All(Algorithm),
    Levels(Algorithm, Algorithm),
}

const BINOMIAL: Choice = Choice::All(binomial);
const DIRECT: Choice = Choice::All(direct);
/// Direct or binomial among the leaders, direct or binomial on the nodes.
const D_D: Choice = Choice::Levels(direct, direct);
const D_B: Choice = Choice::Levels(direct, binomial);
const B_D: Choice = Choice::Levels(binomial, direct);
const B_B: Choice = Choice::Levels(binomial, binomial);

/// Columns by the size of a block. Multicasts are what follows them, without hardware for them.
#[rustfmt::skip]
const TABLES: NodeDecisionTables<Choice> = &[
    (1, &[
        (3, &[(REST, BINOMIAL)]),
        (33, &[(REST, DIRECT)]),
        (MORE, &[(33, BINOMIAL), (REST, DIRECT)]),
    ]),
    (2, &[
        (5, &[(4097, BINOMIAL), (REST, DIRECT)]),
        (9, &[(513, D_B), (REST, DIRECT)]),
        (33, &[(2049, D_B), (REST, DIRECT)]),
        (65, &[(8193, D_B), (REST, DIRECT)]),
        (MORE, &[(17, BINOMIAL), (129, B_D), (16385, D_B), (REST, DIRECT)]),
    ]),
    (16, &[
        (17, &[(257, BINOMIAL), (REST, DIRECT)]),
        (33, &[(513, BINOMIAL), (REST, DIRECT)]),
        (65, &[(1025, D_D), (REST, DIRECT)]),
        (257, &[(2049, D_D), (REST, DIRECT)]),
        (513, &[(4097, D_B), (REST, DIRECT)]),
        (1025, &[(33, BINOMIAL), (4097, D_B), (REST, DIRECT)]),
        (MORE, &[(129, B_B), (1025, D_B), (16385, D_D), (65537, DIRECT), (REST, D_D)]),
    ]),
];

/// Returns the schedule that MVAPICH2 selects. Two levels need block mapping; otherwise the tree is binomial.
pub(in crate::collective) fn scatter<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    match look_up_by_node_size(TABLES, member, args.block(member.rank).bytes().get()) {
        Choice::All(algorithm) => algorithm(member, args),
        Choice::Levels(leaders, on_node) if member.layout.is_blocked() => {
            two_level(member, args, leaders, on_node)
        }
        Choice::Levels(..) => binomial(member, args),
    }
}
