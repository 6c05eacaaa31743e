//! The bound on run-ahead.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use super::RunAhead;
use crate::{SimDuration, SimTime};

/// How many windows a worker may be ahead of the slowest worker that is not idle.
const WINDOWS_AHEAD: u64 = 16;
/// The fewest and the most steps of a process in a window: fewer waste turns, more fill the memory with tokens that wait to
/// be read.
const STEPS: (u64, u64) = (64, 1024);

/// A worker's window: how far its horizon lies beyond its least clock.
pub(crate) struct Window {
    length: SimDuration,
    /// The fewest and the most steps of a process in it; `None` where the length is fixed.
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

    /// Returns the clock that the slowest worker must have reached before one with this clock goes on.
    pub(crate) fn sight(&self, clock: SimTime) -> SimTime {
        let ahead = self.length.as_picos().saturating_mul(WINDOWS_AHEAD);
        SimTime::from_picos(clock.as_picos().saturating_sub(ahead))
    }

    /// Keeps the steps of a process in a window between their bounds.
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

    /// Learns from a process that took this many steps, moved on by this much, and did not reach the horizon. Returns
    /// whether the horizon is out of reach: the window was learnt where steps were rarer, and may hold millions here.
    pub(crate) fn shorten(&mut self, steps: u32, advance: SimDuration) -> bool {
        let overrun = self.steps.is_some_and(|(_, most)| u64::from(steps) > most);
        if overrun {
            self.length = self.length.min(SimDuration::from_picos((advance.as_picos() / 2).max(1)));
        }
        overrun
    }
}

/// What the workers know of each other's clocks: the least clock of each worker that is not idle, so that none runs
/// out of sight of the others, and the time of the earliest failure, after which nothing needs to run.
///
/// A worker waits only for workers with a lesser clock than its own, and never for an idle one: the one with the
/// least clock always goes on, and nobody waits in a circle. An idle worker to which tokens are under way counts as one
/// with the clock of their sender: it will wake up, and then publish its own clock or that it is idle again.
///
/// Of another member of a cluster, a worker knows the least clock that it last told. That is a view of the past, too
/// low or too high; one that holds a worker up is renewed on demand, and none counts as later than the latest clock
/// of this member, so that a view which is too high holds for a few windows only.
pub(crate) struct Floors {
    clocks: Box<[CachePadded<AtomicU64>]>,
    cutoff: AtomicU64,
    /// The views of the members; the latest instant in the place of this one.
    views: Box<[AtomicU64]>,
    /// The latest clock that a worker of this member has published.
    reached: AtomicU64,
    /// The least view of all other members that a worker waits for, or soon will; the latest instant where none does. The least,
    /// because the worker with the least clock of all must not wait for what suits another one.
    wanted: AtomicU64,
}

impl Floors {
    /// Makes what the workers of a member know.
    pub(crate) fn new(workers: usize, member: usize, members: usize) -> Self {
        let clocks = (0..workers).map(|_| CachePadded::new(AtomicU64::new(0))).collect();
        let view = |other| AtomicU64::new(if other == member { u64::MAX } else { 0 });
        Self {
            clocks,
            cutoff: AtomicU64::new(u64::MAX),
            views: (0..members).map(view).collect(),
            reached: AtomicU64::new(0),
            wanted: AtomicU64::new(u64::MAX),
        }
    }

    pub(crate) fn is_idle(&self, worker: usize) -> bool {
        self.clocks[worker].load(Ordering::Relaxed) == u64::MAX
    }

    // Relaxed: a worker that sees the cut-off late only does work that nobody needs; before a verdict on quiescence,
    // the mutex there orders all of it.
    pub(crate) fn cutoff(&self) -> SimTime {
        SimTime::from_picos(self.cutoff.load(Ordering::Relaxed))
    }

    pub(crate) fn lower_cutoff(&self, at: SimTime) {
        self.cutoff.fetch_min(at.as_picos(), Ordering::Relaxed);
    }

    // Relaxed here and below: a stale value makes a worker wait, or run, a little longer, and that changes no result.
    pub(crate) fn publish(&self, worker: usize, clock: SimTime) {
        self.clocks[worker].store(clock.as_picos(), Ordering::Relaxed);
        if self.views.len() > 1 {
            self.reached.fetch_max(clock.as_picos(), Ordering::Relaxed);
        }
    }

    pub(crate) fn publish_idle(&self, worker: usize) {
        self.clocks[worker].store(u64::MAX, Ordering::Relaxed);
    }

