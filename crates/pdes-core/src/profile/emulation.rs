//! Emulation of a parallel run on one thread: each worker has a clock that stands for the wall clock.

mod worker;
mod worker_clocks;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;

use crate::engine::conditional_events::Candidate;
use crate::engine::{BATCH, Partition};
use crate::{Process, SimDuration, SimTime};
use worker::{EmulatedWorker, InFlightMessage, Phase};
use worker_clocks::WorkerClocks;

/// Wall-clock costs of the operations of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Cost of a step of a process.
    pub step: SimDuration,
    /// Cost of a token to another worker; one half falls on the sender, the other on the receiver.
    pub token: SimDuration,
    /// Cost of a message of one or more tokens, divided likewise.
    pub message: SimDuration,
    /// Time from the end of sending a message until it is available to its receiver.
    pub latency: SimDuration,
    /// Cost of detecting quiescence and granting a conditional event.
    pub quiescence: SimDuration,
}

/// The predicted wall-clock time of a run on several workers.
///
/// The processes really run, on one thread, and each worker takes turns, batches tokens, obeys the bound on run-ahead and
/// waits as those of an [`Engine`](crate::Engine) do; only the times are given, by [`Costs`]. It does not model caches, memory
/// bandwidth, threads that sleep and wake up, and other programs.
///
/// ```
/// # use std::convert::Infallible;
/// # use pdes_core::{Fault, Outbox, Pause, Process, SimTime, Turn, Wake};
/// use pdes_core::{Costs, Emulation, SimDuration};
///
/// # struct Counter { left: u32 }
/// # impl Process for Counter {
/// #     type Token = SimTime;
/// #     type WorkRequest = Infallible;
/// #     type Error = Infallible;
/// #     fn deliver(&mut self, _: SimTime, _: &mut Outbox<SimTime>) -> Result<Wake, Fault<Infallible>> { Ok(Wake::No) }
/// #     fn resume(&mut self, turn: &mut Turn, _: &mut Outbox<SimTime>) -> Result<Pause, Fault<Infallible>> {
/// #         let steps = turn.steps.min(self.left);
/// #         turn.steps -= steps;
/// #         self.left -= steps;
/// #         Ok(if self.left == 0 { Pause::Finished } else { Pause::OutOfSteps })
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
    /// Time until the last worker is done.
    pub elapsed: SimDuration,
    /// Number of steps of all processes.
    pub steps: u64,
    /// Number of tokens from one worker to another.
    pub cut_tokens: u64,
    /// Number of messages that carry them.
    pub messages: u64,
    /// Number of messages on the critical path, for each of which its receiver waited: if the latency grows by `d`,
    /// `elapsed` grows by about `hops * d`.
    pub hops: u64,
}

impl Emulation {
    /// Runs processes on workers that own them in contiguous blocks, in the order of their numbers. A process that fails stops.
    ///
    /// It takes somewhat longer than a run on one thread, and as much memory.
    ///
    /// # Panics
    /// If `workers` is zero.
    pub fn of<P: Process<WorkRequest = Infallible>>(processes: Vec<P>, workers: u32, costs: &Costs) -> Self {
        Emulator::new(processes, workers, costs).run()
    }
}

/// An entry of the event queue: time, worker and action number. It is stale if the worker has acted meanwhile.
type Entry = Reverse<(SimTime, u32, u64)>;

struct Emulator<'a, P: Process> {
    costs: &'a Costs,
    partition: Partition,
    workers: Vec<EmulatedWorker<P>>,
    event_queue: BinaryHeap<Entry>,
    clocks: WorkerClocks,
    cut_tokens: u64,
    messages: u64,
}

impl<'a, P: Process<WorkRequest = Infallible>> Emulator<'a, P> {
    fn new(processes: Vec<P>, workers: u32, costs: &'a Costs) -> Self {
        let partition = Partition::blocks(processes.len() as u32, workers as usize);
        let mut processes = processes.into_iter();
        let worker = |number| {
            let places = partition.slots(number);
            EmulatedWorker::new(places.start, processes.by_ref().take(places.len()).collect())
        };
        Self {
            costs,
            workers: (0..workers as usize).map(worker).collect(),
            partition,
            event_queue: (0..workers).map(|worker| Reverse((SimTime::ZERO, worker, 0))).collect(),
            clocks: WorkerClocks::new(workers),
            cut_tokens: 0,
            messages: 0,
        }
    }

    fn run(mut self) -> Emulation {
        loop {
            while let Some(Reverse((at, number, action))) = self.event_queue.pop() {
                let worker = self.worker(number);
                if worker.action == action {
                    worker.action += 1;
                    worker.now = worker.now.max(at);
                    self.perform(number);
                }
            }
            if !self.grant() {
                break;
            }
        }
        let (end, hops) = self.last_clock();
        let steps = self.workers.iter().map(|worker| worker.run_queue.steps).sum();
        let Self { cut_tokens, messages, .. } = self;
        Emulation { elapsed: end - SimTime::ZERO, steps, cut_tokens, messages, hops }
    }

    fn worker(&mut self, number: u32) -> &mut EmulatedWorker<P> {
        &mut self.workers[number as usize]
    }

    /// Schedules the next action of a worker, at its clock or at `at`, whichever is later.
    fn schedule(&mut self, number: u32, at: SimTime) {
        let worker = &self.workers[number as usize];
        self.event_queue.push(Reverse((worker.now.max(at), number, worker.action)));
    }

