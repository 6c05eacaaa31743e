//! Selectors: decision tables of MPI libraries.

pub(super) mod impi;
pub(super) mod mpich;
pub(super) mod mvapich2;
pub(super) mod ompi;

use super::Member;

/// The rule of a library that picks algorithms by operation, size and number of ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selector {
    /// SimGrid's `default`: linear and binomial algorithms whatever the size, with Open MPI's table for alltoall.
    #[default]
    Default,
    /// Open MPI's.
    Ompi,
    /// MPICH's.
    Mpich,
    /// MVAPICH2's.
    Mvapich2,
    /// Intel MPI's.
    Impi,
    /// All algorithms of an operation in turn, which takes as long as all of them.
    Automatic,
    /// Closed forms: no messages, and so no contention.
    Analytic,
}

impl Selector {
    /// All selectors.
    pub const ALL: [Self; 7] =
        [Self::Default, Self::Ompi, Self::Mpich, Self::Mvapich2, Self::Impi, Self::Automatic, Self::Analytic];

    /// Returns the name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Ompi => "ompi",
            Self::Mpich => "mpich",
            Self::Mvapich2 => "mvapich2",
            Self::Impi => "impi",
            Self::Automatic => "automatic",
            Self::Analytic => "analytic",
        }
    }

    /// Returns the selector of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|selector| selector.name() == name)
    }
}

/// A decision table: below this many ranks, below this many bytes, this choice. The last row and the last column of
/// each row hold for all that are left.
pub(super) type Table<A> = &'static [(u32, &'static [(u64, A)])];

/// The bound of the last row of a [`Table`].
pub(super) const MORE: u32 = u32::MAX;

/// The bound of the last column of a [`Table`].
pub(super) const REST: u64 = u64::MAX;

/// Looks a call up in a table.
pub(super) fn pick<A: Copy>(table: Table<A>, ranks: u32, bytes: u64) -> A {
    let row = table.iter().find(|&&(below, _)| ranks < below).or(table.last());
    let columns = row.expect("a table has rows").1;
    let column = columns.iter().find(|&&(below, _)| bytes < below).or(columns.last());
    column.expect("a row has columns").1
}

/// Decision tables, each for nodes of so many ranks; the first also for numbers that have none, and where nodes have
/// different numbers of ranks.
pub(super) type NodeTables<A> = &'static [(u32, Table<A>)];

/// Looks a call up in the table for the nodes of a communicator.
pub(super) fn pick_by_node<A: Copy>(tables: NodeTables<A>, member: Member<'_>, bytes: u64) -> A {
    let cores = if member.layout.is_uniform() { member.layout.node_size(0) } else { 1 };
    let table = tables.iter().find(|&&(number, _)| number == cores).or(tables.first());
    pick(table.expect("there are tables").1, member.size, bytes)
}
