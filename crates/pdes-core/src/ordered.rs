//! An engine for processes that share a resource in the order of time.

use std::collections::VecDeque;

use crate::engine::conditionals::Conditionals;
use crate::engine::first_fault::FirstFault;
use crate::engine::jitter::Jitter;
use crate::{Arbiter, Filed, Outbox, Pause, Process, Progress, Rank, Run, SimTime, Turn, Wake};

/// Steps of one turn: a bound on the time between two looks of whoever watches.
const STEPS_PER_TURN: u32 = 1 << 16;
/// Steps between two publications of the progress.
const STEPS_PER_PUBLICATION: u64 = 1 << 16;

/// Runs processes and their [`Arbiter`] on one thread.
///
/// Processes run as far as their tokens reach. Where none can run, the earliest of what the arbiter has to do and of
/// the conditional events is committed; the arbiter comes first at equal times. Nothing that a process does afterwards
/// can lie before it.
///
/// # Determinism
/// The result does not depend on the order in which processes get their turns: orders that lie between two events of
/// the arbiter reach it sorted by (time, place, rank, order of filing).
///
/// # Cost
/// A turn of a process costs a few nanoseconds beside what the process does; an event of the arbiter costs what
/// [`Arbiter::next`] and [`Arbiter::advance`] do.
#[derive(Clone, Debug, Default)]
pub struct OrderedEngine {
    jitter: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Blocked,
    /// Past the failure that ends the run.
    Parked,
    Finished,
    Failed,
}

impl OrderedEngine {
    /// Disturbs the order of turns at random, to test that results do not depend on it.
    pub fn jitter(self, seed: u64) -> Self {
        Self { jitter: Some(seed) }
    }

    /// Runs processes to their end; process `i` of the list is rank `i`. Publishes as the first worker of `progress`.
    ///
    /// # Panics
    /// Where a process or the arbiter does, and where an order lies before the last event of the arbiter.
    pub fn run<P: Process>(
        &self,
        processes: Vec<P>,
        arbiter: &mut impl Arbiter<P>,
        progress: &Progress,
    ) -> Run<P> {
        let count = processes.len();
        let driver = Driver {
            processes,
            arbiter,
            progress,
            states: vec![State::Ready; count],
            ready: (0..count as u32).collect(),
            conditionals: Conditionals::default(),
            fault: FirstFault::none(),
            outbox: Outbox::new(),
            now: SimTime::ZERO,
            steps: 0,
            next_publication: STEPS_PER_PUBLICATION,
            jitter: self.jitter.map(|seed| Jitter::new(seed, 0)),
        };
        driver.run()
    }
}

/// A run in progress.
struct Driver<'a, P: Process, A> {
    processes: Vec<P>,
    arbiter: &'a mut A,
    progress: &'a Progress,
    states: Vec<State>,
    ready: VecDeque<u32>,
    conditionals: Conditionals,
    fault: FirstFault<P::Error>,
    outbox: Outbox<P::Token, P::Order>,
    /// The instant of the last event that was committed.
    now: SimTime,
    steps: u64,
    next_publication: u64,
    jitter: Option<Jitter>,
}

