//! Load balance: blocks of region groups that take each worker about the same time.

use std::sync::atomic::{AtomicU64, Ordering};

use super::blocks::starts;

/// Number of epochs between two samples of the groups' times: a sample reads the clock twice for each task.
const SAMPLE_EVERY: u64 = 16;

/// The sampled time of each region group, an exponentially weighted sum in which each sample counts half as much as the next.
///
/// It decides which block of groups a worker claims first, and so which ones stay in the caches of its core. No result
/// depends on it.
pub(super) struct LoadBalance {
    costs: Box<[Cost]>,
    workers: usize,
}

/// The sampled time of a region group. Relaxed: only the worker that has locked the group changes it, and a barrier lies
/// between a change and a read.
#[derive(Default)]
struct Cost {
    /// Weighted sum of the samples \[ns\].
    sum: AtomicU64,
    /// Epoch of the last sample.
    epoch: AtomicU64,
}

impl LoadBalance {
    pub(super) fn new(groups: usize, workers: usize) -> Self {
        Self { costs: (0..groups).map(|_| Cost::default()).collect(), workers }
    }

    /// Returns true if the times of the groups are sampled in an epoch.
    pub(super) fn is_sampled(&self, epoch: u64) -> bool {
        self.workers > 1 && epoch.is_multiple_of(SAMPLE_EVERY)
    }

    /// Adds the time `elapsed` \[ns\] by a task of a group in a sampled epoch.
    pub(super) fn add(&self, group: usize, epoch: u64, elapsed: u64) {
        let Cost { sum, epoch: last } = &self.costs[group];
        let samples = (epoch - last.load(Ordering::Relaxed)) / SAMPLE_EVERY;
        let before = sum.load(Ordering::Relaxed).checked_shr(samples as u32).unwrap_or(0);
        sum.store(before + elapsed, Ordering::Relaxed);
        last.store(epoch, Ordering::Relaxed);
    }

    /// Returns the group that a worker claims first.
    pub(super) fn first_group(&self, worker: usize) -> usize {
        // Before the first sample all costs are 0; adding 1 makes them equal and positive.
        let cost = |cost: &Cost| cost.sum.load(Ordering::Relaxed) + 1;
        let costs: Vec<u64> = self.costs.iter().map(cost).collect();
        starts(&costs, self.workers)[worker] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn firsts(balance: &LoadBalance) -> Vec<usize> {
        (0..balance.workers).map(|worker| balance.first_group(worker)).collect()
    }

    #[test]
    fn workers_begin_at_blocks_of_equal_cost() {
        let balance = LoadBalance::new(6, 3);
        assert_eq!(firsts(&balance), [0, 2, 4], "nothing is known");
        for (group, elapsed) in [900, 100, 400, 400, 600, 300].into_iter().enumerate() {
            balance.add(group, 0, elapsed / 3);
            balance.add(group, 0, elapsed - elapsed / 3);
        }
        assert_eq!(firsts(&balance), [0, 1, 4]);
    }

    #[test]
    fn the_last_samples_count() {
        let balance = LoadBalance::new(4, 2);
        balance.add(0, 0, 1_000_000);
        assert_eq!(firsts(&balance), [0, 1]);
        for sample in 1..20 {
            (0..4).for_each(|group| balance.add(group, sample * SAMPLE_EVERY, 1_000));
        }
        assert_eq!(firsts(&balance), [0, 2]);
    }

    #[test]
    fn one_worker_takes_no_samples() {
        assert!((0..100).all(|epoch| !LoadBalance::new(4, 1).is_sampled(epoch)));
        assert_eq!((0..64).filter(|&epoch| LoadBalance::new(4, 2).is_sampled(epoch)).count(), 4);
    }
}
