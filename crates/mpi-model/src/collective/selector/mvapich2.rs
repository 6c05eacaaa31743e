//! MVAPICH2's decisions (version 1.9, tuned on Stampede), as in SimGrid 3.32 (`smpi_mvapich2_selector.cpp`).
//!
//! Barrier and alltoallv exchange in pairs. Multicasts, which no table offers without hardware support, are what follows them
//! in the table. Names in capitals are algorithms on two levels, after that of the leaders.

use crate::collective::decision_table::{Condition, DecisionTable, Measure, Rule};
use crate::collective::member::empty_schedule;
use crate::collective::operation::Selectable;
use crate::collective::{
    Member, Schedule, allgather, allgatherv, allreduce, alltoall, bcast, gather, reduce, reduce_scatter, scatter,
};
use super::mpich;
use Condition::{Empty, RanksPerNode, Unblocked};
use Measure::{Bytes, BytesPerRankRoundedUp};
use Rule::{Otherwise, Ranks, Use, When};

/// Bcast. Nodes take MPICH's decisions in place of shared memory, and so do leaders in place of pipelines, as in SimGrid.
pub(in crate::collective) static BCAST: DecisionTable<bcast::Algorithm> = {
    use bcast::{
        Algorithm, Bcast, Levels, binomial_tree, doubling_allgather, ring_allgather as ring, two_level,
    };
    const MPICH: Algorithm = |member, args| Bcast::by_table(&mpich::BCAST, member, args);
    const PIPELINE: Algorithm = |member, args| two_level(member, args, Levels { leaders: MPICH, node: MPICH });
    const BINOMIAL: Algorithm =
        |member, args| two_level(member, args, Levels { leaders: binomial_tree, node: MPICH });
    const RING: Algorithm = |member, args| two_level(member, args, Levels { leaders: ring, node: MPICH });
    const DOUBLING: Algorithm =
        |member, args| two_level(member, args, Levels { leaders: doubling_allgather, node: MPICH });
    DecisionTable { by: Bytes, rules: &[
        When(Empty, &[Use(|_, _| empty_schedule())]),
        Ranks(17, &[(8193, PIPELINE), (16385, BINOMIAL), (65537, PIPELINE), (262_145, RING),
            (524_289, DOUBLING)], RING),
        Ranks(65, &[], PIPELINE),
        Ranks(129, &[(524_289, PIPELINE)], ring),
        Ranks(257, &[(131_073, PIPELINE), (262_145, RING), (524_289, PIPELINE)], RING),
        Ranks(513, &[(262_145, PIPELINE)], RING),
        Otherwise(&[(524_289, PIPELINE)], RING),
    ] }
};

/// Reduce.
pub(in crate::collective) static REDUCE: DecisionTable<reduce::Algorithm> = {
    use reduce::{Algorithm, binomial};
    const KNOMIAL: Algorithm = |member, args| reduce_on_nodes(member, args, knomial);
    const BINOMIAL: Algorithm = |member, args| reduce_on_nodes(member, args, binomial);
    DecisionTable { by: Bytes, rules: &[
        When(Empty, &[Use(|_, _| empty_schedule())]),
        Ranks(17, &[(262_145, KNOMIAL), (1_048_577, binomial)], long),
        Ranks(33, &[(32769, KNOMIAL), (65537, BINOMIAL), (262_145, knomial),
            (1_048_577, binomial)], long),
        Ranks(65, &[(16385, KNOMIAL), (65537, BINOMIAL), (262_145, KNOMIAL)], long),
        Ranks(129, &[(8193, KNOMIAL), (16385, knomial), (65537, BINOMIAL), (262_145, knomial),
            (1_048_577, BINOMIAL)], long),
        Ranks(257, &[(16385, KNOMIAL), (32769, BINOMIAL), (65537, binomial),
            (1_048_577, BINOMIAL)], long),
        Ranks(513, &[(8193, KNOMIAL), (16385, knomial), (1_048_577, BINOMIAL)], long),
        Ranks(1025, &[(8193, KNOMIAL), (16385, knomial)], BINOMIAL),
        Otherwise(&[(2049, KNOMIAL), (4097, knomial)], BINOMIAL),
    ] }
};

