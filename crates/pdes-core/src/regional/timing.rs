//! Measured wall-clock times of regions, and the load imbalance that follows for any number of workers.

use std::time::Duration;

/// Maximum number of workers of a level.
const MAX_WORKERS: usize = 4096;

/// The times of regions on one worker, and the times of several workers between barriers that follow from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionalTiming {
    /// Number of barriers of all workers.
    pub barriers: u64,
    /// Time of each region.
    pub regions: Vec<Duration>,
    /// Times for 2, 4, 8 to 4096 workers, each with a contiguous block of regions.
    pub levels: Vec<RegionalLevel>,
}

impl RegionalTiming {
    /// Returns the total time of all regions.
    pub fn busy(&self) -> Duration {
        self.regions.iter().sum()
    }
}

/// The time that a given number of workers would have taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionalLevel {
    /// Number of workers.
    pub workers: u32,
    /// Sum over all barriers of the busiest worker's time before it, for which the others wait.
    pub busiest: Duration,
}

/// Measures the times of regions.
pub(super) struct Stopwatch {
    /// Time of each region since the last barrier \[ns\].
    taken: Box<[u64]>,
    /// End of each worker's block of regions, for each level.
    ends: Vec<Vec<usize>>,
    timing: RegionalTiming,
}

impl Stopwatch {
    pub(super) fn new(regions: usize) -> Self {
        let levels = || (1..).map(|power| 1_usize << power).take_while(|&workers| workers <= MAX_WORKERS);
        let ends = |workers: usize| (1..=workers).map(|worker| regions * worker / workers).collect();
        let level = |workers: usize| RegionalLevel { workers: workers as u32, busiest: Duration::ZERO };
        Self {
            taken: vec![0; regions].into(),
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

    /// Ends a phase at a barrier: adds the time of the busiest worker at each level.
    pub(super) fn end_phase(&mut self) {
        self.timing.barriers += 1;
        for (all, &taken) in self.timing.regions.iter_mut().zip(&self.taken) {
            *all += Duration::from_nanos(taken);
        }
        for (level, ends) in self.timing.levels.iter_mut().zip(&self.ends) {
            let mut start = 0;
            let block = |&end: &usize| self.taken[std::mem::replace(&mut start, end)..end].iter().sum();
            level.busiest += Duration::from_nanos(ends.iter().map(block).max().unwrap_or(0));
        }
        self.taken.fill(0);
    }

    pub(super) fn timing(self) -> RegionalTiming {
        self.timing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_worker_of_each_phase_counts() {
        let mut stopwatch = Stopwatch::new(4);
        for taken in [[1, 2, 3, 4], [9, 0, 0, 0]] {
            stopwatch.taken.copy_from_slice(&taken);
            stopwatch.end_phase();
        }
        let timing = stopwatch.timing();
        assert_eq!((timing.barriers, timing.busy()), (2, Duration::from_nanos(19)));
        assert_eq!(timing.regions.iter().map(Duration::as_nanos).collect::<Vec<_>>(), [10, 2, 3, 4]);
        let busiest: Vec<_> = timing.levels.iter().map(|level| level.busiest.as_nanos()).collect();
        assert_eq!(busiest[..3], [7 + 9, 4 + 9, 4 + 9], "2, 4 and 8 workers");
        assert_eq!(timing.levels.last().map(|level| level.workers), Some(4096));
    }
}
