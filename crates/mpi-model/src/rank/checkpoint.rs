//! Checkpoints of a program that dies with its hosts, and goes on from the last one.
//!
//! Checkpoints are due at the same instants for all ranks. A rank writes one between two actions: after a computation that is in progress when
//! it is due, or while it waits. What a rank has done before the last checkpoint that all ranks have written it repeats when the program starts
//! again, at no cost: its calls return, and its messages arrive, at once. A message that was sent before the checkpoint and received after it is
//! thus there. An action in which a rank waited at the checkpoint it does again, for others that depend on it, too.

use pdes_core::{Pause, SimDuration, SimTime, Turn};

use super::{Control, RankProcess};
use crate::context::{Failure, RankOutbox};
use crate::launcher::CheckpointTimes;
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::statistics::ActionKind;

/// Checkpoints that a rank has written since its program has started last.
pub(super) struct Checkpoints {
    times: CheckpointTimes,
    start: SimTime,
    /// The checkpoints in their order, after that from which the program goes on.
    written: Vec<Checkpoint>,
    /// The rank before its last action.
    before: Progress,
}

/// A checkpoint of a rank.
struct Checkpoint {
    /// Number of actions that the rank had done.
    actions: u64,
    end: SimTime,
}

/// Number of actions that a rank has done, and the time of those in which it does not wait for others.
#[derive(Clone, Copy, Default)]
struct Progress {
    actions: u64,
    busy: SimDuration,
}

impl Checkpoints {
    /// Makes the checkpoints of a program that has started at an instant, where the rank had done a number of actions.
    pub(super) fn new(times: CheckpointTimes, start: SimTime, actions: u64) -> Self {
        let written = vec![Checkpoint { actions, end: start }];
        Self { times, start, written, before: Progress::default() }
    }

    /// Returns the number of checkpoints that have been written up to an instant.
    pub(super) fn until(&self, at: SimTime) -> u32 {
        self.written[1..].partition_point(|checkpoint| checkpoint.end <= at) as u32
    }

    /// Returns the number of actions that the rank had done at a checkpoint; all, if it has ended before that.
    pub(super) fn actions_at(&self, number: u32) -> u64 {
        self.written.get(number as usize).map_or(u64::MAX, |checkpoint| checkpoint.actions)
    }

    /// Returns the number of actions to repeat.
    fn repeated(&self) -> u64 {
        self.written[0].actions
    }

    /// Writes the checkpoints that are due; returns the instant at which the rank goes on.
    fn write(&mut self, now: SimTime, progress: Progress) -> SimTime {
        let has_computed = progress.busy > self.before.busy;
        let mut end = now;
        loop {
            let due = self.times.due(self.start, self.written.len() as u32).filter(|due| *due <= end);
            let Some(due) = due else { break };
            let begin = if has_computed { now } else { due };
            let actions = if begin < now { self.before.actions } else { progress.actions };
            let Some(written) = begin.checked_add(self.times.duration) else { break };
            end = end.max(written);
            self.written.push(Checkpoint { actions, end: written });
        }
        self.before = progress;
        end
    }
}

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    /// Runs as [`run`](Self::run) does, with the checkpoints of the program.
    pub(super) fn run_with_checkpoints(
        &mut self,
        turn: &mut Turn,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<Pause, Failure<M::Error>> {
        loop {
            let Some(one_turn) = self.before_actions(turn.steps, outbox)? else {
                return self.run(turn, outbox);
            };
            let rest = turn.steps - one_turn;
            turn.steps = one_turn;
            let pause = self.run(turn, outbox)?;
            turn.steps += rest;
            if pause != Pause::OutOfSteps || turn.steps == 0 {
                return Ok(pause);
            }
            turn.granted = false;
        }
    }

    /// Writes the checkpoints that are due between two actions; returns the number of steps until the next look, `None` if there are no checkpoints.
    fn before_actions(
        &mut self,
        steps: u32,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<Option<u32>, Failure<M::Error>> {
        let Some(checkpoints) =
            self.launched.as_deref_mut().and_then(|launched| launched.checkpoints.as_mut())
        else {
            return Ok(None);
        };
        if self.pending.is_some() {
            return Ok(Some(0));
        }
        let (actions, repeated) = (self.cursor.position(), checkpoints.repeated());
        if self.context.repeats() && actions < repeated {
            return Ok(Some(steps.min(u32::try_from(repeated - actions).unwrap_or(u32::MAX))));
        }
        if self.context.repeats() {
            self.context.set_repeats(false);
        }
        let statistics = &self.context.observers.statistics;
        let busy = statistics.time(ActionKind::Compute) + statistics.time(ActionKind::Sleep);
        let progress = Progress { actions, busy };
        let now = self.context.thread.clock;
        let end = checkpoints.write(now, progress);
        if end > now
            && let Control::Pause(_) = self.sleep_for(Some(end - now), String::new, outbox)?
        {
            return Ok(Some(0));
        }
        Ok(Some(steps.min(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SimTime {
        SimTime::ZERO + SimDuration::from_picos(seconds)
    }

    /// Checkpoints of 2 after 10 each: due at 10, 22, 34, 46.
    #[test]
    fn checkpoints_are_written_after_computations_and_while_a_rank_waits() {
        let times =
            CheckpointTimes { interval: SimDuration::from_picos(10), duration: SimDuration::from_picos(2) };
        let progress = |actions, busy| Progress { actions, busy: SimDuration::from_picos(busy) };
        let mut checkpoints = Checkpoints::new(times, SimTime::ZERO, 0);
        assert_eq!(checkpoints.write(at(0), progress(0, 0)), at(0));
        // A wait from 4 to 11, of which the checkpoint takes 10 to 12.
        assert_eq!(checkpoints.write(at(4), progress(1, 4)), at(4));
        assert_eq!(checkpoints.write(at(11), progress(2, 4)), at(12));
        // A computation from 12 to 21 ends before the next one; then one from 21 to 33: it is late, and stands for the third one, too.
        assert_eq!(checkpoints.write(at(12), progress(2, 5)), at(12));
        assert_eq!(checkpoints.write(at(21), progress(3, 14)), at(21));
        assert_eq!(checkpoints.write(at(33), progress(4, 26)), at(35));
        assert_eq!(checkpoints.write(at(35), progress(4, 28)), at(35));
        // A wait that ends when the fourth one is due is over.
        assert_eq!(checkpoints.write(at(46), progress(5, 28)), at(48));
        let actions: Vec<u64> = (0..6).map(|number| checkpoints.actions_at(number)).collect();
        assert_eq!(actions, [0, 1, 4, 4, 5, u64::MAX]);
        assert_eq!([11, 12, 34, 35, 48].map(|end| checkpoints.until(at(end))), [0, 1, 1, 3, 4]);
    }
}
