//! The operations as they run: what waits for them, and when they become free.

use bytemuck::{Pod, Zeroable};

use super::lane::Plan;
use super::memory::table;
use crate::order::Keyed;
use crate::parameters::NANOSECOND;
use crate::schedule::{FROM_START, Kind, Tables};

/// An operation, with what changes before it is free.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Step {
    /// Length of a message \[B\] or of a computation \[ps\].
    pub(crate) size: u64,
    pub(crate) channel: u32,
    pub(crate) first_edge: u32,
    /// Dependencies that are still open.
    pub(crate) open: u32,
    /// Bits 0 and 1: the kind; bit 2: whether something waits for its start; the others: the number of its lane.
    sort: u32,
}

const _: () = assert!(size_of::<Step>() == 24);

impl Step {
    /// Returns the number of its kind.
    #[inline]
    pub(crate) fn kind(&self) -> u8 {
        (self.sort & 3) as u8
    }

    /// Returns the number of its lane; the message of a send arrives in the next one.
    #[inline]
    pub(crate) fn lane(&self) -> u32 {
        self.sort >> 3
    }

    #[inline]
    fn has_start_edges(&self) -> bool {
        self.sort & 4 != 0
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
    /// The edges of the tables.
    pub(crate) edges: Box<[u32]>,
    /// Operations that have started.
    pub(crate) begun: u64,
}

impl<'a> Program<'a> {
    pub(crate) fn new(tables: Tables<'a>, plan: &Plan) -> Self {
        let mut steps: Box<[Step]> = table(tables.nodes.len() + 1);
        for (step, (node, &first_edge)) in steps.iter_mut().zip(tables.nodes.iter().zip(tables.first_edge)) {
            *step = Step {
                size: if node.kind() == Kind::Calculate { node.size * NANOSECOND } else { node.size },
                channel: node.channel,
                first_edge,
                open: 0,
                sort: u32::from(node.kind)
                    | u32::from(node.has_start_edges != 0) << 2
                    | plan.number(node) << 3,
            };
        }
        steps[tables.nodes.len()].first_edge = tables.edges.len() as u32;
        let mut edges: Box<[u32]> = table(tables.edges.len());
        for rank in 0..tables.ranks() as usize {
            let first = tables.first_node[rank] as usize;
            let own = steps[first].first_edge as usize
                ..steps[tables.first_node[rank + 1] as usize].first_edge as usize;
            edges[own.clone()].copy_from_slice(&tables.edges[own.clone()]);
            edges[own].iter().for_each(|&edge| steps[first + (edge & !FROM_START) as usize].open += 1);
        }
        Self { tables, steps, edges, begun: 0 }
    }

    /// Adds the operations of a host that wait for nothing.
    pub(crate) fn roots(&self, host: u32, freed: &mut Vec<Freed>) {
        let nodes = self.tables.first_node[host as usize]..self.tables.first_node[host as usize + 1];
        let steps = nodes.map(|node| (node as u32, &self.steps[node as usize]));
        let free = steps.filter(|(_, step)| step.open == 0);
        freed.extend(free.map(|(node, step)| Freed { node, kind: step.kind() }));
    }

    /// Returns the operation of a host that an edge leads to; where there is no such edge, one that there is.
    #[inline]
    pub(crate) fn dependent(&self, host: u32, edge: u32) -> u32 {
        let first = self.tables.first_node[host as usize] as u32;
        first + self.edges.get(edge as usize).map_or(0, |edge| edge & !FROM_START)
    }

    /// Counts the start of an operation, and adds what it frees.
    #[inline]
    pub(crate) fn started(&mut self, host: u32, node: u32, freed: &mut Vec<Freed>) {
        self.begun += 1;
        if self.steps[node as usize].has_start_edges() {
            self.resolve(host, node, FROM_START, freed);
        }
    }

    /// Adds what the end of an operation frees.
    #[inline]
    pub(crate) fn ended(&mut self, host: u32, node: u32, freed: &mut Vec<Freed>) {
        self.resolve(host, node, 0, freed);
    }

    #[inline]
    fn resolve(&mut self, host: u32, node: u32, sort: u32, freed: &mut Vec<Freed>) {
        let first = self.tables.first_node[host as usize] as u32;
        let edges =
            self.steps[node as usize].first_edge as usize..self.steps[node as usize + 1].first_edge as usize;
        for edge in self.edges[edges].iter().filter(|&edge| edge & FROM_START == sort) {
            let node = first + (edge & !FROM_START);
            let step = &mut self.steps[node as usize];
            step.open -= 1;
            if step.open == 0 {
                freed.push(Freed { node, kind: step.kind() });
            }
        }
    }
}
