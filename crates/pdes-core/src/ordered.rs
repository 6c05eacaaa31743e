//! The ordered engine: logical processes and a shared resource, in time order on one thread.

use crate::engine::conditionals::Conditionals;
use crate::engine::jitter::Jitter;
use crate::turns::Turns;
use crate::{Arbiter, Filed, Process, Progress, Rank, Run, SimTime, Wake};

/// Number of steps between two publications of the progress.
const STEPS_PER_PUBLICATION: u64 = 1 << 16;

/// Runs processes and their [`SharedResource`] on one thread.
///
/// Each process runs until it lacks a token. When none can run, the engine commits the earliest event of the resource and
/// of the conditional events; the resource comes first at equal times. No later action of a process can lie before it.
///
/// # Determinism
/// The result does not depend on the order of turns: work that is submitted between two events of the resource reaches it
/// sorted by (time, tie-break, rank, order of submission).
///
/// # Cost
/// A turn costs a few nanoseconds besides the process's own work; an event of the resource costs
/// [`SharedResource::next_event_time`] and [`SharedResource::advance`].
#[derive(Clone, Debug, Default)]
pub struct OrderedEngine {
    jitter: Option<u64>,
}

impl OrderedEngine {
    /// Perturbs the order of turns at random, to test that results do not depend on it.
    pub fn jitter(self, seed: u64) -> Self {
        Self { jitter: Some(seed) }
    }

    /// Runs processes to their end; process `i` of the list is rank `i`. Publishes as the first worker of `progress`.
    ///
    /// # Panics
    /// If a process or the resource panics, and if work is submitted for an instant before the last committed event.
    pub fn run<P: Process>(
        &self,
        processes: Vec<P>,
        arbiter: &mut impl Arbiter<P>,
        progress: &Progress,
    ) -> Run<P> {
        let driver = Driver {
            turns: Turns::new(processes, self.jitter.map(|seed| Jitter::new(seed, 0))),
            arbiter,
            progress,
            conditionals: Conditionals::default(),
            now: SimTime::ZERO,
            next_publication: STEPS_PER_PUBLICATION,
        };
        driver.run()
    }
}

/// A run in progress.
struct Driver<'a, P: Process, A> {
    /// Run queue in which the index of each process is its rank.
    turns: Turns<P>,
    arbiter: &'a mut A,
    progress: &'a Progress,
    conditionals: Conditionals,
    /// Time of the last committed event.
    now: SimTime,
    next_publication: u64,
}

impl<P: Process, A: Arbiter<P>> Driver<'_, P, A> {
    fn run(mut self) -> Run<P> {
        loop {
            while let Some(place) = self.turns.next_ready() {
                self.turn(Rank::new(place), false);
            }
            self.file_orders();
            if !self.commit() {
                return self.finish();
            }
        }
    }

    /// Resumes a process and dispatches what it sends.
    fn turn(&mut self, rank: Rank, granted: bool) {
        if let Some(at) = self.turns.turn(rank.get(), rank, SimTime::MAX, granted) {
            self.conditionals.set(rank, at);
        }
        self.dispatch();
        if self.turns.steps >= self.next_publication {
            self.next_publication = self.turns.steps + STEPS_PER_PUBLICATION;
            self.progress.publish(0, self.turns.steps, self.now);
        }
    }

    /// Delivers the tokens of the outbox, and those that their receivers send in response.
    fn dispatch(&mut self) {
        let mut next = 0;
        while let Some((to, token)) = self.turns.outbox.packet(next) {
            next += 1;
            match self.turns.deliver(to.get(), to, token) {
                Wake::No => {}
                Wake::Ready => self.conditionals.remove(to),
                Wake::Conditional(at) => self.conditionals.set(to, at),
            }
        }
        self.turns.outbox.clear();
    }

    /// Submits the collected work to the resource.
    fn file_orders(&mut self) {
        if self.turns.outbox.orders.is_empty() {
            return;
        }
        let now = self.now;
        for Filed { at, from, order, .. } in self.turns.take_orders() {
            assert!(at >= now, "rank {from} submits work for {at} s, before the present of {now} s");
            self.arbiter.file(from, at, order);
        }
    }

    /// Commits the earliest event; returns false if there is none before the earliest failure.
    fn commit(&mut self) -> bool {
        let cutoff = self.turns.fault.cutoff();
        let next = self.arbiter.next().filter(|&at| at <= cutoff);
        let conditional = self.conditionals.first().filter(|&(at, _)| at <= cutoff);
        match (next, conditional) {
            (Some(at), conditional) if conditional.is_none_or(|(conditional, _)| at <= conditional) => {
                self.now = at;
                if let Err((rank, fault)) = self.arbiter.advance(&mut self.turns.outbox) {
                    // All earlier events are committed, and the resource cannot continue.
                    self.turns.fault.record(rank, fault);
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
        let waiting = self.turns.unfinished().map(|place| Rank::new(place as u32)).collect();
        let Turns { processes, fault, steps, .. } = self.turns;
        let reached = processes.iter().map(Process::clock).max();
        self.progress.publish(0, steps, reached.unwrap_or_default());
        Run { ending: fault.ending(waiting), processes, steps }
    }
}
