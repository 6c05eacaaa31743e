//! The operations as they run: what waits for them, and when they become free.

use bytemuck::{Pod, Zeroable};

use super::lane::Plan;
use super::memory::table;
use super::pool::Slot;
use crate::order::Keyed;
use crate::parameters::NANOSECOND;
use crate::schedule::{ANY, FROM_START, Kind, Tables};

/// An operation, with what changes before it is free.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Step {
    /// Length of a message \[B\] or of a computation \[ps\].
    pub(crate) size: u64,
    pub(crate) channel: u32,
    /// The rank to which a send goes.
    pub(crate) peer: u32,
    /// The edge that leaves it where that is the only one, of several the index of the first one.
    edge: u32,
    /// How many edges leave it.
    edges: u32,
    /// Dependencies that are still open.
    pub(crate) open: u32,
    pub(crate) sort: Sort,
}

const _: () = assert!(size_of::<Step>() == 32);

/// What an operation is: bits 0 and 1 are the kind, bit 2 says whether something waits for its start, bits 3 and 4 how many
/// edges leave it, where 2 is several, the others are the number of its lane.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Sort(u32);

impl Sort {
    /// Returns the number of its kind.
    #[inline]
    pub(crate) fn kind(self) -> u8 {
        (self.0 & 3) as u8
    }

    /// Returns the number of its lane; the message of a send arrives in the next one.
    #[inline]
    pub(crate) fn lane(self) -> usize {
        (self.0 >> 5) as usize
    }

    #[inline]
    fn edges(self) -> u32 {
        self.0 >> 3 & 3
    }

    #[inline]
    fn has_start_edges(self) -> bool {
        self.0 & 4 != 0
    }
}

/// An operation that has become free.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freed {
    pub(crate) node: u32,
    kind: u8,
}

impl Keyed for Freed {
    #[inline]
    fn key(&self) -> u8 {
        self.kind
    }
}

/// The operations of all hosts, in large pages: hosts take turns, and each access is to another page.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    pub(crate) tables: Tables<'a>,
    pub(crate) steps: Box<[Step]>,
    /// The edges of operations that several leave.
    edges: Box<[u32]>,
    /// How many of them are in use.
    used: usize,
    /// Operations that have started.
    pub(crate) begun: u64,
}

impl<'a> Program<'a> {
    pub(crate) fn new(tables: Tables<'a>) -> Self {
        Self { tables, steps: table(tables.nodes.len()), edges: table(tables.edges.len()), used: 0, begun: 0 }
    }

    /// Prepares the operations of a host, and adds those that wait for nothing.
    pub(crate) fn begin(&mut self, host: u32, plan: &Plan, freed: &mut Vec<Freed>) {
        let first = self.first(host);
        let tables = self.tables;
        let steps = &mut self.steps[first as usize..tables.first_node[host as usize + 1] as usize];
        for (index, (node, edges)) in tables.nodes_with_edges(host).enumerate() {
            let edge = match edges {
                [] => 0,
                [only] => *only,
                several => {
                    let at = self.used;
                    self.used += several.len();
                    self.edges[at..self.used].copy_from_slice(several);
                    at as u32
                }
            };
            let step = &mut steps[index];
            let flags = u32::from(node.has_start_edges != 0) << 2 | (edges.len().min(2) as u32) << 3;
            step.sort = Sort(u32::from(node.kind) | flags | plan.number(node) << 5);
            (step.size, step.peer) = match node.kind() {
                Kind::Calculate => (node.size * NANOSECOND, ANY),
                Kind::Receive => (node.size, ANY),
                Kind::Send => (node.size, tables.channels[node.channel as usize].destination),
            };
            (step.channel, step.edge, step.edges) = (node.channel, edge, edges.len() as u32);
            // Dependencies mostly lead on: what waits for a later operation is left out below.
            if step.open == 0 {
                freed.push(Freed { node: first + index as u32, kind: node.kind });
            }
            edges.iter().for_each(|&edge| steps[(edge & !FROM_START) as usize].open += 1);
        }
        freed.retain(|root| steps[(root.node - first) as usize].open == 0);
    }

    /// Returns the first operation of a host.
    #[inline]
    pub(crate) fn first(&self, host: u32) -> u32 {
        self.tables.first_node[host as usize] as u32
    }

    /// Makes a slot for an operation that is free.
    #[inline]
    pub(crate) fn slot(&self, node: u32, time: u64, stamp: u64) -> Slot {
        let Step { size, channel, peer, edge, sort, .. } = self.steps[node as usize];
        Slot { time, stamp, size, node, channel, behind: 0, sort, edge, peer }
    }

    /// Returns an operation that waits for one of a host with this first operation; where there is none, the first one.
    #[inline]
    pub(crate) fn dependent(&self, first: u32, slot: &Slot) -> u32 {
        match slot.sort.edges() {
            0 => first,
            1 => first + (slot.edge & !FROM_START),
            _ => first + (self.edges[slot.edge as usize] & !FROM_START),
        }
    }

    /// Counts the start of an operation, and adds what it frees.
    #[inline]
    pub(crate) fn started(&mut self, first: u32, slot: &Slot, freed: &mut Vec<Freed>) {
        self.begun += 1;
        if slot.sort.has_start_edges() {
            self.resolve(first, slot, FROM_START, freed);
        }
    }

    /// Adds what the end of an operation frees. Where that is the only operation yet, it may return it instead.
    #[inline]
    pub(crate) fn ended(&mut self, first: u32, slot: &Slot, freed: &mut Vec<Freed>) -> Option<Freed> {
        match slot.sort.edges() {
            0 => None,
            1 if freed.is_empty() => resolve_edge(&mut self.steps, first, slot.edge, 0),
            _ => {
                self.resolve(first, slot, 0, freed);
                None
            }
        }
    }

    fn resolve(&mut self, first: u32, slot: &Slot, from: u32, freed: &mut Vec<Freed>) {
        if slot.sort.edges() == 1 {
            return freed.extend(resolve_edge(&mut self.steps, first, slot.edge, from));
        }
        let edges = slot.edge as usize..slot.edge as usize + self.steps[slot.node as usize].edges as usize;
        for &edge in &self.edges[edges] {
            freed.extend(resolve_edge(&mut self.steps, first, edge, from));
        }
    }
}

/// Counts one dependency less, if it leaves the start or the end as wanted; returns what that frees.
#[inline]
fn resolve_edge(steps: &mut [Step], first: u32, edge: u32, from: u32) -> Option<Freed> {
    if edge & FROM_START != from {
        return None;
    }
    let node = first + (edge & !FROM_START);
    let step = &mut steps[node as usize];
    step.open -= 1;
    (step.open == 0).then(|| Freed { node, kind: step.sort.kind() })
}