    /// Keeps a worker in sight from this clock on, until it publishes another.
    pub(crate) fn lower(&self, worker: usize, clock: SimTime) {
        self.clocks[worker].fetch_min(clock.as_picos(), Ordering::Relaxed);
    }

    /// Keeps the receiver of a batch in sight of its sender; called before the batch is sent, so that what the
    /// receiver publishes after it has read the batch comes last.
    pub(crate) fn announce(&self, from: usize, to: usize) {
        let clock = self.clocks[from].load(Ordering::Relaxed);
        self.lower(to, SimTime::from_picos(clock));
    }

    /// Keeps the member that receives a batch in sight of its sender.
    pub(crate) fn announce_abroad(&self, from: usize, member: usize) {
        let clock = self.clocks[from].load(Ordering::Relaxed);
        self.views[member].fetch_min(clock, Ordering::Relaxed);
    }

    /// Takes in what another member says of its least clock.
    pub(crate) fn see(&self, member: usize, floor: SimTime) {
        let reached = self.reached.load(Ordering::Relaxed);
        self.views[member].store(floor.as_picos().min(reached), Ordering::Relaxed);
    }

    pub(crate) fn view(&self, member: usize) -> SimTime {
        SimTime::from_picos(self.views[member].load(Ordering::Relaxed))
    }

    /// Returns the least clock of the workers of this member that are not idle; the latest instant if all are.
    pub(crate) fn least(&self) -> SimTime {
        let least = self.clocks.iter().map(|clock| clock.load(Ordering::Relaxed)).min();
        SimTime::from_picos(least.unwrap_or(u64::MAX))
    }

    /// Returns the least view of all other members that a worker has asked for since the last call.
    pub(crate) fn take_wanted(&self) -> Option<SimTime> {
        if self.wanted.load(Ordering::Relaxed) == u64::MAX {
            return None;
        }
        Some(SimTime::from_picos(self.wanted.swap(u64::MAX, Ordering::Relaxed)))
    }

    /// Returns whether a worker whose least clock is this may go on, for which all others must have reached the other.
    pub(crate) fn admit(&self, clock: SimTime, sight: SimTime) -> bool {
        if self.views.len() > 1 {
            let least = self.views.iter().map(|view| view.load(Ordering::Relaxed)).min().unwrap_or(u64::MAX);
            // Asked for before the worker is held, and further than it needs now, so that it seldom has to wait.
            let wanted = sight.as_picos().midpoint(clock.as_picos());
            if least < wanted {
                self.wanted.fetch_min(wanted, Ordering::Relaxed);
            }
            if least < sight.as_picos() {
                return false;
            }
        }
        self.least() >= sight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(floors: &Floors, clock: SimTime, window: SimDuration) -> bool {
        floors.admit(clock, Window::new(RunAhead::Window(window)).sight(clock))
    }

    #[test]
    fn the_worker_with_the_least_clock_is_always_admitted() {
        let floors = Floors::new(3, 0, 1);
        floors.publish(0, SimTime::from_picos(1_000_000));
        floors.publish(1, SimTime::from_picos(2_000_000));
        floors.publish_idle(2);
        let window = SimDuration::from_picos(1);
        assert!(admit(&floors, SimTime::from_picos(1_000_000), window));
        assert!(!admit(&floors, SimTime::from_picos(2_000_000), window));
    }

    #[test]
    fn an_idle_worker_counts_while_tokens_are_under_way_to_it() {
        let floors = Floors::new(2, 0, 1);
        let (window, at) = (SimDuration::from_picos(10), SimTime::from_picos);
        floors.publish(0, at(500));
        floors.publish_idle(1);
        floors.announce(0, 1);
        floors.publish(0, at(661));
        assert!(admit(&floors, at(660), window));
        assert!(!admit(&floors, at(661), window));
        floors.publish_idle(1);
        assert!(admit(&floors, at(661), window));
    }

    #[test]
    fn a_view_of_another_member_holds_up_until_it_is_renewed() {
        let floors = Floors::new(1, 0, 2);
        let (window, at) = (SimDuration::from_picos(10), SimTime::from_picos);
        floors.publish(0, at(160));
        assert!(admit(&floors, at(160), window));
        assert_eq!((floors.take_wanted(), floors.take_wanted()), (Some(at(80)), None));
        floors.publish(0, at(161));
        assert!(!admit(&floors, at(161), window));
        assert_eq!(floors.take_wanted(), Some(at(81)));
        // An idle member counts as one with the clock of whoever asks.
        floors.see(1, SimTime::MAX);
        assert_eq!(floors.view(1), at(161));
        assert!(admit(&floors, at(321), window));
        assert!(!admit(&floors, at(322), window));
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
