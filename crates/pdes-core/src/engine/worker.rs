//! A worker: one thread and the processes that it owns.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Engine;
use super::conditionals::Conditionals;
use super::exchange::{Backlog, Exchange, Message};
use super::first_fault::FirstFault;
use super::gateway::Gateway;
use super::horizon::{Floors, Window};
use super::jitter::Jitter;
use super::quiescence::Quiescence;
use crate::cluster::patience::Patience;
use crate::{Fault, Outbox, Pause, Process, Progress, Rank, SimTime, Turn, Wake};

/// Steps of one turn: enough that a turn's overhead vanishes, few enough that tokens flow to other workers.
const STEPS_PER_TURN: u32 = 4096;
/// Steps between two looks of whoever watches the progress.
const STEPS_PER_PUBLICATION: u64 = 1 << 16;
/// Polls of an empty inbox before the thread sleeps: waking it up costs more than a few microseconds of polling.
const POLLS_BEFORE_SLEEP: u32 = 2000;

/// Where a process stands between two turns.
///
/// | state    | leaves it when                     | to    |
/// |----------|------------------------------------|-------|
/// | Ready    | its turn comes                     | any   |
/// | Parked   | the horizon passes its clock       | Ready |
/// | Blocked  | a token arrives that lets it go on | Ready |
/// |          | its conditional event is committed | any   |
/// | Halted   | in this run never                  |       |
/// | Finished | never; tokens are still delivered  |       |
/// | Failed   | never; tokens are still delivered  |       |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Parked,
    Blocked,
    Halted,
    Finished,
    Failed,
}

/// What became of a worker's horizon where none of its processes is ready.
enum Horizon {
    /// Something is ready again.
    Raised,
    /// Others have to come nearer first.
    Held,
    /// There is nothing to do but to wait for messages.
    Unneeded,
}

pub(crate) struct Worker<'a, P: Process> {
    /// The place of its first process.
    first: u32,
    processes: Vec<P>,
    states: Vec<State>,
    ready: VecDeque<u32>,
    parked: Vec<u32>,
    conditionals: Conditionals,
    fault: FirstFault<P::Error>,
    exchange: Exchange<'a, P::Token>,
    outbox: Outbox<P::Token>,
    horizon: SimTime,
    window: Window,
    steps: u64,
    steps_at_horizon: u64,
    /// Turns since the horizon was moved on.
    turns: usize,
    next_publication: u64,
    jitter: Option<Jitter>,
    /// How long to wait where the worker could go on and may not.
    patience: Patience,
    commons: &'a Commons,
    progress: &'a Progress,
}

/// What the workers of a member share.
pub(crate) struct Commons {
    pub(crate) quiescence: Quiescence,
    pub(crate) floors: Floors,
    pub(crate) backlog: Backlog,
    /// Whether tokens have come from another member that cannot be read. Relaxed: it is read when the workers have ended.
    pub(crate) is_garbled: AtomicBool,
    /// Whether there are no other members.
    is_alone: bool,
}

impl Commons {
    pub(crate) fn new(workers: usize, member: usize, members: usize) -> Self {
        Self {
            quiescence: Quiescence::new(workers),
            floors: Floors::new(workers, member, members),
            backlog: Backlog::default(),
            is_garbled: AtomicBool::new(false),
            is_alone: members == 1,
        }
    }
}

/// What is left of a worker after a run.
pub(crate) struct Finished<P: Process> {
    pub(crate) processes: Vec<P>,
    pub(crate) waiting: Vec<Rank>,
    pub(crate) halted: bool,
    pub(crate) fault: FirstFault<P::Error>,
    pub(crate) steps: u64,
}

