//! Open MPI's fixed decisions (`coll_tuned_decision_fixed.c`, version 4.1), as in SimGrid 3.32 (`smpi_openmpi_selector.cpp`).
//!
//! Algorithms that SimGrid lacks are replaced as there.

use crate::collective::decision_table::{DecisionTable, Measure, Rule};
use crate::collective::{
    allgather, allgatherv, allreduce, alltoall, barrier, bcast, gather, reduce, reduce_scatter, scatter,
};
use Measure::{Bytes, BytesPerRank};
use Rule::{Otherwise, Ranks};

/// Barrier; by the number of ranks alone.
pub(in crate::collective) static BARRIER: DecisionTable<barrier::Algorithm> = {
    use barrier::{dissemination, linear, recursive_doubling as doubling, tree};
    DecisionTable { by: Bytes, rules: &[
        Ranks(4, &[], doubling),
        Ranks(8, &[], linear),
        Ranks(64, &[], doubling),
        Ranks(256, &[], dissemination),
        Ranks(512, &[], tree),
        Ranks(1024, &[], dissemination),
        Ranks(4096, &[], tree),
        Otherwise(&[], dissemination),
    ] }
};

/// Bcast.
pub(in crate::collective) static BCAST: DecisionTable<bcast::Algorithm> = {
    use bcast::{
        binary_pipeline as heap, binomial_tree as binomial, chain_by_two as pipeline, chain_pipeline as chain,
        doubling_allgather as doubling, knomial, split_binary as split,
    };
    DecisionTable { by: Bytes, rules: &[
        Ranks(4, &[(32, pipeline), (256, heap), (512, pipeline), (1024, knomial), (32768, chain),
            (131_072, heap), (262_144, pipeline), (524_288, chain), (1_048_576, binomial)], heap),
        Ranks(8, &[(64, heap), (128, binomial), (2048, heap), (8192, binomial),
            (1_048_576, chain)], pipeline),
        Ranks(16, &[(8, knomial), (64, heap), (4096, knomial), (16384, heap), (32768, binomial)], chain),
        Ranks(32, &[(4096, knomial), (1_048_576, binomial)], doubling),
        Ranks(64, &[(2048, binomial)], knomial),
        Ranks(128, &[], knomial),
        Ranks(256, &[(2, binomial), (16384, heap), (32768, chain), (65536, heap)], knomial),
        Ranks(1024, &[(16384, knomial), (32768, split)], knomial),
        Ranks(2048, &[(524_288, knomial)], doubling),
        Ranks(4096, &[(262_144, knomial)], doubling),
        Otherwise(&[(8192, knomial), (16384, heap), (262_144, knomial)], doubling),
    ] }
};

/// Reduce.
pub(in crate::collective) static REDUCE: DecisionTable<reduce::Algorithm> = {
    use reduce::{
        binary, binomial_segments as binomial, chains, in_order_binary as in_order, in_turn as linear, pipeline,
    };
    DecisionTable { by: Bytes, rules: &[
        Ranks(4, &[(8, linear), (16, binary), (32, pipeline), (262_144, linear), (524_288, pipeline),
            (1_048_576, chains)], pipeline),
        Ranks(8, &[(4096, binary), (65536, chains), (262_144, binomial), (524_288, linear),
            (1_048_576, binomial)], linear),
        Ranks(16, &[(8192, binary)], binomial),
        Ranks(32, &[(4096, binary)], binomial),
        Ranks(256, &[], binomial),
        Ranks(512, &[(8192, binomial), (16384, in_order)], binomial),
        Ranks(2048, &[], binomial),
        Ranks(4096, &[(512, binomial), (1024, in_order), (8192, binomial), (16384, in_order)], binomial),
        Otherwise(&[(16, binomial), (32, in_order), (1024, binomial), (2048, in_order), (8192, binomial),
            (16384, in_order)], binomial),
    ] }
};

