//! The run queue of logical processes that submit work to a resource, on one thread.

use std::collections::VecDeque;

use crate::engine::first_fault::FirstFault;
use crate::engine::jitter::Jitter;
use crate::outside::Outside;
use crate::{LpId, Outbox, Pause, Process, SimTime, SubmittedWork, Turn, Wake};

/// Maximum number of steps of one turn, which bounds the time between two publications of the progress.
const STEPS_PER_TURN: u32 = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Blocked,
    /// The clock is past the failure that ends the run.
    Parked,
    Finished,
    Failed,
}

/// A run queue of processes, named by their local indices, with the tokens and the work that they submit.
pub(crate) struct ResourceRunQueue<P: Process> {
    pub(crate) processes: Vec<P>,
    states: Vec<State>,
    ready: VecDeque<u32>,
    /// Processes that are ready, and have begun something outside.
    outside: Outside,
    pub(crate) fault: FirstFault<P::Error>,
    pub(crate) outbox: Outbox<P::Token, P::WorkRequest>,
    pub(crate) steps: u64,
    /// Clock of the first process that has paused at a checkpoint.
    pub(crate) checkpoint: Option<SimTime>,
    jitter: Option<Jitter>,
}

impl<P: Process> ResourceRunQueue<P> {
    pub(crate) fn new(processes: Vec<P>, jitter: Option<Jitter>) -> Self {
        Self {
            states: vec![State::Ready; processes.len()],
            ready: (0..processes.len() as u32).collect(),
            outside: Outside::default(),
            processes,
            fault: FirstFault::none(),
            outbox: Outbox::new(),
            steps: 0,
            checkpoint: None,
            jitter,
        }
    }

    /// Returns true if a process is ready or has submitted work.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        !self.ready.is_empty() || !self.outbox.submitted.is_empty() || !self.outside.is_empty()
    }

    /// Pops the next ready process.
    #[inline]
    pub(crate) fn next_ready(&mut self) -> Option<u32> {
        if self.jitter.is_some() {
            self.perturb();
        }
        match self.ready.pop_front() {
            None if !self.outside.is_empty() => self.outside.next(&self.processes),
            next => next,
        }
    }

    /// Chooses the next ready process at random.
    #[cold]
    fn perturb(&mut self) {
        if let Some(jitter) = &mut self.jitter
            && !self.ready.is_empty()
        {
            let pick = jitter.below(self.ready.len());
            self.ready.swap(0, pick);
        }
    }

    /// Resumes a process, whose conditional event is granted if it is known until when it is undisturbed; returns the time of the
    /// conditional event for which it pauses, if it does.
    #[inline(always)]
    pub(crate) fn resume(
        &mut self,
        local: u32,
        lp: LpId,
        cutoff: SimTime,
        granted: Option<SimTime>,
    ) -> Option<SimTime> {
        let index = local as usize;
        let steps = self.jitter.as_mut().map_or(STEPS_PER_TURN, |jitter| 1 + jitter.below(64) as u32);
        let mut turn = Turn {
            horizon: cutoff.min(self.fault.cutoff()),
            steps,
            granted: granted.is_some(),
            undisturbed_until: granted.unwrap_or(SimTime::ZERO),
        };
        self.outbox.sender = lp;
        let result = self.processes[index].resume(&mut turn, &mut self.outbox);
        self.steps += u64::from(steps - turn.steps);
        let mut conditional = None;
        self.states[index] = match result {
            Ok(Pause::Blocked) => State::Blocked,
            Ok(Pause::Horizon) => State::Parked,
            Ok(pause @ (Pause::OutOfSteps | Pause::AtCheckpoint)) => {
                if pause == Pause::AtCheckpoint {
                    let clock = self.processes[index].clock();
                    self.checkpoint = Some(self.checkpoint.map_or(clock, |first| first.min(clock)));
                }
                self.ready.push_back(local);
                State::Ready
            }
            Ok(Pause::Outside) => {
                self.outside.add(local);
                State::Ready
            }
            Ok(Pause::Conditional(at)) => {
                conditional = Some(at);
                State::Blocked
            }
            Ok(Pause::Finished) => State::Finished,
            Err(fault) => {
                self.fault.record(lp, fault);
                State::Failed
            }
        };
        conditional
    }

    /// Delivers a token; returns its effect on a blocked process, which is queued if it becomes ready.
    pub(crate) fn deliver(&mut self, local: u32, lp: LpId, token: P::Token) -> Wake {
        let index = local as usize;
        self.outbox.sender = lp;
        match self.processes[index].deliver(token, &mut self.outbox) {
            Ok(wake) if self.states[index] == State::Blocked => {
                if wake == Wake::Ready {
                    self.states[index] = State::Ready;
                    self.ready.push_back(local);
                }
                wake
            }
            Ok(_) => Wake::No,
            // The process continues: its actions before the failure's time may lead to an earlier failure.
            Err(fault) => {
                self.fault.record(lp, fault);
                Wake::No
            }
        }
    }

    /// Sorts the submitted work, so that its order does not depend on that of the turns.
    #[inline]
    pub(crate) fn sort_submitted(&mut self) {
        let key = |work: &SubmittedWork<_>| (work.at, work.tie_break, work.from);
        let submitted = &mut self.outbox.submitted;
        // Few pieces are in order most of the time, which costs less to see than to sort.
        if !submitted.is_sorted_by_key(key) {
            // Stable: work of one process with equal time and tie-break stays in the order of submission.
            submitted.sort_by_key(key);
        }
    }

    /// Returns the local indices of the processes that have not finished.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = usize> + '_ {
        let states = self.states.iter().enumerate();
        states.filter(|(_, state)| **state != State::Finished).map(|(index, _)| index)
    }
}
