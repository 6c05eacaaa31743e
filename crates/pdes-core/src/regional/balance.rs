//! Where workers begin, so that those domains that are a worker's own take it as long as those of each other one take that one.

use std::sync::atomic::{AtomicU64, Ordering};

use super::blocks::starts;

/// Epochs from one in which the time of domains is taken to the next: two looks at the clock for whatever a domain does.
const SAMPLE_EVERY: u64 = 16;

/// What domains take, in samples of which each counts half as much as the next one.
///
/// This says where a worker begins, and so which domains stay in the caches of its core; what is done with them, and in which order
/// the domains are read, does not depend on it.
pub(super) struct Balance {
    costs: Box<[Cost]>,
    workers: usize,
}

/// What a domain takes. Relaxed: whoever has locked the domain changes it, and workers that read it have met after that.
#[derive(Default)]
struct Cost {
    /// \[ns\]
    sum: AtomicU64,
    /// The epoch of the last sample.
    epoch: AtomicU64,
}

impl Balance {
    pub(super) fn new(domains: usize, workers: usize) -> Self {
        Self { costs: (0..domains).map(|_| Cost::default()).collect(), workers }
    }

    /// Returns whether the time of domains is to be taken in an epoch.
    pub(super) fn samples(&self, epoch: u64) -> bool {
        self.workers > 1 && epoch.is_multiple_of(SAMPLE_EVERY)
    }

    /// Adds what was done with a domain in an epoch that is a sample \[ns\].
    pub(super) fn add(&self, domain: usize, epoch: u64, taken: u64) {
        let Cost { sum, epoch: last } = &self.costs[domain];
        let samples = (epoch - last.load(Ordering::Relaxed)) / SAMPLE_EVERY;
        let before = sum.load(Ordering::Relaxed).checked_shr(samples as u32).unwrap_or(0);
        sum.store(before + taken, Ordering::Relaxed);
        last.store(epoch, Ordering::Relaxed);
    }

    /// Returns the domain with which a worker begins.
    pub(super) fn first(&self, worker: usize) -> usize {
        // Nothing is known before the first sample.
        let cost = |cost: &Cost| cost.sum.load(Ordering::Relaxed) + 1;
        let costs: Vec<u64> = self.costs.iter().map(cost).collect();
        starts(&costs, self.workers)[worker] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn firsts(balance: &Balance) -> Vec<usize> {
        (0..balance.workers).map(|worker| balance.first(worker)).collect()
    }

    #[test]
    fn workers_begin_where_the_costs_before_are_those_of_the_others() {
        let balance = Balance::new(6, 3);
        assert_eq!(firsts(&balance), [0, 2, 4], "nothing is known");
        for (domain, taken) in [900, 100, 400, 400, 600, 300].into_iter().enumerate() {
            balance.add(domain, 0, taken / 3);
            balance.add(domain, 0, taken - taken / 3);
        }
        assert_eq!(firsts(&balance), [0, 1, 4]);
    }

    #[test]
    fn the_last_samples_count() {
        let balance = Balance::new(4, 2);
        balance.add(0, 0, 1_000_000);
        assert_eq!(firsts(&balance), [0, 1]);
        for sample in 1..20 {
            (0..4).for_each(|domain| balance.add(domain, sample * SAMPLE_EVERY, 1_000));
        }
        assert_eq!(firsts(&balance), [0, 2]);
    }

    #[test]
    fn one_worker_takes_no_time() {
        assert!((0..100).all(|epoch| !Balance::new(4, 1).samples(epoch)));
        assert_eq!((0..64).filter(|&epoch| Balance::new(4, 2).samples(epoch)).count(), 4);
    }
}
