//! Allgathers for uniform nodes with block mapping.
//!
//! Rank `r` is taken to be on node `r / c` if every node has `c` ranks, as in SimGrid whatever the placement, and each rank
//! to have a node of its own if nodes have different numbers of ranks. n is the size of a block, N the number of nodes.

use super::{Args, direct};
use crate::collective::blocks::repeated;
use crate::collective::{Member, Schedule, Step, exchange, irecv, irecvs, isend, isends, recv, send};

/// Position of a member among nodes of `cores` ranks each.
#[derive(Clone, Copy)]
struct NodePosition {
    rank: u32,
    size: u32,
    cores: u32,
    core: u32,
    /// Lowest rank of the node.
    base: u32,
}

impl NodePosition {
    fn of(member: Member<'_>) -> Self {
        let Member { rank, size, layout, .. } = member;
        let cores = layout.ranks_per_node().unwrap_or(1);
        Self { rank, size, cores, core: rank % cores, base: rank / cores * cores }
    }

    fn nodes(self) -> u32 {
        self.size / self.cores
    }

    /// Returns the rank of the same core `distance` nodes further round the ring.
    fn node_after(self, distance: u32) -> u32 {
        let shift = u64::from(distance) * u64::from(self.cores);
        ((u64::from(self.rank) + shift) % u64::from(self.size)) as u32
    }

    fn node_before(self, distance: u32) -> u32 {
        self.node_after(self.nodes() - distance)
    }

    /// Returns the exchange of blocks within the node, in rounds.
    fn within_node<'a>(self, args: Args<'a>) -> impl Iterator<Item = Step> + Send + 'a {
        (1..self.cores).map(move |round| {
            let to = self.base + (self.core + round) % self.cores;
            let from = self.base + (self.core + self.cores - round) % self.cores;
            exchange(to, args.sent.bytes(), from, args.blocks.bytes_of(from))
        })
    }
}

/// Exchanges within nodes in rounds; then each first rank exchanges the blocks of its node with all others at once, and
/// sends all blocks to the ranks of its node.
///
/// Cost: c alpha + c n beta within nodes, alpha + (N - 1) c n beta between them, (c - 1)(alpha + P n beta) within them.
/// Source: SimGrid's `smp_simple`, by Patarasuk (STAR-MPI).
pub(in crate::collective) fn simple<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let place = NodePosition::of(member);
    let (node, all) =
        (repeated(args.sent, place.cores.into()).bytes(), repeated(args.sent, place.size.into()).bytes());
    let within = place.within_node(args);
    if place.core > 0 {
        return Box::new(within.chain([recv(place.base, all)]));
    }
    let receives = irecvs((1..place.nodes()).map(move |i| place.node_before(i)), move |_| node);
    let sends = isends((1..place.nodes()).map(move |i| place.node_after(i)), move |_| node);
    let down = (1..place.cores).map(move |core| send(place.base + core, all));
    Box::new(within.chain(receives).chain(sends).chain([Step::WaitAll]).chain(down))
}

/// Exchanges within nodes in rounds; then the blocks of whole nodes travel round a ring of first ranks, each of which
/// forwards what it receives down the chain of its node.
///
/// Cost: (N + c - 1)(alpha + c n beta) after the rounds within nodes. On a single node as SimGrid's `default`. Source:
/// SimGrid's `SMP_NTS`, by Patarasuk (STAR-MPI).
pub(in crate::collective) fn ring_of_nodes<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let place = NodePosition::of(member);
    if place.size <= place.cores {
        return direct::linear(member, args);
    }
    let node = repeated(args.sent, place.cores.into()).bytes();
    let within = place.within_node(args);
    let last = place.core + 1 == place.cores;
    let down = (!last).then(|| send(place.rank + 1, node));
    let blocks = place.nodes() - 1;
    if place.core > 0 {
        let chain = (0..blocks).flat_map(move |_| [recv(place.rank - 1, node)].into_iter().chain(down));
        return Box::new(within.chain(chain));
    }
    let (next, previous) = (place.node_after(1), place.node_before(1));
    let receives = (0..blocks).map(move |_| irecv(previous, node));
    let passed = (0..blocks).flat_map(move |block| {
        let on = (block + 1 < blocks).then(|| isend(next, node));
        [Step::Wait { request: block }].into_iter().chain(on).chain(down)
    });
    Box::new(within.chain(receives).chain([isend(next, node)]).chain(passed).chain([Step::WaitAll]))
}

/// Ranks of the same core forward blocks round a ring of nodes, and meanwhile send each block that they have to all ranks
/// of their node.
///
/// Cost: (N - 1)(alpha + n beta) between nodes, overlapped with N (c - 1) blocks within. Source: SimGrid's `loosely_lr`, by
/// Patarasuk (STAR-MPI).
pub(in crate::collective) fn loose_rings<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let place = NodePosition::of(member);
    let block = args.sent.bytes();
    let (next, previous) = (place.node_after(1), place.node_before(1));
    let rounds = (0..place.nodes()).flat_map(move |round| {
        let more = round + 1 < place.nodes();
        let posts = (0..place.cores).filter(move |&core| core != place.core || more).flat_map(move |core| {
            let other = place.base + core;
            let (from, to) = if core == place.core { (previous, next) } else { (other, other) };
            [irecv(from, block), isend(to, block)]
        });
        let between = 2 * (round * place.cores + place.core);
        posts.chain(more.then_some(Step::Wait { request: between }))
    });
    Box::new(rounds.chain([Step::WaitAll]))
}
