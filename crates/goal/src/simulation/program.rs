//! The operations as they run: what they cost, what they wait for, what waits for them.

use std::io;

use bytemuck::{Pod, Zeroable};

use super::memory::Table;
use crate::order::Keyed;
use crate::parameters::NANOSECOND;
use crate::schedule::{FROM_START, Kind, Tables};

/// No operation.
pub(crate) const NONE: u32 = u32::MAX;

/// An operation, with all that changes while it runs: one place in memory, as hosts take turns.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Step {
    /// Length of a message \[B\] or of a computation \[ps\].
    pub(crate) size: u64,
    pub(crate) channel: u32,
    /// The host that a message goes to.
    pub(crate) to: u32,
    first_edge: u32,
    /// Dependencies that are still open.
    open: u32,
    /// What waits behind it for a counterpart in its channel.
    pub(crate) behind: u32,
    pub(crate) kind: u8,
    pub(crate) cpu: u8,
    pub(crate) nic: u8,
    has_start_edges: u8,
}

const _: () = assert!(size_of::<Step>() == 32);

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
    pub(crate) steps: Table<Step>,
}

impl<'a> Program<'a> {
    pub(crate) fn new(tables: Tables<'a>) -> io::Result<Self> {
        let mut steps: Table<Step> = Table::new(tables.nodes.len() + 1)?;
        for (step, (node, &first_edge)) in steps.iter_mut().zip(tables.nodes.iter().zip(tables.first_edge)) {
            *step = Step {
                size: if node.kind() == Kind::Calculate { node.size * NANOSECOND } else { node.size },
                channel: node.channel,
                to: tables.channels.get(node.channel as usize).map_or(NONE, |channel| channel.destination),
                first_edge,
                open: 0,
                behind: NONE,
                kind: node.kind,
                cpu: node.cpu,
                nic: node.nic,
                has_start_edges: node.has_start_edges,
            };
        }
        steps[tables.nodes.len()].first_edge = tables.edges.len() as u32;
        for rank in 0..tables.ranks() as usize {
            let nodes = tables.first_node[rank] as usize..tables.first_node[rank + 1] as usize;
            let edges = tables.first_edge[nodes.start] as usize..tables.first_edge[nodes.end] as usize;
            let steps = &mut steps[nodes];
            tables.edges[edges].iter().for_each(|&edge| steps[(edge & !FROM_START) as usize].open += 1);
        }
        Ok(Self { tables, steps })
    }

    /// Adds the operations of a host that wait for nothing.
    pub(crate) fn roots(&self, host: u32, freed: &mut Vec<Freed>) {
        let nodes =
            self.tables.first_node[host as usize] as u32..self.tables.first_node[host as usize + 1] as u32;
        let free = nodes.map(|node| (node, &self.steps[node as usize])).filter(|(_, step)| step.open == 0);
        freed.extend(free.map(|(node, step)| Freed { node, kind: step.kind }));
    }

    /// Adds what the start of an operation frees.
    #[inline]
    pub(crate) fn started(&mut self, host: u32, index: u32, freed: &mut Vec<Freed>) {
        if self.steps[index as usize].has_start_edges != 0 {
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
                freed.push(Freed { node, kind: step.kind });
            }
        }
    }
}
