//! The ordered engine: logical processes and a shared resource, in time order on one thread.

use crate::engine::conditional_events::{Candidate, ConditionalEvents};
use crate::engine::jitter::Jitter;
use crate::resource_run_queue::ResourceRunQueue;
use crate::{Ending, Interrupt, Process, Progress, Rank, Run, SharedResource, SimTime, SubmittedWork, Wake};

/// Number of steps between two publications of the progress.
const STEPS_PER_PUBLICATION: u64 = 1 << 16;

/// Number of events between two looks at the interrupt.
const EVENTS_PER_CHECK: u64 = 1 << 6;

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
    interrupt: Interrupt,
    begin: SimTime,
}

impl OrderedEngine {
    /// Perturbs the order of turns at random, to test that results do not depend on it.
    pub fn jitter(self, seed: u64) -> Self {
        Self { jitter: Some(seed), ..self }
    }

    /// Makes runs interruptible. An interrupted run ends as [`Ending::StoppedAtCheckpoint`] between two events, some dozen events
    /// later at most; another run of the same processes and the same resource continues from there.
    pub fn interrupted_by(self, interrupt: Interrupt) -> Self {
        Self { interrupt, ..self }
    }

    /// Continues a run that has stopped at a [cut](Self::run_to_cut), perhaps shifted in time.
    pub fn continuing_from(self, cut: SimTime) -> Self {
        Self { begin: cut, ..self }
    }

    /// Runs processes to their end; process `i` of the list is rank `i`. Publishes as the first worker of `progress`.
    ///
    /// # Panics
    /// If a process or the resource panics, and if work is submitted for an instant before the last committed event.
    pub fn run<P: Process>(
        &self,
        mut processes: Vec<P>,
        resource: &mut impl SharedResource<P>,
        progress: &Progress,
    ) -> Run<P> {
        let (mut engine, mut steps) = (self.clone(), 0);
        loop {
            let (run, cut) = engine.run_to_cut(processes, resource, progress);
            steps += run.steps;
            let Some(cut) = cut else { return Run { steps, ..run } };
            (engine, processes) = (engine.continuing_from(cut), run.processes);
        }
    }

    /// Runs processes to their end, or to a cut; returns the instant of the cut, if there is one.
    ///
    /// A cut is the state between two events, when no process can run and no work is left to submit. There is one after
    /// each turn in which a process has come to a [checkpoint](crate::Pause::AtCheckpoint); the process continues at once,
    /// so that it is beyond the checkpoint by then. After a failure there are no cuts. What happens after a cut depends
    /// on the processes and the resource alone; another run continues from there.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn run_to_cut<P: Process>(
        &self,
        processes: Vec<P>,
        resource: &mut impl SharedResource<P>,
        progress: &Progress,
    ) -> (Run<P>, Option<SimTime>) {
        let mut run = OrderedRun {
            run_queue: ResourceRunQueue::new(processes, self.jitter.map(|seed| Jitter::new(seed, 0))),
            resource,
            progress,
            conditionals: ConditionalEvents::default(),
            interrupt: self.interrupt.clone(),
            now: self.begin,
            next_publication: STEPS_PER_PUBLICATION,
        };
        match run.run() {
            Some(stop) => {
                let cut = (stop == Stop::AtCut).then_some(run.now);
                let ResourceRunQueue { processes, steps, .. } = run.run_queue;
                (Run { ending: Ending::StoppedAtCheckpoint, processes, steps }, cut)
            }
            None => (run.finish(), None),
        }
    }
}

/// A run in progress.
struct OrderedRun<'a, P: Process, A> {
    /// Run queue in which the index of each process is its rank.
    run_queue: ResourceRunQueue<P>,
    resource: &'a mut A,
    progress: &'a Progress,
    conditionals: ConditionalEvents,
    interrupt: Interrupt,
    /// Time of the last committed event.
    now: SimTime,
    next_publication: u64,
}

/// Reason why a run ends before its events do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Interrupted,
    AtCut,
}

