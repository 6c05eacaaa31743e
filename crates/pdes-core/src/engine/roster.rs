//! The processes of a worker, and whose turn it is.

use std::collections::VecDeque;
use std::convert::Infallible;

use super::RunAhead;
use super::conditionals::Conditionals;
use super::horizon::Window;
use super::jitter::Jitter;
use crate::{Fault, Outbox, Pause, Process, Rank, SimTime, Turn, Wake};

/// Steps of one turn: enough that a turn's overhead vanishes, few enough that tokens flow to other workers.
const STEPS_PER_TURN: u32 = 4096;

/// Where a process stands between two turns.
///
/// | state    | leaves it when                     | to    |
/// |----------|------------------------------------|-------|
/// | Ready    | its turn comes                     | any   |
/// | Parked   | the horizon passes its clock       | Ready |
/// | Blocked  | a token arrives that lets it go on | Ready |
/// |          | its conditional event is committed | any   |
/// | Halted   | in this run never                  |       |
/// | Held     | another process turns out to fail  | Ready |
/// | Finished | never; tokens are still delivered  |       |
/// | Failed   | never; tokens are still delivered  |       |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Parked,
    Blocked,
    Halted,
    /// The run is interrupted.
    Held,
    Finished,
    Failed,
}

/// Processes that take turns, named by their places, up to a horizon that moves on when none of them is before it.
pub(crate) struct Roster<P: Process> {
    pub(crate) processes: Vec<P>,
    states: Vec<State>,
    ready: VecDeque<u32>,
    parked: Vec<u32>,
    pub(crate) conditionals: Conditionals,
    pub(crate) outbox: Outbox<P::Token>,
    pub(crate) horizon: SimTime,
    pub(crate) window: Window,
    pub(crate) steps: u64,
    steps_at_horizon: u64,
    /// Turns since the horizon was moved on.
    turns: usize,
    pub(crate) jitter: Option<Jitter>,
}

impl<P: Process<Order = Infallible>> Roster<P> {
    pub(crate) fn new(processes: Vec<P>, run_ahead: RunAhead, jitter: Option<Jitter>) -> Self {
        let window = Window::new(run_ahead);
        Self {
            states: vec![State::Ready; processes.len()],
            ready: (0..processes.len() as u32).collect(),
            processes,
            parked: Vec::new(),
            conditionals: Conditionals::default(),
            outbox: Outbox::new(),
            horizon: SimTime::ZERO.saturating_add(window.length()),
            window,
            steps: 0,
            steps_at_horizon: 0,
            turns: 0,
            jitter,
        }
    }

    /// Takes the process whose turn it is.
    #[inline]
    pub(crate) fn next_ready(&mut self) -> Option<u32> {
        if let Some(jitter) = &mut self.jitter
            && !self.ready.is_empty()
        {
            jitter.pause();
            let pick = jitter.below(self.ready.len());
            self.ready.swap(0, pick);
        }
        self.ready.pop_front()
    }

    /// Gives a process a turn up to the horizon, or up to the cut-off if that is earlier.
    ///
    /// # Errors
    /// Where the process fails.
    #[inline]
    pub(crate) fn turn(
        &mut self,
        local: u32,
        rank: Rank,
        cutoff: SimTime,
        granted: bool,
    ) -> Result<(), Fault<P::Error>> {
        let index = local as usize;
        self.turns += 1;
        let steps = self.jitter.as_mut().map_or(STEPS_PER_TURN, |jitter| 1 + jitter.below(64) as u32);
        let mut turn = Turn { horizon: self.horizon.min(cutoff), steps, granted };
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
            Ok(Pause::TurnOver) => {
                let clock = self.processes[index].clock();
                if self.window.shorten(steps, clock - began) {
                    self.horizon = self.horizon.min(clock);
                }
                self.ready.push_back(local);
                State::Ready
            }
            Ok(Pause::Conditional(at)) => {
                self.conditionals.set(rank, at);
                State::Blocked
            }
            Ok(Pause::Halted) => {
                // A halt is due like a conditional event: those before it are granted first.
                self.conditionals.set(rank, self.processes[index].clock());
                State::Halted
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
    /// Where it shows that the program is wrong. The process goes on: what it does before the failure's time may lead to an
    /// earlier one.
    // For every token: without it, a hundredth of all instructions of a replay more.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, local: u32, rank: Rank, token: P::Token) -> Result<(), Fault<P::Error>> {
        let index = local as usize;
        let wake = self.processes[index].deliver(token, &mut self.outbox)?;
        if wake != Wake::No && self.states[index] == State::Blocked {
            self.wake(local, rank, wake);
        }
        Ok(())
    }

    /// Changes the state of a blocked process.
    fn wake(&mut self, local: u32, rank: Rank, wake: Wake) {
        match wake {
            Wake::No => {}
            Wake::Ready => {
                self.conditionals.remove(rank);
                self.states[local as usize] = State::Ready;
                // What has just been sent is read first, while it is in the cache. Above all, a process that goes on after its
                // sender has come as far as the horizon has as much to do; where all take turns, each waits for the next
                // token of another.
                self.ready.push_front(local);
            }
            Wake::Conditional(at) => self.conditionals.set(rank, at),
        }
    }

    /// Lets a process that has halted go on.
    pub(crate) fn unhalt(&mut self, local: u32, rank: Rank) {
        self.conditionals.remove(rank);
        self.states[local as usize] = State::Ready;
        self.ready.push_back(local);
    }

    /// Holds a process. That is due like a conditional event: where nothing else can happen, the run ends.
    pub(crate) fn hold(&mut self, local: u32, rank: Rank) {
        self.states[local as usize] = State::Held;
        self.conditionals.set(rank, self.processes[local as usize].clock());
    }

    pub(crate) fn is_held(&self, local: u32) -> bool {
        self.states[local as usize] == State::Held
    }

    /// Takes out the processes behind the horizon.
    pub(crate) fn take_parked(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.parked)
    }

    pub(crate) fn has_halted(&self, local: u32) -> bool {
        self.states[local as usize] == State::Halted
    }

    /// Returns the least clock of the processes behind the horizon.
    pub(crate) fn least_parked(&self) -> Option<SimTime> {
        self.parked.iter().map(|&local| self.processes[local as usize].clock()).min()
    }

    /// Moves the horizon on to a window after the least clock, and unparks what is before it.
    pub(crate) fn raise_horizon(&mut self, least: SimTime) {
        // Most processes may be blocked rather than parked: those that had a turn count, each once.
        let active = std::mem::take(&mut self.turns).min(self.processes.len());
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

    /// Returns the places of the processes that have not finished.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.states).filter(|(_, state)| **state != State::Finished).map(|(place, _)| place)
    }

    /// Returns whether some process has halted.
    pub(crate) fn is_halted(&self) -> bool {
        self.states.contains(&State::Halted)
    }
}
