//! The partition of processes over workers.

use std::ops::Range;
use std::sync::Arc;

use crate::LpId;

/// The assignment of processes to workers, those of all members of a cluster or of the only process.
///
/// With `T` workers per member, worker `w` of member `m` has the number `m * T + w`. A partition never changes a result.
///
/// ```
/// use pdes_core::{Partition, LpId};
///
/// let blocks = Partition::blocks(5, 2);
/// assert_eq!(blocks.worker(LpId::new(2)), 1);
/// let given = Partition::new(&[1, 0, 1, 0, 1], 2);
/// assert_eq!(given.lps(1).collect::<Vec<_>>(), [0, 2, 4].map(LpId::new));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// First slot of each worker, and the number of processes. Slots number all processes, sorted by (worker, process).
    starts: Arc<[u32]>,
    /// Permutation between processes and slots; `None` if it is the identity.
    permutation: Option<Arc<Permutation>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Permutation {
    slots: Box<[u32]>,
    lps: Box<[u32]>,
}

impl Partition {
    /// Assigns processes to workers in contiguous blocks whose sizes differ by at most one.
    ///
    /// # Panics
    /// If `workers` is zero.
    pub fn blocks(lps: u32, workers: usize) -> Self {
        assert!(workers > 0, "a partition needs at least one worker");
        let start = |worker| (worker as u64 * u64::from(lps) / workers as u64) as u32;
        Self { starts: (0..=workers).map(start).collect(), permutation: None }
    }

    /// Assigns process `i` to worker `owners[i]`.
    ///
    /// # Panics
    /// If an owner is not below `workers`.
    pub fn new(owners: &[u32], workers: usize) -> Self {
        let mut starts = vec![0; workers + 1];
        for &owner in owners {
            assert!((owner as usize) < workers, "found worker {owner}, expected one below {workers}");
            starts[owner as usize + 1] += 1;
        }
        (0..workers).for_each(|worker| starts[worker + 1] += starts[worker]);
        let mut next = starts.clone();
        let (mut slots, mut lps) = (vec![0; owners.len()], vec![0; owners.len()]);
        for (lp, &owner) in owners.iter().enumerate() {
            let slot = &mut next[owner as usize];
            slots[lp] = *slot;
            lps[*slot as usize] = lp as u32;
            *slot += 1;
        }
        let permutation = Permutation { slots: slots.into(), lps: lps.into() };
        let permutation = (!owners.is_sorted()).then(|| Arc::new(permutation));
        Self { starts: starts.into(), permutation }
    }

    /// Inserts workers without processes for the members of a cluster that do not work. This partition is one of the workers of those that do,
    /// `workers` of each.
    ///
    /// ```
    /// use pdes_core::{Partition, LpId};
    ///
    /// let spread = Partition::blocks(5, 2).spread_over(&[false, true, false, true], 1);
    /// assert_eq!([0, 1, 2, 3].map(|worker| spread.lps(worker).count()), [0, 2, 0, 3]);
    /// assert_eq!(spread.worker(LpId::new(2)), 3);
    /// ```
    ///
    /// # Panics
    /// If it is a partition of another number of workers.
    pub fn spread_over(self, works: &[bool], workers: usize) -> Self {
        let mut starts = Vec::with_capacity(works.len() * workers + 1);
        let mut next = 0;
        for &works in works {
            for _ in 0..workers {
                starts.push(self.starts[next]);
                next += usize::from(works);
            }
        }
        assert_eq!(next, self.workers(), "all workers belong to members that work");
        starts.push(self.len());
        Self { starts: starts.into(), permutation: self.permutation }
    }

    /// Returns the number of processes.
    pub fn len(&self) -> u32 {
        *self.starts.last().expect("a partition has at least one start")
    }

    /// Returns true if there are no processes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the worker of a process.
    #[inline]
    pub fn worker(&self, lp: LpId) -> usize {
        let slot = self.slot(lp);
        self.starts.partition_point(|&start| start <= slot) - 1
    }

