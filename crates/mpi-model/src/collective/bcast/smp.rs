//! Broadcasts to the first rank of each node, and from there to the other ranks of the node.
//!
//! As in SimGrid, block mapping is assumed even where it does not hold; if nodes have different numbers of ranks, MPICH's
//! selection is used.

use super::pipelined::from_rank_0;
use super::{Args, Bcast, binomial_tree};
use crate::collective::pipeline::SendMode;
use crate::collective::schedule_builder::build_schedule;
use crate::collective::selector::mpich;
use crate::collective::tree::Tree;
use crate::collective::virtual_ranks::broadcast;
use crate::collective::{Member, Schedule, Selectable, Steps, recv, send};

/// Pipelines of 8 KiB segments along the chain of nodes and along the chain on each node.
///
/// Cost: (N + C - 3 + n / s) (alpha + s beta) on N nodes of C ranks. Source: STAR-MPI's `SMP_linear`. It sends segments
/// twice where nodes have one rank each, and from the last node back to rank 0; no rank receives those, and they are left
/// out.
pub(in crate::collective) fn smp_linear<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let Some(cores) = member.layout.ranks_per_node() else {
        return Bcast::by_table(&mpich::BCAST, member, args);
    };
    let Member { rank, size, .. } = member;
    if size <= cores {
        return binomial_tree(member, args);
    }
    let first = rank % cores == 0;
    let parent = if first { rank.checked_sub(cores) } else { Some(rank - 1) };
    let next_node = (first && rank + cores < size).then(|| rank + cores);
    let next_core = ((rank + 1) % cores != 0).then(|| rank + 1);
    let children = next_node.into_iter().chain(next_core).collect();
    from_rank_0(member, args, Tree { parent, children }, SendMode::Blocking)
}

/// Pipelines of 8 KiB segments down the binary heap of nodes and down a heap on each node.
///
/// Cost: (2 log2 N + 2 log2 C + 4 n / s) (alpha + s beta) on N nodes of C ranks. Source: STAR-MPI's `SMP_binary`.
pub(in crate::collective) fn smp_binary<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let Some(cores) = member.layout.ranks_per_node() else {
        return Bcast::by_table(&mpich::BCAST, member, args);
    };
    let Member { rank, size, .. } = member;
    let (node, core) = (rank / cores, rank % cores);
    let parent = match core {
        0 => node.checked_sub(1).map(|below| below / 2 * cores),
        _ => Some(rank - core + (core - 1) / 2),
    };
    let nodes =
        [1, 2].map(|side| (2 * node + side) * cores).into_iter().filter(|&child| core == 0 && child < size);
    let here = [1, 2].map(|side| 2 * core + side).into_iter().filter(|&child| child < cores);
    let children = nodes.chain(here.map(|child| rank - core + child)).collect();
    from_rank_0(member, args, Tree { parent, children }, SendMode::Blocking)
}

/// A binomial tree over the nodes, then one on each node.
///
/// Cost: (ceil(log2 N) + ceil(log2 C)) (alpha + n beta) on N nodes of C ranks. Source: STAR-MPI's `SMP_binomial`.
pub(in crate::collective) fn smp_binomial<'a>(member: Member<'a>, args: Args) -> Schedule<'a> {
    let Some(cores) = member.layout.ranks_per_node() else {
        return Bcast::by_table(&mpich::BCAST, member, args);
    };
    let (root, bytes, rank) = (args.root, args.data.bytes(), member.rank);
    let to_0 = match rank {
        _ if root == 0 => None,
        0 => Some(recv(root, bytes)),
        _ if rank == root => Some(send(0, bytes)),
        _ => None,
    };
    let (node, core) = (rank / cores, rank % cores);
    Box::new(to_0.into_iter().then(build_schedule(move |steps| {
        if core == 0 {
            broadcast(node, member.size / cores, |node| node * cores, args.data, steps);
        }
        broadcast(core, cores, |core| node * cores + core, args.data, steps);
    })))
}
