//! NCCL's choice of algorithm and protocol by size: its model of time, latency + bytes / bandwidth (`src/graph/tuning.cc` of NCCL 2.10,
//! commit 01afd20), without `CollNet`.

use crate::CollectiveKind;

use super::Algorithm;

/// Protocol of messages between GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Protocol {
    /// Words of 8 bytes, half of each a flag (LL).
    LowLatency,
    /// Lines of 128 bytes, 8 of each a flag (LL128).
    LowLatency128,
    /// Chunks with a flag each (Simple).
    Simple,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 3] = [Self::LowLatency, Self::LowLatency128, Self::Simple];

    /// Returns the number of bytes that a message of `bytes` takes on a link.
    pub fn wire(self, bytes: u64) -> u64 {
        match self {
            Self::LowLatency => 2 * bytes,
            Self::LowLatency128 => bytes.div_ceil(120) * 128,
            Self::Simple => bytes,
        }
    }
}

/// GPUs that NCCL connects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nccl {
    /// Number of GPUs of a node.
    pub node_ranks: u32,
    /// Number of channels.
    pub channels: u32,
    /// Bandwidth of a channel within a node \[GB/s\].
    pub node_bandwidth: f64,
    /// Bandwidth of a channel between nodes \[GB/s\].
    pub network_bandwidth: f64,
}

/// What NCCL would do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// The algorithm: rings or two trees.
    pub algorithm: Algorithm,
    /// The protocol.
    pub protocol: Protocol,
    /// The time that the model expects \[us\].
    pub micros: f64,
}

/// Latencies of a call by protocol \[us\]: of trees, of rings.
const BASE: [[f64; 3]; 2] = [[4.4, 4.4, 0.0], [3.6, 10.0, 8.4]];
/// Latencies of a step over `NVLink` by protocol \[us\]: of trees, of rings.
const NODE: [[f64; 3]; 2] = [[0.52, 1.2, 28.0], [0.47, 1.9, 3.4]];
/// Latencies of a step over the network by protocol \[us\]: of trees, of rings.
const NETWORK: [[f64; 3]; 2] = [[5.0, 8.5, 50.0], [2.7, 4.0, 9.6]];
/// Factors of the bandwidth of trees by protocol and size, in powers of two from 64 B on.
#[rustfmt::skip]
const TREE_FACTORS: [[f64; 22]; 3] = [
    [1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0],
    [1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.5, 0.6, 0.6, 0.7, 0.7, 0.8, 0.9, 0.9, 1.0],
    [0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.6, 0.6, 0.7, 0.8, 0.9],
];
/// Size of a chunk of a tree \[B\].
const TREE_CHUNK: u64 = 256 << 10;

impl Nccl {
    /// Returns the choice for an operation of `bytes` on some ranks: that of the least expected time. Operations other than allreduce have
    /// rings only; `None` for those that NCCL builds of messages.
    pub fn choose(&self, kind: CollectiveKind, members: u32, bytes: u64) -> Option<Choice> {
        let chunks = bytes.div_ceil(2 * TREE_CHUNK * u64::from(self.channels)).clamp(1, 64) as u32;
        let algorithms = [Algorithm::DoubleTree { chunks }, Algorithm::Ring];
        let trees = usize::from(kind != CollectiveKind::AllReduce);
        let choices = algorithms.into_iter().enumerate().skip(trees).flat_map(|(row, algorithm)| {
            Protocol::ALL.into_iter().filter_map(move |protocol| {
                let micros = self.micros(kind, members, bytes, row, protocol)?;
                Some(Choice { algorithm, protocol, micros })
            })
        });
        choices.min_by(|one, other| one.micros.total_cmp(&other.micros))
    }