impl<'a, P: Process<Order = Infallible>> Worker<'a, P> {
    pub(crate) fn new(
        engine: &Engine,
        processes: Vec<P>,
        exchange: Exchange<'a, P::Token>,
        commons: &'a Commons,
        progress: &'a Progress,
    ) -> Self {
        let count = processes.len();
        let window = Window::new(engine.run_ahead);
        Self {
            first: exchange.first_place(),
            processes,
            states: vec![State::Ready; count],
            ready: (0..count as u32).collect(),
            parked: Vec::new(),
            conditionals: Conditionals::default(),
            fault: FirstFault::none(),
            jitter: engine.jitter.map(|seed| Jitter::new(seed, exchange.number())),
            exchange,
            outbox: Outbox::new(),
            horizon: SimTime::ZERO.saturating_add(window.length()),
            window,
            steps: 0,
            steps_at_horizon: 0,
            turns: 0,
            next_publication: STEPS_PER_PUBLICATION,
            patience: Patience::new(),
            commons,
            progress,
        }
    }

    /// Runs the worker's processes until the run is over; gives the connection to other members back.
    pub(crate) fn run(mut self) -> (Finished<P>, Option<Gateway<'a>>) {
        loop {
            while let Some(message) = self.exchange.try_receive() {
                if !self.handle(message) {
                    return self.finish();
                }
            }
            if self.exchange.is_congested() {
                if !self.hold() {
                    return self.finish();
                }
                continue;
            }
            if let Some(local) = self.next_ready() {
                self.turn(local, false);
                continue;
            }
            self.exchange.flush();
            let goes_on = match self.raise_horizon() {
                Horizon::Raised => true,
                Horizon::Held => self.hold(),
                Horizon::Unneeded => self.idle(),
            };
            if !goes_on {
                return self.finish();
            }
        }
    }

    /// Waits a little for others; returns whether the run goes on.
    fn hold(&mut self) -> bool {
        if let Some(message) = self.exchange.look() {
            return self.handle(message);
        }
        self.patience.pause();
        true
    }

    fn next_ready(&mut self) -> Option<u32> {
        if let Some(jitter) = &mut self.jitter
            && !self.ready.is_empty()
        {
            jitter.pause();
            let pick = jitter.below(self.ready.len());
            self.ready.swap(0, pick);
        }
        self.ready.pop_front()
    }

