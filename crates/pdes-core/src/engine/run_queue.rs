//! The run queue of a worker: its logical processes, their states, and which of them runs next.

use std::collections::VecDeque;
use std::convert::Infallible;

use super::RunAhead;
use super::conditional_events::ConditionalEvents;
use super::jitter::Jitter;
use super::run_ahead::Window;
use crate::outside::Outside;
use crate::{Fault, LpId, Outbox, Pause, Process, SimTime, Turn, Wake};

/// Maximum number of steps of one turn: enough that a turn's overhead vanishes, few enough that tokens flow to other workers.
const STEPS_PER_TURN: u32 = 4096;

/// The state of a process between two turns.
///
/// | state        | ends when                          | next  |
/// |--------------|------------------------------------|-------|
/// | Ready        | its turn comes                     | any   |
/// | Parked       | the horizon passes its clock       | Ready |
/// | Blocked      | a token arrives that it waits for  | Ready |
/// |              | its conditional event is committed | any   |
/// | AtCheckpoint | not in this run                    |       |
/// | Suspended    | another process turns out to fail  | any   |
/// | Finished     | never; tokens are still delivered  |       |
/// | Failed       | never; tokens are still delivered  |       |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Parked,
    Blocked,
    AtCheckpoint,
    /// The run is interrupted.
    Suspended,
    Finished,
    Failed,
}

/// A run queue of processes, named by their local indices. They take turns up to a horizon, which is raised when no
/// process is left before it.
pub(crate) struct RunQueue<P: Process> {
    pub(crate) processes: Vec<P>,
    states: Vec<State>,
    ready: VecDeque<u32>,
    /// Processes that are ready, and have begun something outside.
    outside: Outside,
    parked: Vec<u32>,
    pub(crate) conditionals: ConditionalEvents,
    pub(crate) outbox: Outbox<P::Token>,
    pub(crate) horizon: SimTime,
    pub(crate) window: Window,
    pub(crate) steps: u64,
    steps_at_horizon: u64,
    /// Number of turns since the horizon was raised.
    turns_at_horizon: usize,
    pub(crate) jitter: Option<Jitter>,
}

impl<P: Process<WorkRequest = Infallible>> RunQueue<P> {
    pub(crate) fn new(processes: Vec<P>, run_ahead: RunAhead, jitter: Option<Jitter>) -> Self {
        let window = Window::new(run_ahead);
        Self {
            states: vec![State::Ready; processes.len()],
            ready: (0..processes.len() as u32).collect(),
            outside: Outside::default(),
            processes,
            parked: Vec::new(),
            conditionals: ConditionalEvents::default(),
            outbox: Outbox::new(),
            horizon: SimTime::ZERO.saturating_add(window.length()),
            window,
            steps: 0,
            steps_at_horizon: 0,
            turns_at_horizon: 0,
            jitter,
        }
    }

    /// Pops the next ready process.
    #[inline]
    pub(crate) fn next_ready(&mut self) -> Option<u32> {
        if let Some(jitter) = &mut self.jitter
            && !self.ready.is_empty()
        {
            jitter.pause();
            let pick = jitter.below(self.ready.len());
            self.ready.swap(0, pick);
        }
        match self.ready.pop_front() {
            None if !self.outside.is_empty() => self.outside.next(&self.processes),
            next => next,
        }
    }

    /// Resumes a process up to the horizon, or up to the cut-off if that is earlier.
    ///
    /// # Errors
    /// If the process fails.
    #[inline]
    pub(crate) fn resume(
        &mut self,
        local: u32,
        lp: LpId,
        cutoff: SimTime,
        granted: bool,
    ) -> Result<(), Fault<P::Error>> {
        let index = local as usize;
        self.turns_at_horizon += 1;
        let steps = self.jitter.as_mut().map_or(STEPS_PER_TURN, |jitter| 1 + jitter.below(64) as u32);
        let horizon = self.horizon.min(cutoff);
        let mut turn = Turn { horizon, steps, granted, undisturbed_until: SimTime::ZERO };
        let began = self.processes[index].clock();
        let result = self.processes[index].resume(&mut turn, &mut self.outbox);
        self.steps += u64::from(steps - turn.steps);
        let mut fault = None;
        self.states[index] = match result {
            Ok(Pause::Blocked) => State::Blocked,
            Ok(Pause::Horizon) => {
                self.parked.push(local);
                State::Parked
            }
            Ok(Pause::OutOfSteps) => {
                let clock = self.processes[index].clock();
                if self.window.shorten(steps, clock - began) {
                    self.horizon = self.horizon.min(clock);
                }
                self.ready.push_back(local);
                State::Ready
            }
            Ok(Pause::Outside) => {
                self.outside.add(local);
                State::Ready
            }
            Ok(Pause::Conditional(at)) => {
                self.conditionals.set(lp, at);
                State::Blocked
            }
            Ok(Pause::AtCheckpoint) => {
                // A checkpoint is committed like a conditional event: those before it are granted first.
                self.conditionals.hold(lp, self.processes[index].clock());
                State::AtCheckpoint
            }
            Ok(Pause::Finished) => State::Finished,
            Err(found) => {
                fault = Some(found);
                State::Failed
            }
        };
        fault.map_or(Ok(()), Err)
    }

