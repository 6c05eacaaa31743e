//! The operations as they run: what waits for them, and when they become free.

use bytemuck::{Pod, Zeroable};

use super::lane::Plan;
use super::memory::{growing_table, table};
use super::pool::Slot;
use crate::order::Keyed;
use crate::parameters::NANOSECOND;
use crate::schedule::{FROM_START, Kind, Tables};

/// What an operation is: bits 0 and 1 are the kind, bit 2 says whether something waits for its start, bits 3 and 4 how many
/// edges leave it, where 2 is several, the others are the number of its lane.
#[derive(Clone, Copy, Debug, Default)]
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

/// What becomes of an operation before it is free, and after it.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Links {
    /// Dependencies that are still open; in bits 30 and 31 how many edges leave it, where 2 is several.
    open: u32,
    /// The only edge that leaves it, of several the place of their number, behind which they stand.
    edge: u32,
}

/// The lowest bit above the number of open dependencies.
const EDGES: u32 = 30;

/// So many dependencies of one operation cannot be counted.
pub(crate) const MOST_DEPENDENCIES: u32 = 1 << EDGES;

/// The operations of all hosts. They are read where they are mapped. What is needed beside them lies in large pages: hosts take
/// turns, and each access is to another page.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    pub(crate) tables: Tables<'a>,
    links: Box<[Links]>,
    /// The edges of operations that several leave.
    several: Vec<u32>,
    /// Operations that have started.
    pub(crate) begun: u64,
}

impl<'a> Program<'a> {
    pub(crate) fn new(tables: Tables<'a>) -> Self {
        // Of two edges and more, and their number.
        let several = growing_table(tables.edges.len() / 2 * 3);
        Self { tables, links: table(tables.nodes.len()), several, begun: 0 }
    }

    /// Counts the dependencies of a host's operations, and adds those that wait for nothing.
    pub(crate) fn begin(&mut self, host: u32, freed: &mut Vec<Freed>) {
        let (own, tables) = (self.tables.range(host), self.tables);
        let links = &mut self.links[own.clone()];
        for (index, edges) in tables.edges_of_each(&own).enumerate() {
            let edge = match edges {
                [] => 0,
                [only] => *only,
                several => {
                    let place = self.several.len() as u32;
                    self.several.push(several.len() as u32);
                    self.several.extend(several);
                    place
                }
            };
            links[index].edge = edge;
            links[index].open |= (edges.len().min(2) as u32) << EDGES;
            edges.iter().for_each(|&edge| links[(edge & !FROM_START) as usize].open += 1);
        }
        for (node, _) in own.zip(links).filter(|(_, links)| links.open << (u32::BITS - EDGES) == 0) {
            freed.push(Freed { node: node as u32, kind: tables.nodes[node].kind });
        }
    }

    /// Returns the first operation of a host.
    #[inline]
    pub(crate) fn first(&self, host: u32) -> u32 {
        self.tables.first_node[host as usize] as u32
    }

    /// Makes a slot for an operation that is free.
    #[inline]
    pub(crate) fn slot(&self, node: u32, plan: &Plan, time: u64, stamp: u64) -> Slot {
        let operation = &self.tables.nodes[node as usize];
        let Links { open, edge } = self.links[node as usize];
        let edges = open >> EDGES;
        let flags = u32::from(operation.has_start_edges != 0) << 2 | edges << 3;
        let sort = Sort(u32::from(operation.kind) | flags | plan.number(operation) << 5);
        let size = match operation.kind() {
            Kind::Calculate => operation.size * NANOSECOND,
            Kind::Send | Kind::Receive => operation.size,
        };
        Slot { time, stamp, size, node, channel: operation.channel, behind: 0, sort, edge }
    }

    /// Reads what an operation at a host with this first operation will need when it ends.
    #[inline]
    pub(crate) fn read(&self, first: u32, slot: &Slot) -> u32 {
        // What a message frees is known when it meets its receive; what is read for it here may be anything.
        let (one, other) = match slot.sort.edges() {
            0 => (0, 0),
            1 => (slot.edge, slot.edge),
            _ => {
                let place = slot.edge as usize;
                (self.several[place + 1], self.several[place + self.several[place] as usize])
            }
        };
        let [one, other] = [one, other].map(|edge| (first + (edge & !FROM_START)) as usize);
        match (self.tables.nodes.get(one), self.links.get(one), self.links.get(other)) {
            (Some(node), Some(one), Some(other)) => node.channel ^ one.open ^ other.open,
            _ => 0,
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
            1 if freed.is_empty() => resolve_edge(&self.tables, &mut self.links, first, slot.edge, 0),
            _ => {
                self.resolve(first, slot, 0, freed);
                None
            }
        }
    }

    fn resolve(&mut self, first: u32, slot: &Slot, from: u32, freed: &mut Vec<Freed>) {
        let edges = match slot.sort.edges() {
            0 => &[],
            1 => std::slice::from_ref(&slot.edge),
            _ => {
                let (count, edges) = (self.several[slot.edge as usize], slot.edge as usize + 1);
                &self.several[edges..edges + count as usize]
            }
        };
        for &edge in edges {
            if let Some(one) = resolve_edge(&self.tables, &mut self.links, first, edge, from) {
                freed.push(one);
            }
        }
    }
}

/// Counts one dependency less, if it leaves the start or the end as wanted; returns what that frees.
#[inline]
fn resolve_edge(tables: &Tables<'_>, links: &mut [Links], first: u32, edge: u32, from: u32) -> Option<Freed> {
    if edge & FROM_START != from {
        return None;
    }
    let node = first + (edge & !FROM_START);
    let open = &mut links[node as usize].open;
    *open -= 1;
    (*open << (u32::BITS - EDGES) == 0).then(|| Freed { node, kind: tables.nodes[node as usize].kind })
}
