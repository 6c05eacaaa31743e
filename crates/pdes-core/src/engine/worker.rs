//! A worker: one thread and the processes that it owns.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Engine;
use super::endpoint::{Backlog, Message, WorkerEndpoint};
use super::first_fault::FirstFault;
use super::gateway::ClusterGateway;
use super::jitter::Jitter;
use super::quiescence::Quiescence;
use super::run_ahead::LowerBounds;
use super::run_queue::RunQueue;
use crate::cluster::backoff::Backoff;
use crate::{Fault, Interrupt, LpId, Process, Progress, SimTime};

/// Number of steps between two publications of the progress.
const STEPS_PER_PUBLICATION: u64 = 1 << 16;
/// Number of polls of an empty inbox before the thread sleeps: a wake-up costs more than a few microseconds of polling.
const POLLS_BEFORE_SLEEP: u32 = 2000;

/// The result of an attempt to raise a worker's horizon when none of its processes is ready.
enum HorizonUpdate {
    /// Processes are ready again.
    Raised,
    /// Slower workers have to advance first.
    MustWait,
    /// No process is parked: the worker is idle until a message comes.
    NothingParked,
}

/// A worker: a thread, its run queue and its endpoint.
pub(crate) struct Worker<'a, P: Process> {
    /// Slot of its first process.
    first_slot: u32,
    run_queue: RunQueue<P>,
    fault: FirstFault<P::Error>,
    endpoint: WorkerEndpoint<'a, P::Token>,
    next_publication: u64,
    /// Backoff while the worker has processes that may not run yet.
    backoff: Backoff,
    /// Interrupt of the run, if it is interruptible.
    interrupt: Option<Interrupt>,
    /// True if the worker has done a step in this run.
    has_advanced: bool,
    is_interrupted: bool,
    shared: &'a SharedState,
    progress: &'a Progress,
}

/// The state that the workers of a member share.
pub(crate) struct SharedState {
    pub(crate) quiescence: Quiescence,
    pub(crate) lower_bounds: LowerBounds,
    pub(crate) backlog: Backlog,
    /// True if another member has sent tokens that cannot be decoded. Relaxed: it is read after the workers have ended.
    pub(crate) is_undecodable: AtomicBool,
}

impl SharedState {
    pub(crate) fn new(workers: usize, member: usize, members: usize) -> Self {
        Self {
            quiescence: Quiescence::new(workers),
            lower_bounds: LowerBounds::new(workers, member, members),
            backlog: Backlog::default(),
            is_undecodable: AtomicBool::new(false),
        }
    }
}

/// The result of one worker.
pub(crate) struct WorkerResult<P: Process> {
    pub(crate) processes: Vec<P>,
    pub(crate) waiting: Vec<LpId>,
    pub(crate) is_stopped: bool,
    pub(crate) fault: FirstFault<P::Error>,
    pub(crate) steps: u64,
}

impl<'a, P: Process<WorkRequest = Infallible>> Worker<'a, P> {
    pub(crate) fn new(
        engine: &Engine,
        processes: Vec<P>,
        exchange: WorkerEndpoint<'a, P::Token>,
        shared: &'a SharedState,
        progress: &'a Progress,
    ) -> Self {
        let jitter = engine.jitter.map(|seed| Jitter::new(seed, exchange.global_index()));
        Self {
            first_slot: exchange.first_slot(),
            run_queue: RunQueue::new(processes, engine.run_ahead, jitter),
            fault: FirstFault::none(),
            endpoint: exchange,
            next_publication: STEPS_PER_PUBLICATION,
            backoff: Backoff::new(),
            interrupt: engine.interrupt.clone(),
            has_advanced: false,
            is_interrupted: false,
            shared,
            progress,
        }
    }

