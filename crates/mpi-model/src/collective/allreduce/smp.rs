//! Allreduces on each node, then among the first ranks of the nodes.
//!
//! As in SimGrid, block mapping is assumed even where it does not hold; if nodes have different numbers of ranks, each rank
//! counts as a node.

use crate::collective::halving::{PowerOfTwoCore, Representative};
use crate::collective::member::{Elements, empty_schedule};
use crate::collective::schedule_builder::{ScheduleBuilder, build_rounds, build_schedule};
use crate::collective::virtual_ranks::{broadcast, reduce};
use crate::collective::{Member, Schedule, Steps, exchange};

/// Binomial reductions on the nodes and among them, then binomial broadcasts back.
///
/// Cost: 2 (ceil(log2 N) + ceil(log2 C)) (alpha + n beta) on N nodes of C ranks. Source: STAR-MPI's `smp_binomial`.
pub(in crate::collective) fn smp_binomial(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let nodes = NodePosition::new(member);
    build_schedule(move |steps| {
        for stage in 0..4 {
            nodes.stage(stage, data, steps);
        }
    })
}

/// [`smp_binomial`] in segments of 4096 elements, each of which is one stage behind the one before; elements beyond the
/// last whole segment are left out, as in SimGrid.
///
/// Cost: (n / s + 3) times the longest stage. Source: STAR-MPI's `smp_binomial_pipeline`.
pub(in crate::collective) fn smp_binomial_pipeline(member: Member<'_>, data: Elements) -> Schedule<'_> {
    if data.count == 0 {
        return empty_schedule();
    }
    let nodes = NodePosition::new(member);
    let segment = data.with_count(data.count.min(4096));
    let segments = data.count / segment.count;
    build_rounds(segments + 3, move |round, steps| {
        for stage in (0..4).filter(|stage| (*stage..segments + stage).contains(&round)) {
            nodes.stage(stage, segment, steps);
        }
    })
}

/// Binomial reduction on the nodes, recursive doubling among them, binomial broadcast on the nodes.
///
/// Cost: (log2 N + 2 log2 C) (alpha + n beta) on N nodes of C ranks. Source: STAR-MPI's `smp_rdb`.
pub(in crate::collective) fn smp_recursive_doubling(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let nodes = NodePosition::new(member);
    let bytes = data.bytes();
    let among = build_schedule(move |steps| {
        let core = PowerOfTwoCore::new(nodes.count, Representative::Odd);
        let (node, first) = (nodes.node, |node: u32| node * nodes.cores);
        if let Some(partner) = core.fold_partner(node) {
            match core.virtual_rank(node) {
                Some(_) => steps.recv(first(partner), bytes),
                None => steps.send(first(partner), bytes),
            }
        }
        if let Some(place) = core.virtual_rank(node) {
            for partner in (0..core.levels).map(|level| first(core.rank(place ^ 1 << level))) {
                steps.exchange(partner, bytes, partner, bytes);
            }
        }
        if let Some(partner) = core.fold_partner(node) {
            match core.virtual_rank(node) {
                Some(_) => steps.send(first(partner), bytes),
                None => steps.recv(first(partner), bytes),
            }
        }
    });
    nodes.between_node_phases(data, among)
}

/// Binomial reduction on the nodes, reduce-scatter and allgather round the ring of nodes, binomial broadcast on the nodes.
/// The elements beyond N equal blocks are not sent in the ring, as in SimGrid.
///
/// Cost: 2 (N - 1) alpha + 2 (N - 1) / N n beta + 2 log2 C (alpha + n beta) on N nodes of C ranks. Source: STAR-MPI's
/// `smp_rsag`.
pub(in crate::collective) fn smp_ring(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let nodes = NodePosition::new(member);
    let block = data.size_of(data.count / u64::from(nodes.count));
    let (next, previous) = nodes.neighbours();
    let round = move |_| exchange(next, block, previous, block);
    nodes.between_node_phases(data, Box::new((0..2 * (nodes.count - 1)).map(round)))
}

/// [`smp_ring`] with the last block longer by the remaining elements.
///
/// Source: STAR-MPI's `smp_rsag_lr`.
pub(in crate::collective) fn smp_whole_ring(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let nodes = NodePosition::new(member);
    let count = u64::from(nodes.count);
    let (next, previous) = nodes.neighbours();
    // The block of the node `back` places before this one; SimGrid recognises the last one by its offset in the vector,
    // which is that of all blocks if they are empty.
    let block = move |back: u64| {
        let (equal, rest) = (data.count / count, data.count % count);
        let last = (u64::from(nodes.node) + 2 * count - back) % count == count - 1 || equal == 0;
        data.size_of(equal + if last { rest } else { 0 })
    };
    let round = move |round: u64| {
        let back = if round < count - 1 { round + 1 } else { round - (count - 1) };
        exchange(next, block(back), previous, block(back + 1))
    };
    nodes.between_node_phases(data, Box::new((0..2 * (count - 1)).map(round)))
}

/// Binomial reduction on the nodes, recursive halving and doubling among them, binomial broadcast on the nodes. Halves are rounded
/// down, as in SimGrid. For powers of two of ranks.
///
/// Cost: 2 log2 N alpha + 2 (N - 1) / N n beta + 2 log2 C (alpha + n beta) on N nodes of C ranks. Source: STAR-MPI's
/// `smp_rsag_rab`.
pub(in crate::collective) fn smp_halving(member: Member<'_>, data: Elements) -> Schedule<'_> {
    let nodes = NodePosition::new(member);
    let levels = nodes.count.ilog2();
    let among = build_schedule(move |steps| {
        let last = data.count >> levels;
        for level in 0..levels {
            let partner = (nodes.node ^ 1 << level) * nodes.cores;
            let bytes = data.size_of(data.count >> (level + 1));
            steps.exchange(partner, bytes, partner, bytes);
        }
        for level in (0..levels).rev() {
            let partner = (nodes.node ^ 1 << level) * nodes.cores;
            let bytes = data.size_of(last << (levels - 1 - level));
            steps.exchange(partner, bytes, partner, bytes);
        }
    });
    nodes.between_node_phases(data, among)
}

/// Position of one rank among the nodes.
#[derive(Clone, Copy, Debug)]
struct NodePosition {
    /// Number of ranks per node.
    cores: u32,
    count: u32,
    node: u32,
    /// Local rank on the node.
    core: u32,
}

impl NodePosition {
    fn new(member: Member<'_>) -> Self {
        let cores = member.layout.ranks_per_node().unwrap_or(1);
        Self { cores, count: member.size / cores, node: member.rank / cores, core: member.rank % cores }
    }

    /// Returns the first ranks of the next node and of the previous one.
    fn neighbours(self) -> (u32, u32) {
        let at = |node: u32| node % self.count * self.cores;
        (at(self.node + 1), at(self.node + self.count - 1))
    }

    /// Appends one of four stages: reduction on the node, reduction among the nodes, broadcast among the nodes, broadcast
    /// on the node.
    fn stage(self, stage: u64, data: Elements, steps: &mut ScheduleBuilder) {
        let (here, among) = (|core: u32| self.node * self.cores + core, |node: u32| node * self.cores);
        match stage {
            0 => reduce(self.core, self.cores, here, data, steps),
            1 if self.core == 0 => reduce(self.node, self.count, among, data, steps),
            2 if self.core == 0 => broadcast(self.node, self.count, among, data, steps),
            3 => broadcast(self.core, self.cores, here, data, steps),
            _ => {}
        }
    }

    /// Returns a binomial reduction on each node, `among` on the first ranks, and a binomial broadcast on each node.
    fn between_node_phases<'a>(self, data: Elements, among: Schedule<'a>) -> Schedule<'a> {
        let before = build_schedule(move |steps| self.stage(0, data, steps));
        let among = if self.core == 0 { among } else { empty_schedule() };
        Box::new(before.then(among).then(build_schedule(move |steps| self.stage(3, data, steps))))
    }
}
