//! A queue for each worker, by a model of when tasks end there: StarPU's `dm` with data and priorities, which are those of HEFT (Topcuoglu,
//! Hariri and Wu 2002).

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{Scheduler, View};
use crate::graph::{Task, TaskGraph, TaskId};
use crate::node::Node;

/// Tasks that a worker takes ahead, so that their data are copied while it computes.
const TASKS_AHEAD: usize = 2;

/// Queues of tasks, those with the longest path to the end first.
#[derive(Debug)]
pub(super) struct DequeModel {
    /// Longest path from each task to the end, by mean times on workers, as the bits of seconds: these ascend as the numbers do.
    ranks: Vec<u64>,
    queues: Vec<BTreeSet<(Reverse<u64>, TaskId)>>,
    /// Instant at which each worker has done its tasks, by the model \[s\].
    free_s: Vec<f64>,
}

impl DequeModel {
    pub(super) fn new(graph: &TaskGraph, node: &Node<'_>) -> Self {
        let mean_s = |task: &Task| {
            let times = (0..node.kinds.len())
                .filter_map(|kind| Some((node.time_s(task, kind)?, node.kinds[kind].workers as f64)));
            let (sum_s, workers) =
                times.fold((0.0, 0.0), |(sum_s, all), (time_s, own)| (sum_s + time_s * own, all + own));
            sum_s / workers
        };
        Self {
            ranks: graph.ranks(mean_s).into_iter().map(f64::to_bits).collect(),
            queues: vec![BTreeSet::new(); node.workers.len()],
            free_s: vec![0.0; node.workers.len()],
        }
    }
}

impl Scheduler for DequeModel {
    fn ready(&mut self, tasks: &[TaskId], _by: Option<usize>, view: &View<'_>) {
        let mut tasks = tasks.to_vec();
        tasks.sort_by_key(|&task| (Reverse(self.ranks[task]), task));
        let now_s = view.now.as_secs_f64();
        for task in tasks {
            let ends = (0..self.queues.len()).filter_map(|worker| {
                let begin_s = self.free_s[worker].max(now_s + view.copy_time_s(worker, task));
                Some((worker, begin_s + view.time_s(worker, task)?))
            });
            let best = ends.min_by(|(_, one), (_, other)| one.total_cmp(other));
            let (worker, end_s) = best.expect("a worker does each task");
            self.free_s[worker] = end_s;
            self.queues[worker].insert((Reverse(self.ranks[task]), task));
        }
    }

    fn next(&mut self, worker: usize, _view: &View<'_>) -> Option<TaskId> {
        self.queues[worker].pop_first().map(|(_, task)| task)
    }

    fn tasks_ahead(&self) -> usize {
        TASKS_AHEAD
    }
}
