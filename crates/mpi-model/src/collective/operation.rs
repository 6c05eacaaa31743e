//! Collective operations with several algorithms, and the tables of these algorithms.

use super::decision_table::{DecisionTable, Measure};
use super::member::Elements;
use super::selection::RankRequirement;
use super::{
    Allgather, Allgatherv, Allreduce, Alltoall, Alltoallv, Barrier, Bcast, Gather, Member, Reduce,
    ReduceScatter, Scatter, Schedule, automatic, measured,
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

/// An operation whose algorithm can be selected: its arguments and its table of algorithms.
pub(super) trait Selectable: Sized + 'static {
    /// Arguments of a call.
    type Args<'a>: Copy + Send + 'a;
    /// A function that returns the schedule of a call.
    type Algorithm: Copy + Send + Sync + 'static;

    /// The operation.
    const OPERATION: Operation;
    /// The size that [`OPERATION`](Self::OPERATION) documents.
    const SIZE: Measure = Measure::Bytes;
    /// The algorithms, in the order of SimGrid's list.
    const ALGORITHMS: &'static [Entry<Self::Algorithm>];

    /// Returns the data of a call that its size is measured by.
    fn data(member: Member<'_>, args: Self::Args<'_>) -> Elements;

    /// Returns the schedule of an algorithm.
    fn run<'a>(algorithm: Self::Algorithm, member: Member<'a>, args: Self::Args<'a>) -> Schedule<'a>;

    /// Returns the schedule of the algorithm that a decision table chooses.
    fn by_table<'a>(
        table: &DecisionTable<Self::Algorithm>,
        member: Member<'a>,
        args: Self::Args<'a>,
    ) -> Schedule<'a> {
        Self::run(table.choose(member, Self::data(member, args)), member, args)
    }

    /// Returns the schedule of an entry of the table.
    fn by_choice<'a>(
        choice: &Choice<Self::Algorithm>,
        member: Member<'a>,
        args: Self::Args<'a>,
    ) -> Schedule<'a> {
        match *choice {
            Choice::Algorithm(algorithm) => Self::run(algorithm, member, args),
            Choice::Table(table) => Self::by_table(table, member, args),
            Choice::Automatic => automatic::run_all::<Self>(member, args),
        }
    }

    /// Returns the schedule of the algorithm that the communicator's selection chooses.
    fn selected<'a>(member: Member<'a>, args: Self::Args<'a>) -> Schedule<'a> {
        let size = Self::SIZE.of(Self::data(member, args), member.size);
        if let Some(times) = member.selection.measured_for(Self::OPERATION, member.size, size) {
            return measured::schedule(times, Self::OPERATION, member, size);
        }
        let index = member.selection.algorithm_index(Self::OPERATION, member.size, size);
        Self::by_choice(&Self::ALGORITHMS[index].choice, member, args)
    }
}

/// A row of a table of algorithms.
pub(super) struct Entry<A: 'static> {
    pub(super) name: &'static str,
    pub(super) requirement: RankRequirement,
    /// Returns true if `automatic` runs the algorithm with such members: those that SimGrid's implementation supports.
    pub(super) is_tried: fn(Member<'_>) -> bool,
    pub(super) choice: Choice<A>,
}

/// The algorithm that a name stands for.
pub(super) enum Choice<A: 'static> {
    /// This one.
    Algorithm(A),
    /// The one that a table chooses for the call.
    Table(&'static DecisionTable<A>),
    /// All algorithms, one after the other.
    Automatic,
}

impl<A> Entry<A> {
    /// The row of the selector `automatic`.
    pub(super) const AUTOMATIC: Self = Self::row("automatic", Choice::Automatic);

    /// Returns the row of an algorithm for any number of ranks.
    pub(super) const fn new(name: &'static str, algorithm: A) -> Self {
        Self::row(name, Choice::Algorithm(algorithm))
    }

    /// Returns the row of the decision table of a selector.
    pub(super) const fn table(name: &'static str, table: &'static DecisionTable<A>) -> Self {
        Self::row(name, Choice::Table(table))
    }

    /// Returns the row of an algorithm that requires certain numbers of ranks.
    pub(super) const fn requiring(requirement: RankRequirement, name: &'static str, algorithm: A) -> Self {
        Self { name, requirement, is_tried: |_| true, choice: Choice::Algorithm(algorithm) }
    }

    /// Returns the row of an algorithm for any number of ranks of which SimGrid's implementation supports only some.
    pub(super) const fn tried_if(name: &'static str, is_tried: fn(Member<'_>) -> bool, algorithm: A) -> Self {
        Self { name, requirement: RankRequirement::AnyNumber, is_tried, choice: Choice::Algorithm(algorithm) }
    }

    const fn row(name: &'static str, choice: Choice<A>) -> Self {
        Self { name, requirement: RankRequirement::AnyNumber, is_tried: |_| true, choice }
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
        fn of<O: Selectable>() -> Vec<(&'static str, RankRequirement)> {
            O::ALGORITHMS.iter().map(|entry| (entry.name, entry.requirement)).collect()
        }
        match self {
            Self::Barrier => of::<Barrier>(),
            Self::Bcast => of::<Bcast>(),
            Self::Reduce => of::<Reduce>(),
            Self::Allreduce => of::<Allreduce>(),
            Self::Gather => of::<Gather>(),
            Self::Scatter => of::<Scatter>(),
            Self::Allgather => of::<Allgather>(),
            Self::Allgatherv => of::<Allgatherv>(),
            Self::Alltoall => of::<Alltoall>(),
            Self::Alltoallv => of::<Alltoallv>(),
            Self::ReduceScatter => of::<ReduceScatter>(),
        }
    }
}
