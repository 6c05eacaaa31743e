//! Schedulers of tasks, of the kinds of StarPU.

mod central;
mod deque_model;
mod stealing;

use std::collections::BTreeSet;

use netmodel::HostId;
use pdes_core::SimTime;

use crate::graph::{DataId, TaskGraph, TaskId};
use crate::node::Node;

/// What a scheduler sees.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The graph.
    pub graph: &'a TaskGraph,
    /// The node.
    pub node: &'a Node<'a>,
    /// The present.
    pub now: SimTime,
    /// Memories that have a valid copy of each piece of data.
    pub valid: &'a [BTreeSet<HostId>],
}

/// A scheduler of tasks.
///
/// # Laws
/// Each task that is ready is given out once, to a worker that [does it](View::does); a scheduler depends on what it is told alone.
pub trait Scheduler {
    /// Takes tasks that nothing keeps back any more, as a worker has ended one; at the begin no worker has.
    fn ready(&mut self, tasks: &[TaskId], by: Option<usize>, view: &View<'_>);

    /// Gives out a task to a worker; `None` if there is none for it now.
    fn next(&mut self, worker: usize, view: &View<'_>) -> Option<TaskId>;

    /// Returns how many tasks a worker takes beside the one that it does, so that their data are copied meanwhile; none by default.
    fn tasks_ahead(&self) -> usize {
        0
    }
}

/// A row of the registry of schedulers.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerEntry {
    /// Its name.
    pub name: &'static str,
    /// Description in one sentence.
    pub description: &'static str,
    make: fn(&TaskGraph, &Node<'_>) -> Box<dyn Scheduler>,
}

/// All schedulers.
pub const SCHEDULERS: [SchedulerEntry; 3] = [
    SchedulerEntry {
        name: "eager",
        description: "One queue: a worker that is free takes the first task that it can do.",
        make: |_, _| Box::new(central::Eager::default()),
    },
    SchedulerEntry {
        name: "ws",
        description: "Work stealing: a worker takes its own last task, or the first one of the worker with most.",
        make: |_, node| Box::new(stealing::Stealing::new(node.workers.len())),
    },
    SchedulerEntry {
        name: "dm",
        description: "As HEFT: the task with the longest path to the end goes to the worker that ends it first, copies included.",
        make: |graph, node| Box::new(deque_model::DequeModel::new(graph, node)),
    },
];

/// Returns the scheduler with a name.
pub fn find_scheduler(name: &str) -> Option<&'static SchedulerEntry> {
    SCHEDULERS.iter().find(|entry| entry.name == name)
}

impl SchedulerEntry {
    /// Makes the scheduler for one execution.
    pub fn scheduler(&self, graph: &TaskGraph, node: &Node<'_>) -> Box<dyn Scheduler> {
        (self.make)(graph, node)
    }
}

impl View<'_> {
    /// Returns whether a worker does tasks of this kind.
    pub fn does(&self, worker: usize, task: TaskId) -> bool {
        self.time_s(worker, task).is_some()
    }

    /// Returns the time of a task on a worker, without copies \[s\]; `None` if it does not do it.
    pub fn time_s(&self, worker: usize, task: TaskId) -> Option<f64> {
        self.node.time_s(&self.graph.tasks[task], self.node.workers[worker].kind)
    }

    /// Returns the sum of the times of the copies that a task needs on a worker now, one after the other \[s\].
    pub fn copy_time_s(&self, worker: usize, task: TaskId) -> f64 {
        let to = self.node.workers[worker].host;
        let time_s = |data: &DataId| {
            let from = self.valid[*data].iter();
            from.map(|&from| self.node.copy_time_s(self.graph.data[*data], from, to))
                .fold(f64::INFINITY, f64::min)
        };
        self.graph.tasks[task].data.iter().map(time_s).sum()
    }
}
