//! Programs that start or end during the run, when something decides so.

use std::fmt;
use std::ops::Range;

use pdes_core::{LpId, SimDuration, SimTime};

/// Times of the checkpoints of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointTimes {
    /// Time from the start of the program, or the end of a checkpoint, to the next one.
    pub interval: SimDuration,
    /// Time that a checkpoint takes.
    pub duration: SimDuration,
}

impl CheckpointTimes {
    /// Returns the instant at which the checkpoint with a number, from 1, of a program that has started at an instant is due; `None` if that is after
    /// the end of simulated time.
    pub fn due(self, start: SimTime, number: u32) -> Option<SimTime> {
        let Self { interval, duration } = self;
        let before = duration.checked_mul(u64::from(number) - 1)?;
        start.checked_add(interval.checked_mul(number.into())?.checked_add(before)?)
    }
}

/// Decides during a run which of its programs start, where and when, and knows which die.
///
/// Rank 0 of a program reports its end, and asks for a decision at the instants of ends and submissions, as conditional events: no
/// action of any rank lies before the instant of a decision.
///
/// # Laws
/// [`launch`](Self::launch) is called in the order of time, by one rank at a time. An end that is reported before or after a decision in
/// wall-clock time counts for it if its instant is not later. [`start`](Self::start) and [`death`](Self::death) of a program that has not ended do not change once it has started.
pub trait Launcher: fmt::Debug + Send + Sync {
    /// Returns the instant at which a program was started last; `None` if it was not.
    fn start(&self, program: usize) -> Option<SimTime>;

    /// Returns how often a program was started.
    fn starts(&self, program: usize) -> u32;

    /// Returns the instant at which a program that was started dies, as a host of it does, unless it has ended before.
    fn death(&self, program: usize) -> Option<SimTime>;

    /// Returns the instant at which a program that has died is to start again; `None` if it does not. Known once
    /// [`launch`](Self::launch) has taken its end into account.
    fn restart(&self, program: usize) -> Option<SimTime>;

    /// Returns the instant at which a program is submitted, so that it may start; `None` if it only follows the end of another one.
    fn submission(&self, program: usize) -> Option<SimTime>;

    /// Returns the times of the checkpoints of a program that was started; `None` if it writes none.
    fn checkpoints(&self, program: usize) -> Option<CheckpointTimes>;

    /// Returns the number of the checkpoint, since the start before, from which a program that was started again goes on; 0 if from where it
    /// has gone on then.
    fn recovered(&self, program: usize) -> u32;

    /// Reports the end of the last rank of a program, which is its [death](Self::death) if it has died, and the number of checkpoints that all
    /// ranks have written by then.
    fn end(&self, program: usize, at: SimTime, checkpoints: u32);

    /// Decides what starts now, after all ends and submissions up to this instant; returns the logical processes of the ranks that start.
    fn launch(&self, now: SimTime) -> Vec<Range<LpId>>;
}
