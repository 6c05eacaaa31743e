//! Dependency tracking: counts the open dependencies of operations and finds those that become ready.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use pdes_core::prefetch;
use rustc_hash::FxHashMap;

use super::lane::LanePlan;
use super::memory::zeroed_table;
use super::pool::Slot;
use crate::introsort::Keyed;
use crate::parameters::NANOSECOND;
use crate::schedule::{FROM_START, Kind, Tables};
use crate::threads;

/// Attributes of an operation, packed: bits 0 and 1 are the kind, bit 2 is set if an edge leaves its start, bits 3 and
/// 4 are its out-degree as in [`DependencyState`], the others are the number of its lane.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes(u32);

impl Attributes {
    /// Returns the number of its kind.
    #[inline]
    pub(crate) fn kind(self) -> u8 {
        (self.0 & 3) as u8
    }

    /// Returns its lane; the message of a send arrives in the next one.
    #[inline]
    pub(crate) fn lane(self) -> usize {
        (self.0 >> 5) as usize
    }

    #[inline]
    fn out_degree(self) -> u32 {
        self.0 >> 3 & 3
    }

    #[inline]
    fn has_start_edges(self) -> bool {
        self.0 & 4 != 0
    }
}

/// A ready operation with its sort key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freed {
    pub(crate) node: u32,
    kind: u8,
}

/// A ready operation with its dependency state, which is at hand when it becomes ready alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadyOperation {
    pub(crate) node: u32,
    links: DependencyState,
}

impl Keyed for Freed {
    #[inline]
    fn key(&self) -> u8 {
        self.kind
    }
}

/// Dependency state of an operation, packed: bits 0 to 7 count open dependencies, bits 8 and 9 are the class of its
/// out-degree, the others are a [`NearEdge`].
///
/// Every operation has one from the beginning, so each byte counts.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(transparent)]
struct DependencyState(u32);

/// Classes of out-degree: none, one [`NearEdge`], or any edges, which are then read from the schedule.
const NONE: u32 = 0;
const ONE: u32 = 1;
const SEVERAL: u32 = 2;

impl DependencyState {
    /// Largest number of open dependencies that is counted here; small in debug builds, so that tests exceed it.
    const MAX_OPEN: u32 = if cfg!(debug_assertions) { 2 } else { u8::MAX as u32 };

    fn new(index: u32, edges: &[u32]) -> Self {
        let (leaving, near) = match edges {
            [] => (NONE, 0),
            [only] => NearEdge::new(index, *only).map_or((SEVERAL, 0), |near| (ONE, near.0)),
            _ => (SEVERAL, 0),
        };
        Self(leaving << 8 | near << 10)
    }

    #[inline]
    fn open_count(self) -> u32 {
        self.0 & u32::from(u8::MAX)
    }

    #[inline]
    fn out_degree(self) -> u32 {
        self.0 >> 8 & 3
    }

    #[inline]
    fn near_edge(self) -> NearEdge {
        NearEdge(self.0 >> 10)
    }
}

/// An edge to a nearby operation, packed: the distance to it plus a bias, and above that a bit that is set if the edge
/// leaves the start.
#[derive(Clone, Copy, Debug)]
struct NearEdge(u32);

impl NearEdge {
    /// Number of bits of a distance; small in debug builds, so that tests exceed it.
    const BITS: u32 = if cfg!(debug_assertions) { 4 } else { 21 };
    const BIAS: u32 = 1 << (Self::BITS - 1);

    /// Packs an edge from operation `index`, unless it is too long.
    fn new(index: u32, edge: u32) -> Option<Self> {
        let distance = (edge & !FROM_START).wrapping_sub(index).wrapping_add(Self::BIAS);
        let starts = u32::from(edge & FROM_START != 0) << Self::BITS;
        (distance < 1 << Self::BITS).then_some(Self(distance | starts))
    }

    /// Returns the operation to which the edge leads from `node`.
    #[inline]
    fn dependent(self, node: u32) -> u32 {
        let distance = self.0 & ((1 << Self::BITS) - 1);
        node.wrapping_add(distance).wrapping_sub(Self::BIAS)
    }

    /// Returns [`FROM_START`] if the edge leaves the start, else 0.
    #[inline]
    fn origin(self) -> u32 {
        self.0 >> Self::BITS << FROM_START.trailing_zeros()
    }
}

