//! The ordered engine: logical processes and a shared resource, in time order on one thread.

use crate::engine::conditional_events::{Candidate, ConditionalEvents};
use crate::engine::jitter::Jitter;
use crate::resource_run_queue::ResourceRunQueue;
use crate::{
    Ending, Interrupt, Process, Progress, Rank, Run, SharedResource, SimDuration, SimTime, StateWriter,
    SubmittedWork, Wake,
};

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

    /// Runs processes to their end; process `i` of the list is rank `i`. Publishes as the first worker of `progress`.
    ///
    /// # Panics
    /// If a process or the resource panics, and if work is submitted for an instant before the last committed event.
    pub fn run<P: Process>(
        &self,
        processes: Vec<P>,
        resource: &mut impl SharedResource<P>,
        progress: &Progress,
    ) -> Run<P> {
        let mut run = self.start(processes, resource, progress);
        while run.run_to_cut() {
            if self.interrupt.is_requested() {
                return run.stop();
            }
        }
        run.finish()
    }

    /// Starts a run that pauses at [cuts](OrderedRun::run_to_cut).
    pub fn start<'a, P: Process, A: SharedResource<P>>(
        &self,
        processes: Vec<P>,
        resource: &'a mut A,
        progress: &'a Progress,
    ) -> OrderedRun<'a, P, A> {
        OrderedRun {
            run_queue: ResourceRunQueue::new(processes, self.jitter.map(|seed| Jitter::new(seed, 0))),
            resource,
            progress,
            conditionals: ConditionalEvents::default(),
            interrupt: self.interrupt.clone(),
            now: SimTime::ZERO,
            next_publication: STEPS_PER_PUBLICATION,
        }
    }
}

/// A run in progress.
pub struct OrderedRun<'a, P: Process, A> {
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

impl<P: Process, A: SharedResource<P>> OrderedRun<'_, P, A> {
    /// Runs to the next cut; returns false if there is none before the end.
    ///
    /// A cut is the state between two events, when no process can run and no work is left to submit. There is one after
    /// each turn in which a process has come to a [checkpoint](crate::Pause::AtCheckpoint); the process continues at once,
    /// so that it is beyond the checkpoint by then. There is one after some events, too, if the run is
    /// [interrupted](OrderedEngine::interrupted_by). After a failure there are no cuts. What happens after a cut depends
    /// on the processes, the resource, and the [state of the run](OrderedRun::write_state).
    pub fn run_to_cut(&mut self) -> bool {
        for events in 0_u64.. {
            while let Some(place) = self.run_queue.next_ready() {
                self.resume(Rank::new(place), false);
            }
            self.submit_work();
            // Every run makes some progress, even if it is interrupted from its beginning.
            let is_interrupted =
                events % EVENTS_PER_CHECK == EVENTS_PER_CHECK - 1 && self.interrupt.is_requested();
            if (std::mem::take(&mut self.run_queue.has_reached_checkpoint) || is_interrupted)
                && self.run_queue.fault.cutoff() == SimTime::MAX
            {
                // Lets the resource compute the outcome of all that has been submitted.
                self.resource.next_event_time();
                return true;
            }
            if !self.commit() {
                return false;
            }
        }
        unreachable!("a run ends before its events are beyond counting")
    }

    /// Returns the processes of a run that continues later from this cut.
    pub fn stop(self) -> Run<P> {
        let ResourceRunQueue { processes, steps, .. } = self.run_queue;
        Run { ending: Ending::StoppedAtCheckpoint, processes, steps }
    }

    /// Returns the time of the last event.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// Returns the number of steps of all processes so far.
    pub fn steps(&self) -> u64 {
        self.run_queue.steps
    }

    /// Returns the processes and the resource.
    pub fn parts(&mut self) -> (&mut [P], &mut A) {
        (&mut self.run_queue.processes, self.resource)
    }

    /// Writes the state of the run itself at a cut: the processes that are blocked, and their conditional events.
    pub fn write_state(&self, state: &mut StateWriter) {
        for place in 0..self.run_queue.processes.len() {
            state.value(&self.run_queue.is_blocked(place));
        }
        for candidate in self.conditionals.iter() {
            state.time(candidate.at);
            state.number(candidate.rank.get().into());
        }
    }

    /// Shifts the run itself in time, at a cut at which the processes and the resource are shifted as well.
    pub fn shift_time(&mut self, time: SimDuration) {
        self.now += time;
        self.conditionals.shift_time(time);
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

    /// Returns the result of a run that has no further cut.
    pub fn finish(self) -> Run<P> {
        let waiting = self.run_queue.unfinished().map(|place| Rank::new(place as u32)).collect();
        let ResourceRunQueue { processes, fault, steps, .. } = self.run_queue;
        let reached = processes.iter().map(Process::clock).max();
        self.progress.publish(0, steps, reached.unwrap_or_default());
        Run { ending: fault.ending(waiting), processes, steps }
    }
}
