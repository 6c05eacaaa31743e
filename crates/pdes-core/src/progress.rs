//! Progress counters of a run, for observers in other threads.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use crate::SimTime;

/// Counters that the workers of a run publish now and then.
///
/// Observation never changes a result. The counters lag behind by up to 65,536 steps of each worker.
#[derive(Debug)]
pub struct Progress {
    workers: Box<[CachePadded<Counters>]>,
    /// Counters of the other members of a cluster, at member 0; also the final clock of a run.
    other_members: CachePadded<Counters>,
    /// Number of steps before the present run.
    before: AtomicU64,
}

#[derive(Debug, Default)]
struct Counters {
    steps: AtomicU64,
    reached: AtomicU64,
}

impl Progress {
    /// Makes the counters for a run on this many workers of this process.
    pub fn new(workers: usize) -> Self {
        let workers = (0..workers).map(|_| CachePadded::default()).collect();
        Self { workers, other_members: CachePadded::default(), before: AtomicU64::new(0) }
    }

    /// Resets the counters for a run that continues earlier ones, which had this many steps together.
    pub fn continue_after(&self, steps: u64) {
        self.all().for_each(|published| published.steps.store(0, Ordering::Relaxed));
        self.before.store(steps, Ordering::Relaxed);
    }

    /// Returns the number of steps before the present run.
    pub fn steps_before(&self) -> u64 {
        self.before.load(Ordering::Relaxed)
    }

    /// Returns the number of steps done so far by all processes; on members of a cluster other than 0, by their own ones.
    pub fn steps(&self) -> u64 {
        let here: u64 = self.all().map(|published| published.steps.load(Ordering::Relaxed)).sum();
        self.before.load(Ordering::Relaxed) + here
    }

    /// Returns the simulated time that the foremost process has reached; at the end of a run, its final clock.
    pub fn reached(&self) -> SimTime {
        let latest = self.all().map(|published| published.reached.load(Ordering::Relaxed)).max();
        SimTime::from_picos(latest.unwrap_or(0))
    }

    // Relaxed throughout: only the numbers themselves are communicated.
    fn all(&self) -> impl Iterator<Item = &Counters> {
        self.workers.iter().chain([&self.other_members]).map(|published| &**published)
    }

    /// Checks that each worker of an engine has its counters.
    ///
    /// # Panics
    /// If there are more workers than counters.
    pub(crate) fn assert_workers(&self, workers: usize) {
        let counters = self.workers.len();
        assert!(
            counters >= workers,
            "an engine with {workers} workers has the progress counters of {counters}"
        );
    }

    pub(crate) fn publish(&self, worker: usize, steps: u64, reached: SimTime) {
        self.workers[worker].steps.store(steps, Ordering::Relaxed);
        self.workers[worker].reached.fetch_max(reached.as_picos(), Ordering::Relaxed);
    }

    /// Publishes the final clock of a run.
    pub(crate) fn publish_end(&self, end: SimTime) {
        self.other_members.reached.fetch_max(end.as_picos(), Ordering::Relaxed);
    }

    /// Publishes the progress of all other members.
    pub(crate) fn publish_other_members(&self, steps: u64, reached: SimTime) {
        self.other_members.steps.store(steps, Ordering::Relaxed);
        self.other_members.reached.fetch_max(reached.as_picos(), Ordering::Relaxed);
    }
}