/// Allreduce.
pub(in crate::collective) static ALLREDUCE: DecisionTable<allreduce::Algorithm> = {
    use allreduce::{
        halving_doubling as halving, recursive_doubling as doubling, reduce_broadcast as redbcast, ring,
        segmented_ring as segmented,
    };
    DecisionTable { by: Bytes, rules: &[
        Ranks(4, &[(8, ring), (4096, doubling), (8192, ring), (16384, doubling), (65536, ring),
            (262_144, segmented)], halving),
        Ranks(8, &[(16, ring), (8192, doubling)], halving),
        Ranks(16, &[(8192, doubling)], halving),
        Ranks(32, &[(64, segmented), (4096, doubling)], halving),
        Ranks(64, &[(128, segmented)], halving),
        Ranks(128, &[(262_144, doubling)], halving),
        Ranks(256, &[(131_072, redbcast), (262_144, doubling)], halving),
        Ranks(512, &[(4096, redbcast)], halving),
        Ranks(2048, &[(2048, redbcast), (16384, doubling)], halving),
        Ranks(4096, &[(2048, redbcast), (4096, segmented), (16384, doubling)], halving),
        Otherwise(&[(2048, redbcast), (16384, segmented), (32768, doubling)], halving),
    ] }
};

/// Gather.
pub(in crate::collective) static GATHER: DecisionTable<gather::Algorithm> = {
    use gather::{binomial, in_turn as linear, synchronised as sync};
    DecisionTable { by: Bytes, rules: &[
        Ranks(4, &[(2, sync), (4, linear), (32768, binomial), (65536, linear), (131_072, binomial)], sync),
        Ranks(8, &[(1024, binomial), (8192, linear), (32768, binomial), (262_144, linear)], sync),
        Ranks(256, &[], binomial),
        Ranks(512, &[(2048, binomial), (8192, linear)], binomial),
        Otherwise(&[], binomial),
    ] }
};

/// Scatter.
pub(in crate::collective) static SCATTER: DecisionTable<scatter::Algorithm> = {
    use scatter::{binomial, in_turn as linear, linear_nonblocking as at_once};
    DecisionTable { by: Bytes, rules: &[
        Ranks(4, &[(2, at_once), (131_072, linear), (262_144, at_once)], linear),
        Ranks(8, &[(2048, binomial), (4096, linear), (8192, binomial), (32768, linear),
            (1_048_576, at_once)], linear),
        Ranks(16, &[(16384, binomial), (1_048_576, at_once)], linear),
        Ranks(32, &[(16384, binomial), (32768, linear)], at_once),
        Ranks(64, &[(512, binomial), (8192, at_once), (16384, binomial)], at_once),
        Otherwise(&[(512, binomial)], at_once),
    ] }
};

/// Allgather.
pub(in crate::collective) static ALLGATHER: DecisionTable<allgather::Algorithm> = {
    use allgather::direct::{pair, ring};
    use allgather::doubling::{bruck, recursive};
    use allgather::neighbors::neighbor_exchange;
    DecisionTable { by: Bytes, rules: &[
        Ranks(3, &[], pair),
        Ranks(32, &[], recursive),
        Ranks(64, &[(1024, recursive), (65536, neighbor_exchange)], ring),
        Ranks(128, &[(512, recursive), (65536, neighbor_exchange)], ring),
        Ranks(256, &[(512, recursive), (131_072, neighbor_exchange), (524_288, ring),
            (1_048_576, neighbor_exchange)], ring),
        Ranks(512, &[(32, recursive), (128, bruck), (1024, recursive), (131_072, neighbor_exchange),
            (524_288, ring), (1_048_576, neighbor_exchange)], ring),
        Ranks(1024, &[(64, recursive), (256, bruck), (2048, recursive)], neighbor_exchange),
        Ranks(2048, &[(4, recursive), (8, bruck), (16, recursive), (32, bruck), (256, recursive),
            (512, bruck), (4096, recursive)], neighbor_exchange),
        Ranks(4096, &[(32, bruck), (128, recursive), (512, bruck), (4096, recursive)], neighbor_exchange),
        Otherwise(&[(2, recursive), (8, bruck), (16, recursive), (512, bruck),
            (4096, recursive)], neighbor_exchange),
    ] }
};

