//! The computation of a rank while it has the turn. The part that is over is certain: others need not wait for the next call.
//!
//! The simulator reads the processor time of the rank's thread by a counter of the system, as that is exact while the thread runs on
//! another core; the clock of another process is only as exact as the ticks of the system.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use perf_event::events::Software;
use perf_event::{Builder, Counter};

use crate::layout::Slot;

/// Least computation that is worth an event of its own: to read the time of a thread interrupts it \[s\].
const LEAST: f64 = 5e-5;
/// Part of the computation told so far that the next one has at least: a long one is told by few events.
const GROWTH: f64 = 0.5;
/// Longest time before a turn begins for the rank, with the cost of reading clocks that calls may subtract \[s\].
const MARGIN: f64 = 5e-6;
/// Most counters at once: files are for others, too.
const MOST_COUNTERS: u32 = 128;

/// The computation of a rank before its next operation.
#[derive(Debug, Default)]
pub(crate) struct Computing {
    /// Processor time of the rank's thread in this turn, where it is counted.
    turn: Option<ThreadTime>,
    /// Seconds that are certain.
    known: f64,
    /// Seconds that are simulated, perhaps more than the rank tells then by its clock: those are owed.
    told: f64,
    /// Instant before which there is nothing new.
    next_look: Option<Instant>,
}

impl Computing {
    /// Begins a turn, which the rank does not have yet.
    pub(crate) fn begin_turn(&mut self, slot: &Slot) {
        self.turn = ThreadTime::new(slot.thread.load(Ordering::Relaxed));
    }

    /// Ends a turn.
    pub(crate) fn end_turn(&mut self) {
        self.turn = None;
    }

    /// Looks at a rank that has the turn, all of whose operations `are_read`; returns whether there is one more, or enough is certain to be
    /// told. The first look, when the turn begins, sees nothing: short turns are not worth another one.
    pub(crate) fn look(&mut self, slot: &Slot, are_read: bool) -> bool {
        let now = Instant::now();
        if now < *self.next_look.get_or_insert(now + Duration::from_secs_f64(LEAST)) {
            return false;
        }
        if !are_read {
            return true;
        }
        self.known = self.count(slot).unwrap_or(0.0);
        let wanted = LEAST.max(GROWTH * self.told);
        // The processor time does not pass faster than this.
        let missing = (self.told + wanted - self.known).clamp(0.0, 1.0);
        self.next_look = Some(now + Duration::from_secs_f64(missing));
        missing == 0.0
    }

    /// Returns the seconds that are certain; `None` while the rank is in a call, or if its time is not counted.
    fn count(&mut self, slot: &Slot) -> Option<f64> {
        let calls = slot.calls.load(Ordering::Acquire);
        let [before, spent] =
            [&slot.computed, &slot.spent].map(|seconds| f64::from_bits(seconds.load(Ordering::Relaxed)));
        let since = (self.turn.as_mut()?.read()? - spent - MARGIN).max(0.0);
        let is_computing = calls.is_multiple_of(2) && slot.calls.load(Ordering::SeqCst) == calls;
        is_computing.then_some(before + since)
    }

    /// Returns the seconds that are certain and were not told, which are now.
    pub(crate) fn tell(&mut self) -> f64 {
        let seconds = (self.known - self.told).max(0.0);
        self.told += seconds;
        seconds
    }

    /// Returns the part of a computation that was not told, at its end.
    pub(crate) fn rest(&mut self, computed: f64) -> f64 {
        let rest = (computed - self.told).max(0.0);
        (self.known, self.told, self.next_look) = (0.0, (self.told - computed).max(0.0), None);
        rest
    }
}

/// The processor time of a thread of any process, from an instant on.
#[derive(Debug)]
struct ThreadTime(Counter);

/// Number of counters.
static COUNTERS: AtomicU32 = AtomicU32::new(0);

impl ThreadTime {
    /// Counts from now on; `None` if the system does not let this process, or has no counter left.
    fn new(thread: i32) -> Option<Self> {
        if COUNTERS.load(Ordering::Relaxed) >= MOST_COUNTERS {
            return None;
        }
        let mut counter = Builder::new(Software::TASK_CLOCK).observe_pid(thread).build().ok()?;
        counter.enable().ok()?;
        COUNTERS.fetch_add(1, Ordering::Relaxed);
        Some(Self(counter))
    }

    /// Returns the time \[s\].
    fn read(&mut self) -> Option<f64> {
        Some(self.0.read().ok()? as f64 * 1e-9)
    }
}

impl Drop for ThreadTime {
    fn drop(&mut self) {
        COUNTERS.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computation_has_the_length_that_its_rank_tells_at_its_end() {
        let mut computing = Computing::default();
        let mut parts = Vec::new();
        for known in [4e-5, 4e-5, 7e-5] {
            computing.known = known;
            parts.push(computing.tell());
        }
        parts.push(computing.rest(1e-4));
        assert_eq!(parts, [4e-5, 0.0, 7e-5 - 4e-5, 1e-4 - 7e-5]);
        assert_eq!((computing.tell(), computing.rest(2e-5)), (0.0, 2e-5), "the next one");
    }

    #[test]
    fn what_was_told_too_much_is_owed() {
        let mut computing = Computing { known: 5e-5, ..Computing::default() };
        assert_eq!((computing.tell(), computing.rest(3e-5)), (5e-5, 0.0));
        assert_eq!(computing.rest(1e-5), 0.0);
        assert_eq!(computing.rest(3e-5), 3e-5 - (5e-5 - 3e-5 - 1e-5));
    }
}