    /// Runs the worker's processes until the run is over; returns the gateway to other members with the result.
    pub(crate) fn run(mut self) -> (WorkerResult<P>, Option<ClusterGateway<'a>>) {
        loop {
            while let Some(message) = self.endpoint.try_receive() {
                if !self.handle(message) {
                    return self.finish();
                }
            }
            if self.endpoint.is_congested() {
                if !self.wait_for_others() {
                    return self.finish();
                }
                continue;
            }
            if let Some(local) = self.run_queue.next_ready() {
                if self.must_suspend() {
                    self.run_queue.suspend(local, self.lp(local));
                } else {
                    self.resume(local, false);
                }
                continue;
            }
            self.endpoint.flush();
            let is_running = match self.raise_horizon() {
                HorizonUpdate::Raised => true,
                HorizonUpdate::MustWait => self.wait_for_others(),
                HorizonUpdate::NothingParked => self.idle(),
            };
            if !is_running {
                return self.finish();
            }
        }
    }

    /// Handles a message or backs off once while the worker may not run; returns false if the run is over.
    fn wait_for_others(&mut self) -> bool {
        if let Some(message) = self.endpoint.poll() {
            return self.handle(message);
        }
        self.backoff.pause();
        true
    }

    /// Resumes a process and dispatches what it sends.
    fn resume(&mut self, local: u32, granted: bool) {
        self.backoff = Backoff::new();
        let (lp, cutoff) = (self.lp(local), self.shared.lower_bounds.cutoff());
        let steps = self.run_queue.steps;
        if let Err(fault) = self.run_queue.resume(local, lp, cutoff, granted) {
            self.record_fault(local, fault);
        }
        self.has_advanced |= granted || self.run_queue.steps > steps;
        if self.run_queue.steps >= self.next_publication {
            self.publish(self.run_queue.processes[local as usize].clock());
        }
        self.dispatch();
        self.endpoint.flush_to_idle();
    }

    /// Returns true if processes must be suspended because the run is interrupted. Each run makes some progress before, and
    /// one in which a process has failed continues, to find the earliest failure.
    fn must_suspend(&self) -> bool {
        let is_requested = self.interrupt.as_ref().is_some_and(Interrupt::is_requested);
        is_requested && self.has_advanced && self.has_no_failure()
    }

    /// Returns true if no process is known to fail.
    fn has_no_failure(&self) -> bool {
        self.shared.lower_bounds.cutoff() == SimTime::MAX
    }

    fn publish(&mut self, reached: SimTime) {
        self.next_publication = self.run_queue.steps + STEPS_PER_PUBLICATION;
        self.progress.publish(self.endpoint.me(), self.run_queue.steps, reached);
    }

    fn record_fault(&mut self, local: u32, fault: Fault<P::Error>) {
        self.shared.lower_bounds.lower_cutoff(fault.at);
        self.fault.record(self.lp(local), fault);
    }

    fn lp(&self, local: u32) -> LpId {
        self.endpoint.lp(self.first_slot + local)
    }

    /// Returns the local index of a process; for a process of another worker, an index that is out of range.
    #[inline]
    fn local(&self, lp: LpId) -> u32 {
        self.endpoint.slot(lp).wrapping_sub(self.first_slot)
    }

    /// Delivers the tokens of the outbox, and those that their receivers send in response.
    fn dispatch(&mut self) {
        let mut next = 0;
        while let Some((to, token)) = self.run_queue.outbox.token_at(next) {
            next += 1;
            let local = self.local(to);
            if (local as usize) < self.run_queue.processes.len() {
                self.deliver(local, token);
            } else {
                self.endpoint.enqueue(to, token);
            }
        }
        self.run_queue.outbox.clear();
    }

    fn deliver(&mut self, local: u32, token: P::Token) {
        if let Err(fault) = self.run_queue.deliver(local, self.lp(local), token) {
            self.record_fault(local, fault);
        }
    }