    /// Delivers a token.
    ///
    /// # Errors
    /// If the token shows that the program is wrong. The process continues: its actions before the failure's time may lead
    /// to an earlier failure.
    // Called for every token: without the attribute a replay executes 1 % more instructions.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, local: u32, lp: LpId, token: P::Token) -> Result<(), Fault<P::Error>> {
        let index = local as usize;
        let wake = self.processes[index].deliver(token, &mut self.outbox)?;
        if wake != Wake::No && self.states[index] == State::Blocked {
            self.wake(local, lp, wake);
        }
        Ok(())
    }

    /// Changes the state of a blocked process.
    fn wake(&mut self, local: u32, lp: LpId, wake: Wake) {
        match wake {
            Wake::No => {}
            Wake::Ready => {
                self.conditionals.remove(lp);
                self.states[local as usize] = State::Ready;
                // Last in, first out: a token is read while it is in the cache. Above all, a process that runs after its
                // sender has reached the horizon has a whole window of work; with a first-in, first-out queue each process
                // would block again on the next token of another.
                self.ready.push_front(local);
            }
            Wake::Conditional(at) => self.conditionals.set(lp, at),
        }
    }

    /// Makes a process that is at a checkpoint ready again.
    pub(crate) fn leave_checkpoint(&mut self, local: u32, lp: LpId) {
        self.conditionals.remove(lp);
        self.states[local as usize] = State::Ready;
        self.ready.push_back(local);
    }

    /// Suspends a process. Its resumption is queued like a conditional event at its clock, so that the run ends when nothing
    /// else can happen before.
    pub(crate) fn suspend(&mut self, local: u32, lp: LpId) {
        self.states[local as usize] = State::Suspended;
        self.conditionals.hold(lp, self.processes[local as usize].clock());
    }

    pub(crate) fn is_suspended(&self, local: u32) -> bool {
        self.states[local as usize] == State::Suspended
    }

    /// Takes out the processes whose clocks are past the horizon.
    pub(crate) fn take_parked(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.parked)
    }

    pub(crate) fn is_at_checkpoint(&self, local: u32) -> bool {
        self.states[local as usize] == State::AtCheckpoint
    }

    /// Returns the least clock of the processes that are past the horizon.
    pub(crate) fn least_parked_clock(&self) -> Option<SimTime> {
        self.parked.iter().map(|&local| self.processes[local as usize].clock()).min()
    }

    /// Raises the horizon to one window after the least clock, and makes the processes before it ready.
    pub(crate) fn raise_horizon(&mut self, least: SimTime) {
        // Most processes may be blocked rather than parked. The number of turns is an upper bound on those that ran.
        let active = std::mem::take(&mut self.turns_at_horizon).min(self.processes.len());
        self.window.adapt(self.steps - self.steps_at_horizon, active);
        self.steps_at_horizon = self.steps;
        self.horizon = least.saturating_add(self.window.length());
        let mut parked = std::mem::take(&mut self.parked);
        parked.retain(|&local| {
            let waits = self.processes[local as usize].clock() > self.horizon;
            if !waits {
                self.states[local as usize] = State::Ready;
                self.ready.push_back(local);
            }
            waits
        });
        self.parked = parked;
    }

    /// Returns the local indices of the processes that have not finished.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.states).filter(|(_, state)| **state != State::Finished).map(|(index, _)| index)
    }

    /// Returns true if some process is at a checkpoint.
    pub(crate) fn any_at_checkpoint(&self) -> bool {
        self.states.contains(&State::AtCheckpoint)
    }
}
