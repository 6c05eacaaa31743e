//! The parallelism of a simulation, measured by running it.
//!
//! Results do not depend on the partition of processes over workers, so one run on any number of workers yields the profile
//! for every number `P`: the work of each of `P` workers in each stretch of simulated time, the number of tokens between
//! them, and the length of the longest chain of dependent steps. The method is that of profiles of parallel discrete-event
//! simulations: Berry and Jefferson's critical path (1985), carried along messages as ROSS does, and the ideal speedup of
//! windows, mean over maximal work.
//!
//! Each process is wrapped in a [`Profiled`] one, which behaves the same:
//!
//! ```
//! # use std::convert::Infallible;
//! # use pdes_core::{Fault, Outbox, Pause, Process, LpId, SimTime, Turn, Wake};
//! use pdes_core::{Engine, Profile, SimDuration};
//!
//! # struct Counter { clock: SimTime, left: u32 }
//! # impl Process for Counter {
//! #     type Token = SimTime;
//! #     type WorkRequest = Infallible;
//! #     type Error = Infallible;
//! #     fn deliver(&mut self, _: SimTime, _: &mut Outbox<SimTime>) -> Result<Wake, Fault<Infallible>> { Ok(Wake::No) }
//! #     fn resume(&mut self, turn: &mut Turn, _: &mut Outbox<SimTime>) -> Result<Pause, Fault<Infallible>> {
//! #         while turn.steps > 0 && self.left > 0 {
//! #             turn.steps -= 1;
//! #             self.left -= 1;
//! #             self.clock += SimDuration::from_picos(1_000);
//! #         }
//! #         Ok(if self.left == 0 { Pause::Finished } else { Pause::OutOfSteps })
//! #     }
//! #     fn clock(&self) -> SimTime { self.clock }
//! # }
//! # let counter = |steps| Counter { clock: SimTime::ZERO, left: steps };
//! // Two processes of 100 steps and two of 50, which never talk: two workers have 200 and 100 to do.
//! let processes = [100, 100, 50, 50].map(counter).into();
//! let run = Engine::new(1).run(Profile::wrap(processes));
//! let profile = Profile::of(&run.processes);
//! assert_eq!((profile.steps, profile.critical_path), (300, 100));
//! assert_eq!((profile.levels[0].workers, profile.levels[0].busiest, profile.levels[0].cut_tokens), (2, 200, 0));
//! ```

mod bins;
mod emulation;
mod process;
mod token_latency;

use crate::{Process, SimDuration};
use bins::Bins;
pub use emulation::{Costs, Emulation};
pub use process::{Profiled, TokenWithDepth};
pub use token_latency::measure_token_latency;

/// Maximum number of workers in a profile.
const MAX_WORKERS: u32 = 4096;

/// Average number of steps of a process in a stretch, over which the work of workers is compared. It is no more than a window
/// holds, and workers may be 16 windows apart, so the parallelism is rather underestimated.
const STEPS_PER_STRETCH: u64 = 512;

/// The parallelism of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Number of steps of all processes.
    pub steps: u64,
    /// Number of tokens that processes sent to others.
    pub tokens: u64,
    /// Number of conditional events, for each of which all workers wait.
    pub conditional_events: u64,
    /// Length of the longest chain of dependent steps. No number of workers takes less than `critical_path / steps` of the
    /// time of one.
    pub critical_path: u64,
    /// Stretch of simulated time over which the work of workers is compared.
    pub stretch: SimDuration,
    /// Profile of 2, 4, 8, .. workers, up to 4096 or the number of processes.
    pub levels: Vec<ProfileLevel>,
}

/// The profile of a given number of workers that own the processes in contiguous blocks, as those of an
/// [`Engine`](crate::Engine) do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileLevel {
    /// Number of workers.
    pub workers: u32,
    /// Sum over all stretches of the steps of the busiest worker in the stretch.
    pub busiest: u64,
    /// Steps of the busiest worker over the whole run: the load imbalance that remains if no worker ever waits.
    pub busiest_total: u64,
    /// Number of tokens from one worker to another.
    pub cut_tokens: u64,
}

impl Profile {
    /// Wraps processes, in the order of their numbers. They use about 100 bytes more each and twice the time.
    pub fn wrap<P: Process>(processes: Vec<P>) -> Vec<Profiled<P>> {
        let blocks = Blocks::new(processes.len() as u32);
        (0..).zip(processes).map(|(lp, process)| Profiled::new(process, blocks, lp)).collect()
    }

