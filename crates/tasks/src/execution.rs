//! The execution of a graph on a node, event by event.

use std::collections::{BTreeSet, VecDeque};

use netmodel::{FlowNetwork, HostId, HostLoads, LinkLoads, Message, NetworkModel};
use pdes_core::{Bytes, SimTime};
use serde::Serialize;

use crate::graph::{DataId, TaskGraph, TaskId};
use crate::node::{Node, parameters};
use crate::scheduler::{Scheduler, View};

/// A task that was done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TaskRun {
    /// Number of the worker.
    pub worker: usize,
    /// Instant at which it began to compute.
    pub begin: SimTime,
    /// Its end.
    pub end: SimTime,
}

/// The execution of a graph.
#[derive(Clone, Debug)]
pub struct Execution {
    /// End of the last task.
    pub makespan: SimTime,
    /// Runs of all tasks.
    pub runs: Vec<TaskRun>,
    /// Number of copies from memory to memory.
    pub copies: u64,
    /// Size of the copies.
    pub copied: Bytes,
    /// Loads of hosts.
    pub hosts: HostLoads,
    /// Loads of links.
    pub links: LinkLoads,
}

/// What a network completes.
#[derive(Clone, Copy, Debug)]
enum Event {
    Copied { data: DataId, to: HostId },
    Done { worker: usize },
}

/// An execution in progress.
struct Progress<'a> {
    graph: &'a TaskGraph,
    node: &'a Node<'a>,
    network: FlowNetwork<'a, Event>,
    /// Number of predecessors of each task that have not ended.
    missing: Vec<usize>,
    /// Memories that have a valid copy of each piece of data.
    valid: Vec<BTreeSet<HostId>>,
    /// Copies under way.
    coming: BTreeSet<(DataId, HostId)>,
    /// Tasks that each worker has taken, the first of which may be computing.
    taken: Vec<VecDeque<TaskId>>,
    is_computing: Vec<bool>,
    runs: Vec<TaskRun>,
    copies: u64,
    copied: u64,
}

/// Runs a graph on a node under a scheduler. A worker does one task after the other, each when its data are in the memory of the worker; data of
/// tasks that it has taken ahead are copied while it computes. Copies are messages that share the links of the node; what is written is valid
/// in the memory of its writer alone.
///
/// The same graph, node and scheduler have the same execution, bit for bit. `O(tasks (workers + log tasks))`, and the cost of the copies.
///
/// # Panics
/// If the scheduler keeps a task back.
pub fn execute(graph: &TaskGraph, node: &Node<'_>, mut scheduler: Box<dyn Scheduler + '_>) -> Execution {
    let network = FlowNetwork::new(node.platform, &parameters()).with_link_loads().with_host_loads();
    let nothing = TaskRun { worker: 0, begin: SimTime::ZERO, end: SimTime::ZERO };
    let mut progress = Progress {
        graph,
        node,
        network,
        missing: graph.tasks.iter().map(|task| task.predecessors).collect(),
        valid: vec![BTreeSet::from([node.memory]); graph.data.len()],
        coming: BTreeSet::new(),
        taken: vec![VecDeque::new(); node.workers.len()],
        is_computing: vec![false; node.workers.len()],
        runs: vec![nothing; graph.tasks.len()],
        copies: 0,
        copied: 0,
    };
    let mut ready: Vec<TaskId> = (0..graph.tasks.len()).filter(|task| progress.missing[*task] == 0).collect();
    let (mut by, mut left, mut events) = (None, graph.tasks.len(), Vec::new());
    loop {
        if !ready.is_empty() {
            scheduler.ready(&ready, by, &progress.view());
            ready.clear();
        }
        progress.take_tasks(&mut *scheduler);
        if left == 0 {
            break;
        }
        assert!(progress.network.next_event().is_some(), "the scheduler lets all tasks begin");
        progress.network.advance(&mut events);
        by = None;
        for event in events.drain(..) {
            match event {
                Event::Copied { data, to } => {
                    progress.coming.remove(&(data, to));
                    progress.valid[data].insert(to);
                }
                Event::Done { worker } => {
                    left -= 1;
                    by = Some(worker);
                    ready.extend(progress.end_task(worker));
                }
            }
        }
    }
    let Progress { mut network, runs, copies, copied, .. } = progress;
    let makespan = network.now();
    Execution {
        makespan,
        runs,
        copies,
        copied: Bytes::new(copied),
        hosts: HostLoads::new(makespan, network.host_totals()),
        links: network.link_loads(makespan).expect("loads are recorded"),
    }
}

impl Progress<'_> {
    fn view(&self) -> View<'_> {
        View { graph: self.graph, node: self.node, now: self.network.now(), valid: &self.valid }
    }

    /// Lets workers take tasks, copy their data, and begin what can begin.
    fn take_tasks(&mut self, scheduler: &mut dyn Scheduler) {
        // In rounds, so that no worker takes a task ahead which another one could begin.
        for most in 1..=1 + scheduler.tasks_ahead() {
            for worker in 0..self.taken.len() {
                if self.taken[worker].len() < most
                    && let Some(task) = scheduler.next(worker, &self.view())
                {
                    self.taken[worker].push_back(task);
                    self.fetch(task, self.node.workers[worker].host);
                }
            }
        }
        (0..self.taken.len()).for_each(|worker| self.begin_task(worker));
    }

    /// Copies the data of a task that a memory lacks, each from the memory from which that takes least.
    fn fetch(&mut self, task: TaskId, to: HostId) {
        for &data in &self.graph.tasks[task].data {
            if self.valid[data].contains(&to) || !self.coming.insert((data, to)) {
                continue;
            }
            let size = self.graph.data[data];
            let time_s = |from: &&HostId| self.node.copy_time_s(size, **from, to);
            let from = self.valid[data].iter().min_by(|one, other| time_s(one).total_cmp(&time_s(other)));
            let from = *from.expect("data are in a memory");
            let message = Message::new(self.network.now(), from, to, size, Event::Copied { data, to });
            self.network.send(message).expect("memories have routes");
            self.copies += 1;
            self.copied += size.get();
        }
    }

    /// Begins the first task of a worker, if the worker is free and the data are there.
    fn begin_task(&mut self, worker: usize) {
        let Some(&task) = self.taken[worker].front() else { return };
        let (crate::Worker { kind, host }, now) = (self.node.workers[worker], self.network.now());
        let description = &self.graph.tasks[task];
        if self.is_computing[worker] || !description.data.iter().all(|&data| self.valid[data].contains(&host))
        {
            return;
        }
        let time_s = self.node.time_s(description, kind).expect("the scheduler knows what workers do");
        self.is_computing[worker] = true;
        self.runs[task] = TaskRun { worker, begin: now, end: now };
        // A core of the host at its speed, for the time of the task.
        let flops = time_s * self.node.platform.host(host).speed;
        self.network.compute(now, host, flops, Event::Done { worker });
    }

    /// Ends the task of a worker; returns those that nothing keeps back any more.
    fn end_task(&mut self, worker: usize) -> Vec<TaskId> {
        let task = self.taken[worker].pop_front().expect("the worker computes");
        self.is_computing[worker] = false;
        self.runs[task].end = self.network.now();
        let task = &self.graph.tasks[task];
        let written = *task.data.last().expect("a task writes something");
        self.valid[written] = BTreeSet::from([self.node.workers[worker].host]);
        let is_ready = |successor: &TaskId| {
            self.missing[*successor] -= 1;
            self.missing[*successor] == 0
        };
        task.successors.iter().copied().filter(is_ready).collect()
    }
}
