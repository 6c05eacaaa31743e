//! First come, first served.

use super::{Pass, Policy, Start, View};

/// Starts jobs in the order of their submissions, while they fit.
pub(super) struct Fcfs;

impl Policy for Fcfs {
    fn starts(&mut self, view: &View<'_>) -> Vec<Start> {
        let mut pass = Pass::new(view);
        for &job in view.waiting {
            let Some(nodes) = pass.free.lowest(view.jobs[job.0].nodes) else { break };
            pass.start(job, &nodes);
        }
        pass.starts
    }
}
