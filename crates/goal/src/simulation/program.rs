//! The operations as they run: what they cost, what they wait for, what waits for them.

use bytemuck::{Pod, Zeroable};

use super::lane::Plan;
use super::memory::table;
use crate::order::Keyed;
use crate::parameters::NANOSECOND;
use crate::schedule::{ANY, FROM_START, Kind, Tables};

/// An operation, with all that changes while it runs: one place in memory, as hosts take turns.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Step {
    /// Length of a message \[B\] or of a computation \[ps\].
    pub(crate) size: u64,
    /// The earliest time at which it happens, of a sent message that at which it arrives \[ps\].
    pub(crate) time: u64,
    /// Its place, or that of its message, in the order of creation.
    pub(crate) stamp: u64,
    pub(crate) channel: u32,
    /// The host that a message goes to.
    pub(crate) to: u32,
    first_edge: u32,
    /// Dependencies that are still open.
    open: u32,
    /// What stands behind it in the list in which it waits.
    pub(crate) behind: u32,
    /// Bits 0 and 1: the kind; bit 2: whether something waits for its start; the others: the number of its lane.
    sort: u32,
}

const _: () = assert!(size_of::<Step>() == 48);

impl Step {
    /// Returns the number of its kind.
    #[inline]
    pub(crate) fn kind(&self) -> u8 {
        (self.sort & 3) as u8
    }

    /// Returns the number of its lane; the message of a send arrives in the next one.
    #[inline]
    pub(crate) fn lane(&self) -> usize {
        (self.sort >> 3) as usize
    }

    #[inline]
    fn has_start_edges(&self) -> bool {
        self.sort & 4 != 0
    }
}

/// The ends of a list of operations that stand behind each other; both are one more than an index, or 0.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct List {
    first: u32,
    last: u32,
}

impl List {
    /// Returns the first operation.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        self.first.checked_sub(1)
    }

    /// Adds an operation that is in no list.
    #[inline]
    pub(crate) fn push(&mut self, node: u32, steps: &mut [Step]) {
        match self.first {
            0 => self.first = node + 1,
            _ => steps[self.last as usize - 1].behind = node + 1,
        }
        self.last = node + 1;
    }

    /// Takes the first operation.
    #[inline]
    pub(crate) fn pop(&mut self, steps: &mut [Step]) -> Option<u32> {
        let node = self.first()?;
        // The end is of no interest while there is no first one.
        self.first = std::mem::take(&mut steps[node as usize].behind);
        Some(node)
    }

    /// Yields all operations.
    pub(crate) fn iter(self, steps: &[Step]) -> impl Iterator<Item = u32> {
        std::iter::successors(self.first(), |&node| steps[node as usize].behind.checked_sub(1))
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

/// The operations of all hosts.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    pub(crate) tables: Tables<'a>,
    pub(crate) steps: Box<[Step]>,
    /// Operations that have started.
    pub(crate) begun: u64,
}

impl<'a> Program<'a> {
    pub(crate) fn new(tables: Tables<'a>, plan: &Plan) -> Self {
        let mut steps: Box<[Step]> = table(tables.nodes.len() + 1);
        for (step, (node, &first_edge)) in steps.iter_mut().zip(tables.nodes.iter().zip(tables.first_edge)) {
            *step = Step {
                size: if node.kind() == Kind::Calculate { node.size * NANOSECOND } else { node.size },
                time: 0,
                stamp: 0,
                channel: node.channel,
                to: tables.channels.get(node.channel as usize).map_or(ANY, |channel| channel.destination),
                first_edge,
                open: 0,
                behind: 0,
                sort: u32::from(node.kind)
                    | u32::from(node.has_start_edges != 0) << 2
                    | plan.number(node) << 3,
            };
        }
        steps[tables.nodes.len()].first_edge = tables.edges.len() as u32;
        for rank in 0..tables.ranks() as usize {
            let nodes = tables.first_node[rank] as usize..tables.first_node[rank + 1] as usize;
            let edges = tables.first_edge[nodes.start] as usize..tables.first_edge[nodes.end] as usize;
            let steps = &mut steps[nodes];
            tables.edges[edges].iter().for_each(|&edge| steps[(edge & !FROM_START) as usize].open += 1);
        }
        Self { tables, steps, begun: 0 }
    }

    /// Returns the first operation of a host.
    pub(crate) fn first(&self, host: u32) -> u32 {
        self.tables.first_node[host as usize] as u32
    }

    /// Returns the first operation, counted within the host, that waits for an operation.
    pub(crate) fn first_edge(&self, node: u32) -> Option<u32> {
        let edge = self.tables.edges.get(self.steps[node as usize].first_edge as usize)?;
        Some(edge & !FROM_START)
    }

    /// Adds the operations of a host that wait for nothing.
    pub(crate) fn roots(&self, host: u32, freed: &mut Vec<Freed>) {
        let nodes =
            self.tables.first_node[host as usize] as u32..self.tables.first_node[host as usize + 1] as u32;
        let free = nodes.map(|node| (node, &self.steps[node as usize])).filter(|(_, step)| step.open == 0);
        freed.extend(free.map(|(node, step)| Freed { node, kind: step.kind() }));
    }

    /// Counts the start of an operation, and adds what it frees.
    #[inline]
    pub(crate) fn started(&mut self, host: u32, index: u32, freed: &mut Vec<Freed>) {
        self.begun += 1;
        if self.steps[index as usize].has_start_edges() {
            self.resolve(host, index, FROM_START, freed);
        }
    }

    /// Adds what the end of an operation frees.
    #[inline]
    pub(crate) fn ended(&mut self, host: u32, index: u32, freed: &mut Vec<Freed>) {
        self.resolve(host, index, 0, freed);
    }

    #[inline]
    fn resolve(&mut self, host: u32, index: u32, sort: u32, freed: &mut Vec<Freed>) {
        let steps = &mut *self.steps;
        let (from, to) = (steps[index as usize].first_edge, steps[index as usize + 1].first_edge);
        if from == to {
            return;
        }
        let first = self.tables.first_node[host as usize] as u32;
        for &edge in
            self.tables.edges[from as usize..to as usize].iter().filter(|&edge| edge & FROM_START == sort)
        {
            let node = first + (edge & !FROM_START);
            let step = &mut steps[node as usize];
            step.open -= 1;
            if step.open == 0 {
                freed.push(Freed { node, kind: step.kind() });
            }
        }
    }
}
