//! A worker: one thread and the processes that it owns.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Engine;
use super::exchange::{Backlog, Exchange, Message};
use super::first_fault::FirstFault;
use super::gateway::Gateway;
use super::horizon::Floors;
use super::jitter::Jitter;
use super::quiescence::Quiescence;
use super::roster::Roster;
use crate::cluster::patience::Patience;
use crate::{Fault, Interrupt, Process, Progress, Rank, SimTime};

/// Number of steps between two publications of the progress.
const STEPS_PER_PUBLICATION: u64 = 1 << 16;
/// Number of polls of an empty inbox before the thread sleeps: a wake-up costs more than a few microseconds of polling.
const POLLS_BEFORE_SLEEP: u32 = 2000;

/// The result of an attempt to raise a worker's horizon when none of its processes is ready.
enum Horizon {
    /// Processes are ready again.
    Raised,
    /// Slower workers have to advance first.
    Held,
    /// No process is parked: the worker is idle until a message comes.
    Unneeded,
}

/// A worker: a thread, its run queue and its endpoint.
pub(crate) struct Worker<'a, P: Process> {
    /// Slot of its first process.
    first: u32,
    roster: Roster<P>,
    fault: FirstFault<P::Error>,
    exchange: Exchange<'a, P::Token>,
    next_publication: u64,
    /// Backoff while the worker has processes that may not run yet.
    patience: Patience,
    /// Interrupt of the run, if it is interruptible.
    interrupt: Option<Interrupt>,
    /// True if the worker has done a step in this run.
    has_advanced: bool,
    is_interrupted: bool,
    commons: &'a Commons,
    progress: &'a Progress,
}

