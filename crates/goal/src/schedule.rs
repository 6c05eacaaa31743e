//! Schedules: one dependency graph of operations per rank, stored in flat tables.

use std::fmt;

use bytemuck::{Pod, Zeroable};

mod builder;
mod storage;

pub use builder::{RankBuilder, ScheduleBuilder};
pub(crate) use storage::{Storage, Tables};

use crate::error::ScheduleError;

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A send.
    Send = 1,
    /// A receive.
    Receive = 2,
    /// A computation.
    Calculate = 3,
}

impl Kind {
    /// Returns the kind with this number in files.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Send),
            2 => Some(Self::Receive),
            3 => Some(Self::Calculate),
            _ => None,
        }
    }
}

/// Operation of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Kind of the operation.
    pub kind: Kind,
    /// Length of a message \[B\] or of a computation \[ns\].
    pub size: u64,
    /// Other rank of a message; `None` matches any source.
    pub peer: Option<u32>,
    /// Tag of a message; `None` matches any tag.
    pub tag: Option<u32>,
    /// Processor of the rank that the operation occupies.
    pub cpu: u8,
    /// Network interface of the rank that the operation occupies.
    pub nic: u8,
}

impl Operation {
    /// Returns a computation of this many nanoseconds.
    pub const fn calculate(nanos: u64) -> Self {
        Self { kind: Kind::Calculate, size: nanos, peer: None, tag: None, cpu: 0, nic: 0 }
    }

    /// Returns a send of this many bytes.
    pub const fn send(bytes: u64, to: u32, tag: u32) -> Self {
        Self { kind: Kind::Send, size: bytes, peer: Some(to), tag: Some(tag), cpu: 0, nic: 0 }
    }

    /// Returns a receive of this many bytes.
    pub const fn receive(bytes: u64, from: u32, tag: u32) -> Self {
        Self { kind: Kind::Receive, size: bytes, peer: Some(from), tag: Some(tag), cpu: 0, nic: 0 }
    }
}

/// Point of an operation after which a dependent operation may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum After {
    /// The end of the other operation (`requires`).
    End,
    /// The start of the other operation (`irequires`).
    Start,
}

/// Table entry for any source, any tag, and the channel of a computation.
pub(crate) const ANY: u32 = u32::MAX;
/// Bit of an edge that leaves the start of an operation, not its end.
pub(crate) const FROM_START: u32 = 1 << 31;

/// An operation as stored in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Node {
    pub(crate) size: u64,
    /// Index of its channel, [`ANY`] for computations.
    pub(crate) channel: u32,
    pub(crate) kind: u8,
    pub(crate) cpu: u8,
    pub(crate) nic: u8,
    /// 1 if edges leave its start.
    pub(crate) has_start_edges: u8,
}

const _: () = assert!(size_of::<Node>() == 16);

impl Node {
    /// Returns the kind; nodes are checked before a schedule exists.
    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        match self.kind {
            1 => Kind::Send,
            2 => Kind::Receive,
            _ => Kind::Calculate,
        }
    }
}

/// Channel: ordered messages from one rank to another with one tag. Receives may leave source and tag open (wildcards).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Channel {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) tag: u32,
}

impl Channel {
    /// Returns true if it has a wildcard, i.e. may match more than one channel.
    pub(crate) fn has_wildcard(&self) -> bool {
        self.source == ANY || self.tag == ANY
    }

    /// Returns true if a receive and a message match.
    #[inline]
    pub(crate) fn matches(&self, other: &Self) -> bool {
        (self.source == other.source || self.source == ANY || other.source == ANY)
            && (self.tag == other.tag || self.tag == ANY || other.tag == ANY)
    }
}

/// A schedule: the operations of each rank and the dependencies between them.
///
/// Operations of a rank are numbered from 0 in the order of their definition. In memory and in an archive an operation
/// takes 16 bytes, an edge between two operations 4, and the index of edges another 4 per operation.
#[derive(Debug)]
pub struct Schedule {
    storage: Storage,
    extent: Extent,
    sizes: SizeBounds,
}

/// Largest and smallest sizes of a schedule's operations, by the number of their kind: messages \[B\], computations
/// \[ns\].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SizeBounds {
    largest: [u64; 4],
    smallest: [u64; 4],
}

