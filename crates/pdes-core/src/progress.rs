//! How far a run has come, for whoever watches it from another thread.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use crate::SimTime;

/// Counters that the workers of a run publish now and then.
///
/// Watching never changes a result. The figures lag behind by a few thousand steps.
#[derive(Debug)]
pub struct Progress {
    workers: Box<[CachePadded<Published>]>,
}

#[derive(Debug, Default)]
struct Published {
    steps: AtomicU64,
    reached: AtomicU64,
}

impl Progress {
    /// Makes the counters for a run on this many workers.
    pub fn new(workers: usize) -> Self {
        Self { workers: (0..workers).map(|_| CachePadded::default()).collect() }
    }

    /// Returns the steps done so far by all processes.
    pub fn steps(&self) -> u64 {
        // Relaxed here and below: nothing but the numbers themselves is communicated.
        self.workers.iter().map(|worker| worker.steps.load(Ordering::Relaxed)).sum()
    }

    /// Returns the simulated time that the foremost process has reached; at the end of a run, its final clock.
    pub fn reached(&self) -> SimTime {
        let latest = self.workers.iter().map(|worker| worker.reached.load(Ordering::Relaxed)).max();
        SimTime::from_picos(latest.unwrap_or(0))
    }

    pub(crate) fn publish(&self, worker: usize, steps: u64, reached: SimTime) {
        self.workers[worker].steps.store(steps, Ordering::Relaxed);
        self.workers[worker].reached.fetch_max(reached.as_picos(), Ordering::Relaxed);
    }
}
