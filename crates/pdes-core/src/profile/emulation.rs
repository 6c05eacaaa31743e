//! Workers on one thread, with a clock each that stands for the wall clock.

mod floors;
mod worker;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;

use crate::engine::{BATCH, Partition};
use crate::{Process, SimDuration, SimTime};
use floors::LeastClocks;
use worker::{EmulatedWorker, Letter, Phase};

/// What workers take for what they do, on the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A step of a process.
    pub step: SimDuration,
    /// A token to another worker, of which its sender takes one half and its receiver the other.
    pub token: SimDuration,
    /// A message of one token or more, likewise.
    pub message: SimDuration,
    /// From the end of sending a message to the moment when its receiver can have it.
    pub latency: SimDuration,
    /// To find that no worker has anything to do, and to grant a conditional event.
    pub quiescence: SimDuration,
}

/// A run on several workers, as it would take its time on the wall clock.
///
/// The processes really run, on one thread, and each worker takes turns, gathers tokens, is held by the bound on run-ahead
/// and waits as those of an [`Engine`](crate::Engine) do; only what that takes is given, by [`Costs`]. Not in it: caches,
/// memory bandwidth, threads that sleep and wake up, and other programs.
///
/// ```
/// # use std::convert::Infallible;
/// # use pdes_core::{Fault, Outbox, Pause, Process, SimTime, Turn, Wake};
/// use pdes_core::{Costs, Emulation, SimDuration};
///
/// # struct Counter { left: u32 }
/// # impl Process for Counter {
/// #     type Token = SimTime;
/// #     type Order = Infallible;
/// #     type Error = Infallible;
/// #     fn deliver(&mut self, _: SimTime, _: &mut Outbox<SimTime>) -> Result<Wake, Fault<Infallible>> { Ok(Wake::No) }
/// #     fn resume(&mut self, turn: &mut Turn, _: &mut Outbox<SimTime>) -> Result<Pause, Fault<Infallible>> {
/// #         let steps = turn.steps.min(self.left);
/// #         turn.steps -= steps;
/// #         self.left -= steps;
/// #         Ok(if self.left == 0 { Pause::Finished } else { Pause::TurnOver })
/// #     }
/// #     fn clock(&self) -> SimTime { SimTime::ZERO }
/// # }
/// # let counter = |steps| Counter { left: steps };
/// // Two processes of 100 steps and two of 50, which never talk, on two workers: one of them has 200 steps to do.
/// let processes = [100, 100, 50, 50].map(counter).into();
/// let [nothing, step] = [0, 20_000].map(SimDuration::from_picos);
/// let costs = Costs { step, token: nothing, message: nothing, latency: nothing, quiescence: nothing };
/// assert_eq!(Emulation::of(processes, 2, &costs).elapsed, step * 200);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emulation {
    /// The time until the last worker is done.
    pub elapsed: SimDuration,
    /// Steps of all processes.
    pub steps: u64,
    /// Tokens from one worker to another.
    pub cut_tokens: u64,
    /// Messages that carry them.
    pub messages: u64,
    /// Messages on the chain that ends last, each of which its receiver waited for: with a latency that is longer by `d`,
    /// `elapsed` is longer by about `hops * d`.
    pub hops: u64,
}

impl Emulation {
    /// Runs processes on workers that own them in contiguous blocks; process `i` is rank `i`. A process that fails stops.
    ///
    /// Takes somewhat longer than a run on one thread, in the memory of one.
    ///
    /// # Panics
    /// Where `workers` is zero.
    pub fn of<P: Process<Order = Infallible>>(processes: Vec<P>, workers: u32, costs: &Costs) -> Self {
        Emulator::new(processes, workers, costs).run()
    }
}

/// When a worker acts next, and which action of it that is: an entry does not count if the worker has acted meanwhile.
type Entry = Reverse<(SimTime, u32, u64)>;

struct Emulator<'a, P: Process> {
    costs: &'a Costs,
    partition: Partition,
    workers: Vec<EmulatedWorker<P>>,
    agenda: BinaryHeap<Entry>,
    clocks: LeastClocks,
    cut_tokens: u64,
    messages: u64,
}

impl<'a, P: Process<Order = Infallible>> Emulator<'a, P> {
    fn new(processes: Vec<P>, workers: u32, costs: &'a Costs) -> Self {
        let partition = Partition::blocks(processes.len() as u32, workers as usize);
        let mut processes = processes.into_iter();
        let worker = |number| {
            let places = partition.places(number);
            EmulatedWorker::new(places.start, processes.by_ref().take(places.len()).collect())
        };
        Self {
            costs,
            workers: (0..workers as usize).map(worker).collect(),
            partition,
            agenda: (0..workers).map(|worker| Reverse((SimTime::ZERO, worker, 0))).collect(),
            clocks: LeastClocks::new(workers),
            cut_tokens: 0,
            messages: 0,
        }
    }

    fn run(mut self) -> Emulation {
        loop {
            while let Some(Reverse((at, number, action))) = self.agenda.pop() {
                let worker = self.worker(number);
                if worker.action == action {
                    worker.action += 1;
                    worker.now = worker.now.max(at);
                    self.act(number);
                }
            }
            if !self.grant() {
                break;
            }
        }
        let (end, hops) = self.last();
        let steps = self.workers.iter().map(|worker| worker.roster.steps).sum();
        let Self { cut_tokens, messages, .. } = self;
        Emulation { elapsed: end - SimTime::ZERO, steps, cut_tokens, messages, hops }
    }

