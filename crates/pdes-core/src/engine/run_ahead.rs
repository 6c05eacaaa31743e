//! The bound on run-ahead: windows, and lower bounds on the clocks of other workers.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use super::RunAhead;
use crate::{SimDuration, SimTime};

/// Number of windows that a worker may be ahead of the slowest worker that is not idle.
const WINDOWS_AHEAD: u64 = 16;
/// Minimum and maximum number of steps of a process in a window: fewer waste turns, more fill the memory with tokens that
/// wait to be read.
const STEPS: (u64, u64) = (64, 1024);

/// A worker's window: the distance from its least clock to its horizon.
pub(crate) struct Window {
    length: SimDuration,
    /// Minimum and maximum number of steps of a process in the window; `None` if the length is fixed.
    steps: Option<(u64, u64)>,
}

impl Window {
    pub(crate) fn new(run_ahead: RunAhead) -> Self {
        match run_ahead {
            RunAhead::Auto => Self { length: SimDuration::from_picos(1_000_000), steps: Some(STEPS) },
            RunAhead::Window(length) => Self { length, steps: None },
        }
    }

    pub(crate) fn length(&self) -> SimDuration {
        self.length
    }

    /// Returns the clock that the slowest worker must have reached before a worker with this clock may run.
    pub(crate) fn required_bound(&self, clock: SimTime) -> SimTime {
        let ahead = self.length.as_picos().saturating_mul(WINDOWS_AHEAD);
        SimTime::from_picos(clock.as_picos().saturating_sub(ahead))
    }

    /// Doubles or halves the window if the steps per process were outside their bounds.
    pub(crate) fn adapt(&mut self, steps: u64, processes: usize) {
        let Some((fewest, most)) = self.steps else { return };
        let steps = steps / processes.max(1) as u64;
        let picos = self.length.as_picos();
        if steps < fewest {
            self.length = SimDuration::from_picos(picos.saturating_mul(2).min(u64::MAX >> 8));
        } else if steps > most {
            self.length = SimDuration::from_picos((picos / 2).max(1));
        }
    }

    /// Shortens the window after a process has taken `steps` steps and advanced by `advance` without reaching the horizon.
    /// Returns true if it did: the window was learnt where steps were sparser, and may hold millions of them here.
    pub(crate) fn shorten(&mut self, steps: u32, advance: SimDuration) -> bool {
        let overrun = self.steps.is_some_and(|(_, most)| u64::from(steps) > most);
        if overrun {
            self.length = self.length.min(SimDuration::from_picos((advance.as_picos() / 2).max(1)));
        }
        overrun
    }
}

/// Lower bounds on the clocks of workers and members, which bound run-ahead, and the time of the earliest failure, past
/// which nothing needs to run.
///
/// The minimum of the bounds plays the role of the LBTS (lower bound on time stamps), but only throttles: no result depends
/// on it, so a stale bound is harmless. A worker waits only for workers with a smaller clock than its own, and never for an
/// idle one: the worker with the least clock always runs, and there is no cycle of waits. An idle worker to which tokens are
/// in transit counts with the clock of their sender: it will wake up, and then publish its own clock or that it is idle
/// again.
///
/// The bound of another member of a cluster is the least clock in its last message. It may be too low or too high: a bound
/// that blocks a worker is renewed on demand, and none counts as later than the latest clock of this member, so that a bound
/// that is too high is in force for a few windows only.
pub(crate) struct LowerBounds {
    /// Least clock of each worker \[ps\]; `u64::MAX` if it is idle.
    clocks: Box<[CachePadded<AtomicU64>]>,
    /// Time of the earliest failure \[ps\]; `u64::MAX` if there is none.
    cutoff: AtomicU64,
    /// Lower bound of each member \[ps\]; `u64::MAX` in the slot of this one.
    member_bounds: Box<[AtomicU64]>,
    /// Latest clock that a worker of this member has published \[ps\].
    latest_clock: AtomicU64,
    /// Least bound of the other members that some worker waits for, or soon will \[ps\]; `u64::MAX` if none does. It is the
    /// least because the worker with the least clock must not wait for the need of another one.
    wanted_bound: AtomicU64,
}