    /// Gives a process a turn.
    fn turn(&mut self, local: u32, granted: bool) {
        let index = local as usize;
        self.turns += 1;
        self.patience = Patience::new();
        let steps = self.jitter.as_mut().map_or(STEPS_PER_TURN, |jitter| 1 + jitter.below(64) as u32);
        let horizon = self.horizon.min(self.commons.floors.cutoff());
        let mut turn = Turn { horizon, steps, granted };
        let began = self.processes[index].clock();
        let result = self.processes[index].resume(&mut turn, &mut self.outbox);
        self.steps += u64::from(steps - turn.steps);
        if self.steps >= self.next_publication {
            self.publish(self.processes[index].clock());
        }
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
                self.conditionals.set(self.rank(local), at);
                State::Blocked
            }
            Ok(Pause::Halted) => self.halt(local),
            Ok(Pause::Finished) => State::Finished,
            Err(fault) => {
                self.record(local, fault);
                State::Failed
            }
        };
        self.dispatch();
        self.exchange.feed_idle();
    }

    /// Halts a process, if there can be another run. A halt is due like a conditional event: those before it are granted
    /// first.
    fn halt(&mut self, local: u32) -> State {
        if !self.commons.is_alone {
            self.ready.push_back(local);
            return State::Ready;
        }
        self.conditionals.set(self.rank(local), self.processes[local as usize].clock());
        State::Halted
    }

    fn publish(&mut self, reached: SimTime) {
        self.next_publication = self.steps + STEPS_PER_PUBLICATION;
        self.progress.publish(self.exchange.me(), self.steps, reached);
    }

    fn record(&mut self, local: u32, fault: Fault<P::Error>) {
        self.commons.floors.lower_cutoff(fault.at);
        self.fault.record(self.rank(local), fault);
    }

    fn rank(&self, local: u32) -> Rank {
        self.exchange.rank(self.first + local)
    }

    /// Returns the number of a process among those of this worker; of those of other workers, one that is too large.
    #[inline]
    fn local(&self, rank: Rank) -> u32 {
        self.exchange.place(rank).wrapping_sub(self.first)
    }

    /// Brings the tokens of the outbox to their receivers, and those that the receivers send in answer.
    fn dispatch(&mut self) {
        let mut next = 0;
        while let Some((to, token)) = self.outbox.packet(next) {
            next += 1;
            let local = self.local(to);
            if (local as usize) < self.processes.len() {
                self.deliver(local, token);
            } else {
                self.exchange.post(to, token);
            }
        }
        self.outbox.clear();
    }

    fn deliver(&mut self, local: u32, token: P::Token) {
        let index = local as usize;
        match self.processes[index].deliver(token, &mut self.outbox) {
            Ok(Wake::No) => {}
            Ok(wake) => {
                if self.states[index] == State::Blocked {
                    self.wake(local, wake);
                }
            }
            // The process goes on: what it does before the failure's time may lead to an earlier one.
            Err(fault) => self.record(local, fault),
        }
    }

    /// Changes the state of a blocked process.
    fn wake(&mut self, local: u32, wake: Wake) {
        let rank = self.rank(local);
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

    /// Acts on a message; returns whether the run goes on.
    fn handle(&mut self, message: Message<P::Token>) -> bool {
        match message {
            Message::Batch(packets) => self.take_in(packets),
            Message::Frame(frame) => {
                let Some(packets) = self.exchange.read(&frame) else {
                    self.commons.is_garbled.store(true, Ordering::Relaxed);
                    self.exchange.stop_all();
                    return false;
                };
                self.take_in(packets);
            }
            Message::Commit(rank) => return self.grant(rank),
            Message::Parcel { .. } | Message::Quiet => unreachable!("the exchange keeps what is for itself"),
            Message::Stop => return false,
        }
        true
    }

    fn take_in(&mut self, packets: Vec<(Rank, P::Token)>) {
        for (to, token) in packets {
            self.deliver(self.local(to), token);
        }
        self.dispatch();
    }

    /// Lets the process with the earliest conditional event of all go on; returns whether the run goes on, which it does not
    /// where that process has halted.
    fn grant(&mut self, rank: Rank) -> bool {
        let first = self.conditionals.pop_first();
        assert_eq!(first.map(|(_, rank)| rank), Some(rank), "a commit is for the earliest conditional event");
        let local = self.local(rank);
        if self.states[local as usize] == State::Halted {
            self.exchange.stop_all();
            return false;
        }
        self.turn(local, true);
        true
    }

    /// Moves the horizon on, if there is anything before it, and unparks that.
    fn raise_horizon(&mut self) -> Horizon {
        let floors = &self.commons.floors;
        let least = self.parked.iter().map(|&local| self.processes[local as usize].clock()).min();
        let Some(least) = least.filter(|&least| least <= floors.cutoff()) else { return Horizon::Unneeded };
        floors.publish(self.exchange.me(), least);
        self.publish(least);
        if !floors.admit(least, self.window.length()) {
            return Horizon::Held;
        }
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
        Horizon::Raised
    }

    /// Waits for something to do; returns whether the run goes on.
    fn idle(&mut self) -> bool {
        let me = self.exchange.me();
        self.commons.floors.publish_idle(me);
        let polls = if self.exchange.all_workers() == 1 { 0 } else { POLLS_BEFORE_SLEEP };
        for _ in 0..polls {
            if let Some(message) = self.exchange.try_receive() {
                self.commons.floors.lower(me, self.horizon);
                return self.handle(message);
            }
        }
        let message = self.exchange.wait(&self.commons.quiescence, self.conditionals.first());
        if !matches!(message, Message::Stop) {
            self.commons.quiescence.leave();
            self.commons.floors.lower(me, self.horizon);
        }
        self.handle(message)
    }

    fn finish(mut self) -> (Finished<P>, Option<Gateway<'a>>) {
        let reached = self.processes.iter().map(Process::clock).max();
        self.publish(reached.unwrap_or_default());
        let waiting = self.states.iter().enumerate();
        let waiting = waiting
            .filter(|(_, state)| **state != State::Finished)
            .map(|(i, _)| self.rank(i as u32))
            .collect();
        let halted = self.states.contains(&State::Halted);
        let gateway = self.exchange.take_gateway();
        let Self { processes, fault, steps, .. } = self;
        let finished = Finished { processes, waiting, halted, fault, steps };
        (finished, gateway)
    }
}