/// Reduce on the nodes, before the leaders; `None` is shared memory.
static REDUCE_ON_NODE: DecisionTable<Option<reduce::Algorithm>> = {
    use reduce::{Algorithm, binomial};
    const SHARED: Option<Algorithm> = None;
    const KNOMIAL: Option<Algorithm> = Some(knomial);
    const BINOMIAL: Option<Algorithm> = Some(binomial);
    DecisionTable { by: Bytes, rules: &[
        Ranks(17, &[(65537, SHARED)], BINOMIAL),
        Ranks(33, &[(8193, SHARED), (16385, KNOMIAL), (262_145, SHARED)], BINOMIAL),
        Ranks(1025, &[(8193, SHARED), (16385, KNOMIAL), (65537, SHARED),
            (262_145, KNOMIAL)], BINOMIAL),
        Otherwise(&[(16385, SHARED), (65537, KNOMIAL), (131_073, BINOMIAL)], SHARED),
    ] }
};

/// Degree of k-nomial trees, in all rows.
const DEGREE: u32 = 4;

fn knomial<'a>(member: Member<'a>, args: reduce::Args) -> Schedule<'a> {
    reduce::knomial_with_degree(DEGREE, member, args)
}

/// A scatter and gather if there are at least as many elements as the largest power of two of ranks, else a binomial tree.
fn long<'a>(member: Member<'a>, args: reduce::Args) -> Schedule<'a> {
    let few = args.data.count < 1 << member.size.ilog2();
    if few { reduce::binomial(member, args) } else { reduce::scatter_gather(member, args) }
}

fn reduce_on_nodes<'a>(member: Member<'a>, args: reduce::Args, leaders: reduce::Algorithm) -> Schedule<'a> {
    let algorithm = REDUCE_ON_NODE.choose(member, args.data);
    reduce::two_level(member, args, leaders, reduce::OnNode { algorithm, degree: DEGREE })
}

/// Allreduce. Nodes reduce with the communicator's algorithm.
pub(in crate::collective) static ALLREDUCE: DecisionTable<allreduce::Algorithm> = {
    use allreduce::{
        Algorithm, recursive_doubling, reduce_to_leader, short_or_halving as halving, two_level,
    };
    const DOUBLING: Algorithm = |member, data| two_level(member, data, recursive_doubling, reduce_to_leader);
    const HALVING: Algorithm = |member, data| two_level(member, data, halving, reduce_to_leader);
    DecisionTable { by: Bytes, rules: &[
        When(Empty, &[Use(|_, _| empty_schedule())]),
        Ranks(17, &[(1025, DOUBLING)], halving),
        Ranks(513, &[(16385, DOUBLING)], halving),
        Ranks(1025, &[(8193, DOUBLING), (65537, HALVING)], halving),
        Otherwise(&[(65, DOUBLING), (513, HALVING), (4097, DOUBLING)], halving),
    ] }
};

/// Gather: MPICH's without block mapping. Two levels are binomial on the nodes in all rows that have them.
pub(in crate::collective) static GATHER: DecisionTable<gather::Algorithm> = {
    use gather::{binomial, in_turn as direct, two_level};
    DecisionTable { by: Bytes, rules: &[
        When(Unblocked, &[Use(binomial)]),
        Ranks(17, &[(524_289, direct)], binomial),
        Ranks(33, &[(16385, direct), (131_073, binomial)], two_level),
        Ranks(65, &[(257, two_level), (16385, direct)], two_level),
        Otherwise(&[(513, two_level), (16385, direct)], two_level),
    ] }
};

