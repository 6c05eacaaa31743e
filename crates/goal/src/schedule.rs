//! Schedules: for each rank a graph of operations, stored flat.

use std::fmt;

use bytemuck::{Pod, Zeroable};

mod builder;
mod storage;

pub use builder::{RankBuilder, ScheduleBuilder};
pub(crate) use storage::{Storage, Tables};

use crate::error::ScheduleError;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Sends a message.
    Send = 1,
    /// Receives a message.
    Receive = 2,
    /// Computes.
    Calculate = 3,
}

impl Kind {
    /// Returns the kind that has this number in files.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Send),
            2 => Some(Self::Receive),
            3 => Some(Self::Calculate),
            _ => None,
        }
    }
}

/// An operation as a schedule names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What it does.
    pub kind: Kind,
    /// The length of a message \[B\] or of a computation \[ns\].
    pub size: u64,
    /// The other rank of a message; `None` is any source.
    pub peer: Option<u32>,
    /// The tag of a message; `None` matches any tag.
    pub tag: Option<u32>,
    /// The processor of the rank that it occupies.
    pub cpu: u8,
    /// The network interface of the rank that it occupies.
    pub nic: u8,
}

impl Operation {
    /// Makes a computation of this many nanoseconds.
    pub const fn calculate(nanos: u64) -> Self {
        Self { kind: Kind::Calculate, size: nanos, peer: None, tag: None, cpu: 0, nic: 0 }
    }

    /// Makes a send of this many bytes.
    pub const fn send(bytes: u64, to: u32, tag: u32) -> Self {
        Self { kind: Kind::Send, size: bytes, peer: Some(to), tag: Some(tag), cpu: 0, nic: 0 }
    }

    /// Makes a receive of this many bytes.
    pub const fn receive(bytes: u64, from: u32, tag: u32) -> Self {
        Self { kind: Kind::Receive, size: bytes, peer: Some(from), tag: Some(tag), cpu: 0, nic: 0 }
    }
}

/// When a dependent operation may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum After {
    /// After the end of the other operation (`requires`).
    End,
    /// After the start of the other operation (`irequires`).
    Start,
}

/// Stands in tables for any source, any tag, and for the channel of a computation.
pub(crate) const ANY: u32 = u32::MAX;
/// The bit of an edge that leaves the start of an operation, not its end.
pub(crate) const FROM_START: u32 = 1 << 31;

/// An operation as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Node {
    pub(crate) size: u64,
    /// Index of its channel, [`ANY`] for computations.
    pub(crate) channel: u32,
    pub(crate) kind: u8,
    pub(crate) cpu: u8,
    pub(crate) nic: u8,
    /// 1 where edges leave its start.
    pub(crate) has_start_edges: u8,
}

const _: () = assert!(size_of::<Node>() == 16);

impl Node {
    /// Returns what it does; nodes are checked before a schedule exists.
    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        match self.kind {
            1 => Kind::Send,
            2 => Kind::Receive,
            _ => Kind::Calculate,
        }
    }
}

/// Messages from one rank to another with one tag, in their order; receives may leave source and tag open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Channel {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) tag: u32,
}

impl Channel {
    /// Returns whether more than one channel may match it.
    pub(crate) fn is_open(&self) -> bool {
        self.source == ANY || self.tag == ANY
    }

    /// Returns whether a receive and a message match.
    #[inline]
    pub(crate) fn matches(&self, other: &Self) -> bool {
        (self.source == other.source || self.source == ANY || other.source == ANY)
            && (self.tag == other.tag || self.tag == ANY || other.tag == ANY)
    }
}

/// A schedule: what each rank does, and what must come before what.
///
/// Operations of a rank are numbered from 0 in the order of their definition. In memory and in an archive an
/// operation takes 16 bytes, an edge between two operations 4, and the index of edges another 4 per operation.
#[derive(Debug)]
pub struct Schedule {
    storage: Storage,
    extent: Extent,
    sizes: Sizes,
}

/// The sizes of a schedule's operations, by the number of their kind: messages \[B\], computations \[ns\].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    largest: [u64; 4],
    smallest: [u64; 4],
}

impl Default for Sizes {
    fn default() -> Self {
        Self { largest: [0; 4], smallest: [u64::MAX; 4] }
    }
}

impl Sizes {
    #[inline]
    fn add(&mut self, node: &Node) {
        let kind = usize::from(node.kind & 3);
        self.largest[kind] = self.largest[kind].max(node.size);
        self.smallest[kind] = self.smallest[kind].min(node.size);
    }

    /// Adds those of other operations.
    fn merge(&mut self, others: &Self) {
        for kind in 0..self.largest.len() {
            self.largest[kind] = self.largest[kind].max(others.largest[kind]);
            self.smallest[kind] = self.smallest[kind].min(others.smallest[kind]);
        }
    }

    /// Returns the largest size of a kind, 0 where there are no such operations.
    pub(crate) fn largest(&self, kind: Kind) -> u64 {
        self.largest[kind as usize]
    }

    /// Returns the largest message that is sent or received \[B\].
    pub(crate) fn message(&self) -> u64 {
        self.largest(Kind::Send).max(self.largest(Kind::Receive))
    }

    /// Returns whether a message is empty.
    pub(crate) fn has_empty(&self) -> bool {
        self.smallest[Kind::Send as usize].min(self.smallest[Kind::Receive as usize]) == 0
    }
}

/// How large a schedule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Ranks.
    pub ranks: u32,
    /// Operations of all ranks.
    pub operations: u64,
    /// Dependencies of all ranks.
    pub dependencies: u64,
    /// Different combinations of source, destination and tag.
    pub channels: u64,
    /// Processors per rank.
    pub cpus: u32,
    /// Network interfaces per rank.
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
    /// Makes a schedule of tables that were just built, and checks all of them: O(operations + edges).
    ///
    /// # Errors
    /// Where an index leads nowhere or operations wait for each other in a circle.
    pub(crate) fn new(storage: Storage) -> Result<Self, ScheduleError> {
        let checked = storage.tables().check(1)?;
        Ok(Self::checked(storage, checked))
    }

    /// Makes a schedule of tables, of which a check has found how large they are.
    pub(crate) fn checked(storage: Storage, (extent, sizes): (Extent, Sizes)) -> Self {
        Self { storage, extent, sizes }
    }

    /// Returns how large the schedule is.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// Returns how large its operations are.
    pub(crate) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Returns the tables.
    pub(crate) fn tables(&self) -> Tables<'_> {
        self.storage.tables()
    }

    /// Yields the operations of a rank.
    ///
    /// # Panics
    /// Where there is no such rank.
    pub fn operations(&self, rank: u32) -> impl Iterator<Item = Operation> + '_ {
        let tables = self.tables();
        tables.nodes_of(rank).iter().map(move |node| tables.operation(node))
    }

    /// Yields the dependencies of a rank as (earlier operation, dependent operation, when).
    ///
    /// # Panics
    /// Where there is no such rank.
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

/// Schedules are equal where their ranks have the same operations and dependencies, each in the same order.
impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        self.tables() == other.tables()
    }
}

impl Eq for Schedule {}