    /// Computes the profile from the processes after a run. O(processes x stretches), at most 1024 stretches.
    pub fn of<P: Process>(processes: &[Profiled<P>]) -> Self {
        let blocks = Blocks::new(processes.len() as u32);
        let steps: u64 = processes.iter().map(|process| process.work.total()).sum();
        let width = stretch(processes, steps);
        let (mut work, mut totals) =
            (vec![Vec::new(); blocks.count as usize], vec![0; blocks.count as usize]);
        let mut first_cuts = [0; Blocks::MAX_LEVELS];
        for (lp, process) in (0..).zip(processes) {
            let block = blocks.of(lp) as usize;
            process.work.add_to(&mut work[block], width);
            totals[block] += process.work.total();
            for (sum, count) in first_cuts.iter_mut().zip(process.cuts) {
                *sum += count;
            }
        }
        let mut levels = Vec::new();
        for level in (0..blocks.levels()).rev() {
            levels.push(ProfileLevel {
                workers: 2 << level,
                busiest: busiest(&work),
                busiest_total: totals.iter().copied().max().unwrap_or_default(),
                cut_tokens: first_cuts[..=level].iter().sum(),
            });
            work = work.chunks(2).map(sum).collect();
            totals = totals.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        levels.reverse();
        Self {
            steps,
            tokens: processes.iter().map(|process| process.tokens).sum(),
            conditional_events: processes.iter().map(|process| process.events).sum(),
            critical_path: processes.iter().map(|process| process.depth).max().unwrap_or_default(),
            stretch: SimDuration::from_picos(1 << width),
            levels,
        }
    }
}

impl ProfileLevel {
    /// Returns the average number of busy workers if each stretch takes as long as its busiest worker needs.
    pub fn parallelism(&self, steps: u64) -> f64 {
        if self.busiest == 0 { 1.0 } else { steps as f64 / self.busiest as f64 }
    }
}

/// Returns the binary logarithm of the stretch's length \[ps\]: that of the widest bins, or more if a stretch would hold too
/// few steps.
fn stretch<P: Process>(processes: &[Profiled<P>], steps: u64) -> u32 {
    let finest = processes.iter().map(|process| process.work.width()).max().unwrap_or_default();
    let end = processes.iter().map(|process| process.clock().as_picos()).max().unwrap_or_default();
    let wanted = (u128::from(end) * u128::from(STEPS_PER_STRETCH) * processes.len() as u128)
        .checked_div(u128::from(steps))
        .unwrap_or_default();
    wanted.checked_ilog2().unwrap_or_default().clamp(finest, finest.max(62))
}

fn busiest(work: &[Vec<u64>]) -> u64 {
    let stretches = work.iter().map(Vec::len).max().unwrap_or_default();
    let most = |stretch: usize| work.iter().filter_map(|work| work.get(stretch)).max().copied();
    (0..stretches).filter_map(most).sum()
}

fn sum(pair: &[Vec<u64>]) -> Vec<u64> {
    let mut sum = vec![0; pair.iter().map(Vec::len).max().unwrap_or_default()];
    pair.iter().for_each(|work| sum.iter_mut().zip(work).for_each(|(sum, steps)| *sum += steps));
    sum
}

/// The finest partition of processes in a profile: a power of two of contiguous blocks, so that the blocks of fewer workers are
/// unions of them.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    lps: u32,
    count: u32,
}

impl Blocks {
    const MAX_LEVELS: usize = MAX_WORKERS.ilog2() as usize;

    fn new(lps: u32) -> Self {
        let count = 1 << lps.max(1).ilog2();
        Self { lps, count: count.min(MAX_WORKERS) }
    }

    /// Returns the number of levels.
    fn levels(self) -> usize {
        self.count.ilog2() as usize
    }

    /// Returns the block of a process: the last one that begins at the process or before it.
    fn of(self, lp: u32) -> u32 {
        let ends = (u64::from(lp) + 1) * u64::from(self.count);
        (ends.div_ceil(u64::from(self.lps)) - 1) as u32
    }

    /// Returns the first level at which two blocks belong to different workers.
    fn first_level_apart(self, one: u32, other: u32) -> Option<usize> {
        let differing = (one ^ other).checked_ilog2()? as usize;
        Some(self.levels() - 1 - differing)
    }
}

#[cfg(test)]
mod tests;