/// The state that the workers of a member share.
pub(crate) struct Commons {
    pub(crate) quiescence: Quiescence,
    pub(crate) floors: Floors,
    pub(crate) backlog: Backlog,
    /// True if another member has sent tokens that cannot be decoded. Relaxed: it is read after the workers have ended.
    pub(crate) is_garbled: AtomicBool,
    /// True if there are no other members.
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

/// The result of one worker.
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
        let jitter = engine.jitter.map(|seed| Jitter::new(seed, exchange.number()));
        Self {
            first: exchange.first_place(),
            roster: Roster::new(processes, engine.run_ahead, jitter),
            fault: FirstFault::none(),
            exchange,
            next_publication: STEPS_PER_PUBLICATION,
            patience: Patience::new(),
            interrupt: engine.interrupt.clone().filter(|_| commons.is_alone),
            has_advanced: false,
            is_interrupted: false,
            commons,
            progress,
        }
    }

    /// Runs the worker's processes until the run is over; returns the gateway to other members with the result.
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
            if let Some(local) = self.roster.next_ready() {
                if self.must_hold() {
                    self.roster.hold(local, self.rank(local));
                } else {
                    self.turn(local, false);
                }
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

    /// Handles a message or backs off once while the worker may not run; returns false if the run is over.
    fn hold(&mut self) -> bool {
        if let Some(message) = self.exchange.look() {
            return self.handle(message);
        }
        self.patience.pause();
        true
    }

    /// Resumes a process and dispatches what it sends.
    fn turn(&mut self, local: u32, granted: bool) {
        self.patience = Patience::new();
        let (rank, cutoff) = (self.rank(local), self.commons.floors.cutoff());
        let steps = self.roster.steps;
        if let Err(fault) = self.roster.turn(local, rank, cutoff, granted) {
            self.record(local, fault);
        }
        self.has_advanced |= granted || self.roster.steps > steps;
        if self.roster.steps >= self.next_publication {
            self.publish(self.roster.processes[local as usize].clock());
        }
        if !self.commons.is_alone && self.roster.has_halted(local) {
            // Runs on several members end with the processes: no later run could resume this one.
            self.roster.unhalt(local, rank);
        }
        self.dispatch();
        self.exchange.feed_idle();
    }

    /// Returns true if processes must be suspended because the run is interrupted. Each run makes some progress before, and
    /// one in which a process has failed continues, to find the earliest failure.
    fn must_hold(&self) -> bool {
        let is_requested = self.interrupt.as_ref().is_some_and(Interrupt::is_requested);
        is_requested && self.has_advanced && self.is_sound()
    }

    /// Returns true if no process is known to fail.
    fn is_sound(&self) -> bool {
        self.commons.floors.cutoff() == SimTime::MAX
    }

    fn publish(&mut self, reached: SimTime) {
        self.next_publication = self.roster.steps + STEPS_PER_PUBLICATION;
        self.progress.publish(self.exchange.me(), self.roster.steps, reached);
    }

    fn record(&mut self, local: u32, fault: Fault<P::Error>) {
        self.commons.floors.lower_cutoff(fault.at);
        self.fault.record(self.rank(local), fault);
    }

    fn rank(&self, local: u32) -> Rank {
        self.exchange.rank(self.first + local)
    }

    /// Returns the local index of a process; for a process of another worker, an index that is out of range.
    #[inline]
    fn local(&self, rank: Rank) -> u32 {
        self.exchange.place(rank).wrapping_sub(self.first)
    }

    /// Delivers the tokens of the outbox, and those that their receivers send in response.
    fn dispatch(&mut self) {
        let mut next = 0;
        while let Some((to, token)) = self.roster.outbox.packet(next) {
            next += 1;
            let local = self.local(to);
            if (local as usize) < self.roster.processes.len() {
                self.deliver(local, token);
            } else {
                self.exchange.post(to, token);
            }
        }
        self.roster.outbox.clear();
    }

    fn deliver(&mut self, local: u32, token: P::Token) {
        if let Err(fault) = self.roster.deliver(local, self.rank(local), token) {
            self.record(local, fault);
        }
    }

    /// Handles a message; returns false if the run is over.
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

    /// Grants the earliest conditional event of all; returns false if the run is over, which is so if the process is at a
    /// checkpoint or suspended.
    fn grant(&mut self, rank: Rank) -> bool {
        let first = self.roster.conditionals.pop_first();
        assert_eq!(first.map(|(_, rank)| rank), Some(rank), "a commit is for the earliest conditional event");
        let local = self.local(rank);
        let is_held = self.roster.is_held(local);
        self.is_interrupted = self.must_hold() || is_held && self.is_sound();
        if self.roster.has_halted(local) || self.is_interrupted {
            self.exchange.stop_all();
            return false;
        }
        self.turn(local, !is_held);
        true
    }

    /// Raises the horizon if a process is parked and the bound on run-ahead admits it.
    fn raise_horizon(&mut self) -> Horizon {
        if self.must_hold() {
            let parked = self.roster.take_parked();
            parked.into_iter().for_each(|local| self.roster.hold(local, self.rank(local)));
        }
        let floors = &self.commons.floors;
        let least = self.roster.least_parked().filter(|&least| least <= floors.cutoff());
        let Some(least) = least else { return Horizon::Unneeded };
        floors.publish(self.exchange.me(), least);
        self.publish(least);
        if !floors.admit(least, self.roster.window.sight(least)) {
            return Horizon::Held;
        }
        self.roster.raise_horizon(least);
        Horizon::Raised
    }

    /// Waits for a message while nothing can run, and handles it; returns false if the run is over.
    fn idle(&mut self) -> bool {
        let me = self.exchange.me();
        self.commons.floors.publish_idle(me);
        let polls = if self.exchange.all_workers() == 1 { 0 } else { POLLS_BEFORE_SLEEP };
        for _ in 0..polls {
            if let Some(message) = self.exchange.try_receive() {
                self.commons.floors.lower(me, self.roster.horizon);
                return self.handle(message);
            }
        }
        let message = self.exchange.wait(&self.commons.quiescence, self.roster.conditionals.first());
        if !matches!(message, Message::Stop) {
            self.commons.quiescence.leave();
            self.commons.floors.lower(me, self.roster.horizon);
        }
        self.handle(message)
    }

    fn finish(mut self) -> (Finished<P>, Option<Gateway<'a>>) {
        let reached = self.roster.processes.iter().map(Process::clock).max();
        self.publish(reached.unwrap_or_default());
        let waiting = self.roster.unfinished().map(|local| self.rank(local)).collect();
        let halted = self.is_interrupted || self.roster.is_halted();
        let gateway = self.exchange.take_gateway();
        let Self { roster: Roster { processes, steps, .. }, fault, .. } = self;
        let finished = Finished { processes, waiting, halted, fault, steps };
        (finished, gateway)
    }
}
