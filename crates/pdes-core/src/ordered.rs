//! An engine for processes that share a resource in the order of time.

use crate::engine::conditionals::Conditionals;
use crate::engine::jitter::Jitter;
use crate::turns::Turns;
use crate::{Arbiter, Filed, Process, Progress, Rank, Run, SimTime, Wake};

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
    /// The place of each process is its rank.
    turns: Turns<P>,
    arbiter: &'a mut A,
    progress: &'a Progress,
    conditionals: Conditionals,
    /// The instant of the last event that was committed.
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

    /// Gives a process a turn.
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

    /// Brings the tokens of the outbox to their receivers, and those that the receivers send in answer.
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

    /// Hands the orders to the arbiter.
    fn file_orders(&mut self) {
        if self.turns.outbox.orders.is_empty() {
            return;
        }
        let now = self.now;
        for Filed { at, from, order, .. } in self.turns.take_orders() {
            assert!(at >= now, "rank {from} files an order at {at} s, before the present of {now} s");
            self.arbiter.file(from, at, order);
        }
    }

    /// Commits the earliest event; returns whether there was one that matters.
    fn commit(&mut self) -> bool {
        let cutoff = self.turns.fault.cutoff();
        let next = self.arbiter.next().filter(|&at| at <= cutoff);
        let conditional = self.conditionals.first().filter(|&(at, _)| at <= cutoff);
        match (next, conditional) {
            (Some(at), conditional) if conditional.is_none_or(|(conditional, _)| at <= conditional) => {
                self.now = at;
                if let Err((rank, fault)) = self.arbiter.advance(&mut self.turns.outbox) {
                    // All that lies before has happened, and the arbiter cannot go on.
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
