//! Selectors: the decision tables by which MPI libraries select algorithms.

pub(super) mod impi;
pub(super) mod mpich;
pub(super) mod mvapich2;
pub(super) mod ompi;

use super::Member;

/// Rule of an MPI library that selects algorithms by operation, size and number of ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selector {
    /// SimGrid's `default`: linear and binomial algorithms for all sizes, with Open MPI's table for alltoall.
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
    /// All algorithms of an operation one after the other; a call takes as long as all of them.
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

/// A decision table: the first row whose bound exceeds the number of ranks, in it the first column whose bound exceeds the
/// size \[B\]. The last row, and the last column of each row, hold for all remaining calls.
pub(super) type DecisionTable<A> = &'static [(u32, &'static [(u64, A)])];

/// Bound of the last row of a [`DecisionTable`].
pub(super) const MORE: u32 = u32::MAX;

/// Bound of the last column of a [`DecisionTable`].
pub(super) const REST: u64 = u64::MAX;

/// Looks up a call in a decision table.
pub(super) fn look_up<A: Copy>(table: DecisionTable<A>, ranks: u32, bytes: u64) -> A {
    let row = table.iter().find(|&&(below, _)| ranks < below).or(table.last());
    let columns = row.expect("a table has rows").1;
    let column = columns.iter().find(|&&(below, _)| bytes < below).or(columns.last());
    column.expect("a row has columns").1
}

/// Decision tables by the number of ranks per node; the first one also holds for numbers without a table, and for nodes
/// with different numbers of ranks.
pub(super) type NodeDecisionTables<A> = &'static [(u32, DecisionTable<A>)];

/// Looks up a call in the decision table for the communicator's number of ranks per node.
pub(super) fn look_up_by_node_size<A: Copy>(
    tables: NodeDecisionTables<A>,
    member: Member<'_>,
    bytes: u64,
) -> A {
    let cores = if member.layout.is_uniform() { member.layout.node_size(0) } else { 1 };
    let table = tables.iter().find(|&&(number, _)| number == cores).or(tables.first());
    look_up(table.expect("there are tables").1, member.size, bytes)
}
