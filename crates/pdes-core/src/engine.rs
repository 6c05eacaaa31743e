//! The engine: workers that run processes as far as their tokens reach.

pub(crate) mod conditionals;
mod exchange;
pub(crate) mod first_fault;
mod horizon;
pub(crate) mod jitter;
mod quiescence;
mod worker;

use std::convert::Infallible;

use crate::{Fault, Process, Progress, Rank, SimDuration};
use exchange::Exchange;
use first_fault::FirstFault;
use horizon::Floors;
use quiescence::Quiescence;
use worker::Worker;

/// Runs processes on threads.
///
/// # Determinism
/// The processes' final states are the same for any number of workers, any bound on run-ahead, any batch size and any
/// jitter, provided that they obey the laws of [`Process`].
///
/// # Cost
/// A token between processes of one worker costs a push and a call. A token between workers costs its share of a
/// batch. Synchronisation happens only where a worker has nothing to do.
#[derive(Clone, Debug)]
pub struct Engine {
    workers: usize,
    run_ahead: RunAhead,
    batch: usize,
    jitter: Option<u64>,
}

/// How far processes may run ahead of the slowest process that could run.
///
/// It bounds memory (tokens waiting to be read) and keeps the working set in the cache. It never changes a result, and
/// it cannot deadlock: the process with the least clock may always run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunAhead {
    /// A window that the engine adapts to the density of steps in simulated time.
    #[default]
    Auto,
    /// This window of simulated time.
    Window(SimDuration),
}

/// The processes after a run, in the order of their ranks, and how the run ended.
#[derive(Debug)]
pub struct Run<P: Process> {
    /// The processes in their final states.
    pub processes: Vec<P>,
    /// How the run ended.
    pub ending: Ending<P::Error>,
    /// Steps taken by all processes.
    pub steps: u64,
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ending<E> {
    /// Every process finished.
    Completed,
    /// Nothing can happen any more and these processes have not finished: they wait for tokens that nobody will send.
    Stalled(Vec<Rank>),
    /// This process failed, and no other one failed earlier in (simulated time, rank).
    Failed(Rank, Fault<E>),
}

impl Engine {
    /// Makes an engine with this many workers, one thread each.
    ///
    /// # Panics
    /// Where `workers` is zero.
    pub fn new(workers: usize) -> Self {
        assert!(workers > 0, "an engine needs at least one worker");
        Self { workers, run_ahead: RunAhead::default(), batch: 256, jitter: None }
    }

    /// Sets the bound on run-ahead.
    pub fn run_ahead(self, run_ahead: RunAhead) -> Self {
        Self { run_ahead, ..self }
    }

    /// Sets how many tokens for one worker are gathered before they are sent; at least one.
    pub fn batch(self, tokens: usize) -> Self {
        Self { batch: tokens.max(1), ..self }
    }

    /// Disturbs the schedule at random (order of turns, length of turns, pauses of threads), to test that results do
    /// not depend on it.
    pub fn jitter(self, seed: u64) -> Self {
        Self { jitter: Some(seed), ..self }
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Runs processes to their end; process `i` of the list is rank `i`.
    ///
    /// # Panics
    /// Where a process panics; the panic is passed on after all workers have stopped.
    pub fn run<P: Process<Order = Infallible>>(&self, processes: Vec<P>) -> Run<P> {
        self.run_watched(processes, &Progress::new(self.workers))
    }

    /// Runs processes to their end and publishes how far they are.
    ///
    /// # Panics
    /// Where a process panics, and where `progress` was made for fewer workers.
    pub fn run_watched<P>(&self, processes: Vec<P>, progress: &Progress) -> Run<P>
    where
        P: Process<Order = Infallible>,
    {
        let total = processes.len();
        let quiescence = Quiescence::new(self.workers);
        let floors = Floors::new(self.workers);
        let exchanges = Exchange::connect(total, self.batch, &floors);
        let mut rest = processes;
        let mut workers = Vec::with_capacity(self.workers);
        for exchange in exchanges {
            let later = rest.split_off(exchange.local_count());
            workers.push(Worker::new(self, rest, exchange, &quiescence, &floors, progress));
            rest = later;
        }
        let mut finished = std::thread::scope(|scope| {
            let mut workers = workers.into_iter();
            let first = workers.next().expect("an engine has at least one worker");
            let threads: Vec<_> = workers.map(|worker| scope.spawn(move || worker.run())).collect();
            let mut finished = vec![first.run()];
            for thread in threads {
                match thread.join() {
                    Ok(part) => finished.push(part),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            finished
        });
        let mut processes = Vec::with_capacity(total);
        finished.iter_mut().for_each(|part| processes.append(&mut part.processes));
        let steps = finished.iter().map(|part| part.steps).sum();
        Run { processes, ending: ending(finished), steps }
    }
}

fn ending<P: Process>(parts: Vec<worker::Finished<P>>) -> Ending<P::Error> {
    let mut waiting = Vec::new();
    let mut fault = FirstFault::none();
    for part in parts {
        waiting.extend(part.waiting);
        fault.merge(part.fault);
    }
    fault.ending(waiting)
}
