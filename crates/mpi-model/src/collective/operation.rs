//! Collective operations with several algorithms, and the tables of these algorithms.

use super::selection::RankRequirement;
use super::{
    Member, allgather, allgatherv, allreduce, alltoall, alltoallv, barrier, bcast, gather, reduce,
    reduce_scatter, scatter,
};

/// A collective operation whose algorithm can be selected.
///
/// The documentation of each variant names the size by which decision tables select.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// No bytes.
    Barrier,
    /// The vector.
    Bcast,
    /// The vector.
    Reduce,
    /// The vector.
    Allreduce,
    /// The block of one rank.
    Gather,
    /// The block of one rank.
    Scatter,
    /// The block of one rank.
    Allgather,
    /// The mean block: all blocks together, divided by the number of ranks.
    Allgatherv,
    /// The block for one rank.
    Alltoall,
    /// No bytes, since each rank has its own sizes.
    Alltoallv,
    /// The whole vector.
    ReduceScatter,
}

/// A row of a table of algorithms.
pub(super) struct Entry<A> {
    pub(super) name: &'static str,
    pub(super) requirement: RankRequirement,
    /// Returns true if `automatic` runs the algorithm with such members: those that SimGrid's implementation supports.
    pub(super) is_tried: fn(Member<'_>) -> bool,
    pub(super) algorithm: A,
}

impl<A> Entry<A> {
    /// Returns the row of an algorithm for any number of ranks.
    pub(super) const fn new(name: &'static str, algorithm: A) -> Self {
        Self::tried_if(name, |_| true, algorithm)
    }

    /// Returns the row of an algorithm that requires certain numbers of ranks.
    pub(super) const fn requiring(needs: RankRequirement, name: &'static str, algorithm: A) -> Self {
        Self { name, requirement: needs, is_tried: |_| true, algorithm }
    }

    /// Returns the row of an algorithm for any number of ranks of which SimGrid's implementation supports only some.
    pub(super) const fn tried_if(name: &'static str, is_tried: fn(Member<'_>) -> bool, algorithm: A) -> Self {
        Self { name, requirement: RankRequirement::AnyNumber, is_tried, algorithm }
    }
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 11] = [
        Self::Barrier,
        Self::Bcast,
        Self::Reduce,
        Self::Allreduce,
        Self::Gather,
        Self::Scatter,
        Self::Allgather,
        Self::Allgatherv,
        Self::Alltoall,
        Self::Alltoallv,
        Self::ReduceScatter,
    ];

    /// Returns the name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Bcast => "bcast",
            Self::Reduce => "reduce",
            Self::Allreduce => "allreduce",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::Allgather => "allgather",
            Self::Allgatherv => "allgatherv",
            Self::Alltoall => "alltoall",
            Self::Alltoallv => "alltoallv",
            Self::ReduceScatter => "reduce_scatter",
        }
    }

    /// Returns the names of the operation's algorithms.
    pub fn algorithms(self) -> impl Iterator<Item = &'static str> {
        self.entries().into_iter().map(|(name, _)| name)
    }

    /// Returns the name and the requirement of an algorithm.
    pub(super) fn entry(self, index: usize) -> (&'static str, RankRequirement) {
        self.entries()[index]
    }

    fn entries(self) -> Vec<(&'static str, RankRequirement)> {
        fn of<A>(table: &[Entry<A>]) -> Vec<(&'static str, RankRequirement)> {
            table.iter().map(|entry| (entry.name, entry.requirement)).collect()
        }
        match self {
            Self::Barrier => of(barrier::ALGORITHMS),
            Self::Bcast => of(bcast::ALGORITHMS),
            Self::Reduce => of(reduce::ALGORITHMS),
            Self::Allreduce => of(allreduce::ALGORITHMS),
            Self::Gather => of(gather::ALGORITHMS),
            Self::Scatter => of(scatter::ALGORITHMS),
            Self::Allgather => of(allgather::ALGORITHMS),
            Self::Allgatherv => of(allgatherv::ALGORITHMS),
            Self::Alltoall => of(alltoall::ALGORITHMS),
            Self::Alltoallv => of(alltoallv::ALGORITHMS),
            Self::ReduceScatter => of(reduce_scatter::ALGORITHMS),
        }
    }
}