/// Scatter; the second letter is the algorithm on the nodes.
pub(in crate::collective) static SCATTER: DecisionTable<scatter::Algorithm> = {
    use scatter::{Algorithm, binomial, in_turn as direct};
    const D_D: Algorithm = |member, args| scatter_on_levels(member, args, direct, direct);
    const D_B: Algorithm = |member, args| scatter_on_levels(member, args, direct, binomial);
    const B_D: Algorithm = |member, args| scatter_on_levels(member, args, binomial, direct);
    const B_B: Algorithm = |member, args| scatter_on_levels(member, args, binomial, binomial);
    DecisionTable { by: Bytes, rules: &[
        When(RanksPerNode(&[2]), &[
            Ranks(5, &[(4097, binomial)], direct),
            Ranks(9, &[(513, D_B)], direct),
            Ranks(33, &[(2049, D_B)], direct),
            Ranks(65, &[(8193, D_B)], direct),
            Otherwise(&[(17, binomial), (129, B_D), (16385, D_B)], direct),
        ]),
        When(RanksPerNode(&[16]), &[
            Ranks(17, &[(257, binomial)], direct),
            Ranks(33, &[(513, binomial)], direct),
            Ranks(65, &[(1025, D_D)], direct),
            Ranks(257, &[(2049, D_D)], direct),
            Ranks(513, &[(4097, D_B)], direct),
            Ranks(1025, &[(33, binomial), (4097, D_B)], direct),
            Otherwise(&[(129, B_B), (1025, D_B), (16385, D_D), (65537, direct)], D_D),
        ]),
        Ranks(3, &[], binomial),
        Ranks(33, &[], direct),
        Otherwise(&[(33, binomial)], direct),
    ] }
};

/// Two levels, which need block mapping; otherwise a binomial tree.
fn scatter_on_levels<'a>(
    member: Member<'a>,
    args: scatter::Args,
    leaders: scatter::Algorithm,
    on_node: scatter::Algorithm,
) -> Schedule<'a> {
    if !member.layout.is_blocked() {
        return scatter::binomial(member, args);
    }
    scatter::two_level(member, args, leaders, on_node)
}

/// Allgather.
pub(in crate::collective) static ALLGATHER: DecisionTable<allgather::Algorithm> = {
    use allgather::direct::ring;
    use allgather::doubling::recursive;
    use allgather::two_level::if_blocked as two_level;
    DecisionTable { by: Bytes, rules: &[
        When(RanksPerNode(&[2]), &[
            Ranks(5, &[(524_289, recursive)], ring),
            Ranks(9, &[(32769, recursive)], two_level),
            Ranks(17, &[(16385, recursive)], two_level),
            Otherwise(&[], two_level),
        ]),
        When(RanksPerNode(&[16]), &[
            Otherwise(&[(1025, recursive)], ring),
        ]),
        Ranks(3, &[], ring),
        Ranks(5, &[(262_145, recursive)], ring),
        Ranks(17, &[(131_073, recursive)], ring),
        Ranks(33, &[(65537, recursive)], ring),
        Otherwise(&[(32769, recursive)], ring),
    ] }
};

/// Allgatherv.
pub(in crate::collective) static ALLGATHERV: DecisionTable<allgather::Algorithm> = {
    use allgather::doubling::recursive_or_bruck as doubling;
    use allgatherv::segmented_ring::segmented_ring;
    DecisionTable { by: BytesPerRankRoundedUp, rules: &[
        Ranks(33, &[(513, doubling)], segmented_ring),
        Otherwise(&[(257, doubling)], segmented_ring),
    ] }
};

/// Alltoall; those for one rank per node, on all.
pub(in crate::collective) static ALLTOALL: DecisionTable<alltoall::Algorithm> = {
    use alltoall::bruck::bruck;
    use alltoall::pairwise::pair;
    use alltoall::via_allgather::doubling;
    use alltoall::windows::including_self as scatter_dest;
    DecisionTable { by: Bytes, rules: &[
        Ranks(3, &[], pair),
        Ranks(5, &[(262_145, scatter_dest)], pair),
        Ranks(9, &[(9, doubling)], scatter_dest),
        Ranks(17, &[(65, doubling), (513, bruck)], scatter_dest),
        Ranks(33, &[(33, doubling), (2049, bruck)], scatter_dest),
        Otherwise(&[(9, doubling), (1025, bruck)], scatter_dest),
    ] }
};

/// Reduce-scatter with commutative operators.
pub(in crate::collective) static REDUCE_SCATTER: DecisionTable<reduce_scatter::Algorithm> = {
    use reduce_scatter::halving::recursive;
    use reduce_scatter::linear::by_regularity as basic;
    use reduce_scatter::rounds::pair;
    DecisionTable { by: Bytes, rules: &[
        Ranks(17, &[(65, basic), (65537, recursive)], pair),
        Ranks(33, &[(65, basic), (131_073, recursive)], pair),
        Ranks(65, &[(1025, basic), (262_145, recursive)], pair),
        Ranks(257, &[(129, basic)], recursive),
        Otherwise(&[(257, basic)], recursive),
    ] }
};