/// Factor from sizes in schedules to sizes in slots, by the number of the kind: bytes stay, computations become
/// picoseconds.
const UNITS: [u64; 4] = {
    let mut units = [1; 4];
    units[Kind::Calculate as usize] = NANOSECOND;
    units
};

/// Prefetch distance: operations mostly follow each other, so the one that lies this far ahead of a ready operation is
/// prefetched, unless hosts are so many that it would be evicted before its use.
const PREFETCH_DISTANCE: usize = 8;

/// Largest number of hosts whose next operations stay in the caches between their turns.
pub(super) const CACHED_HOSTS: usize = 2048;

/// Dependency state of the operations of some hosts. Operations are read from the mapped schedule; the state beside
/// them lies in huge pages, since hosts run in turns and each access is to another page.
#[derive(Debug)]
pub(crate) struct DependencyTracker<'a> {
    pub(crate) tables: Tables<'a>,
    /// First operation of these hosts.
    first_node: u32,
    states: Box<[DependencyState]>,
    /// Open dependencies beyond those that [`DependencyState`] counts.
    overflow: FxHashMap<u32, u32>,
    prefetches: bool,
    /// Number of operations that have started.
    pub(crate) started_count: u64,
}

impl<'a> DependencyTracker<'a> {
    /// Makes the state of some of the ranks; counts their dependencies on up to `threads` threads.
    pub(crate) fn new(tables: Tables<'a>, ranks: &Range<u32>, threads: usize) -> Self {
        let mut links: Box<[DependencyState]> = zeroed_table(tables.operation_count(ranks));
        let mut rest = &mut *links;
        let parts = threads::divide_for_threads(&tables, ranks.clone(), threads).into_iter().map(|ranks| {
            let links;
            (links, rest) = std::mem::take(&mut rest).split_at_mut(tables.operation_count(&ranks));
            (ranks, links)
        });
        let more_open =
            threads::map_parallel(parts, |(ranks, links)| count_dependencies(&tables, ranks, links));
        Self {
            tables,
            first_node: tables.first_node[ranks.start as usize] as u32,
            states: links,
            overflow: more_open.into_iter().flatten().collect(),
            prefetches: ranks.len() <= CACHED_HOSTS,
            started_count: 0,
        }
    }

    /// Returns the index of an operation's state.
    #[inline]
    fn index_of(&self, node: u32) -> usize {
        node.wrapping_sub(self.first_node) as usize
    }

    /// Adds the operations of a host without dependencies to `freed`, before any operation has started.
    pub(crate) fn push_roots(&self, host: u32, freed: &mut Vec<Freed>) {
        let own = self.tables.node_range(host);
        let links = &self.states[self.index_of(own.start as u32)..];
        for (node, _) in own.zip(links).filter(|(_, links)| links.open_count() == 0) {
            freed.push(Freed { node: node as u32, kind: self.tables.nodes[node].kind });
        }
    }

    /// Returns the first operation of a host.
    #[inline]
    pub(crate) fn first_node_of(&self, host: u32) -> u32 {
        self.tables.first_node[host as usize] as u32
    }

    /// Returns a ready operation with its dependency state.
    #[inline]
    pub(crate) fn to_ready(&self, Freed { node, .. }: Freed) -> ReadyOperation {
        ReadyOperation { node, links: self.states[self.index_of(node)] }
    }

    /// Adds a ready operation, if there is one, to `freed`.
    #[inline]
    pub(crate) fn push_freed(&self, ready: Option<ReadyOperation>, freed: &mut Vec<Freed>) {
        freed.extend(
            ready.map(|ReadyOperation { node, .. }| Freed {
                node,
                kind: self.tables.nodes[node as usize].kind,
            }),
        );
    }

    /// Makes a slot for a ready operation.
    // A call of this or of `resolve_end` would take as long as its body.
    #[inline(always)]
    pub(crate) fn make_slot(
        &self,
        ReadyOperation { node, links }: ReadyOperation,
        plan: &LanePlan,
        time: u64,
        stamp: u64,
    ) -> Slot {
        let operation = &self.tables.nodes[node as usize];
        if self.prefetches {
            prefetch(std::ptr::from_ref(operation).wrapping_add(PREFETCH_DISTANCE));
            prefetch(self.states.as_ptr().wrapping_add(self.index_of(node) + PREFETCH_DISTANCE));
        }
        let leaving = links.out_degree();
        let flags = u32::from(operation.has_start_edges != 0) << 2 | leaving << 3;
        let sort = Attributes(u32::from(operation.kind) | flags | plan.lane_of(operation) << 5);
        // A table instead of a branch, since the order of kinds is unpredictable.
        let size = operation.size * UNITS[usize::from(operation.kind & 3)];
        let edge =
            if leaving == SEVERAL { self.tables.first_edge[node as usize] } else { links.near_edge().0 };
        Slot { time, stamp, size, node, channel: operation.channel, next: 0, attributes: sort, edge }
    }