impl LowerBounds {
    /// Makes the bounds that the workers of one member share.
    pub(crate) fn new(workers: usize, member: usize, members: usize) -> Self {
        let clocks = (0..workers).map(|_| CachePadded::new(AtomicU64::new(0))).collect();
        let view = |other| AtomicU64::new(if other == member { u64::MAX } else { 0 });
        Self {
            clocks,
            cutoff: AtomicU64::new(u64::MAX),
            member_bounds: (0..members).map(view).collect(),
            latest_clock: AtomicU64::new(0),
            wanted_bound: AtomicU64::new(u64::MAX),
        }
    }

    pub(crate) fn is_idle(&self, worker: usize) -> bool {
        self.clocks[worker].load(Ordering::Relaxed) == u64::MAX
    }

    // Relaxed: a worker that sees the cut-off late only does work that nobody needs; before a decision at quiescence, the
    // mutex of `Quiescence` orders all updates.
    pub(crate) fn cutoff(&self) -> SimTime {
        SimTime::from_picos(self.cutoff.load(Ordering::Relaxed))
    }

    pub(crate) fn lower_cutoff(&self, at: SimTime) {
        self.cutoff.fetch_min(at.as_picos(), Ordering::Relaxed);
    }

    // Relaxed here and below: a stale value makes a worker wait, or run, a little longer, and that changes no result.
    pub(crate) fn publish(&self, worker: usize, clock: SimTime) {
        self.clocks[worker].store(clock.as_picos(), Ordering::Relaxed);
        if self.member_bounds.len() > 1 {
            self.latest_clock.fetch_max(clock.as_picos(), Ordering::Relaxed);
        }
    }

    pub(crate) fn publish_idle(&self, worker: usize) {
        self.clocks[worker].store(u64::MAX, Ordering::Relaxed);
    }

    /// Lowers the bound of a worker to this clock, until it publishes another.
    pub(crate) fn lower(&self, worker: usize, clock: SimTime) {
        self.clocks[worker].fetch_min(clock.as_picos(), Ordering::Relaxed);
    }

    /// Lowers the bound of a batch's receiver to the clock of its sender. It must be called before the batch is sent, so
    /// that the clock which the receiver publishes after reading the batch overrides it.
    pub(crate) fn lower_to_sender(&self, from: usize, to: usize) {
        let clock = self.clocks[from].load(Ordering::Relaxed);
        self.lower(to, SimTime::from_picos(clock));
    }

    /// Lowers the bound of the member that receives a batch to the clock of its sender.
    pub(crate) fn lower_member_to_sender(&self, from: usize, member: usize) {
        let clock = self.clocks[from].load(Ordering::Relaxed);
        self.member_bounds[member].fetch_min(clock, Ordering::Relaxed);
    }

    /// Updates the bound of another member from its message.
    pub(crate) fn update_member(&self, member: usize, floor: SimTime) {
        let reached = self.latest_clock.load(Ordering::Relaxed);
        self.member_bounds[member].store(floor.as_picos().min(reached), Ordering::Relaxed);
    }

    pub(crate) fn member_bound(&self, member: usize) -> SimTime {
        SimTime::from_picos(self.member_bounds[member].load(Ordering::Relaxed))
    }

    /// Returns the least clock of this member's workers that are not idle; [`SimTime::MAX`] if all are.
    pub(crate) fn least_clock(&self) -> SimTime {
        let least = self.clocks.iter().map(|clock| clock.load(Ordering::Relaxed)).min();
        SimTime::from_picos(least.unwrap_or(u64::MAX))
    }

