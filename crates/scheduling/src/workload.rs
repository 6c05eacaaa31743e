//! Workloads, and the formats in which they are written.

pub(crate) mod batsim;
pub(crate) mod swf;

use crate::{Date, Job, Span, Work};

/// The jobs of a workload, with what was changed to read them.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// Jobs, in the order of the file.
    pub jobs: Vec<Job>,
    /// Number of nodes of the machine for which it was written, where the file tells it.
    pub nodes: Option<u32>,
    /// Sentences about jobs that are not as the file says.
    pub warnings: Vec<String>,
}

/// The reason why a workload cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A line of the Standard Workload Format without its fields.
    #[error("line {line}: {message}; correct the line, or begin it with ';' to leave it out")]
    Line {
        /// Line, from 1.
        line: usize,
        /// What was found, and what was expected.
        message: String,
    },
    /// Text that is not Batsim's JSON.
    #[error("this is not a workload of Batsim: {0}")]
    Json(#[from] serde_json::Error),
    /// A job of Batsim's JSON without a meaning.
    #[error("job {job}: {message}")]
    Job {
        /// Name of the job.
        job: String,
        /// What was found, and what was expected or is to be done.
        message: String,
    },
}

impl Workload {
    /// Gives each job its run time as its estimate.
    pub fn perfect_estimates(&mut self) {
        self.jobs.iter_mut().for_each(|job| job.estimate = job.runtime);
    }
}

/// Jobs as they are read, and what is noted about them.
#[derive(Default)]
struct Builder {
    jobs: Vec<Job>,
    left_out: Noted,
    cut: Noted,
    without_estimate: Noted,
}

/// How many jobs are noted, and the name of the first one.
#[derive(Default)]
struct Noted {
    count: usize,
    first: Option<String>,
}

impl Noted {
    fn note(&mut self, name: &str) {
        self.count += 1;
        self.first.get_or_insert_with(|| name.to_owned());
    }

    /// Returns a sentence about the jobs, if there are any.
    fn sentence(&self, what: &str) -> Option<String> {
        let first = self.first.as_ref()?;
        let jobs = if self.count == 1 { "1 job".to_owned() } else { format!("{} jobs", self.count) };
        Some(format!("{jobs} {what} (job {first}{})", if self.count == 1 { "" } else { " is the first" }))
    }
}

impl Builder {
    /// Adds a job, which ends when its estimate ends, at the latest. Without an estimate it is its run time.
    fn add(
        &mut self,
        name: String,
        submitted: Date,
        nodes: u32,
        estimate: Option<Span>,
        (runtime, work): (Span, Work),
    ) {
        if estimate.is_none() {
            self.without_estimate.note(&name);
        }
        let estimate = estimate.unwrap_or(runtime);
        if runtime > estimate {
            self.cut.note(&name);
        }
        self.jobs.push(Job { name, submitted, nodes, estimate, runtime: runtime.min(estimate), work });
    }

    fn build(self, nodes: Option<u32>) -> Workload {
        let warnings = [
            self.left_out.sentence("left out, without a run time or processors"),
            self.cut.sentence("ended at the requested time, shorter than the run time"),
            self.without_estimate.sentence("without a requested time, for which the run time is taken"),
        ];
        Workload { jobs: self.jobs, nodes, warnings: warnings.into_iter().flatten().collect() }
    }
}
