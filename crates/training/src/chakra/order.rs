//! The order in which a rank begins its nodes: at most one operation of the processor, one computation and one communication of the GPU
//! at a time, tried by ascending ids, as in ASTRA-sim.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::{Node, NodeKind};

/// What a node occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Stream {
    /// The processor of the host.
    Processor,
    /// The computing units of the GPU.
    Computation,
    /// The communication of the GPU.
    Communication,
}

impl Stream {
    /// Number of streams.
    pub(crate) const COUNT: usize = 3;

    /// Returns the stream of a node; receives and nodes without work occupy none.
    pub(crate) fn of(node: &Node) -> Option<Self> {
        match node.kind {
            NodeKind::Nothing | NodeKind::Receive => None,
            _ if node.is_cpu => Some(Self::Processor),
            NodeKind::Compute => Some(Self::Computation),
            NodeKind::Send | NodeKind::Collective => Some(Self::Communication),
        }
    }
}

/// Returns the number of dependencies of each node, and its dependents.
pub(crate) fn dependents(nodes: &[Node]) -> (Vec<u32>, Vec<Vec<u32>>) {
    let mut dependents = vec![Vec::new(); nodes.len()];
    for (index, node) in (0..).zip(nodes) {
        node.after.iter().for_each(|earlier| dependents[*earlier as usize].push(index));
    }
    (nodes.iter().map(|node| node.after.len() as u32).collect(), dependents)
}

/// Returns the nodes of each stream in the order in which they begin, if each takes so many nanoseconds.
pub(super) fn streams(nodes: &[Node], nanos: impl Fn(&Node) -> u64) -> [Vec<u32>; Stream::COUNT] {
    let (mut left, dependents) = dependents(nodes);
    let mut ready: BTreeSet<u32> = (0..nodes.len() as u32).filter(|node| left[*node as usize] == 0).collect();
    let mut running: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    let mut order: [Vec<u32>; Stream::COUNT] = Default::default();
    let mut is_busy = [false; Stream::COUNT];
    let mut now = 0;
    loop {
        let can_begin =
            |node: &&u32| Stream::of(&nodes[**node as usize]).is_none_or(|stream| !is_busy[stream as usize]);
        let next = ready.iter().find(can_begin).copied();
        if let Some(node) = next {
            ready.remove(&node);
            if let Some(stream) = Stream::of(&nodes[node as usize]) {
                is_busy[stream as usize] = true;
                order[stream as usize].push(node);
            }
            running.push(Reverse((now + nanos(&nodes[node as usize]), node)));
        } else if let Some(Reverse((end, node))) = running.pop() {
            now = end;
            if let Some(stream) = Stream::of(&nodes[node as usize]) {
                is_busy[stream as usize] = false;
            }
            for dependent in &dependents[node as usize] {
                left[*dependent as usize] -= 1;
                if left[*dependent as usize] == 0 {
                    ready.insert(*dependent);
                }
            }
        } else {
            return order;
        }
    }
}
