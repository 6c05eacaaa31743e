//! Flowlets: packets between two hosts without a pause among them, which a node sends over one output (Vanini et al., "Let It Flow:
//! Resilient Asymmetric Load Balancing with Flowlet Switching", NSDI 2017).

use netmodel::HostId;
use pdes_core::StateVisitor;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::machine::{MAX_WINDOW, PacketMachine};
use crate::packet::{MessageKey, Packet, visit_picos};

/// The flowlets that pass the nodes of a region.
#[derive(Debug)]
pub(super) struct Flowlets {
    /// Longest pause within a flowlet \[ps\].
    gap: u64,
    /// By node and both hosts.
    known: FxHashMap<(u32, HostId, HostId), Flowlet>,
    /// Number of flowlets at which those that are over are forgotten.
    most: usize,
}

/// A flowlet at a node.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Flowlet {
    /// Arrival of the last packet \[ps\].
    last: u64,
    /// Output port, as the machine counts.
    port: u32,
}

/// Smallest number of flowlets at which those that are over are forgotten.
const LEAST: usize = 1024;

impl Flowlets {
    pub(super) fn new(machine: &PacketMachine<'_>) -> Self {
        Self { gap: machine.flowlet_gap, known: FxHashMap::default(), most: LEAST }
    }

    /// Returns the output port of the flowlet that a packet continues at a node; `None` if it begins another one, or the port is none of
    /// these.
    pub(super) fn continued(&mut self, node: u32, packet: &Packet, ports: &[u32]) -> Option<u32> {
        let MessageKey { src, dst, .. } = packet.message;
        let Flowlet { last, port } = self.known.get_mut(&(node, src, dst))?;
        let is_continued = packet.at <= last.saturating_add(self.gap) && ports.contains(port);
        is_continued.then(|| {
            *last = packet.at;
            *port
        })
    }

    /// Begins a flowlet that takes a port.
    pub(super) fn begin(&mut self, node: u32, packet: &Packet, port: u32) {
        let MessageKey { src, dst, .. } = packet.message;
        if self.known.len() >= self.most {
            // Nodes can be a window apart, and hosts another one.
            let kept = self.gap.saturating_add(2 * MAX_WINDOW);
            self.known.retain(|_, flowlet| flowlet.last.saturating_add(kept) >= packet.at);
            self.most = LEAST.max(2 * self.known.len());
        }
        self.known.insert((node, src, dst), Flowlet { last: packet.at, port });
    }

    /// Visits the flowlets that may be continued by packets which arrive from the horizon on.
    pub(super) fn visit(&mut self, horizon: u64, visitor: &mut StateVisitor<'_>) {
        let Self { gap, known, most: _ } = self;
        if visitor.saves_whole(known) {
            return;
        }
        if visitor.is_observing() {
            known.retain(|_, flowlet| flowlet.last.saturating_add(*gap) >= horizon);
        }
        let mut entries: Vec<_> = known.iter_mut().collect();
        entries.sort_unstable_by_key(|&(&key, _)| key);
        visitor.compare(&entries.len());
        for (key, Flowlet { last, port }) in entries {
            visitor.compare(key);
            visit_picos(last, visitor);
            visitor.compare(port);
        }
    }
}