    fn worker(&mut self, number: u32) -> &mut EmulatedWorker<P> {
        &mut self.workers[number as usize]
    }

    /// Puts the next action of a worker on the agenda, not before an instant.
    fn schedule(&mut self, number: u32, at: SimTime) {
        let worker = &self.workers[number as usize];
        self.agenda.push(Reverse((worker.now.max(at), number, worker.action)));
    }

    /// Returns when the last worker is done, and how many messages led there.
    fn last(&self) -> (SimTime, u64) {
        self.workers.iter().map(|worker| (worker.now, worker.hops)).max().unwrap_or_default()
    }

    /// Lets a worker do what it would do next.
    fn act(&mut self, number: u32) {
        if self.worker(number).phase == Phase::AfterTurn {
            let mut hungry = self.worker(number).filed(1);
            hungry.retain(|&other| self.clocks.is_idle(other));
            hungry.into_iter().for_each(|other| self.send(number, other));
        }
        self.clocks.leave_held(number);
        self.receive(number);
        if let Some(local) = self.worker(number).roster.next_ready() {
            return self.turn(number, local, false);
        }
        self.worker(number).filed(1).into_iter().for_each(|other| self.send(number, other));
        self.raise_horizon(number);
        self.release(number);
    }

    /// Moves the horizon of a worker on, or lets it wait.
    fn raise_horizon(&mut self, number: u32) {
        let worker = &mut self.workers[number as usize];
        let Some(least) = worker.roster.least_parked() else {
            self.clocks.set_idle(number);
            return self.wait(number);
        };
        let needed = worker.roster.window.sight(least);
        self.clocks.set(number, least);
        if self.clocks.least() < needed {
            self.clocks.hold(number, needed);
            return self.wait(number);
        }
        worker.roster.raise_horizon(least);
        worker.phase = Phase::Busy;
        self.schedule(number, SimTime::ZERO);
    }

    fn wait(&mut self, number: u32) {
        self.worker(number).phase = Phase::Waiting;
        self.await_message(number);
    }

    /// Puts a worker that waits on the agenda for its next message.
    fn await_message(&mut self, number: u32) {
        let worker = &self.workers[number as usize];
        if let (Phase::Waiting, Some(at)) = (worker.phase, worker.next_arrival()) {
            self.schedule(number, at);
        }
    }

    /// Lets those go on that this worker held up.
    fn release(&mut self, number: u32) {
        let &mut EmulatedWorker { now, hops, .. } = self.worker(number);
        while let Some(held) = self.clocks.take_admitted() {
            let worker = self.worker(held);
            if worker.now < now {
                worker.hops = hops + 1;
            }
            self.schedule(held, now);
        }
    }

    /// Takes in the messages that have arrived.
    fn receive(&mut self, number: u32) {
        while let Some(letter) = self.worker(number).next_letter() {
            let worker = &mut self.workers[number as usize];
            if worker.phase == Phase::Waiting {
                worker.phase = Phase::Busy;
                worker.hops = letter.hops + 1;
                self.clocks.lower(number, worker.roster.horizon);
            }
            worker.now += self.costs.of_one_end(letter.packets.len());
            letter.packets.into_iter().for_each(|(to, token)| worker.deliver(to, token));
            self.dispatch(number);
        }
    }

    /// Gives a process a turn.
    fn turn(&mut self, number: u32, local: u32, granted: bool) {
        let worker = &mut self.workers[number as usize];
        worker.phase = Phase::AfterTurn;
        let steps = worker.turn(local, granted);
        worker.now += self.costs.step * steps;
        self.dispatch(number);
        self.schedule(number, SimTime::ZERO);
    }

    /// Brings the tokens of a worker on their way.
    fn dispatch(&mut self, number: u32) {
        let partition = &self.partition;
        let owner = |to| partition.worker(to) as u32;
        self.cut_tokens += self.workers[number as usize].dispatch(owner);
        self.worker(number).filed(BATCH).into_iter().for_each(|other| self.send(number, other));
    }

    /// Sends what a worker has filed for another.
    fn send(&mut self, from: u32, to: u32) {
        let costs = self.costs;
        let sender = self.worker(from);
        let packets = sender.take_filed(to);
        sender.now += costs.of_one_end(packets.len());
        let (arrives, hops) = (sender.now + costs.latency, sender.hops);
        let number = self.messages;
        self.messages += 1;
        self.worker(to).take_in(Letter { arrives, hops, number, packets });
        self.clocks.lower(to, self.clocks.of(from));
        self.await_message(to);
    }

    /// Grants the earliest conditional event; returns whether there is one.
    fn grant(&mut self) -> bool {
        let first = |worker: &EmulatedWorker<P>| worker.roster.conditionals.first();
        let events = (0..).zip(&self.workers).filter_map(|(number, worker)| Some((first(worker)?, number)));
        let Some(((_, rank), number)) = events.min() else { return false };
        let (now, hops) = self.last();
        let at = now + self.costs.quiescence;
        let worker = self.worker(number);
        worker.roster.conditionals.pop_first();
        worker.action += 1;
        (worker.now, worker.hops) = (at, hops);
        let (local, horizon) = (worker.local(rank), worker.roster.horizon);
        self.clocks.lower(number, horizon);
        self.turn(number, local, true);
        true
    }
}

impl Costs {
    /// What one of both ends of a message takes.
    fn of_one_end(&self, tokens: usize) -> SimDuration {
        let both = self.message + self.token * tokens as u64;
        SimDuration::from_picos(both.as_picos() / 2)
    }
}