    /// Returns the processes of a worker, in ascending order.
    pub fn lps(&self, worker: usize) -> impl Iterator<Item = LpId> + '_ {
        self.slots(worker).map(|slot| self.lp(slot))
    }

    pub(crate) fn slots(&self, worker: usize) -> Range<u32> {
        self.starts[worker]..self.starts[worker + 1]
    }

    #[inline]
    pub(crate) fn slot(&self, lp: LpId) -> u32 {
        self.permutation.as_ref().map_or(lp.get(), |permutation| permutation.slots[lp.index()])
    }

    #[inline]
    pub(crate) fn lp(&self, slot: u32) -> LpId {
        LpId::new(self.permutation.as_ref().map_or(slot, |permutation| permutation.lps[slot as usize]))
    }

    /// Permutes a list from the order of numbers to that of slots.
    pub(crate) fn to_slot_order<T>(&self, of_lps: Vec<T>) -> Vec<T> {
        match &self.permutation {
            Some(permutation) => permute(of_lps, &permutation.lps),
            None => of_lps,
        }
    }

    /// Permutes a list from the order of slots to that of numbers.
    pub(crate) fn to_lp_order<T>(&self, by_slot: Vec<T>) -> Vec<T> {
        match &self.permutation {
            Some(permutation) => permute(by_slot, &permutation.slots),
            None => by_slot,
        }
    }
}

/// Returns the items at these indices, each of which occurs once.
fn permute<T>(things: Vec<T>, slots: &[u32]) -> Vec<T> {
    let mut things: Vec<Option<T>> = things.into_iter().map(Some).collect();
    let taken = slots.iter().map(|&slot| things[slot as usize].take());
    taken.map(|thing| thing.expect("each slot occurs once")).collect()
}

/// A partition with the position of one member of a cluster in it.
#[derive(Clone, Debug)]
pub(crate) struct MemberPartition {
    pub(crate) global: Partition,
    member: usize,
    /// Number of workers of each member.
    workers: usize,
}

impl MemberPartition {
    pub(crate) fn new(whole: Partition, workers: usize, member: usize) -> Self {
        Self { global: whole, member, workers }
    }

    /// Returns the number of this member's first worker among those of all members.
    pub(crate) fn first_worker(&self) -> usize {
        self.member * self.workers
    }

    /// Returns the slots of this member.
    pub(crate) fn slots(&self) -> Range<u32> {
        self.global.starts[self.first_worker()]..self.global.starts[self.first_worker() + self.workers]
    }

    /// Returns the member of a worker, and the worker's index in that member.
    pub(crate) fn locate_worker(&self, worker: usize) -> (usize, usize) {
        (worker / self.workers, worker % self.workers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_follow_each_other() {
        let whole = Partition::blocks(7, 4);
        let slots: Vec<_> = (0..4).map(|worker| whole.slots(worker)).collect();
        assert_eq!(slots, [0..1, 1..3, 3..5, 5..7]);
        assert_eq!(whole.worker(LpId::new(3)), 2);
        let last = MemberPartition::new(whole, 2, 1);
        assert_eq!((last.first_worker(), last.slots()), (2, 3..7));
        assert_eq!(last.locate_worker(3), (1, 1));
    }

    #[test]
    fn workers_may_have_no_lps() {
        let partition = Partition::blocks(1, 3);
        assert_eq!(partition.worker(LpId::new(0)), 2);
        let given = Partition::new(&[2], 3);
        assert_eq!(given, partition);
    }

    #[test]
    fn places_are_by_worker_then_by_lp() {
        let partition = Partition::new(&[2, 0, 2, 0, 1], 3);
        let lps: Vec<Vec<u32>> =
            (0..3).map(|worker| partition.lps(worker).map(LpId::get).collect()).collect();
        assert_eq!(lps, [vec![1, 3], vec![4], vec![0, 2]]);
        let sorted = partition.to_slot_order((0..5).collect());
        assert_eq!(sorted, [1, 3, 4, 0, 2]);
        assert_eq!(partition.to_lp_order(sorted), [0, 1, 2, 3, 4]);
        assert_eq!((0..5).map(|lp| partition.worker(LpId::new(lp))).collect::<Vec<_>>(), [2, 0, 2, 0, 1]);
    }

    #[test]
    #[should_panic(expected = "found worker 3, expected one below 3")]
    fn a_worker_that_is_not_there_is_refused() {
        Partition::new(&[0, 3], 3);
    }
}
