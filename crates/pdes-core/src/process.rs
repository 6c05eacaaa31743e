//! The logical process, its outbox, and the reasons for which it pauses.

use std::convert::Infallible;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{LpId, SimTime, SubmittedWork};

/// A logical process (LP): a sequential program with its own clock that reads and writes timestamped tokens.
///
/// # Laws
/// The engine calls [`deliver`](Process::deliver) whenever a token arrives in wall-clock time and
/// [`resume`](Process::resume) whenever a thread is free for the process. Every schedule gives the same answer exactly
/// if
/// 1. tokens from one sender are consumed in the order in which they were sent (the engine delivers them so);
/// 2. `deliver` computes from tokens and from what the process has requested, never from how far the process has run
///    meanwhile;
/// 3. `resume` never branches on whether a token has arrived: a missing token always means [`Pause::Blocked`]. The
///    only exception is a turn with [`Turn::granted`].
pub trait Process: Send {
    /// Message that processes send to each other; encoded only on its way to another member of a [`Cluster`](crate::Cluster).
    type Token: Copy + Send + Serialize + DeserializeOwned;
    /// Work that processes submit to a [`Region`](crate::Region);
    /// [`Infallible`] where there is none.
    type WorkRequest: Copy + Send;
    /// Reason for which a process fails.
    type Error: Send;

    /// Accepts a token that was sent to this process; returns its effect on a blocked process.
    ///
    /// The engine calls this at any moment between two turns, also after the process has finished or failed; it ignores
    /// the returned value unless the process is blocked.
    ///
    /// # Errors
    /// If the token shows that the program is wrong. The process continues as if the token had not come, because its
    /// actions before the failure's time may lead to an earlier failure, its own or another's.
    fn deliver(
        &mut self,
        token: Self::Token,
        outbox: &mut Outbox<Self::Token, Self::WorkRequest>,
    ) -> Result<Wake, Fault<Self::Error>>;

    /// Runs until the process must pause, or the turn is over.
    ///
    /// # Errors
    /// If the program is wrong at [`clock`](Process::clock); all actions before the failure's time must be done by then.
    /// The process is not resumed again; tokens are still delivered, because an answer to them may lie before the
    /// failure.
    fn resume(
        &mut self,
        turn: &mut Turn,
        outbox: &mut Outbox<Self::Token, Self::WorkRequest>,
    ) -> Result<Pause, Fault<Self::Error>>;

    /// Returns the process's own simulated time; it never decreases.
    fn clock(&self) -> SimTime;

    /// Returns whether the process will use [`Turn::undisturbed_until`] in its next turn, which takes time to compute. `false` by default.
    fn needs_undisturbed_time(&self) -> bool {
        false
    }

    /// Returns whether the process, which is [outside](Pause::Outside), has decided what it does next: its turn waits for nothing. `false` by
    /// default.
    fn has_decided(&self) -> bool {
        false
    }

    /// Waits until this process, or another one that is [outside](Pause::Outside), may have decided what it does next; returns false at once if
    /// that is not told, as by default: its next turn waits then.
    fn await_decision(&self) -> bool {
        false
    }
}

/// A time slice of a process: the limits up to which it may run before it yields its thread. A process that yields
/// earlier or later computes the same result.
#[derive(Debug)]
pub struct Turn {
    /// Instant past which the process returns [`Pause::Horizon`].
    pub horizon: SimTime,
    /// Steps (actions, in a replay) left in this turn; the process counts down and returns [`Pause::OutOfSteps`] at
    /// zero.
    pub steps: u32,
    /// True if the conditional event for which the process paused is committed: all later actions of any process lie at
    /// or after the event's time. The grant is for that event only, not for the next one of the same turn.
    pub granted: bool,
    /// Instant before which the process gets no token of work that others have submitted or submit, of such a turn; the sooner the process
    /// submits work or sends tokens, the sooner others may answer. [`SimTime::ZERO`] where it is not known, or not
    /// [needed](Process::needs_undisturbed_time).
    pub undisturbed_until: SimTime,
}

/// The reason for which a process yielded its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// A token is missing.
    Blocked,
    /// The clock is past the horizon.
    Horizon,
    /// The steps of the turn are used up.
    OutOfSteps,
    /// The process has begun something that takes real time alone, outside of the simulation, such as the work of a program that runs. It
    /// can run; its next turn comes when no other process is ready, and may wait for the end.
    Outside,
    /// The next step depends on the actions of all processes before this instant (Chandy and Sherman's conditional event).
    ///
    /// The engine commits conditional events one at a time, in the order of (time, process), and only when no process
    /// can run and no token is in transit. The process then gets a turn with [`Turn::granted`]. A process has one
    /// conditional event at most: a token may reschedule it, or make the process ready without it, by the value that
    /// [`Process::deliver`] returns. Its time must depend on the set of tokens that have arrived, not on their order.
    Conditional(SimTime),
    /// The process has reached a checkpoint and pauses until another run resumes it.
    ///
    /// A run ends, as [`Ending::StoppedAtCheckpoint`](crate::Ending::StoppedAtCheckpoint), when nothing else can happen before
    /// the clock of a process that is at a checkpoint; tokens are still delivered to it. With a resource the process gets its next
    /// turn at once, and a cut follows, by an [`OrderedEngine`](crate::OrderedEngine::run_to_cut) or a
    /// [`RegionalEngine`](crate::RegionalRun::cut).
    AtCheckpoint,
    /// The program has ended.
    Finished,
}

/// The effect of a token on a blocked process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The process stays blocked.
    No,
    /// The process can run.
    Ready,
    /// The process has a conditional event at this instant, in place of any earlier one; see [`Pause::Conditional`].
    Conditional(SimTime),
}

/// The failure of one process at an instant of simulated time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault<E> {
    /// Time of the failure; of several failures the engine reports the one with the smallest (time, process, order).
    pub at: SimTime,
    /// Tie-break between failures of one process at one instant, such as the index of an action.
    pub order: u64,
    /// Cause of the failure.
    pub error: E,
}

/// The tokens and the work that a process sends during one call of the engine.
#[derive(Debug)]
pub struct Outbox<T, O = Infallible> {
    tokens: Vec<(LpId, T)>,
    /// Process that the engine has called.
    pub(crate) sender: LpId,
    pub(crate) submitted: Vec<SubmittedWork<O>>,
}

impl<T: Copy, O: Copy> Outbox<T, O> {
    pub(crate) fn new() -> Self {
        Self { tokens: Vec::new(), sender: LpId::new(0), submitted: Vec::new() }
    }

    /// Sends a token. Tokens of one sender reach one receiver in the order of these calls.
    #[inline]
    pub fn send(&mut self, to: LpId, token: T) {
        self.tokens.push((to, token));
    }

    /// Submits work for an instant to the shared resource; work of one instant is served by ascending `tie_break`.
    #[inline]
    pub fn submit(&mut self, at: SimTime, tie_break: u64, request: O) {
        self.submitted.push(SubmittedWork { at, tie_break, from: self.sender, request });
    }

    /// Returns the token number `index` with its receiver, if there are as many.
    #[inline]
    pub(crate) fn token_at(&self, index: usize) -> Option<(LpId, T)> {
        self.tokens.get(index).copied()
    }

    pub(crate) fn clear(&mut self) {
        self.tokens.clear();
    }
}