    /// Returns the clock of the last worker, and the number of messages on the chain that led there.
    fn last_clock(&self) -> (SimTime, u64) {
        self.workers.iter().map(|worker| (worker.now, worker.hops)).max().unwrap_or_default()
    }

    /// Performs the next action of a worker.
    fn perform(&mut self, number: u32) {
        if self.worker(number).phase == Phase::AfterTurn {
            let mut idle = self.worker(number).workers_with_queued(1);
            idle.retain(|&other| self.clocks.is_idle(other));
            idle.into_iter().for_each(|other| self.send(number, other));
        }
        self.clocks.unblock(number);
        self.receive(number);
        if let Some(local) = self.worker(number).run_queue.next_ready() {
            return self.resume(number, local, false);
        }
        self.worker(number).workers_with_queued(1).into_iter().for_each(|other| self.send(number, other));
        self.raise_horizon(number);
        self.schedule_admitted(number);
    }

    /// Raises the horizon of a worker, or makes it wait.
    fn raise_horizon(&mut self, number: u32) {
        let worker = &mut self.workers[number as usize];
        let Some(least) = worker.run_queue.least_parked_clock() else {
            self.clocks.set_idle(number);
            return self.wait(number);
        };
        let needed = worker.run_queue.window.required_bound(least);
        self.clocks.set(number, least);
        if self.clocks.least() < needed {
            self.clocks.block(number, needed);
            return self.wait(number);
        }
        worker.run_queue.raise_horizon(least);
        worker.phase = Phase::Busy;
        self.schedule(number, SimTime::ZERO);
    }

    fn wait(&mut self, number: u32) {
        self.worker(number).phase = Phase::Waiting;
        self.await_message(number);
    }

    /// Schedules a waiting worker for its next message.
    fn await_message(&mut self, number: u32) {
        let worker = &self.workers[number as usize];
        if let (Phase::Waiting, Some(at)) = (worker.phase, worker.next_arrival()) {
            self.schedule(number, at);
        }
    }

    /// Schedules the workers that the bound on run-ahead blocks no longer after this worker's action.
    fn schedule_admitted(&mut self, number: u32) {
        let &mut EmulatedWorker { now, hops, .. } = self.worker(number);
        while let Some(held) = self.clocks.take_admitted() {
            let worker = self.worker(held);
            if worker.now < now {
                worker.hops = hops + 1;
            }
            self.schedule(held, now);
        }
    }

    /// Receives the messages that have arrived.
    fn receive(&mut self, number: u32) {
        while let Some(message) = self.worker(number).next_message() {
            let worker = &mut self.workers[number as usize];
            if worker.phase == Phase::Waiting {
                worker.phase = Phase::Busy;
                worker.hops = message.hops + 1;
                self.clocks.lower(number, worker.run_queue.horizon);
            }
            worker.now += self.costs.at_one_end(message.packets.len());
            message.packets.into_iter().for_each(|(to, token)| worker.deliver(to, token));
            self.dispatch(number);
        }
    }

    /// Resumes a process, and advances the worker's clock by the cost of its steps.
    fn resume(&mut self, number: u32, local: u32, granted: bool) {
        let worker = &mut self.workers[number as usize];
        worker.phase = Phase::AfterTurn;
        let steps = worker.resume(local, granted);
        worker.now += self.costs.step * steps;
        self.dispatch(number);
        self.schedule(number, SimTime::ZERO);
    }

    /// Dispatches the tokens of a worker, and sends full batches.
    fn dispatch(&mut self, number: u32) {
        let partition = &self.partition;
        let owner = |to| partition.worker(to) as u32;
        self.cut_tokens += self.workers[number as usize].dispatch(owner);
        self.worker(number).workers_with_queued(BATCH).into_iter().for_each(|other| self.send(number, other));
    }

    /// Sends the tokens that a worker has queued for another.
    fn send(&mut self, from: u32, to: u32) {
        let costs = self.costs;
        let sender = self.worker(from);
        let packets = sender.take_queued(to);
        sender.now += costs.at_one_end(packets.len());
        let (arrives, hops) = (sender.now + costs.latency, sender.hops);
        let number = self.messages;
        self.messages += 1;
        self.worker(to).push_message(InFlightMessage { arrives, hops, number, packets });
        self.clocks.lower(to, self.clocks.of(from));
        self.await_message(to);
    }

    /// Grants the earliest conditional event; returns false if there is none.
    fn grant(&mut self) -> bool {
        let first = |worker: &EmulatedWorker<P>| worker.run_queue.conditionals.first();
        let events = (0..).zip(&self.workers).filter_map(|(number, worker)| Some((first(worker)?, number)));
        let Some((Candidate { lp, .. }, number)) = events.min() else { return false };
        let (now, hops) = self.last_clock();
        let at = now + self.costs.quiescence;
        let worker = self.worker(number);
        worker.run_queue.conditionals.pop_first();
        worker.action += 1;
        (worker.now, worker.hops) = (at, hops);
        let (local, horizon) = (worker.local(lp), worker.run_queue.horizon);
        self.clocks.lower(number, horizon);
        self.resume(number, local, true);
        true
    }
}

impl Costs {
    /// Returns the cost of a message at one of its two ends.
    fn at_one_end(&self, tokens: usize) -> SimDuration {
        let both = self.message + self.token * tokens as u64;
        SimDuration::from_picos(both.as_picos() / 2)
    }
}
