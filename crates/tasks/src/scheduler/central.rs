//! One queue for all workers.

use std::collections::VecDeque;

use super::{Scheduler, View};
use crate::graph::TaskId;

/// Tasks in the order in which they became ready.
#[derive(Debug, Default)]
pub(super) struct Eager(VecDeque<TaskId>);

impl Scheduler for Eager {
    fn ready(&mut self, tasks: &[TaskId], _by: Option<usize>, _view: &View<'_>) {
        self.0.extend(tasks);
    }

    fn next(&mut self, worker: usize, view: &View<'_>) -> Option<TaskId> {
        let place = self.0.iter().position(|task| view.does(worker, *task))?;
        self.0.remove(place)
    }
}
