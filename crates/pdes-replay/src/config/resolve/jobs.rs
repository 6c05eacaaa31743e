//! The sections `[[job]]`.

use std::collections::BTreeSet;

use netmodel::quantity::Seconds;
use pdes_core::{SimDuration, SimTime};
use replay::{ProgramSpec, RunSpec, Start};

use super::{Generate, trace_file, value_error};
use crate::config::ConfigError;
use crate::config::sections::{JobSection, PlatformSection, TraceSection};

/// Largest number of times that a job runs: each time has ranks of its own in memory.
const MAX_REPETITIONS: usize = 1000;

/// Checks that jobs have names and traces of their own, and that no other section has these for them.
pub(super) fn check(
    jobs: &[JobSection],
    trace: &TraceSection,
    platform: &PlatformSection,
) -> Result<(), ConfigError> {
    if jobs.is_empty() {
        return Ok(());
    }
    let elsewhere = [
        ("trace", "path", "trace", trace.path.is_some()),
        ("trace", "generate", "generate", trace.generate.is_some()),
        ("trace", "ranks", "ranks", trace.ranks.is_some()),
        ("platform", "hosts", "hosts", platform.hosts.is_some()),
    ];
    if let Some((section, key, own, _)) = elsewhere.into_iter().find(|(.., is_set)| *is_set) {
        let message =
            format!("stands beside [[job]]: each job has its own key {own:?}; leave one of them out");
        return Err(value_error(section, key, message));
    }
    let mut names = BTreeSet::new();
    for (index, job) in jobs.iter().enumerate() {
        let name = name(job, index);
        if job.trace.is_none() && job.generate.is_none() {
            let message = format!("the job {name:?} has none: name its trace, or a program in generate");
            return Err(value_error("job", "trace", message));
        }
        if job.ranks == Some(0) {
            return Err(value_error(
                "job",
                "ranks",
                format!("the job {name:?} has 0, expected at least one"),
            ));
        }
        if let Some(found) = job.repetitions.filter(|found| !(1..=MAX_REPETITIONS).contains(found)) {
            let message = format!("the job {name:?} has {found}, expected 1 to {MAX_REPETITIONS}");
            return Err(value_error("job", "repetitions", message));
        }
        if job.hosts.is_some() && job.placement.is_some() {
            let message = format!(
                "the job {name:?} has it beside hosts, which says where each rank runs; expected one of the two"
            );
            return Err(value_error("job", "placement", message));
        }
        if !names.insert(name.clone()) {
            return Err(value_error("job", "name", format!("two jobs have the name {name:?}: rename one")));
        }
    }
    Ok(())
}

/// Returns the run with jobs as its programs, where there are any.
pub(super) fn with_jobs(
    spec: RunSpec,
    jobs: Vec<JobSection>,
    generate: Generate,
) -> Result<RunSpec, ConfigError> {
    let of_run = spec.program();
    if let Some((index, job)) =
        jobs.iter().enumerate().find(|(_, job)| spec.delays && job.repetitions > Some(1))
    {
        let (name, times) = (name(job, index), job.repetitions.unwrap_or(1));
        let message = format!(
            "the job {name:?} runs {times} times, and slowdowns are those of jobs that start at fixed instants: leave jobs.slowdown (--slowdown) out, or this"
        );
        return Err(value_error("job", "repetitions", message));
    }
    let program = |(index, job): (usize, JobSection)| -> Result<(ProgramSpec, usize), ConfigError> {
        let repetitions = job.repetitions.unwrap_or(1);
        let name = name(&job, index);
        let start =
            job.start.map_or(Some(SimDuration::ZERO), |Seconds(start)| SimDuration::try_from_secs_f64(start));
        let start = start.ok_or_else(|| {
            value_error(
                "job",
                "start",
                format!("the job {name:?}: expected an instant from 0 within simulated time"),
            )
        })?;
        let first = ProgramSpec {
            name: Some(name),
            trace: trace_file(("job", "trace"), job.trace, job.generate.as_deref(), generate)?
                .unwrap_or_default(),
            ranks: job.ranks,
            placement: job.placement.unwrap_or(of_run.placement),
            is_exclusive: job.exclusive.unwrap_or(job.hosts.is_none()),
            hosts: job.hosts,
            start: Start::At(SimTime::ZERO + start),
            ..of_run.clone()
        };
        Ok((first, repetitions))
    };
    let mut programs = Vec::new();
    for job in jobs.into_iter().enumerate() {
        let (first, repetitions) = program(job)?;
        let name = first.label();
        programs.push(first.clone());
        for number in 2..=repetitions {
            let (name, start) = (Some(format!("{name} ({number})")), Start::After(programs.len() - 1));
            programs.push(ProgramSpec { name, start, ..first.clone() });
        }
    }
    let mut programs = programs.into_iter();
    let Some(first) = programs.next() else { return Ok(spec) };
    let ProgramSpec { name, trace, ranks, hosts, placement, is_exclusive, start, .. } = first;
    let other_programs = programs.collect();
    Ok(RunSpec { name, trace, ranks, hosts, placement, is_exclusive, start, other_programs, ..spec })
}

fn name(job: &JobSection, index: usize) -> String {
    job.name.clone().unwrap_or_else(|| format!("job-{index}"))
}
