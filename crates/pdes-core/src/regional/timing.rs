//! Measured wall-clock times of regions, and the load imbalance that follows for any number of workers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Maximum number of workers of a level.
const MAX_WORKERS: usize = 4096;

/// The times of regions on one worker, and the times of several workers that follow from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionalTiming {
    /// Number of barriers of all workers.
    pub barriers: u64,
    /// Time of each region.
    pub regions: Vec<Duration>,
    /// Times for 2, 4, 8 to 4096 workers.
    pub levels: Vec<RegionalLevel>,
}

impl RegionalTiming {
    /// Returns the total time of all regions.
    pub fn busy(&self) -> Duration {
        self.regions.iter().sum()
    }
}

/// The times that a given number of workers would have taken: sums over all barriers of the time until the last worker arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionalLevel {
    /// Number of workers.
    pub workers: u32,
    /// Time of threads of one process, which begin with a contiguous block of regions each, and then claim those of others.
    pub threads: Duration,
    /// Time of processes of one thread, which have a contiguous block each.
    pub processes: Duration,
}

/// Measures the times of regions.
pub(super) struct Stopwatch {
    /// Time of each region since the last barrier \[ns\].
    taken: Box<[u64]>,
    /// Regions that have taken any.
    active: Vec<usize>,
    /// End of each worker's block of regions, for each level.
    ends: Vec<Vec<usize>>,
    timing: RegionalTiming,
}

impl Stopwatch {
    pub(super) fn new(regions: usize) -> Self {
        let levels = || (1..).map(|power| 1_usize << power).take_while(|&workers| workers <= MAX_WORKERS);
        let ends = |workers: usize| (1..=workers).map(|worker| regions * worker / workers).collect();
        let (threads, processes) = (Duration::ZERO, Duration::ZERO);
        let level = |workers: usize| RegionalLevel { workers: workers as u32, threads, processes };
        Self {
            taken: vec![0; regions].into(),
            active: Vec::new(),
            ends: levels().map(ends).collect(),
            timing: RegionalTiming {
                barriers: 0,
                regions: vec![Duration::ZERO; regions],
                levels: levels().map(level).collect(),
            },
        }
    }

    /// Adds a time of a region \[ns\].
    pub(super) fn add(&mut self, region: usize, taken: u64) {
        self.taken[region] += taken;
    }

    /// Ends a phase at a barrier: adds the time of the last worker at each level.
    pub(super) fn end_phase(&mut self) {
        self.timing.barriers += 1;
        self.active.clear();
        self.active.extend((0..self.taken.len()).filter(|&region| self.taken[region] > 0));
        for &region in &self.active {
            self.timing.regions[region] += Duration::from_nanos(self.taken[region]);
        }
        for (level, ends) in self.timing.levels.iter_mut().zip(&self.ends) {
            level.threads += Duration::from_nanos(time_of_threads(&self.active, &self.taken, ends));
            let mut start = 0;
            let block = |&end: &usize| self.taken[std::mem::replace(&mut start, end)..end].iter().sum();
            level.processes += Duration::from_nanos(ends.iter().map(block).max().unwrap_or(0));
        }
        self.taken.fill(0);
    }

    pub(super) fn timing(self) -> RegionalTiming {
        self.timing
    }
}

/// Returns the time until the last of several threads has nothing to claim, if they begin with the blocks of regions with these ends.
fn time_of_threads(active: &[usize], taken: &[u64], ends: &[usize]) -> u64 {
    let mut is_claimed = vec![false; active.len()];
    let start = |thread: usize| thread.checked_sub(1).map_or(0, |before| ends[before]);
    let first = |thread| active.partition_point(|&region| region < start(thread));
    // The earliest thread claims next; of several, that of the lowest number. More threads than regions never claim.
    let threads = (0..ends.len()).filter(|&thread| start(thread) < ends[thread]);
    let mut free: BinaryHeap<_> = threads.map(|thread| Reverse((0, thread, first(thread)))).collect();
    let mut last = 0;
    for _ in active {
        let Some(Reverse((time, thread, next))) = free.pop() else { break };
        let mut unclaimed = (next..active.len()).chain(0..next).filter(|&index| !is_claimed[index]);
        let claimed = unclaimed.next().expect("fewer regions are claimed than there are");
        is_claimed[claimed] = true;
        let end = time + taken[active[claimed]];
        last = last.max(end);
        free.push(Reverse((end, thread, claimed)));
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_worker_of_each_phase_counts() {
        let mut stopwatch = Stopwatch::new(4);
        for taken in [[1, 2, 3, 4], [9, 0, 0, 0]] {
            stopwatch.taken.copy_from_slice(&taken);
            stopwatch.end_phase();
        }
        let timing = stopwatch.timing();
        assert_eq!((timing.barriers, timing.busy()), (2, Duration::from_nanos(19)));
        assert_eq!(timing.regions.iter().map(Duration::as_nanos).collect::<Vec<_>>(), [10, 2, 3, 4]);
        let processes: Vec<_> = timing.levels.iter().map(|level| level.processes.as_nanos()).collect();
        assert_eq!(processes[..3], [7 + 9, 4 + 9, 4 + 9], "2, 4 and 8 workers");
        // Of two threads the first has done its block after 3 ns, when the other one has done a region, and claims the last.
        let threads: Vec<_> = timing.levels.iter().map(|level| level.threads.as_nanos()).collect();
        assert_eq!(threads[..3], [7 + 9, 4 + 9, 4 + 9]);
        assert_eq!(timing.levels.last().map(|level| level.workers), Some(4096));
    }

    #[test]
    fn a_thread_that_has_done_its_block_claims_regions_of_others() {
        let taken = [1, 0, 8, 2, 3, 4];
        let active = [0, 2, 3, 4, 5];
        // The first claims 1 and 8; meanwhile the other one its block of 2, 3 and 4.
        assert_eq!(time_of_threads(&active, &taken, &[3, 6]), 9);
        // While the second is busy with 8, the first claims all others.
        assert_eq!(time_of_threads(&active, &taken, &[2, 6]), 1 + 2 + 3 + 4);
        assert_eq!(time_of_threads(&active, &taken, &[6]), 18);
        assert_eq!(time_of_threads(&active, &taken, &[1, 2, 3, 4, 5, 6]), 8);
        assert_eq!(time_of_threads(&[], &taken, &[3, 6]), 0);
    }
}