impl<P: Process, A: Arbiter<P>> Driver<'_, P, A> {
    fn run(mut self) -> Run<P> {
        loop {
            while let Some(rank) = self.next_ready() {
                self.turn(rank, false);
            }
            self.file_orders();
            if !self.commit() {
                return self.finish();
            }
        }
    }

    fn next_ready(&mut self) -> Option<Rank> {
        if let Some(jitter) = &mut self.jitter
            && !self.ready.is_empty()
        {
            let pick = jitter.below(self.ready.len());
            self.ready.swap(0, pick);
        }
        self.ready.pop_front().map(Rank::new)
    }

    /// Gives a process a turn.
    fn turn(&mut self, rank: Rank, granted: bool) {
        let index = rank.index();
        let steps = self.jitter.as_mut().map_or(STEPS_PER_TURN, |jitter| 1 + jitter.below(64) as u32);
        let mut turn = Turn { horizon: self.fault.cutoff(), steps, granted };
        self.outbox.sender = rank;
        let result = self.processes[index].resume(&mut turn, &mut self.outbox);
        self.steps += u64::from(steps - turn.steps);
        self.states[index] = match result {
            Ok(Pause::Blocked) => State::Blocked,
            Ok(Pause::Horizon) => State::Parked,
            Ok(Pause::TurnOver | Pause::Halted) => {
                self.ready.push_back(rank.get());
                State::Ready
            }
            Ok(Pause::Conditional(at)) => {
                self.conditionals.set(rank, at);
                State::Blocked
            }
            Ok(Pause::Finished) => State::Finished,
            Err(fault) => {
                self.fault.record(rank, fault);
                State::Failed
            }
        };
        self.dispatch();
        if self.steps >= self.next_publication {
            self.next_publication = self.steps + STEPS_PER_PUBLICATION;
            self.progress.publish(0, self.steps, self.now);
        }
    }

    /// Brings the tokens of the outbox to their receivers, and those that the receivers send in answer.
    fn dispatch(&mut self) {
        let mut next = 0;
        while let Some((to, token)) = self.outbox.packet(next) {
            next += 1;
            self.outbox.sender = to;
            match self.processes[to.index()].deliver(token, &mut self.outbox) {
                Ok(Wake::No) => {}
                Ok(wake) => {
                    if self.states[to.index()] == State::Blocked {
                        self.wake(to, wake);
                    }
                }
                // The process goes on: what it does before the failure's time may lead to an earlier one.
                Err(fault) => self.fault.record(to, fault),
            }
        }
        self.outbox.clear();
    }

    /// Changes the state of a blocked process.
    fn wake(&mut self, rank: Rank, wake: Wake) {
        match wake {
            Wake::No => {}
            Wake::Ready => {
                self.conditionals.remove(rank);
                self.states[rank.index()] = State::Ready;
                self.ready.push_back(rank.get());
            }
            Wake::Conditional(at) => self.conditionals.set(rank, at),
        }
    }

    /// Hands the orders to the arbiter in an order that does not depend on that of the turns.
    fn file_orders(&mut self) {
        let orders = &mut self.outbox.orders;
        // Stable: the orders of one process at one time and place stay as they were filed.
        orders.sort_by_key(|filed| (filed.at, filed.place, filed.from));
        for Filed { at, from, order, .. } in orders.drain(..) {
            let now = self.now;
            assert!(at >= now, "rank {from} files an order at {at} s, before the present of {now} s");
            self.arbiter.file(from, at, order);
        }
    }

    /// Commits the earliest event; returns whether there was one that matters.
    fn commit(&mut self) -> bool {
        let cutoff = self.fault.cutoff();
        let next = self.arbiter.next().filter(|&at| at <= cutoff);
        let conditional = self.conditionals.first().filter(|&(at, _)| at <= cutoff);
        match (next, conditional) {
            (Some(at), conditional) if conditional.is_none_or(|(conditional, _)| at <= conditional) => {
                self.now = at;
                if let Err((rank, fault)) = self.arbiter.advance(&mut self.outbox) {
                    // All that lies before has happened, and the arbiter cannot go on.
                    self.fault.record(rank, fault);
                    return false;
                }
                self.dispatch();
            }
            (_, Some((at, rank))) => {
                self.now = at;
                self.conditionals.pop_first();
                self.turn(rank, true);
            }
            (_, None) => return false,
        }
        true
    }

    fn finish(self) -> Run<P> {
        let reached = self.processes.iter().map(Process::clock).max();
        self.progress.publish(0, self.steps, reached.unwrap_or_default());
        let states = self.states.iter().enumerate();
        let waiting = states.filter(|(_, state)| **state != State::Finished);
        let waiting: Vec<Rank> = waiting.map(|(index, _)| Rank::new(index as u32)).collect();
        Run { ending: self.fault.ending(waiting), processes: self.processes, steps: self.steps }
    }
}
