//! Workloads whose jobs run on a platform, and share its network.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use machine::failure::FailureList;
use netmodel::HostId;
use pdes_core::{Progress, SimTime};
use pdes_replay::{
    CodeProgram, Config, JobScheduler, Mpi, ProgramSpec, Report, RunSpec, RunningProgram, SchedulerRun,
    Simulation, Start,
};
use scheduling::{Date, Job, JobId, NodeSet, PolicyEntry, Reservations, Run, Schedule, Scheduler, Work};

use super::ScheduleArguments;
use crate::cli::{Misuse, progress};

/// Returns the run without its jobs.
pub(super) fn machine(arguments: &ScheduleArguments) -> Result<RunSpec> {
    let mut config = arguments.config.as_deref().map_or_else(|| Ok(Config::default()), Config::from_path)?;
    if let Some(path) = &arguments.platform {
        config.set_path("platform", "file", path);
    }
    arguments.set.iter().try_for_each(|setting| config.set(setting))?;
    if config.section("trace").is_some() {
        let message = "jobs are those of the workload: leave [trace] and [[job]] out of the configuration";
        return Err(Misuse(message.to_owned()).into());
    }
    // The first job takes the place of the workload.
    config.set_path("trace", "path", &arguments.workload);
    let spec = config.resolve()?;
    if FailureList::of(&spec).kills() {
        let message = "[[failure]]: hosts that die are of one job, not of a workload; give hosts a speed, or leave them out";
        return Err(Misuse(message.to_owned()).into());
    }
    Ok(spec)
}

/// Returns the hosts of the platform of a run that can be nodes.
pub(super) fn hosts(spec: &RunSpec) -> Result<Vec<HostId>> {
    Ok(spec.computers(&spec.platform()?))
}

/// The jobs of a workload, the nodes of a machine, which are the first of its hosts that are no accelerators, and a policy.
#[derive(Debug)]
pub(super) struct Queue {
    jobs: Vec<Job>,
    nodes: u32,
    /// Host of each node.
    hosts: Vec<HostId>,
    policy: &'static PolicyEntry,
    reservations: Reservations,
    /// Nodes of each job that has started.
    allocations: Mutex<Vec<Option<NodeSet>>>,
}

impl Queue {
    pub(super) fn new(
        jobs: &[Job],
        nodes: u32,
        policy: &'static PolicyEntry,
        reservations: Reservations,
    ) -> Self {
        let allocations = Mutex::new(vec![None; jobs.len()]);
        Self { jobs: jobs.to_vec(), nodes, hosts: Vec::new(), policy, reservations, allocations }
    }

    fn scheduler(&self) -> Result<Scheduler<'_>, scheduling::ScheduleError> {
        Scheduler::new(&self.jobs, self.nodes, self.policy.policy(self.reservations))
    }
}

impl JobScheduler for Queue {
    fn begin(&self) -> Box<dyn SchedulerRun + '_> {
        let scheduler = self.scheduler().expect("the jobs were checked before the run");
        Box::new(QueueRun { queue: self, scheduler })
    }
}

/// A queue during a run.
struct QueueRun<'a> {
    queue: &'a Queue,
    scheduler: Scheduler<'a>,
}

impl SchedulerRun for QueueRun<'_> {
    fn submit(&mut self, program: usize) {
        self.scheduler.submit(JobId(program));
    }

    fn end(&mut self, program: usize) {
        self.scheduler.end(JobId(program));
    }

    fn start(&mut self, now: SimTime) -> Vec<(usize, Vec<HostId>)> {
        let mut allocations = self.queue.allocations.lock().unwrap_or_else(PoisonError::into_inner);
        let starts = self.scheduler.start(Date::from_picos(now.as_picos()));
        let started = starts.into_iter().map(|scheduling::Start { job: JobId(job), nodes }| {
            let hosts = nodes.iter().map(|node| self.queue.hosts[node as usize]).collect();
            allocations[job] = Some(nodes);
            (job, hosts)
        });
        started.collect()
    }
}