    /// Returns the expected time \[us\] of trees (row 0) or rings (row 1).
    fn micros(
        &self,
        kind: CollectiveKind,
        members: u32,
        bytes: u64,
        row: usize,
        protocol: Protocol,
    ) -> Option<f64> {
        // LL128 cannot be faster than this on a channel [GB/s].
        let (steps_of, fastest): (fn(u32) -> u32, f64) = match kind {
            CollectiveKind::AllReduce => (|ranks| 2 * (ranks - 1), 16.7),
            CollectiveKind::ReduceScatter => (|ranks| ranks - 1, 15.2),
            CollectiveKind::AllGather => (|ranks| ranks - 1, 18.3),
            CollectiveKind::Broadcast => (|ranks| ranks, 18.8),
            CollectiveKind::Reduce => (|ranks| ranks, 12.0),
            _ => return None,
        };
        let is_ring = row == 1;
        let channels = f64::from(self.channels);
        let nodes = members.div_ceil(self.node_ranks).max(1);
        let steps = steps_of(members.max(2));
        let network_steps = if nodes > 1 { steps_of(nodes) } else { 0 };
        let of_channel = if nodes <= 2 { self.node_bandwidth } else { self.network_bandwidth };
        let whole = channels * of_channel;
        let whole = if is_ring { whole } else { (0.9 * whole).min(if nodes > 2 { 80.0 } else { 110.0 }) };
        let reduces = matches!(kind, CollectiveKind::AllReduce | CollectiveKind::Reduce);
        let mut bandwidth = match (protocol, is_ring) {
            (Protocol::LowLatency, true) => whole * if nodes > 1 || reduces { 1.0 / 4.0 } else { 1.0 / 3.0 },
            (Protocol::LowLatency, false) => whole / 3.8,
            (Protocol::LowLatency128, true) => (0.92 * whole).min(fastest * channels),
            (Protocol::LowLatency128, false) => {
                let share = if nodes == 1 { 7.0 / 9.0 } else { 0.915 };
                (share * whole).min(fastest * channels * 7.0 / 9.0)
            }
            (Protocol::Simple, _) => whole,
        };
        bandwidth *= if is_ring { f64::from(members) / f64::from(steps) } else { 0.5 };
        let column = protocol as usize;
        let spread = if nodes > 1 && protocol == Protocol::LowLatency { 1.8 } else { 1.0 };
        let (node, network) = (spread * NODE[row][column], NETWORK[row][column]);
        let mut latency = BASE[row][column];
        if is_ring {
            latency += f64::from(steps - network_steps) * node + f64::from(network_steps) * network;
            let plateau = f64::from(members) / 16.0 * 65_536.0;
            if protocol == Protocol::Simple
                && nodes > 1
                && kind == CollectiveKind::AllReduce
                && bytes as f64 >= plateau
            {
                latency *= 1.9;
            }
        } else {
            let in_node = f64::from((members / nodes).saturating_sub(1));
            latency += 2.0 * (in_node * node + f64::from(nodes.ilog2()) * network);
            let size = (bytes >> 6).max(1).ilog2() as usize;
            bandwidth *= TREE_FACTORS[column].get(size).unwrap_or(&1.0);
        }
        Some(latency + bytes as f64 / (1000.0 * bandwidth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: Nccl = Nccl { node_ranks: 8, channels: 16, node_bandwidth: 15.0, network_bandwidth: 6.0 };

    #[test]
    fn choices_are_those_of_the_model() {
        let choose = |members, bytes| {
            let choice = NODES.choose(CollectiveKind::AllReduce, members, bytes).unwrap();
            (matches!(choice.algorithm, Algorithm::Ring), choice.protocol)
        };
        // On one node 14 steps of 0.47 us in a ring are less than 2 x 7 of 0.52 us in a tree.
        assert_eq!(choose(8, 64), (true, Protocol::LowLatency));
        assert_eq!(choose(8, 1 << 30), (true, Protocol::Simple));
        // On 16 nodes a ring has 254 steps, two trees 2 x (7 + 4).
        assert_eq!(choose(128, 64), (false, Protocol::LowLatency));
        assert_eq!(choose(128, 1 << 32), (true, Protocol::Simple));
        let gather = NODES.choose(CollectiveKind::AllGather, 128, 64).unwrap();
        assert_eq!((gather.algorithm, gather.protocol), (Algorithm::Ring, Protocol::LowLatency));
        assert_eq!(NODES.choose(CollectiveKind::AllToAll, 8, 64), None);
    }

    #[test]
    fn times_are_latency_and_bandwidth() {
        let micros = |members, bytes, row, protocol| {
            NODES.micros(CollectiveKind::AllReduce, members, bytes, row, protocol).unwrap()
        };
        let near =
            |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        // 3.6 us, 14 steps; a quarter of 240 GB/s, of which 8 / 14 are of use.
        near(micros(8, 60_000, 1, Protocol::LowLatency), 3.6 + 14.0 * 0.47 + 60.0 / (60.0 * 8.0 / 14.0));
        // 4.4 us, two ways of 7 steps in a node, which network and LL slow, and 4 between nodes; 80 GB/s at most, 0.6 of it at 64 KiB.
        let slow = 1.8 * 0.52;
        let tree = 4.4 + 2.0 * (7.0 * slow + 4.0 * 5.0) + 65.536 / (80.0 / 3.8 * 0.5 * 0.6);
        near(micros(128, 1 << 16, 0, Protocol::LowLatency), tree);
    }

    #[test]
    fn flags_take_a_half_or_a_sixteenth() {
        assert_eq!(Protocol::ALL.map(|protocol| protocol.wire(1200)), [2400, 1280, 1200]);
    }
}
