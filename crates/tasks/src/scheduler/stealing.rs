//! Work stealing.

use std::collections::VecDeque;

use super::{Scheduler, View};
use crate::graph::TaskId;

/// A queue for each worker, with the tasks that it has made ready.
#[derive(Debug)]
pub(super) struct Stealing {
    queues: Vec<VecDeque<TaskId>>,
    /// Worker that gets the next task which no worker has made ready.
    turn: usize,
}

impl Stealing {
    pub(super) fn new(workers: usize) -> Self {
        Self { queues: vec![VecDeque::new(); workers], turn: 0 }
    }
}

impl Scheduler for Stealing {
    fn ready(&mut self, tasks: &[TaskId], by: Option<usize>, _view: &View<'_>) {
        for &task in tasks {
            let worker = by.unwrap_or(self.turn);
            self.turn = (self.turn + usize::from(by.is_none())) % self.queues.len();
            self.queues[worker].push_back(task);
        }
    }

    fn next(&mut self, worker: usize, view: &View<'_>) -> Option<TaskId> {
        let can = |task: &TaskId| view.does(worker, *task);
        if let Some(place) = self.queues[worker].iter().rposition(can) {
            return self.queues[worker].remove(place);
        }
        let victims = self.queues.iter_mut().filter(|queue| queue.iter().any(can));
        // Of equals the last one, whatever their tasks.
        let victim = victims.max_by_key(|queue| queue.len())?;
        let place = victim.iter().position(can)?;
        victim.remove(place)
    }
}
