//! Schedules, and what is measured of them.

use std::fmt;
use std::io::{self, Write};

use serde::Serialize;

use crate::{Date, Job, JobId, NodeSet};

/// Run times below count as this much in the bounded slowdown \[s\].
const BOUND: f64 = 10.0;

/// When and where a job ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its start.
    pub start: Date,
    /// Its end.
    pub finish: Date,
    /// Its nodes.
    pub nodes: NodeSet,
}

/// The runs of all jobs of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Number of nodes of the machine.
    pub machine: u32,
    /// Run of each job.
    pub runs: Vec<Run>,
}

/// Measures of a schedule. Times are in seconds; the slowdown of a job is (wait + run time) / run time, the bounded one
/// max(1, (wait + run time) / max(10 s, run time)).
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Number of jobs.
    pub jobs: usize,
    /// Number of nodes of the machine.
    pub nodes: u32,
    /// The last end, since the beginning of the workload.
    pub makespan_s: f64,
    /// Mean time from submission to start.
    pub mean_wait_s: f64,
    /// Longest time from submission to start.
    pub max_wait_s: f64,
    /// Number of jobs that did not start when they were submitted.
    pub jobs_that_wait: usize,
    /// Mean time from submission to end.
    pub mean_turnaround_s: f64,
    /// Mean slowdown of the jobs that take time.
    pub mean_slowdown: f64,
    /// Mean bounded slowdown.
    pub mean_bounded_slowdown: f64,
    /// Busy share of the nodes from the first submission to the last end.
    pub utilisation: f64,
}

impl Schedule {
    /// Returns the jobs in the order of their starts; of equal starts the first in the workload comes first.
    pub fn order(&self) -> Vec<JobId> {
        let mut order: Vec<JobId> = (0..self.runs.len()).map(JobId).collect();
        order.sort_by_key(|id| self.runs[id.0].start);
        order
    }

    /// Measures the schedule of these jobs.
    pub fn summary(&self, jobs: &[Job]) -> Summary {
        let pairs = || jobs.iter().zip(&self.runs);
        let count = jobs.len().max(1) as f64;
        let wait = |(job, run): (&Job, &Run)| (run.start - job.submitted).seconds();
        let runtime = |run: &Run| (run.finish - run.start).seconds();
        let slowdown = |(job, run): (&Job, &Run), least: f64| {
            let slowdown = (wait((job, run)) + runtime(run)) / runtime(run).max(least);
            slowdown.max(1.0)
        };
        let last = self.runs.iter().map(|run| run.finish).max().unwrap_or_default();
        let first = jobs.iter().map(|job| job.submitted).min().unwrap_or_default();
        let busy: f64 = pairs().map(|(job, run)| runtime(run) * f64::from(job.nodes)).sum();
        let available = f64::from(self.machine) * (last - first).seconds();
        let slowdowns: Vec<f64> =
            pairs().filter(|(_, run)| run.finish > run.start).map(|pair| slowdown(pair, 0.0)).collect();
        Summary {
            jobs: jobs.len(),
            nodes: self.machine,
            makespan_s: last.seconds(),
            mean_wait_s: pairs().map(wait).sum::<f64>() / count,
            max_wait_s: pairs().map(wait).fold(0.0, f64::max),
            jobs_that_wait: pairs().filter(|(job, run)| run.start > job.submitted).count(),
            mean_turnaround_s: pairs().map(|pair| wait(pair) + runtime(pair.1)).sum::<f64>() / count,
            mean_slowdown: slowdowns.iter().sum::<f64>() / slowdowns.len().max(1) as f64,
            mean_bounded_slowdown: pairs().map(|pair| slowdown(pair, BOUND)).sum::<f64>() / count,
            utilisation: if available > 0.0 { busy / available } else { 0.0 },
        }
    }

    /// Writes a table with a row for each job, in the order of the starts: `job,start,finish,nodes`, times in seconds, nodes as a list of
    /// numbers and ranges such as `0 4-6`.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub fn write_csv(&self, jobs: &[Job], mut output: impl Write) -> io::Result<()> {
        writeln!(output, "job,start,finish,nodes")?;
        for id in self.order() {
            let Run { start, finish, nodes } = &self.runs[id.0];
            writeln!(output, "{},{start},{finish},{nodes}", quoted(&jobs[id.0].name))?;
        }
        Ok(())
    }
}

/// Quotes a name that would not be one field of a table.
fn quoted(name: &str) -> String {
    match name.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_owned(),
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "jobs: {} on {} nodes, {} of them wait", self.jobs, self.nodes, self.jobs_that_wait)?;
        writeln!(f, "makespan: {:.6} s", self.makespan_s)?;
        writeln!(f, "waiting: mean {:.6} s, max {:.6} s", self.mean_wait_s, self.max_wait_s)?;
        writeln!(f, "turnaround: mean {:.6} s", self.mean_turnaround_s)?;
        writeln!(f, "slowdown: mean {:.6}, bounded {:.6}", self.mean_slowdown, self.mean_bounded_slowdown)?;
        writeln!(f, "utilisation: {:.4} %", 100.0 * self.utilisation)
    }
}
