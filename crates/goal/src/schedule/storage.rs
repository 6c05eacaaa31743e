//! Tables of a schedule, in memory or memory-mapped, and their checks.

use std::ops::Range;

use super::{ANY, Channel, Extent, FROM_START, Kind, Node, Operation, SizeBounds};
use crate::archive::Mapped;
use crate::error::ScheduleError;
use crate::threads;

/// Owner of the tables.
#[derive(Debug)]
pub(crate) enum Storage {
    Owned(OwnedTables),
    Mapped(Mapped),
}

/// Tables in memory, as a builder fills them.
#[derive(Debug, Default)]
pub(crate) struct OwnedTables {
    pub(crate) first_node: Vec<u64>,
    pub(crate) first_channel: Vec<u64>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) first_edge: Vec<u32>,
    pub(crate) edges: Vec<u32>,
    pub(crate) channels: Vec<Channel>,
}

/// Borrowed tables of a schedule, in the form of compressed sparse rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tables<'a> {
    /// Index of each rank's first node; one more at the end.
    pub(crate) first_node: &'a [u64],
    /// Index of the first channel that leads to each rank; one more at the end.
    pub(crate) first_channel: &'a [u64],
    pub(crate) nodes: &'a [Node],
    /// Index of each node's first edge; one more at the end.
    pub(crate) first_edge: &'a [u32],
    /// Indices of dependent nodes within the rank, with [`FROM_START`].
    pub(crate) edges: &'a [u32],
    pub(crate) channels: &'a [Channel],
}

impl Storage {
    pub(crate) fn tables(&self) -> Tables<'_> {
        match self {
            Self::Owned(built) => Tables {
                first_node: &built.first_node,
                first_channel: &built.first_channel,
                nodes: &built.nodes,
                first_edge: &built.first_edge,
                edges: &built.edges,
                channels: &built.channels,
            },
            Self::Mapped(mapped) => mapped.tables(),
        }
    }
}

impl<'a> Tables<'a> {
    pub(crate) fn ranks(&self) -> u32 {
        (self.first_node.len() - 1) as u32
    }

    /// Returns the indices of a rank's nodes.
    pub(crate) fn node_range(&self, rank: u32) -> Range<usize> {
        self.first_node[rank as usize] as usize..self.first_node[rank as usize + 1] as usize
    }

    /// Yields the edges that leave each of the nodes with these indices.
    pub(crate) fn edges_of_each(&self, nodes: &Range<usize>) -> impl Iterator<Item = &'a [u32]> + use<'a> {
        let edges = self.edges;
        let ends = self.first_edge[nodes.start..=nodes.end].windows(2);
        ends.map(move |ends| &edges[ends[0] as usize..ends[1] as usize])
    }

    /// Returns the number of operations of some ranks.
    pub(crate) fn operation_count(&self, ranks: &Range<u32>) -> usize {
        (self.first_node[ranks.end as usize] - self.first_node[ranks.start as usize]) as usize
    }