impl<P: Process, A: SharedResource<P>> OrderedRun<'_, P, A> {
    /// Runs until it stops, or until there is no event before the earliest failure.
    fn run(&mut self) -> Option<Stop> {
        for events in 0_u64.. {
            while let Some(place) = self.run_queue.next_ready() {
                self.resume(Rank::new(place), false);
            }
            self.submit_work();
            // Every run makes some progress, even if it is interrupted from its beginning.
            let is_interrupted =
                events % EVENTS_PER_CHECK == EVENTS_PER_CHECK - 1 && self.interrupt.is_requested();
            let is_at_cut = self.run_queue.checkpoint.is_some();
            if (is_at_cut || is_interrupted) && self.run_queue.fault.cutoff() == SimTime::MAX {
                // Lets the resource compute the outcome of all that has been submitted.
                self.resource.next_event_time();
                return Some(if is_at_cut { Stop::AtCut } else { Stop::Interrupted });
            }
            if !self.commit() {
                return None;
            }
        }
        unreachable!("a run ends before its events are beyond counting")
    }

    /// Resumes a process and dispatches what it sends.
    fn resume(&mut self, rank: Rank, granted: bool) {
        if let Some(at) = self.run_queue.resume(rank.get(), rank, SimTime::MAX, granted) {
            self.conditionals.set(rank, at);
        }
        self.dispatch();
        if self.run_queue.steps >= self.next_publication {
            self.next_publication = self.run_queue.steps + STEPS_PER_PUBLICATION;
            self.progress.publish(0, self.run_queue.steps, self.now);
        }
    }

    /// Delivers the tokens of the outbox, and those that their receivers send in response.
    #[inline]
    fn dispatch(&mut self) {
        let mut next = 0;
        while let Some((to, token)) = self.run_queue.outbox.token_at(next) {
            next += 1;
            match self.run_queue.deliver(to.get(), to, token) {
                Wake::No => {}
                Wake::Ready => self.conditionals.remove(to),
                Wake::Conditional(at) => self.conditionals.set(to, at),
            }
        }
        self.run_queue.outbox.clear();
    }

    /// Submits the collected work to the resource.
    fn submit_work(&mut self) {
        if self.run_queue.outbox.submitted.is_empty() {
            return;
        }
        let now = self.now;
        for submitted in self.run_queue.drain_submitted() {
            let SubmittedWork { at, from, .. } = submitted;
            assert!(at >= now, "rank {from} submits work for {at} s, before the present of {now} s");
            self.resource.submit(submitted);
        }
    }

    /// Commits the earliest event; returns false if there is none before the earliest failure.
    fn commit(&mut self) -> bool {
        let cutoff = self.run_queue.fault.cutoff();
        let next = self.resource.next_event_time().filter(|&at| at <= cutoff);
        let conditional = self.conditionals.first().filter(|first| first.at <= cutoff);
        match (next, conditional) {
            (Some(at), conditional) if conditional.is_none_or(|first| at <= first.at) => {
                self.now = at;
                if let Err((rank, fault)) = self.resource.advance(&mut self.run_queue.outbox) {
                    // All earlier events are committed, and the resource cannot continue.
                    self.run_queue.fault.record(rank, fault);
                    return false;
                }
                self.dispatch();
            }
            (_, Some(Candidate { at, rank, .. })) => {
                self.now = at;
                self.conditionals.pop_first();
                self.resume(rank, true);
            }
            (_, None) => return false,
        }
        true
    }

    /// Returns the result of a run that has not stopped.
    fn finish(self) -> Run<P> {
        let waiting = self.run_queue.unfinished().map(|place| Rank::new(place as u32)).collect();
        let ResourceRunQueue { processes, fault, steps, .. } = self.run_queue;
        let reached = processes.iter().map(Process::clock).max();
        self.progress.publish(0, steps, reached.unwrap_or_default());
        Run { ending: fault.ending(waiting), processes, steps }
    }
}