    /// Takes the least bound of other members that a worker has requested since the last call.
    pub(crate) fn take_wanted_bound(&self) -> Option<SimTime> {
        if self.wanted_bound.load(Ordering::Relaxed) == u64::MAX {
            return None;
        }
        Some(SimTime::from_picos(self.wanted_bound.swap(u64::MAX, Ordering::Relaxed)))
    }

    /// Returns true if a worker whose least clock is `clock` may run: all others must have reached `sight`.
    pub(crate) fn may_run(&self, clock: SimTime, sight: SimTime) -> bool {
        if self.member_bounds.len() > 1 {
            let least =
                self.member_bounds.iter().map(|view| view.load(Ordering::Relaxed)).min().unwrap_or(u64::MAX);
            // Requested half-way before the worker blocks, and for more than it needs now, so that it seldom waits.
            let wanted = sight.as_picos().midpoint(clock.as_picos());
            if least < wanted {
                self.wanted_bound.fetch_min(wanted, Ordering::Relaxed);
            }
            if least < sight.as_picos() {
                return false;
            }
        }
        self.least_clock() >= sight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(bounds: &LowerBounds, clock: SimTime, window: SimDuration) -> bool {
        bounds.may_run(clock, Window::new(RunAhead::Window(window)).required_bound(clock))
    }

    #[test]
    fn the_worker_with_the_least_clock_is_always_admitted() {
        let bounds = LowerBounds::new(3, 0, 1);
        bounds.publish(0, SimTime::from_picos(1_000_000));
        bounds.publish(1, SimTime::from_picos(2_000_000));
        bounds.publish_idle(2);
        let window = SimDuration::from_picos(1);
        assert!(admit(&bounds, SimTime::from_picos(1_000_000), window));
        assert!(!admit(&bounds, SimTime::from_picos(2_000_000), window));
    }

    #[test]
    fn an_idle_worker_counts_while_tokens_are_under_way_to_it() {
        let bounds = LowerBounds::new(2, 0, 1);
        let (window, at) = (SimDuration::from_picos(10), SimTime::from_picos);
        bounds.publish(0, at(500));
        bounds.publish_idle(1);
        bounds.lower_to_sender(0, 1);
        bounds.publish(0, at(661));
        assert!(admit(&bounds, at(660), window));
        assert!(!admit(&bounds, at(661), window));
        bounds.publish_idle(1);
        assert!(admit(&bounds, at(661), window));
    }

    #[test]
    fn a_view_of_another_member_holds_up_until_it_is_renewed() {
        let bounds = LowerBounds::new(1, 0, 2);
        let (window, at) = (SimDuration::from_picos(10), SimTime::from_picos);
        bounds.publish(0, at(160));
        assert!(admit(&bounds, at(160), window));
        assert_eq!((bounds.take_wanted_bound(), bounds.take_wanted_bound()), (Some(at(80)), None));
        bounds.publish(0, at(161));
        assert!(!admit(&bounds, at(161), window));
        assert_eq!(bounds.take_wanted_bound(), Some(at(81)));
        // An idle member counts with the latest clock of this one.
        bounds.update_member(1, SimTime::MAX);
        assert_eq!(bounds.member_bound(1), at(161));
        assert!(admit(&bounds, at(321), window));
        assert!(!admit(&bounds, at(322), window));
    }

    #[test]
    fn the_window_follows_the_density_of_steps() {
        let mut window = Window::new(RunAhead::Auto);
        let start = window.length();
        window.adapt(10, 4);
        assert_eq!(window.length(), start * 2);
        window.adapt(4 * 1100, 4);
        assert_eq!(window.length(), start);
        assert!(!window.shorten(64, SimDuration::ZERO));
        assert!(window.shorten(4096, SimDuration::from_picos(1_000)));
        assert_eq!(window.length().as_picos(), 500);
        let mut fixed = Window::new(RunAhead::Window(start));
        fixed.adapt(0, 1);
        assert!(!fixed.shorten(4096, SimDuration::ZERO));
        assert_eq!(fixed.length(), start);
    }
}
