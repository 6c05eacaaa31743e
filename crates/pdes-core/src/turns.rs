//! Processes that take turns on one thread, beside a resource that runs in the order of time.

use std::collections::VecDeque;
use std::vec::Drain;

use crate::engine::first_fault::FirstFault;
use crate::engine::jitter::Jitter;
use crate::{Filed, Outbox, Pause, Process, Rank, SimTime, Turn, Wake};

/// Steps of one turn: a bound on the time between two looks of whoever watches.
const STEPS_PER_TURN: u32 = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Blocked,
    /// Past the failure that ends the run.
    Parked,
    Finished,
    Failed,
}

/// Processes, named by their places, and what they send and file.
pub(crate) struct Turns<P: Process> {
    pub(crate) processes: Vec<P>,
    states: Vec<State>,
    ready: VecDeque<u32>,
    pub(crate) fault: FirstFault<P::Error>,
    pub(crate) outbox: Outbox<P::Token, P::Order>,
    pub(crate) steps: u64,
    jitter: Option<Jitter>,
}

impl<P: Process> Turns<P> {
    pub(crate) fn new(processes: Vec<P>, jitter: Option<Jitter>) -> Self {
        Self {
            states: vec![State::Ready; processes.len()],
            ready: (0..processes.len() as u32).collect(),
            processes,
            fault: FirstFault::none(),
            outbox: Outbox::new(),
            steps: 0,
            jitter,
        }
    }

    /// Returns whether a process is ready, or has filed an order.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        !self.ready.is_empty() || !self.outbox.orders.is_empty()
    }

    /// Takes the process whose turn it is.
    pub(crate) fn next_ready(&mut self) -> Option<u32> {
        if let Some(jitter) = &mut self.jitter
            && !self.ready.is_empty()
        {
            let pick = jitter.below(self.ready.len());
            self.ready.swap(0, pick);
        }
        self.ready.pop_front()
    }

    /// Gives a process a turn; returns the instant of the conditional event for which it pauses, if it does.
    pub(crate) fn turn(&mut self, place: u32, rank: Rank, cutoff: SimTime, granted: bool) -> Option<SimTime> {
        let index = place as usize;
        let steps = self.jitter.as_mut().map_or(STEPS_PER_TURN, |jitter| 1 + jitter.below(64) as u32);
        let mut turn = Turn { horizon: cutoff.min(self.fault.cutoff()), steps, granted };
        self.outbox.sender = rank;
        let result = self.processes[index].resume(&mut turn, &mut self.outbox);
        self.steps += u64::from(steps - turn.steps);
        let mut conditional = None;
        self.states[index] = match result {
            Ok(Pause::Blocked) => State::Blocked,
            Ok(Pause::Horizon) => State::Parked,
            Ok(Pause::TurnOver | Pause::Halted) => {
                self.ready.push_back(place);
                State::Ready
            }
            Ok(Pause::Conditional(at)) => {
                conditional = Some(at);
                State::Blocked
            }
            Ok(Pause::Finished) => State::Finished,
            Err(fault) => {
                self.fault.record(rank, fault);
                State::Failed
            }
        };
        conditional
    }

    /// Delivers a token; returns what it changes for a process that is blocked, which is ready from now on if it says so.
    pub(crate) fn deliver(&mut self, place: u32, rank: Rank, token: P::Token) -> Wake {
        let index = place as usize;
        self.outbox.sender = rank;
        match self.processes[index].deliver(token, &mut self.outbox) {
            Ok(wake) if self.states[index] == State::Blocked => {
                if wake == Wake::Ready {
                    self.states[index] = State::Ready;
                    self.ready.push_back(place);
                }
                wake
            }
            Ok(_) => Wake::No,
            // The process goes on: what it does before the failure's time may lead to an earlier one.
            Err(fault) => {
                self.fault.record(rank, fault);
                Wake::No
            }
        }
    }

    /// Puts what has been filed into an order that does not depend on that of the turns.
    #[inline]
    pub(crate) fn sort_orders(&mut self) {
        // Stable: the orders of one process at one time and place stay as they were filed.
        self.outbox.orders.sort_by_key(|filed| (filed.at, filed.place, filed.from));
    }

    /// Takes the orders out in that order.
    pub(crate) fn take_orders(&mut self) -> Drain<'_, Filed<P::Order>> {
        self.sort_orders();
        self.outbox.orders.drain(..)
    }

    /// Returns the places of the processes that have not finished.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = usize> + '_ {
        let states = self.states.iter().enumerate();
        states.filter(|(_, state)| **state != State::Finished).map(|(place, _)| place)
    }
}
