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
    /// The edge that leaves it where that is the only one, else the index of the first one.
    edge: u32,
    /// How many edges leave it.
    edges: u32,
    /// Dependencies that are still open.
    pub(crate) open: u32,
    pub(crate) sort: Sort,
}

const _: () = assert!(size_of::<Step>() == 32);

/// What an operation is: bits 0 and 1 are the kind, bit 2 says whether something waits for its start, bit 3 whether just one
/// edge leaves it, the others are the number of its lane.
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
        (self.0 >> 4) as usize
    }

    #[inline]
    fn has_one_edge(self) -> bool {
        self.0 & 8 != 0
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
    /// The operations that wait for nothing, host after host.
    roots: Vec<u32>,
    /// For each host where its ones end.
    roots_end: Vec<usize>,
    /// Operations that have started.
    pub(crate) begun: u64,
}

impl<'a> Program<'a> {
    pub(crate) fn new(tables: Tables<'a>, plan: &Plan) -> Self {
        let mut program = Self {
            tables,
            steps: table(tables.nodes.len()),
            edges: table(tables.edges.len()),
            roots: Vec::new(),
            roots_end: Vec::with_capacity(tables.ranks() as usize),
            begun: 0,
        };
        let mut used = 0;
        for rank in 0..tables.ranks() {
            used = program.add_rank(rank, plan, used);
            program.roots_end.push(program.roots.len());
        }
        program
    }

    /// Adds the operations of a rank; so many places for edges are used before, and afterwards as many as it returns.
    fn add_rank(&mut self, rank: u32, plan: &Plan, mut used: usize) -> usize {
        let Self { tables, edges: several, roots, .. } = self;
        let first = tables.first_node[rank as usize] as usize;
        let steps = &mut self.steps[first..tables.first_node[rank as usize + 1] as usize];
        let known = roots.len();
        for (index, (node, edges)) in tables.nodes_with_edges(rank).enumerate() {
            let edge = match edges {
                [only] => *only,
                _ => {
                    several[used..used + edges.len()].copy_from_slice(edges);
                    used += edges.len();
                    (used - edges.len()) as u32
                }
            };
            let step = &mut steps[index];
            let flags = u32::from(node.has_start_edges != 0) << 2 | u32::from(edges.len() == 1) << 3;
            step.sort = Sort(u32::from(node.kind) | flags | plan.number(node) << 4);
            (step.size, step.peer) = match node.kind() {
                Kind::Calculate => (node.size * NANOSECOND, ANY),
                Kind::Receive => (node.size, ANY),
                Kind::Send => (node.size, tables.channels[node.channel as usize].destination),
            };
            (step.channel, step.edge, step.edges) = (node.channel, edge, edges.len() as u32);
            // Dependencies mostly lead on: what waits for a later operation is left out below.
            if step.open == 0 {
                roots.push(index as u32);
            }
            edges.iter().for_each(|&edge| steps[(edge & !FROM_START) as usize].open += 1);
        }
        let mut kept = known;
        for at in known..roots.len() {
            let index = roots[at];
            roots[kept] = first as u32 + index;
            kept += usize::from(steps[index as usize].open == 0);
        }
        roots.truncate(kept);
        used
    }

    /// Returns the first operation of a host.
    #[inline]
    pub(crate) fn first(&self, host: u32) -> u32 {
        self.tables.first_node[host as usize] as u32
    }

    /// Adds the operations of a host that wait for nothing.
    pub(crate) fn roots(&self, host: u32, freed: &mut Vec<Freed>) {
        let start = host.checked_sub(1).map_or(0, |before| self.roots_end[before as usize]);
        let roots = &self.roots[start..self.roots_end[host as usize]];
        freed.extend(roots.iter().map(|&node| Freed { node, kind: self.steps[node as usize].sort.kind() }));
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
        if slot.sort.has_one_edge() {
            return first + (slot.edge & !FROM_START);
        }
        let edges = self.edges_of(slot);
        first + edges.first().map_or(0, |edge| edge & !FROM_START)
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
        if slot.sort.has_one_edge() && freed.is_empty() {
            return resolve_edge(&mut self.steps, first, slot.edge, 0);
        }
        self.resolve(first, slot, 0, freed);
        None
    }

    fn resolve(&mut self, first: u32, slot: &Slot, from: u32, freed: &mut Vec<Freed>) {
        if slot.sort.has_one_edge() {
            return freed.extend(resolve_edge(&mut self.steps, first, slot.edge, from));
        }
        let edges = slot.edge as usize..slot.edge as usize + self.steps[slot.node as usize].edges as usize;
        for &edge in &self.edges[edges] {
            freed.extend(resolve_edge(&mut self.steps, first, edge, from));
        }
    }

    fn edges_of(&self, slot: &Slot) -> &[u32] {
        &self.edges[slot.edge as usize..][..self.steps[slot.node as usize].edges as usize]
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
