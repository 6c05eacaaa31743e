//! Which ranks lie on which worker.

use std::ops::Range;
use std::sync::Arc;

use crate::Rank;

/// Ranks lie on the workers of all members in contiguous blocks of equal size, or differing by one. Worker `w` of
/// member `m` is number `m * workers + w` of all.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    /// Rank `starts[w]` is the first one of worker `w` of all; one entry more than workers.
    starts: Arc<[u32]>,
    member: usize,
    /// Workers of each member.
    workers: usize,
}

impl Partition {
    pub(crate) fn new(ranks: usize, workers: usize, member: usize, members: usize) -> Self {
        let all = workers * members;
        Self { starts: (0..=all).map(|worker| (worker * ranks / all) as u32).collect(), member, workers }
    }

    /// Returns the workers of all members.
    pub(crate) fn all_workers(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number among all of the first worker of this member.
    pub(crate) fn first_worker(&self) -> usize {
        self.member * self.workers
    }

    /// Returns the ranks of one of the workers of all.
    pub(crate) fn ranks(&self, worker: usize) -> Range<u32> {
        self.starts[worker]..self.starts[worker + 1]
    }

    /// Returns the ranks of this member.
    pub(crate) fn block(&self) -> Range<u32> {
        self.starts[self.first_worker()]..self.starts[self.first_worker() + self.workers]
    }

    /// Returns the worker of a rank, among all.
    pub(crate) fn owner(&self, rank: Rank) -> usize {
        self.starts.partition_point(|&start| start <= rank.get()) - 1
    }

    /// Returns the member of one of the workers of all, and which of that member's workers it is.
    pub(crate) fn place(&self, worker: usize) -> (usize, usize) {
        (worker / self.workers, worker % self.workers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_follow_each_other() {
        let last = Partition::new(7, 2, 1, 2);
        assert_eq!((last.all_workers(), last.first_worker(), last.block()), (4, 2, 3..7));
        let ranks: Vec<_> = (0..4).map(|worker| last.ranks(worker)).collect();
        assert_eq!(ranks, [0..1, 1..3, 3..5, 5..7]);
        assert_eq!(last.owner(Rank::new(3)), 2);
        assert_eq!(last.place(3), (1, 1));
    }

    #[test]
    fn workers_may_have_no_ranks() {
        let partition = Partition::new(1, 3, 0, 1);
        assert_eq!(partition.owner(Rank::new(0)), 2);
        assert_eq!(partition.block(), 0..1);
    }
}
