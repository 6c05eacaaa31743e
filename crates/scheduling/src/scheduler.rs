//! The scheduler, and its simulation with fixed run times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::policy::{Policy, Start, View};
use crate::{Date, Job, JobId, NodeSet, Run, Schedule};

/// A job that runs.
#[derive(Clone, Debug)]
pub struct Running {
    /// The job.
    pub job: JobId,
    /// When it started.
    pub start: Date,
    /// Its nodes.
    pub nodes: NodeSet,
}

/// A scheduler of the nodes of a machine. Whoever knows when jobs are submitted and end tells it all that happens at an instant, in the
/// order of instants, and then asks what starts.
pub struct Scheduler<'a> {
    jobs: &'a [Job],
    policy: Box<dyn Policy>,
    free: NodeSet,
    running: Vec<Running>,
    waiting: Vec<JobId>,
    has_ended: bool,
}

/// The reason why a workload has no schedule.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// A job that never fits.
    #[error(
        "job {name} needs {nodes} nodes, and the machine has {machine}: give it at least {nodes} nodes, or leave the job out of the workload"
    )]
    LargerThanMachine {
        /// Name of the job.
        name: String,
        /// Number of nodes it needs.
        nodes: u32,
        /// Number of nodes of the machine.
        machine: u32,
    },
}

impl<'a> Scheduler<'a> {
    /// Creates a scheduler of an empty machine with so many nodes.
    ///
    /// # Errors
    /// Returns an error if a job is larger than the machine.
    pub fn new(jobs: &'a [Job], machine: u32, policy: Box<dyn Policy>) -> Result<Self, ScheduleError> {
        if let Some(job) = jobs.iter().find(|job| job.nodes > machine) {
            let (name, nodes) = (job.name.clone(), job.nodes);
            return Err(ScheduleError::LargerThanMachine { name, nodes, machine });
        }
        let free = NodeSet::all(machine);
        Ok(Self { jobs, policy, free, running: Vec::new(), waiting: Vec::new(), has_ended: false })
    }

    /// Appends a job to the queue.
    pub fn submit(&mut self, job: JobId) {
        self.waiting.push(job);
    }

    /// Frees the nodes of a job that has ended.
    ///
    /// # Panics
    /// If the job does not run.
    pub fn end(&mut self, job: JobId) -> Running {
        let index = self.running.iter().position(|running| running.job == job);
        let ended = self.running.remove(index.expect("a job that ends has started"));
        self.free.insert(&ended.nodes);
        self.has_ended = true;
        ended
    }

    /// Starts what the policy lets start.
    pub fn start(&mut self, now: Date) -> Vec<Start> {
        let Self { jobs, policy, free, running, waiting, has_ended } = self;
        let starts =
            policy.starts(&View { now, jobs, running, waiting, free, has_ended: std::mem::take(has_ended) });
        for Start { job, nodes } in &starts {
            free.remove(nodes);
            running.push(Running { job: *job, start: now, nodes: nodes.clone() });
        }
        if !starts.is_empty() {
            let started: Vec<JobId> = starts.iter().map(|start| start.job).collect();
            waiting.retain(|job| !started.contains(job));
        }
        starts
    }
}

/// Schedules jobs that take their run times, wherever they run. Of equal dates of submission the first job in the list is first.
///
/// # Errors
/// Returns an error if a job is larger than the machine.
pub fn simulate(jobs: &[Job], machine: u32, policy: Box<dyn Policy>) -> Result<Schedule, ScheduleError> {
    let mut scheduler = Scheduler::new(jobs, machine, policy)?;
    let mut submissions: Vec<JobId> = (0..jobs.len()).map(JobId).collect();
    submissions.sort_by_key(|&id| jobs[id.0].submitted);
    let mut submissions = submissions.into_iter().peekable();
    let mut ends = BinaryHeap::new();
    let mut runs = vec![None; jobs.len()];
    loop {
        let submission = submissions.peek().map(|&id| jobs[id.0].submitted);
        let end = ends.peek().map(|Reverse((date, _))| *date);
        let Some(now) = submission.into_iter().chain(end).min() else { break };
        while let Some(&Reverse((date, job))) = ends.peek()
            && date == now
        {
            ends.pop();
            scheduler.end(job);
        }
        while let Some(job) = submissions.next_if(|&id| jobs[id.0].submitted == now) {
            scheduler.submit(job);
        }
        for Start { job, nodes } in scheduler.start(now) {
            let finish = now + jobs[job.0].runtime;
            ends.push(Reverse((finish, job)));
            runs[job.0] = Some(Run { start: now, finish, nodes });
        }
    }
    let runs = runs.into_iter().map(|run| run.expect("every job starts once the jobs before it have ended"));
    Ok(Schedule { machine, runs: runs.collect() })
}
