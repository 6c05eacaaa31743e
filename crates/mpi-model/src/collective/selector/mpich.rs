//! MPICH's decisions (version 3), as in SimGrid 3.32 (`smpi_mpich_selector.cpp`).
//!
//! Barrier, gather and scatter have one algorithm each, and so has alltoallv. Source of the thresholds: Thakur, Rabenseifner
//! and Gropp, IJHPCA 19(1) 2005. Allgatherv and reduce-scatter count elements instead of bytes, as in SimGrid.

use crate::collective::decision_table::{Condition, DecisionTable, Measure, Rule};
use crate::collective::member::empty_schedule;
use crate::collective::{allgather, allgatherv, allreduce, alltoall, bcast, reduce, reduce_scatter};
use Condition::{Empty, EvenRanks, FewElements, NotWithinLevels, PowerOfTwoRanks, UniformNodes};
use Measure::{Bytes, BytesOfAllRanks, Elements};
use Rule::{Otherwise, Ranks, Use, When};

/// Bcast: if all nodes have the same number of ranks, binomial trees over the nodes and on each.
pub(in crate::collective) static BCAST: DecisionTable<bcast::Algorithm> = {
    use bcast::{
        binomial_tree as binomial, doubling_allgather as doubling, ring_allgather as ring, smp_binomial,
    };
    DecisionTable { by: Bytes, rules: &[
        When(NotWithinLevels, &[When(UniformNodes, &[Use(smp_binomial)])]),
        Ranks(9, &[], binomial),
        When(EvenRanks, &[Otherwise(&[(12288, binomial), (524_288, doubling)], ring)]),
        Otherwise(&[(12288, binomial)], ring),
    ] }
};

/// Reduce: two levels, and these decisions on each.
pub(in crate::collective) static REDUCE: DecisionTable<reduce::Algorithm> = {
    use reduce::{binomial, mpich_two_level as two_level, scatter_gather};
    DecisionTable { by: Bytes, rules: &[
        When(NotWithinLevels, &[Use(two_level)]),
        When(FewElements, &[Use(binomial)]),
        Otherwise(&[(2048, binomial)], scatter_gather),
    ] }
};

/// Allreduce: two levels, and these decisions on nodes.
pub(in crate::collective) static ALLREDUCE: DecisionTable<allreduce::Algorithm> = {
    use allreduce::{halving_doubling as halving, mpich_two_level as two_level, recursive_doubling as doubling};
    DecisionTable { by: Bytes, rules: &[
        When(NotWithinLevels, &[Use(two_level)]),
        When(FewElements, &[Use(doubling)]),
        Otherwise(&[(2049, doubling)], halving),
    ] }
};

/// Allgather; `ring` stands for MPICH's allgather among neighbours, as in SimGrid.
pub(in crate::collective) static ALLGATHER: DecisionTable<allgather::Algorithm> = {
    use allgather::direct::ring;
    use allgather::doubling::{bruck, recursive};
    DecisionTable { by: BytesOfAllRanks, rules: &[
        When(PowerOfTwoRanks, &[Otherwise(&[(524_288, recursive)], ring)]),
        Otherwise(&[(81_921, bruck)], ring),
    ] }
};

/// Allgatherv; nothing is sent if all blocks are empty.
pub(in crate::collective) static ALLGATHERV: DecisionTable<allgather::Algorithm> = {
    use allgather::doubling::{bruck, recursive_unless_empty as recursive};
    use allgatherv::segmented_ring::segmented_ring;
    DecisionTable { by: Elements, rules: &[
        When(Empty, &[Use(|_, _| empty_schedule())]),
        When(PowerOfTwoRanks, &[Otherwise(&[(524_288, recursive)], segmented_ring)]),
        Otherwise(&[(81_921, bruck)], segmented_ring),
    ] }
};

/// Alltoall.
///
/// MPICH exchanges long messages in pairs if P is a power of two, and round the ring otherwise. SimGrid tests for an odd P
/// instead, for which a pairwise exchange is never possible; so this is the ring for all.
pub(in crate::collective) static ALLTOALL: DecisionTable<alltoall::Algorithm> = {
    use alltoall::bruck::bruck;
    use alltoall::pairwise::ring;
    use alltoall::windows::including_self as scatter_dest;
    DecisionTable { by: Bytes, rules: &[
        Ranks(8, &[(32768, scatter_dest)], ring),
        Otherwise(&[(256, bruck), (32768, scatter_dest)], ring),
    ] }
};

/// Reduce-scatter with commutative operators. SimGrid's recursive doubling also stands for MPICH's recursive halving of short
/// vectors.
pub(in crate::collective) static REDUCE_SCATTER: DecisionTable<reduce_scatter::Algorithm> = {
    use reduce_scatter::halving::doubling;
    use reduce_scatter::rounds::pair;
    DecisionTable { by: Elements, rules: &[Otherwise(&[(524_289, doubling)], pair)] }
};