    /// Handles a message; returns false if the run is over.
    fn handle(&mut self, message: Message<P::Token>) -> bool {
        match message {
            Message::Batch(packets) => self.deliver_all(packets),
            Message::Frame(frame) => {
                let Some(packets) = self.endpoint.read(&frame) else {
                    self.shared.is_undecodable.store(true, Ordering::Relaxed);
                    self.endpoint.stop_all();
                    return false;
                };
                self.deliver_all(packets);
            }
            Message::Commit(lp) => return self.grant(lp),
            Message::Forward { .. } | Message::Quiescent => {
                unreachable!("the exchange keeps what is for itself")
            }
            Message::Stop => return false,
            Message::StopEverywhere => {
                self.endpoint.stop_everywhere();
                return false;
            }
        }
        true
    }

    fn deliver_all(&mut self, packets: Vec<(LpId, P::Token)>) {
        for (to, token) in packets {
            self.deliver(self.local(to), token);
        }
        self.dispatch();
    }

    /// Grants the earliest conditional event of all; returns false if the run is over, which is so if the process is at a
    /// checkpoint or suspended.
    fn grant(&mut self, lp: LpId) -> bool {
        let first = self.run_queue.conditionals.pop_first();
        assert_eq!(first.map(|first| first.lp), Some(lp), "a commit is for the earliest conditional event");
        let local = self.local(lp);
        let is_held = self.run_queue.is_suspended(local);
        self.is_interrupted = self.must_suspend() || is_held && self.has_no_failure();
        if self.run_queue.is_at_checkpoint(local) || self.is_interrupted {
            self.endpoint.stop_everywhere();
            return false;
        }
        self.resume(local, !is_held);
        true
    }

    /// Raises the horizon if a process is parked and the bound on run-ahead admits it.
    fn raise_horizon(&mut self) -> HorizonUpdate {
        if self.must_suspend() {
            let parked = self.run_queue.take_parked();
            parked.into_iter().for_each(|local| self.run_queue.suspend(local, self.lp(local)));
        }
        let floors = &self.shared.lower_bounds;
        let least = self.run_queue.least_parked_clock().filter(|&least| least <= floors.cutoff());
        let Some(least) = least else { return HorizonUpdate::NothingParked };
        floors.publish(self.endpoint.me(), least);
        self.publish(least);
        if !floors.may_run(least, self.run_queue.window.required_bound(least)) {
            return HorizonUpdate::MustWait;
        }
        self.run_queue.raise_horizon(least);
        HorizonUpdate::Raised
    }

    /// Waits for a message while nothing can run, and handles it; returns false if the run is over.
    fn idle(&mut self) -> bool {
        let me = self.endpoint.me();
        self.shared.lower_bounds.publish_idle(me);
        let polls = if self.endpoint.all_workers() == 1 { 0 } else { POLLS_BEFORE_SLEEP };
        for _ in 0..polls {
            if let Some(message) = self.endpoint.try_receive() {
                self.shared.lower_bounds.lower(me, self.run_queue.horizon);
                return self.handle(message);
            }
        }
        let message = self.endpoint.wait(&self.shared.quiescence, self.run_queue.conditionals.first());
        if !matches!(message, Message::Stop) {
            self.shared.quiescence.unregister();
            self.shared.lower_bounds.lower(me, self.run_queue.horizon);
        }
        self.handle(message)
    }

    fn finish(mut self) -> (WorkerResult<P>, Option<ClusterGateway<'a>>) {
        let reached = self.run_queue.processes.iter().map(Process::clock).max();
        self.publish(reached.unwrap_or_default());
        let waiting = self.run_queue.unfinished().map(|local| self.lp(local)).collect();
        let is_stopped = self.is_interrupted || self.run_queue.any_at_checkpoint();
        let gateway = self.endpoint.take_gateway();
        let Self { run_queue: RunQueue { processes, steps, .. }, fault, .. } = self;
        let finished = WorkerResult { processes, waiting, is_stopped, fault, steps };
        (finished, gateway)
    }
}