/// Schedules jobs that take as long as they need on a machine, and writes the report of the run.
pub(super) fn simulate(spec: RunSpec, mut queue: Queue, directory: &Path) -> Result<Schedule> {
    queue.scheduler()?;
    queue.hosts = hosts(&spec)?;
    let (hosts, nodes) = (queue.hosts.len(), queue.nodes);
    if nodes as usize > hosts {
        let message = format!(
            "the machine has {nodes} nodes, and the platform {hosts} hosts: give --nodes {hosts} at most, or a larger platform"
        );
        return Err(Misuse(message).into());
    }
    let queue = Arc::new(queue);
    let spec = with_jobs(spec, &queue, directory)?;
    let simulation = Simulation::load(&spec)?;
    check_sizes(&simulation, &queue)?;
    simulation.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    let counters = Progress::new(spec.threads);
    let actions = simulation.loaded_programs().map(|(_, trace, _)| trace.actions()).sum();
    let outcome = progress::watch_replay(&counters, actions, || simulation.replay(&counters))?;
    simulation.outcome_warnings(&outcome).iter().for_each(|warning| tracing::warn!("{warning}"));
    let report = Report::new(&simulation, &outcome);
    let path = spec.report.as_ref().expect("the command sets it");
    report.write(path).with_context(|| path.display().to_string())?;
    let mut allocations = queue.allocations.lock().unwrap_or_else(PoisonError::into_inner);
    let run = |(program, nodes): (&pdes_replay::ProgramOutcome, Option<NodeSet>)| Run {
        start: Date::from_picos(program.start.as_picos()),
        finish: Date::from_picos(program.end().as_picos()),
        nodes: nodes.expect("all jobs of a run that has ended have started"),
    };
    let runs: Vec<Run> = outcome.programs.iter().zip(allocations.drain(..)).map(run).collect();
    for (Job { name, estimate, .. }, run) in queue.jobs.iter().zip(&runs) {
        if run.finish - run.start > *estimate {
            let found = (run.finish - run.start).seconds();
            tracing::warn!(
                "job {name} runs {found} s, longer than its walltime, {} s: it is not ended",
                estimate.seconds()
            );
        }
    }
    Ok(Schedule { machine: nodes, runs })
}

/// Adds jobs to a run, as its programs.
fn with_jobs(spec: RunSpec, queue: &Arc<Queue>, directory: &Path) -> Result<RunSpec> {
    let base = spec.program();
    let program = |job: &Job| {
        let start = Start::Submitted(SimTime::from_picos(job.submitted.micros() * 1_000_000));
        let program = ProgramSpec { name: Some(job.name.clone()), hosts: None, start, ..base.clone() };
        let code = match &job.work {
            Work::Trace(path) => return ProgramSpec { trace: directory.join(path).into(), ..program },
            Work::Wait => {
                let seconds = job.runtime.seconds();
                CodeProgram::new("delay", 1, move |mpi| async move { mpi.sleep(seconds).await })
            }
            &Work::Parallel { flops, bytes } => {
                CodeProgram::new("parallel_homogeneous", job.nodes, move |mpi| parallel(mpi, flops, bytes))
            }
        };
        ProgramSpec { trace: code.name().into(), code: Some(Arc::new(code)), ..program }
    };
    let mut programs = queue.jobs.iter().map(program);
    let Some(ProgramSpec { name, trace, code, start, .. }) = programs.next() else {
        return Err(Misuse("found no jobs in the workload, expected at least one".to_owned()).into());
    };
    let other_programs = programs.collect();
    let scheduler: Option<Arc<dyn JobScheduler>> = Some(Arc::clone(queue) as _);
    Ok(RunSpec { name, trace, code, start, other_programs, scheduler, ..spec })
}

/// A rank of a job that computes, and meanwhile sends to all others.
async fn parallel(mpi: Mpi, flops: f64, bytes: u64) {
    let others = (0..mpi.size()).filter(|&other| other != mpi.rank() && bytes > 0);
    let mut requests = Vec::new();
    for other in others.clone() {
        requests.push(mpi.ireceive(other, 0, bytes).await);
    }
    for other in others {
        requests.push(mpi.isend(other, 0, bytes).await);
    }
    mpi.compute(flops).await;
    mpi.wait_all(requests).await;
}

/// Checks that the nodes of each job have cores for its ranks.
fn check_sizes(simulation: &Simulation, Queue { jobs, hosts, .. }: &Queue) -> Result<()> {
    let cores = hosts.iter().map(|&host| simulation.platform().host(host).cores).min().unwrap_or_default();
    for (job, (spec, trace, _)) in jobs.iter().zip(simulation.loaded_programs()) {
        let (ranks, nodes) = (trace.ranks(), job.nodes);
        if u64::from(ranks) > u64::from(nodes) * u64::from(cores) {
            anyhow::bail!(
                "job {}: {} has {ranks} ranks, and {nodes} nodes of {cores} core(s) hold fewer: give it {} nodes",
                job.name,
                spec.trace,
                ranks.div_ceil(cores)
            );
        }
    }
    Ok(())
}
