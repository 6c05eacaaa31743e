//! EASY backfilling.

use std::marker::PhantomData;

use super::pool::Pool;
use super::{Pass, Policy, Start, View};
use crate::{Date, Job, JobId};

/// Starts jobs in the order of their submissions. The first that does not fit gets a reservation, at the earliest date by which enough
/// running jobs are expected to end; other jobs start if they fit for their whole estimate beside it.
///
/// Lifka, The ANL/IBM SP Scheduling System, 1995. Time of a pass: O(running jobs x log + waiting jobs).
pub(super) struct Easy<P> {
    order: Order,
    pool: PhantomData<P>,
}

/// The order in which jobs are tried for backfilling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Submission,
    /// Shortest estimate first (SJBF: Tsafrir, Etsion and Feitelson, Backfilling Using System-Generated Predictions, 2007).
    Estimate,
}

/// The reservation of a job.
struct Reservation<P> {
    start: Date,
    /// Nodes that are free at its start, and that it does not need.
    spare: P,
}

impl<P: Pool> Easy<P> {
    pub(super) fn new(order: Order) -> Self {
        Self { order, pool: PhantomData }
    }

    /// Reserves the earliest nodes for a job that does not fit now.
    fn reserve(view: &View<'_>, pass: &Pass, job: &Job) -> Reservation<P> {
        let of_running = view.running.iter().map(|run| (view.expected_end(run), P::of(&run.nodes)));
        let of_started =
            pass.starts.iter().map(|start| (view.now + view.length(start.job), P::of(&start.nodes)));
        let mut ends: Vec<(Date, P)> = of_running.chain(of_started).collect();
        ends.sort_by_key(|(end, _)| *end);
        let mut spare = P::of(&pass.free);
        for simultaneous in ends.chunk_by(|(end, _), (next, _)| end == next) {
            simultaneous.iter().for_each(|(_, nodes)| spare.insert(nodes));
            if let Some(reserved) = spare.lowest(job.nodes) {
                spare.remove(&reserved);
                return Reservation { start: simultaneous[0].0, spare };
            }
        }
        unreachable!("no job is larger than the machine")
    }
}

impl<P: Pool> Policy for Easy<P> {
    fn starts(&mut self, view: &View<'_>) -> Vec<Start> {
        let mut pass = Pass::new(view);
        let mut queue = view.waiting.iter();
        let job = |id: JobId| &view.jobs[id.0];
        let head = queue.find(|&&id| match P::of(&pass.free).lowest(job(id).nodes) {
            Some(nodes) => {
                pass.start(id, &nodes);
                false
            }
            None => true,
        });
        let Some(&head) = head else { return pass.starts };
        let Reservation { start, mut spare } = Self::reserve(view, &pass, job(head));
        let mut candidates: Vec<JobId> = queue.copied().collect();
        if self.order == Order::Estimate {
            candidates.sort_by_key(|&id| job(id).estimate);
        }
        for id in candidates {
            let mut free = P::of(&pass.free);
            let is_longer = view.now + view.length(id) > start;
            if is_longer {
                free.intersect(&spare);
            }
            let Some(nodes) = free.lowest(job(id).nodes) else { continue };
            if is_longer {
                spare.remove(&nodes);
            }
            pass.start(id, &nodes);
        }
        pass.starts
    }
}
