//! Nodes, their ports, and queues of nodes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netmodel::HostId;

use super::transmission;

#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) first_port: u32,
    pub(super) outputs: u32,
    pub(super) first_input: u32,
    pub(super) inputs: u32,
    /// First word of `occupied`.
    pub(super) first_word: u32,
    /// A channel leads to another region.
    pub(super) is_at_border: bool,
    /// Number in the graph, which hashes are of.
    pub(super) number: u32,
    /// Instant in the queue; [`IDLE`] if there is none.
    pub(super) next: u64,
}

pub(super) const IDLE: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    /// \[ps\]
    pub(super) free_at: u64,
    pub(super) picos_per_byte: f64,
    /// Time of a full packet \[ps\].
    pub(super) packet_time: u64,
    pub(super) latency: u64,
    pub(super) far: Far,
}

impl Port {
    /// Returns the time of a packet \[ps\]; `full` is the size of most of them \[B\].
    #[inline]
    pub(super) fn time(&self, bytes: u32, full: u32) -> u64 {
        if bytes == full { self.packet_time } else { transmission(bytes, self.picos_per_byte) }
    }
}

/// Other end of a channel.
#[derive(Clone, Copy, Debug)]
pub(super) enum Far {
    Switch {
        node: u32,
        ring: u32,
    },
    Host {
        host: HostId,
        node: u32,
        ring: u32,
    },
    /// A node of another region; the input port as the machine counts.
    Remote {
        region: u32,
        input: u32,
    },
}

/// A queue of nodes by an instant of each. A node has a valid entry if it is that of its `next`.
#[derive(Debug, Default)]
pub(super) struct NodeQueue(BinaryHeap<Reverse<(u64, u32)>>);

impl NodeQueue {
    /// Moves the instant of a node forward, if it is later.
    #[inline]
    pub(super) fn set(&mut self, nodes: &mut [Node], node: u32, at: u64) {
        if at < nodes[node as usize].next {
            nodes[node as usize].next = at;
            self.0.push(Reverse((at, node)));
        }
    }

    /// Returns the first instant.
    #[inline]
    pub(super) fn next(&mut self, nodes: &[Node]) -> u64 {
        while let Some(&Reverse((at, node))) = self.0.peek() {
            if nodes[node as usize].next == at {
                return at;
            }
            self.0.pop();
        }
        IDLE
    }

    /// Takes the nodes of instants before `end`, in the order of nodes.
    pub(super) fn take_before(&mut self, nodes: &mut [Node], end: u64, due: &mut Vec<u32>) {
        due.clear();
        while let Some(&Reverse((at, node))) = self.0.peek()
            && at < end
        {
            self.0.pop();
            let next = &mut nodes[node as usize].next;
            if *next == at {
                *next = IDLE;
                due.push(node);
            }
        }
        due.sort_unstable();
    }
}
