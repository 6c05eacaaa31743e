//! The analytical networks of ASTRA-sim, with its units and truncations, to compare with its results.
//!
//! A run has one dimension of NPUs, whose collective operations are rings over all of them, with one active chunk: what the closed form
//! of [`System::collective`] covers. Everything else is refused by name.

mod config;
mod network;

pub use config::{AstraError, System};
pub use network::{Chunk, Link, Network, Topology};

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::CollectiveKind;
use crate::chakra::{ExecutionTrace, Node, NodeKind, Stream};

/// Runs an execution trace on all NPUs; returns the end of each one \[ns\].
///
/// At most one operation of each stream runs at a time; ready nodes are tried by ascending ids. A computation takes its recorded
/// duration, 1 ns if that is 0. A collective operation begins when the last NPU reaches it.
///
/// # Errors
/// Fails if the trace has other than computations and collective operations, or these differ between NPUs.
pub fn simulate(trace: &ExecutionTrace, system: &System, network: &Network) -> Result<Vec<u64>, AstraError> {
    let npus = network.npus();
    if trace.ranks.len() != npus as usize {
        return Err(AstraError::Npus { ranks: trace.ranks.len(), npus });
    }
    let mut npus: Vec<Npu<'_>> = trace.ranks.iter().map(|nodes| Npu::new(nodes)).collect();
    let mut events: BinaryHeap<Reverse<(u64, u32, u32)>> = BinaryHeap::new();
    // NPUs that have reached the operation in progress.
    let mut waiting: Vec<(u32, u32)> = Vec::new();
    let mut ends = vec![0; npus.len()];
    let mut now = 0;
    loop {
        for rank in 0..npus.len() as u32 {
            while let Some(node) = npus[rank as usize].issue() {
                let of = &trace.ranks[rank as usize][node as usize];
                match of.kind {
                    NodeKind::Nothing => events.push(Reverse((now, rank, node))),
                    NodeKind::Compute => {
                        events.push(Reverse((now + system.computation(of), rank, node)));
                    }
                    NodeKind::Collective => waiting.push((rank, node)),
                    NodeKind::Send | NodeKind::Receive => {
                        return Err(AstraError::Message { rank, id: of.id });
                    }
                }
            }
        }
        if waiting.len() == npus.len() {
            let operation = |(rank, node): &(u32, u32)| {
                let node = &trace.ranks[*rank as usize][*node as usize];
                (node.collective, node.bytes)
            };
            let (kind, bytes) = operation(&waiting[0]);
            if let Some((rank, _)) = waiting.iter().find(|other| operation(other) != (kind, bytes)) {
                return Err(AstraError::Collective { rank: *rank });
            }
            let duration = system.collective(network, kind, bytes)?;
            events.extend(waiting.drain(..).map(|(rank, node)| Reverse((now + duration, rank, node))));
        }
        let Some(Reverse((end, rank, node))) = events.pop() else { break };
        now = end;
        ends[rank as usize] = end;
        npus[rank as usize].finish(node);
    }
    match waiting.first() {
        Some((rank, _)) => Err(AstraError::Collective { rank: *rank }),
        None => Ok(ends),
    }
}

/// An NPU and what it may begin.
struct Npu<'t> {
    nodes: &'t [Node],
    left: Vec<u32>,
    dependents: Vec<Vec<u32>>,
    ready: BTreeSet<u32>,
    is_busy: [bool; Stream::COUNT],
}

impl<'t> Npu<'t> {
    fn new(nodes: &'t [Node]) -> Self {
        let (left, dependents) = crate::chakra::dependents(nodes);
        let ready = (0..nodes.len() as u32).filter(|node| left[*node as usize] == 0).collect();
        Self { nodes, left, dependents, ready, is_busy: [false; Stream::COUNT] }
    }

    /// Begins the first ready node whose stream is idle.
    fn issue(&mut self) -> Option<u32> {
        let stream = |node: u32| Stream::of(&self.nodes[node as usize]);
        let is_idle = |node: &&u32| stream(**node).is_none_or(|stream| !self.is_busy[stream as usize]);
        let node = *self.ready.iter().find(is_idle)?;
        if let Some(stream) = stream(node) {
            self.is_busy[stream as usize] = true;
        }
        self.ready.remove(&node);
        Some(node)
    }

    fn finish(&mut self, node: u32) {
        if let Some(stream) = Stream::of(&self.nodes[node as usize]) {
            self.is_busy[stream as usize] = false;
        }
        for dependent in &self.dependents[node as usize] {
            self.left[*dependent as usize] -= 1;
            if self.left[*dependent as usize] == 0 {
                self.ready.insert(*dependent);
            }
        }
    }
}

impl System {
    /// Returns the duration of a computation \[ns\].
    fn computation(&self, node: &Node) -> u64 {
        (node.micros * 1000).max(1)
    }

    /// Returns the duration of a collective operation in a ring of all NPUs \[ns\]: `s` chunks one after the other, each of k steps of
    /// trunc(latency + size / bandwidth), with k + 1 delays of the endpoint and 3 accesses to memory for each reduction.
    ///
    /// # Errors
    /// Fails if the operation has no closed form.
    pub fn collective(
        &self,
        network: &Network,
        kind: Option<CollectiveKind>,
        bytes: u64,
    ) -> Result<u64, AstraError> {
        let npus = u64::from(network.npus());
        let splits = self.splits;
        let (steps, reductions, size) = match kind {
            _ if network.topology() != Topology::Ring => return Err(AstraError::Topology),
            Some(CollectiveKind::AllReduce) => (2 * (npus - 1), npus - 1, bytes / splits / npus),
            Some(CollectiveKind::AllGather) => (npus - 1, 0, bytes / splits),
            other => return Err(AstraError::Kind { found: other }),
        };
        let memory = (size as f64 / self.local_memory_bandwidth) as u64;
        let step = network.link().delivery(size);
        Ok(splits * (steps * step + reductions * 3 * memory + (steps + 1) * self.endpoint_delay))
    }
}