    /// Counts the start of an operation and adds the operations that it frees.
    #[inline]
    pub(crate) fn resolve_start(&mut self, first: u32, slot: &Slot, freed: &mut Vec<Freed>) {
        self.started_count += 1;
        if slot.attributes.has_start_edges() {
            self.resolve(first, slot, FROM_START, freed);
        }
    }

    /// Resolves the end of an operation: returns the operation it frees if there can be only one, else adds those it
    /// frees to `freed`.
    #[inline(always)]
    pub(crate) fn resolve_end(
        &mut self,
        first: u32,
        slot: &Slot,
        freed: &mut Vec<Freed>,
    ) -> Option<ReadyOperation> {
        match slot.attributes.out_degree() {
            NONE => None,
            ONE if freed.is_empty() => self.resolve_near(slot, 0),
            _ => {
                self.resolve(first, slot, 0, freed);
                None
            }
        }
    }

    fn resolve(&mut self, first: u32, slot: &Slot, from: u32, freed: &mut Vec<Freed>) {
        match slot.attributes.out_degree() {
            NONE => {}
            ONE => {
                let only = self.resolve_near(slot, from);
                self.push_freed(only, freed);
            }
            _ => {
                for &edge in self.edges_of_slot(slot).iter().filter(|edge| **edge & FROM_START == from) {
                    let ready = self.resolve_dependency(first + (edge & !FROM_START));
                    self.push_freed(ready, freed);
                }
            }
        }
    }

    /// Returns the edges that leave the operation of a slot with several.
    #[inline]
    fn edges_of_slot(&self, slot: &Slot) -> &'a [u32] {
        &self.tables.edges[slot.edge as usize..self.tables.first_edge[slot.node as usize + 1] as usize]
    }

    #[inline]
    fn resolve_near(&mut self, slot: &Slot, from: u32) -> Option<ReadyOperation> {
        let near = NearEdge(slot.edge);
        (near.origin() == from).then(|| self.resolve_dependency(near.dependent(slot.node))).flatten()
    }

    /// Decrements the open dependencies of an operation; returns it if it becomes ready.
    #[inline]
    fn resolve_dependency(&mut self, node: u32) -> Option<ReadyOperation> {
        let place = self.index_of(node);
        let links = &mut self.states[place];
        // A saturated counter stays at its maximum until the overflow count is used up.
        if links.open_count() == DependencyState::MAX_OPEN && decrement_overflow(&mut self.overflow, node) {
            return None;
        }
        links.0 -= 1;
        (links.open_count() == 0).then_some(ReadyOperation { node, links: *links })
    }
}

/// Counts the dependencies of operations; returns the part that [`DependencyState`] cannot count.
fn count_dependencies(
    tables: &Tables<'_>,
    ranks: Range<u32>,
    links: &mut [DependencyState],
) -> FxHashMap<u32, u32> {
    let mut more_open = FxHashMap::default();
    let mut rest = links;
    for rank in ranks {
        let own = tables.node_range(rank);
        let links;
        (links, rest) = rest.split_at_mut(own.len());
        for (index, edges) in tables.edges_of_each(&own).enumerate() {
            links[index].0 |= DependencyState::new(index as u32, edges).0;
            for edge in edges {
                let dependent = edge & !FROM_START;
                let links = &mut links[dependent as usize];
                if links.open_count() < DependencyState::MAX_OPEN {
                    links.0 += 1;
                } else {
                    *more_open.entry(own.start as u32 + dependent).or_default() += 1;
                }
            }
        }
    }
    more_open
}

/// Decrements the count of an operation; returns false if it has none.
#[cold]
fn decrement_overflow(counts: &mut FxHashMap<u32, u32>, node: u32) -> bool {
    match counts.get_mut(&node) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    }
}