/// Allgatherv.
pub(in crate::collective) static ALLGATHERV: DecisionTable<allgather::Algorithm> = {
    use allgather::direct::pair;
    use allgather::doubling::bruck;
    use allgather::gather_bcast::gather_bcast;
    use allgather::neighbors::neighbor_exchange;
    use allgatherv::segmented_ring::segmented_ring;
    DecisionTable { by: BytesPerRank, rules: &[
        Ranks(3, &[(2048, segmented_ring), (4096, pair), (8192, segmented_ring)], pair),
        Ranks(8, &[(256, gather_bcast), (4096, neighbor_exchange), (8192, segmented_ring),
            (16384, neighbor_exchange), (262_144, bruck)], neighbor_exchange),
        Ranks(16, &[(1024, gather_bcast)], bruck),
        Ranks(32, &[(128, gather_bcast), (262_144, bruck)], segmented_ring),
        Ranks(64, &[(256, gather_bcast), (8192, bruck)], segmented_ring),
        Ranks(128, &[(256, gather_bcast), (4096, bruck)], segmented_ring),
        Ranks(256, &[(1024, bruck), (65536, neighbor_exchange)], segmented_ring),
        Ranks(512, &[(1024, bruck)], segmented_ring),
        Ranks(1024, &[(512, bruck), (1024, gather_bcast), (4096, bruck),
            (1_048_576, neighbor_exchange)], segmented_ring),
        Otherwise(&[(4096, bruck)], neighbor_exchange),
    ] }
};

/// Alltoall; its `linear_sync` counts as linear.
pub(in crate::collective) static ALLTOALL: DecisionTable<alltoall::Algorithm> = {
    use alltoall::bruck::bruck;
    use alltoall::linear::from_next as linear;
    use alltoall::pairwise::pair;
    DecisionTable { by: Bytes, rules: &[
        Ranks(3, &[(2, pair), (4, linear), (16, pair), (64, linear), (256, pair), (4096, linear),
            (32768, pair), (1_048_576, linear)], pair),
        Ranks(8, &[(524_288, linear), (1_048_576, pair)], linear),
        Ranks(16, &[], linear),
        Ranks(32, &[(4, linear), (512, bruck)], linear),
        Ranks(64, &[(512, bruck)], linear),
        Ranks(256, &[(1024, bruck), (262_144, linear)], pair),
        Ranks(512, &[(1024, bruck), (32768, linear)], pair),
        Ranks(1024, &[(512, bruck), (262_144, linear)], pair),
        Ranks(2048, &[(512, bruck)], linear),
        Ranks(4096, &[(1024, bruck)], linear),
        Otherwise(&[(2048, bruck)], linear),
    ] }
};

/// Alltoallv; by the number of ranks alone.
pub(in crate::collective) static ALLTOALLV: DecisionTable<alltoall::Algorithm> = {
    use alltoall::linear::in_order;
    use alltoall::pairwise::pair;
    DecisionTable { by: Bytes, rules: &[
        Ranks(4, &[], pair),
        Ranks(64, &[], in_order),
        Ranks(128, &[], pair),
        Ranks(256, &[], in_order),
        Ranks(1024, &[], pair),
        Otherwise(&[], in_order),
    ] }
};

/// Reduce-scatter.
pub(in crate::collective) static REDUCE_SCATTER: DecisionTable<reduce_scatter::Algorithm> = {
    use reduce_scatter::butterfly::butterfly;
    use reduce_scatter::halving::recursive;
    use reduce_scatter::linear::by_regularity as basic;
    use reduce_scatter::rounds::ring;
    DecisionTable { by: Bytes, rules: &[
        Ranks(4, &[(65536, ring), (131_072, butterfly)], ring),
        Ranks(8, &[(8, basic), (262_144, recursive)], ring),
        Ranks(32, &[(262_144, recursive)], ring),
        Ranks(64, &[(64, basic), (2048, recursive), (524_288, butterfly)], ring),
        Ranks(128, &[(256, basic), (512, recursive), (2048, butterfly), (4096, recursive)], butterfly),
        Ranks(256, &[(256, basic), (512, recursive)], butterfly),
        Ranks(512, &[(256, basic), (1024, recursive)], butterfly),
        Ranks(1024, &[(512, basic), (2048, recursive), (8192, butterfly), (16384, recursive)], butterfly),
        Ranks(2048, &[(512, basic), (4096, recursive), (16384, butterfly), (32768, recursive)], butterfly),
        Ranks(4096, &[(512, basic), (4096, recursive)], butterfly),
        Otherwise(&[(1024, basic), (8192, recursive)], butterfly),
    ] }
};