    pub(crate) fn nodes_of(&self, rank: u32) -> &'a [Node] {
        &self.nodes[self.node_range(rank)]
    }

    /// Yields the nodes of a rank, each with the edges that leave it.
    #[inline]
    pub(crate) fn nodes_with_edges(
        &self,
        rank: u32,
    ) -> impl Iterator<Item = (&'a Node, &'a [u32])> + use<'a> {
        let own = self.node_range(rank);
        self.nodes[own.clone()].iter().zip(self.edges_of_each(&own))
    }

    /// Returns the edges that leave a node.
    #[inline]
    pub(crate) fn edges_of(&self, node: usize) -> &'a [u32] {
        &self.edges[self.first_edge[node] as usize..self.first_edge[node + 1] as usize]
    }

    pub(crate) fn operation(&self, node: &Node) -> Operation {
        let kind = node.kind();
        let known = |number| (number != ANY).then_some(number);
        let (peer, tag) = match kind {
            Kind::Calculate => (None, None),
            _ => {
                let channel = self.channels[node.channel as usize];
                let peer = if kind == Kind::Send { channel.destination } else { channel.source };
                (known(peer), known(channel.tag))
            }
        };
        Operation { kind, size: node.size, peer, tag, cpu: node.cpu, nic: node.nic }
    }

    /// Checks that every index is in range and no dependencies form a cycle, on up to `threads` threads; returns the
    /// sizes of the schedule and of its operations. The error it returns does not depend on the number of threads.
    pub(crate) fn check(&self, threads: usize) -> Result<(Extent, SizeBounds), ScheduleError> {
        check_offsets(self.first_node, self.nodes.len(), "operations of ranks")?;
        check_offsets(self.first_channel, self.channels.len(), "channels of ranks")?;
        let ends = self.first_edge.first() == Some(&0)
            && self.first_edge.last().is_some_and(|&end| end as usize == self.edges.len())
            && self.first_edge.len() == self.nodes.len() + 1;
        let bad_index = ScheduleError::Table { table: "edges of operations" };
        if !ends {
            return Err(bad_index);
        }
        let parts = threads::divide_for_threads(self, 0..self.ranks(), threads);
        let parts = threads::map_parallel(parts, |ranks| {
            self.has_valid_edge_offsets(&ranks).then(|| self.measure(ranks))
        });
        let measured: Option<Vec<_>> = parts.into_iter().collect();
        let mut extent = Extent {
            ranks: self.ranks(),
            operations: self.nodes.len() as u64,
            dependencies: self.edges.len() as u64,
            channels: self.channels.len() as u64,
            cpus: 1,
            nics: 1,
        };
        let mut sizes = SizeBounds::default();
        for measured in measured.ok_or(bad_index)? {
            let (resources, others) = measured?;
            (extent.cpus, extent.nics) = (extent.cpus.max(resources[0]), extent.nics.max(resources[1]));
            sizes.merge(&others);
        }
        Ok((extent, sizes))
    }

    /// Returns true if the edge offsets of some ranks never decrease and end within the table of edges.
    fn has_valid_edge_offsets(&self, ranks: &Range<u32>) -> bool {
        let [start, end] = [ranks.start, ranks.end].map(|rank| self.first_node[rank as usize] as usize);
        let own = &self.first_edge[start..=end];
        own.is_sorted() && own.last().is_some_and(|&end| end as usize <= self.edges.len())
    }

    /// Checks some ranks; returns their largest numbers of processors and interfaces and the bounds of their
    /// operations' sizes.
    fn measure(&self, ranks: Range<u32>) -> Result<([u32; 2], SizeBounds), ScheduleError> {
        let (mut resources, mut sizes) = ([1; 2], SizeBounds::default());
        for rank in ranks {
            self.check_channels(rank)?;
            self.check_rank(rank, &mut resources, &mut sizes)?;
        }
        Ok((resources, sizes))
    }

    fn check_channels(&self, rank: u32) -> Result<(), ScheduleError> {
        let ranks = self.ranks();
        let own = self.first_channel[rank as usize] as usize..self.first_channel[rank as usize + 1] as usize;
        let good = |channel: &Channel| {
            channel.destination == rank && (channel.source < ranks || channel.source == ANY)
        };
        match self.channels[own].iter().all(good) {
            true => Ok(()),
            false => Err(ScheduleError::Table { table: "channels" }),
        }
    }

    /// Checks the nodes and edges of a rank, and that each of its operations can start; adds their measurements.
    fn check_rank(
        &self,
        rank: u32,
        resources: &mut [u32; 2],
        sizes: &mut SizeBounds,
    ) -> Result<(), ScheduleError> {
        let nodes = self.nodes_of(rank);
        let (mut is_good, mut leads_back) = (true, false);
        let mut numbers = 0;
        for (index, (node, edges)) in self.nodes_with_edges(rank).enumerate() {
            if !self.is_valid_node(rank, node) {
                return Err(ScheduleError::Table { table: "operations" });
            }
            sizes.add(node);
            numbers |= node.cpu | node.nic;
            for &edge in edges {
                let (starts, dependent) = (edge & FROM_START != 0, (edge & !FROM_START) as usize);
                is_good &= dependent < nodes.len() && (!starts || node.has_start_edges != 0);
                leads_back |= dependent <= index;
            }
        }
        if !is_good {
            return Err(ScheduleError::Table { table: "edges" });
        }
        if numbers > 0 {
            for node in nodes {
                for (most, number) in resources.iter_mut().zip([node.cpu, node.nic]) {
                    *most = (*most).max(u32::from(number) + 1);
                }
            }
        }
        // If all dependencies lead forward, there is no cycle.
        if leads_back { self.check_acyclic(rank) } else { Ok(()) }
    }

    /// Returns true if a node is a valid operation of this rank.
    #[inline]
    fn is_valid_node(&self, rank: u32, node: &Node) -> bool {
        match (Kind::from_number(node.kind), self.channels.get(node.channel as usize)) {
            (Some(Kind::Calculate), None) => node.channel == ANY,
            (Some(Kind::Send), Some(channel)) => channel.source == rank,
            (Some(Kind::Receive), Some(channel)) => channel.destination == rank,
            _ => false,
        }
    }

    /// Checks that the dependencies of a rank have no cycle: removes operations in topological order (Kahn 1962).
    fn check_acyclic(&self, rank: u32) -> Result<(), ScheduleError> {
        let first = self.first_node[rank as usize] as usize;
        let mut waits_for = vec![0_u32; self.nodes_of(rank).len()];
        for edge in (0..waits_for.len()).flat_map(|node| self.edges_of(first + node)) {
            waits_for[(edge & !FROM_START) as usize] += 1;
        }
        let mut free: Vec<u32> =
            (0..).zip(&waits_for).filter(|(_, count)| **count == 0).map(|(node, _)| node).collect();
        let mut taken = 0;
        while let Some(node) = free.pop() {
            taken += 1;
            for &edge in self.edges_of(first + node as usize) {
                let dependent = edge & !FROM_START;
                let count = &mut waits_for[dependent as usize];
                *count -= 1;
                if *count == 0 {
                    free.push(dependent);
                }
            }
        }
        if taken == waits_for.len() {
            return Ok(());
        }
        let operation = waits_for.iter().position(|&count| count > 0).unwrap_or_default() as u32;
        Err(ScheduleError::Cycle { rank, operation, waiting: (waits_for.len() - taken) as u64 })
    }
}

/// Checks offsets that divide a table: they start at 0, never decrease, and end at its length.
fn check_offsets(first: &[u64], len: usize, table: &'static str) -> Result<(), ScheduleError> {
    let good = first.first() == Some(&0) && first.last() == Some(&(len as u64)) && first.is_sorted();
    if good { Ok(()) } else { Err(ScheduleError::Table { table }) }
}
