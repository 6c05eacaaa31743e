//! Conservative backfilling.

use super::pool::Pool;
use super::profile::{Profile, Slot};
use super::{Pass, Policy, Start, View};
use crate::JobId;

/// Reserves the earliest nodes for each job when it is submitted. When a job ends, the plan is compressed.
///
/// Feitelson and Weil, Utilization and Predictability in Scheduling the IBM SP2 with Backfilling, 1998.
pub(super) struct Conservative<P> {
    compression: Compression,
    /// Jobs that wait, in the order of their submissions.
    reservations: Vec<(JobId, Slot<P>)>,
}

/// How waiting jobs, in the order of their submissions, use what the end of a job frees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    /// Each one gives up its reservation for the earliest nodes beside all others, which is never later (Batsim).
    OneByOne,
    /// All give up their reservations before the first one gets the earliest nodes (pyss).
    Anew,
}

impl<P> Conservative<P> {
    pub(super) fn new(compression: Compression) -> Self {
        Self { compression, reservations: Vec::new() }
    }
}

impl<P: Pool> Policy for Conservative<P> {
    fn starts(&mut self, view: &View<'_>) -> Vec<Start> {
        let mut profile = Profile::new(view.now, P::of(view.free));
        for running in view.running {
            profile.free_from(view.expected_end(running), &P::of(&running.nodes));
        }
        // The plan has failed where a job runs longer than was estimated, or a reserved start has passed because one did.
        let is_overdue = view.running.iter().any(|run| run.start + view.length(run.job) <= view.now);
        let has_failed = is_overdue || self.reservations.iter().any(|(_, slot)| slot.start < view.now);
        if has_failed || (view.has_ended && self.compression == Compression::Anew) {
            self.reservations.clear();
        }
        self.reservations.iter().for_each(|(_, slot)| profile.take(slot));
        if view.has_ended {
            for (job, slot) in &mut self.reservations {
                profile.give_back(slot);
                *slot = profile.earliest(view.jobs[job.0].nodes, view.length(*job));
                profile.take(slot);
            }
        }
        for &job in &view.waiting[self.reservations.len()..] {
            let slot = profile.earliest(view.jobs[job.0].nodes, view.length(job));
            profile.take(&slot);
            self.reservations.push((job, slot));
        }
        let mut pass = Pass::new(view);
        self.reservations.retain(|(job, slot)| {
            let starts = slot.start == view.now;
            if starts {
                pass.start(*job, &slot.nodes);
            }
            !starts
        });
        pass.starts
    }
}
