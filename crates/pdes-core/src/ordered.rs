//! The ordered engine: logical processes and the region that they share, in the order of time on one thread.

use crate::regional::region_group::{GroupResult, RegionGroup};
use crate::regional::{ProcessLocation, last_clock};
use crate::{Ending, Fault, Interrupt, LpId, Outbox, Process, Progress, Region, Run, SimTime, SubmittedWork};

/// Number of steps between two publications of the progress.
const STEPS_PER_PUBLICATION: u64 = 1 << 16;

/// Number of events between two looks at the interrupt.
const EVENTS_PER_CHECK: u64 = 1 << 6;

/// Runs processes and the [`Region`] that all of them share on one thread.
///
/// Each process runs until it lacks a token. When none can run, the engine commits the earliest event of the region and
/// of the conditional events; the region comes first at equal times. No later action of a process can lie before it.
///
/// # Determinism
/// The result does not depend on the order of turns: work that is submitted between two events of the region reaches it
/// sorted by (time, tie-break, process, order of submission).
///
/// # Cost
/// A turn costs a few nanoseconds besides the process's own work; an event of the region costs
/// [`Region::next_event_time`] and [`Region::advance`].
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
    /// later at most, or before its first event from an [instant](Interrupt::before) on; another run of the same processes and the same
    /// region continues from there.
    pub fn interrupted_by(self, interrupt: Interrupt) -> Self {
        Self { interrupt, ..self }
    }

    /// Continues a run that has stopped at a [cut](Self::run_to_cut), perhaps shifted in time.
    pub fn continuing_from(self, cut: SimTime) -> Self {
        Self { begin: cut, ..self }
    }

    /// Runs processes to their end; process `i` of the list has the number `i`. Publishes as the first worker of `progress`.
    ///
    /// # Panics
    /// If a process or the region panics, and if work is submitted for an instant before the last committed event.
    pub fn run<P: Process>(
        &self,
        mut processes: Vec<P>,
        region: &mut impl Region<P>,
        progress: &Progress,
    ) -> Run<P> {
        let (mut engine, mut steps) = (self.clone(), 0);
        loop {
            let (run, cut) = engine.run_to_cut(processes, region, progress);
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
    /// on the processes and the region alone; another run continues from there.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn run_to_cut<P: Process>(
        &self,
        processes: Vec<P>,
        region: &mut impl Region<P>,
        progress: &Progress,
    ) -> (Run<P>, Option<SimTime>) {
        let locations: Vec<_> =
            (0..processes.len() as u32).map(|index| ProcessLocation { region: 0, index }).collect();
        let numbered = (0..).map(LpId::new).zip(processes).collect();
        let mut group = RegionGroup::new(0, Borrowed(region), numbered, true, self.jitter);
        group.now = self.begin;
        let stop = self.run_group(&mut group, &locations, progress);
        let cut = (stop == Some(Stop::AtCut)).then_some(group.now);
        let GroupResult { processes, waiting, fault, steps, .. } = group.finish();
        let ending = if stop.is_some() {
            Ending::StoppedAtCheckpoint
        } else {
            progress.publish(0, steps, last_clock(&processes));
            fault.ending(waiting)
        };
        (Run { ending, processes, steps }, cut)
    }

    /// Runs all events until the run stops, or until there is none before the earliest failure.
    fn run_group<P: Process, R: Region<P>>(
        &self,
        group: &mut RegionGroup<P, R>,
        locations: &[ProcessLocation],
        progress: &Progress,
    ) -> Option<Stop> {
        let (mut next_publication, last) = (STEPS_PER_PUBLICATION, self.interrupt.last_event());
        for events in 0_u64.. {
            group.run_processes(SimTime::MAX, locations);
            let steps = group.run_queue.steps;
            if steps >= next_publication {
                next_publication = steps + STEPS_PER_PUBLICATION;
                progress.publish(0, steps, group.now);
            }
            // Every run makes some progress, even if it is interrupted from its beginning.
            let is_interrupted =
                events % EVENTS_PER_CHECK == EVENTS_PER_CHECK - 1 && self.interrupt.is_requested();
            let is_at_cut = group.run_queue.checkpoint.is_some();
            if (is_at_cut || is_interrupted) && group.run_queue.fault.cutoff() == SimTime::MAX {
                // Lets the region compute the outcome of all that has been submitted.
                group.region.next_event_time();
                return Some(if is_at_cut { Stop::AtCut } else { Stop::Interrupted });
            }
            if last < SimTime::MAX && ends_after(group, last) {
                return Some(Stop::Interrupted);
            }
            if !group.commit(SimTime::MAX, locations) {
                return None;
            }
        }
        unreachable!("a run ends before its events are beyond counting")
    }
}

/// Returns whether all events up to an instant are committed, and others are left; not after a failure, of which an earlier one may be to come.
#[cold]
fn ends_after<P: Process, R: Region<P>>(group: &mut RegionGroup<P, R>, last: SimTime) -> bool {
    group.run_queue.fault.cutoff() == SimTime::MAX && group.next_event().is_some_and(|next| next > last)
}

/// Reason why a run ends before its events do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Interrupted,
    AtCut,
}

/// A region without others, which outlives the run.
struct Borrowed<'a, R>(&'a mut R);

impl<P: Process, R: Region<P>> Region<P> for Borrowed<'_, R> {
    type Message = R::Message;

    #[inline]
    fn submit(&mut self, work: SubmittedWork<P::WorkRequest>) {
        self.0.submit(work);
    }

    #[inline]
    fn next_event_time(&mut self) -> Option<SimTime> {
        self.0.next_event_time()
    }

    fn undisturbed_until(&mut self, submission: SimTime) -> SimTime {
        self.0.undisturbed_until(submission)
    }

    #[inline]
    fn advance(
        &mut self,
        outbox: &mut Outbox<P::Token, P::WorkRequest>,
    ) -> Result<(), (LpId, Fault<P::Error>)> {
        self.0.advance(outbox)
    }
}
