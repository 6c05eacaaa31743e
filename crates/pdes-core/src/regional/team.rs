//! The team of workers of a member: epochs that all of them run, and epochs that the first one runs alone.
//!
//! If other programs take the core of a worker, all others wait for it at each barrier, a thousand times as long as the barrier
//! takes; and if an epoch has little work, barriers take longer than it does. So the first worker measures both ways now
//! and then, and takes the faster one. No result depends on it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Least number of epochs, and least time, of a measurement; the time matters up to [`MAX_SAMPLE`] epochs.
const SAMPLE: u64 = 64;
const SAMPLE_TIME: Duration = Duration::from_millis(2);
const MAX_SAMPLE: u64 = 1024;
/// Numbers of epochs before the other way is tried again: the least, which doubles with each trial in vain, and the largest.
const INTERVAL: u64 = 1024;
const MAX_INTERVAL: u64 = 1 << 16;
/// The other way is taken if it needs at most this part of the time.
const GAIN: f64 = 0.95;

/// The state by which the first worker tells the others when they take part. `S` is the state with which they continue.
#[derive(Debug)]
pub(super) struct Team<S> {
    /// Epoch from which on the first worker is alone.
    alone_from: AtomicU64,
    call: Mutex<Call<S>>,
    called: Condvar,
}

/// The last call to the other workers.
#[derive(Debug)]
struct Call<S> {
    /// Number of calls.
    number: u64,
    state: Option<S>,
    /// The first worker has ended.
    is_over: bool,
}

impl<S: Copy> Team<S> {
    /// Makes a team whose first worker begins alone.
    pub(super) fn new() -> Self {
        let call = Mutex::new(Call { number: 0, state: None, is_over: false });
        Self { alone_from: AtomicU64::new(0), call, called: Condvar::new() }
    }

    /// Returns whether the first worker is alone from this epoch on. Every worker of the epoch before asks once, before it runs this
    /// one.
    pub(super) fn is_alone_from(&self, epoch: u64) -> bool {
        // Relaxed: a barrier lies between a change and the reads that it concerns.
        self.alone_from.load(Ordering::Relaxed) == epoch
    }

    /// Lets the first worker be alone after `epoch`, before any worker can have ended it. All workers must have ended a barrier since the
    /// last call.
    pub(super) fn dismiss_after(&self, epoch: u64) {
        self.alone_from.store(epoch + 1, Ordering::Relaxed);
    }

    /// Calls the other workers, which continue with this state.
    pub(super) fn call(&self, state: S) {
        let mut call = self.call.lock();
        (call.number, call.state) = (call.number + 1, Some(state));
        self.called.notify_all();
    }

    /// Waits for the call after `calls` calls; returns its state, or `None` if the first worker has ended.
    pub(super) fn wait_for_call(&self, calls: u64) -> Option<S> {
        let mut call = self.call.lock();
        self.called.wait_while(&mut call, |call| call.number <= calls && !call.is_over);
        call.state.filter(|_| call.number > calls)
    }

    /// Returns a guard which tells the other workers that the first one has ended.
    pub(super) fn end_on_drop(&self) -> impl Drop + '_ {
        EndOnDrop(self)
    }
}

struct EndOnDrop<'a, S>(&'a Team<S>);

impl<S> Drop for EndOnDrop<'_, S> {
    fn drop(&mut self) {
        self.0.call.lock().is_over = true;
        self.0.called.notify_all();
    }
}

/// Measures how long epochs take alone and with all workers, and decides which way is taken.
pub(super) struct Pace {
    stage: Stage,
    /// Begin of the stage.
    since: Instant,
    /// Number of epochs in the stage.
    epochs: u64,
    /// Time of an epoch in the last measurement \[s\].
    reference: f64,
    interval: u64,
    /// Changes the way at random.
    jitter: Option<fastrand::Rng>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The way is taken for an interval.
    Settled,
    /// It is measured, before the other one is tried.
    Measured,
    /// The other one is tried.
    Tried,
}

impl Pace {
    pub(super) fn new(jitter: Option<u64>) -> Self {
        let jitter = jitter.map(fastrand::Rng::with_seed);
        let (stage, since) = (Stage::Measured, Instant::now());
        Self { stage, since, epochs: 0, reference: 0.0, interval: INTERVAL, jitter }
    }

    /// Counts an epoch; returns whether the way changes now.
    pub(super) fn count_epoch(&mut self) -> bool {
        self.epochs += 1;
        if let Some(jitter) = &mut self.jitter {
            return jitter.bool();
        }
        match self.stage {
            Stage::Settled => {
                if self.epochs >= self.interval {
                    self.enter(Stage::Measured);
                }
                false
            }
            Stage::Measured => {
                let elapsed = self.since.elapsed();
                let is_measured = self.is_measured(elapsed);
                if is_measured {
                    self.reference = elapsed.as_secs_f64() / self.epochs as f64;
                    self.enter(Stage::Tried);
                }
                is_measured
            }
            Stage::Tried => {
                let elapsed = self.since.elapsed();
                let allowed = Duration::from_secs_f64(2.0 * SAMPLE as f64 * self.reference).max(SAMPLE_TIME);
                if !self.is_measured(elapsed) && elapsed < allowed {
                    return false;
                }
                let is_faster = elapsed.as_secs_f64() <= GAIN * self.reference * self.epochs as f64;
                self.interval = if is_faster { INTERVAL } else { (2 * self.interval).min(MAX_INTERVAL) };
                self.enter(Stage::Settled);
                !is_faster
            }
        }
    }

    fn is_measured(&self, elapsed: Duration) -> bool {
        self.epochs >= MAX_SAMPLE || (self.epochs >= SAMPLE && elapsed >= SAMPLE_TIME)
    }

    fn enter(&mut self, stage: Stage) {
        (self.stage, self.since, self.epochs) = (stage, Instant::now(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts epochs of these lengths, alone and together, and returns how many were run together.
    fn epochs_together(alone: Duration, together: Duration) -> u64 {
        let (mut pace, mut is_alone, mut count) = (Pace::new(None), true, 0);
        for _ in 0..3000 {
            // As if the clock had gone on.
            pace.since -= if is_alone { alone } else { together };
            count += u64::from(!is_alone);
            is_alone ^= pace.count_epoch();
        }
        count
    }

    #[test]
    fn the_faster_way_is_taken() {
        let [short, long] = [1, 2].map(Duration::from_millis);
        assert!(epochs_together(long, short) > 2500);
        assert!(epochs_together(short, long) < 500);
        // A worker without a core: the trials end at once.
        assert!(epochs_together(short, Duration::from_secs(1)) < 5);
    }

    #[test]
    fn workers_continue_with_the_state_of_the_first_one() {
        let team = Team::new();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| (team.wait_for_call(0), team.wait_for_call(1)));
            let end = team.end_on_drop();
            team.call(7);
            drop(end);
            assert_eq!(other.join().unwrap(), (Some(7), None));
        });
        assert!(team.is_alone_from(0));
        team.dismiss_after(4);
        assert!(team.is_alone_from(5) && !team.is_alone_from(4));
    }
}