impl Default for SizeBounds {
    fn default() -> Self {
        Self { largest: [0; 4], smallest: [u64::MAX; 4] }
    }
}

impl SizeBounds {
    #[inline]
    fn add(&mut self, node: &Node) {
        let kind = usize::from(node.kind & 3);
        self.largest[kind] = self.largest[kind].max(node.size);
        self.smallest[kind] = self.smallest[kind].min(node.size);
    }

    /// Adds the bounds of other operations.
    fn merge(&mut self, others: &Self) {
        for kind in 0..self.largest.len() {
            self.largest[kind] = self.largest[kind].max(others.largest[kind]);
            self.smallest[kind] = self.smallest[kind].min(others.smallest[kind]);
        }
    }

    /// Returns the largest size of a kind, 0 if there are no such operations.
    pub(crate) fn largest(&self, kind: Kind) -> u64 {
        self.largest[kind as usize]
    }

    /// Returns the largest message that is sent or received \[B\].
    pub(crate) fn largest_message(&self) -> u64 {
        self.largest(Kind::Send).max(self.largest(Kind::Receive))
    }

    /// Returns true if some message is empty.
    pub(crate) fn has_empty(&self) -> bool {
        self.smallest[Kind::Send as usize].min(self.smallest[Kind::Receive as usize]) == 0
    }
}

/// Size of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Number of ranks.
    pub ranks: u32,
    /// Number of operations of all ranks.
    pub operations: u64,
    /// Number of dependencies of all ranks.
    pub dependencies: u64,
    /// Number of different combinations of source, destination and tag.
    pub channels: u64,
    /// Number of processors per rank.
    pub cpus: u32,
    /// Number of network interfaces per rank.
    pub nics: u32,
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ranks, operations, dependencies, channels, cpus, nics } = self;
        write!(
            f,
            "{ranks} ranks with {cpus} processor(s) and {nics} network interface(s) each, {operations} "
        )?;
        write!(f, "operations, {dependencies} dependencies, {channels} channels")
    }
}

impl Schedule {
    /// Makes a schedule of tables that were just built, and checks them: O(operations + edges).
    ///
    /// # Errors
    /// Fails if an index is out of range or dependencies form a cycle.
    pub(crate) fn new(storage: Storage) -> Result<Self, ScheduleError> {
        let checked = storage.tables().check(1)?;
        Ok(Self::from_checked(storage, checked))
    }

    /// Makes a schedule of tables that were checked already.
    pub(crate) fn from_checked(storage: Storage, (extent, sizes): (Extent, SizeBounds)) -> Self {
        Self { storage, extent, sizes }
    }

    /// Returns the size of the schedule.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// Returns the bounds of the sizes of its operations.
    pub(crate) fn sizes(&self) -> SizeBounds {
        self.sizes
    }

    /// Returns the tables.
    pub(crate) fn tables(&self) -> Tables<'_> {
        self.storage.tables()
    }

    /// Yields the operations of a rank.
    ///
    /// # Panics
    /// Panics if the rank does not exist.
    pub fn operations(&self, rank: u32) -> impl Iterator<Item = Operation> + '_ {
        let tables = self.tables();
        tables.nodes_of(rank).iter().map(move |node| tables.operation(node))
    }

    /// Yields the dependencies of a rank as (earlier operation, dependent operation, when).
    ///
    /// # Panics
    /// Panics if the rank does not exist.
    pub fn dependencies(&self, rank: u32) -> impl Iterator<Item = (u32, u32, After)> + '_ {
        let tables = self.tables();
        let first = tables.first_node[rank as usize] as usize;
        let nodes = 0..tables.nodes_of(rank).len();
        nodes.flat_map(move |index| {
            tables.edges_of(first + index).iter().map(move |&edge| {
                let after = if edge & FROM_START == 0 { After::End } else { After::Start };
                (index as u32, edge & !FROM_START, after)
            })
        })
    }
}

/// Schedules are equal if their ranks have the same operations and dependencies, each in the same order.
impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        self.tables() == other.tables()
    }
}

impl Eq for Schedule {}
