//! Failures of hosts and links, for the report.

use std::fmt::Write as _;

use machine::failure::{
    FailingJob, FailureError, FailureList, FailuresSection, HostFailure, JobRun, JobRunError,
    ResourceFailure, Work, WorkError,
};
use replay::{MAX_DEATHS, Outcome, Simulation};
use serde::{Deserialize, Serialize};

use super::section::{CsvTable, Section};

/// Warning of a report without the run of a job whose hosts die.
const UNCOUNTED: &str =
    "failures: hosts that die are not counted here, the run has its whole work without them";
/// Largest number of rows of the printed table.
const MAX_PRINTED: usize = 10;

/// Failures of a run; `docs/failures.md` says what they do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failures {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Failures that have changed resources in the run, in the order of time.
    pub resources: Vec<ResourceFailure>,
    /// Number of failures of hosts of several jobs, in the course of the run.
    #[serde(default)]
    pub of_jobs: usize,
    /// The one job on hosts that die; null if none does.
    pub job: Option<FailedJob>,
    /// Events that do not happen as they were asked for.
    pub left_out: Vec<String>,
}

/// A job on hosts that die.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedJob {
    /// Its run.
    #[serde(flatten)]
    pub run: JobRun,
    /// Share of its time in which the job has done what counts; 0 if it has not done its work.
    pub goodput: f64,
    /// Work between two checkpoints \[s\]; null if it writes none.
    pub interval_s: Option<f64>,
    /// Mean time between failures of the hosts of the job \[s\]; null if they fail at given instants only.
    pub mtbf_s: Option<f64>,
    /// Expected time of such runs (Daly) \[s\]; null unless hosts fail at random, and the job recovers.
    pub expected_s: Option<f64>,
    /// Best interval by Young's first order \[s\]; null as `expected_s`.
    pub young_interval_s: Option<f64>,
    /// Best interval by Daly's higher order \[s\]; null as `expected_s`.
    pub daly_interval_s: Option<f64>,
}

/// The failure that has ended a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobEnd {
    /// Name of the host, or of the hosts that fail together.
    pub host: String,
    /// Its instant \[s\].
    pub at_s: f64,
}

/// The reason why a job cannot be run on hosts that die.
#[derive(Debug, thiserror::Error)]
pub enum FailuresError {
    /// The platform lacks a host.
    #[error(transparent)]
    Component(#[from] FailureError),
    /// The run of the job has no end, or is not known.
    #[error(transparent)]
    Run(#[from] JobRunError<WorkError>),
}

impl FailedJob {
    /// Runs the job of a run with this outcome under its seed; `None` if no host dies, or several jobs have lost theirs in the run.
    ///
    /// # Errors
    /// If the platform lacks a host, or the job hardly ever ends.
    pub fn of(simulation: &Simulation, outcome: &Outcome) -> Result<Option<Self>, FailuresError> {
        let spec = simulation.spec();
        if spec.deaths.is_some() {
            return Ok(None);
        }
        let (list, section) = (FailureList::of(spec), FailuresSection::of(spec));
        let Some(job) = FailingJob::of(simulation, outcome, (&list, &section))? else { return Ok(None) };
        let mut work = Work::new(simulation, outcome);
        let run = job.run(section.seed(), |hosts| work.time_s(hosts))?;
        let model = job.model(run.work_s);
        Ok(Some(Self {
            goodput: if run.ended_by.is_none() && run.time_s > 0.0 { run.work_s / run.time_s } else { 0.0 },
            interval_s: job.interval_s(),
            mtbf_s: job.mtbf_s(),
            expected_s: model.map(|model| model.expected_s()),
            young_interval_s: model.map(|model| model.young_interval_s()),
            daly_interval_s: model.map(|model| model.daly_interval_s()),
            run,
        }))
    }

    /// Returns the failure that has ended the job.
    pub fn end(&self) -> Option<JobEnd> {
        let host = self.run.ended_by.clone()?;
        let HostFailure { at_s, .. } = self.run.failures.last()?;
        Some(JobEnd { host, at_s: *at_s })
    }
}

impl Section for Failures {
    /// The run of a job takes replays of its own: [`Report::add_failures`](super::Report::add_failures).
    fn new(simulation: &Simulation, outcome: &Outcome) -> Option<Self> {
        let (spec, platform) = (simulation.spec(), simulation.platform());
        let list = FailureList::of(spec);
        if list.0.is_empty() {
            return None;
        }
        let is_uncounted = list.kills() && spec.deaths.is_none();
        let given_up =
            simulation.loaded_programs().zip(&outcome.programs).filter_map(|((spec, ..), program)| {
                let is_given_up = program.deaths.len() == MAX_DEATHS && program.fatal_death().is_some();
                let name = spec.label();
                is_given_up.then(|| {
                    format!(
                        "failures: the job {name:?} has lost its hosts {MAX_DEATHS} times, and is given up"
                    )
                })
            });
        let failures = list.resources(&FailuresSection::of(spec));
        let resources =
            failures.before(platform, outcome.simulated_time()).expect("the platform was checked");
        let waits = resources.iter().any(|failure| failure.effect == "off") && !platform.has_detours();
        let no_graph = "failures: the links of the platform form no graph in which messages could go around links that are off: they wait";
        Some(Self {
            seed: failures.seed,
            resources,
            of_jobs: outcome.programs.iter().map(|program| program.deaths.len()).sum(),
            job: None,
            left_out: [waits.then_some(no_graph), is_uncounted.then_some(UNCOUNTED)]
                .into_iter()
                .flatten()
                .map(str::to_owned)
                .chain(given_up)
                .collect(),
        })
    }

    fn write_tables(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "\n{}", self.sentence())?;
        let Some(FailedJob { run, .. }) = &self.job else { return Ok(()) };
        writeln!(text, "\n{:<32} {:>16} {:>16} {:>16}", "failure", "at", "lost", "goes on")?;
        for HostFailure { component, at_s, lost_s, resumed_s, .. } in run.failures.iter().take(MAX_PRINTED) {
            let resumed = resumed_s.map_or("-".to_owned(), |resumed_s| format!("{resumed_s:.6} s"));
            writeln!(text, "{component:<32} {at_s:>14.6} s {lost_s:>14.6} s {resumed:>16}")?;
        }
        if run.failures.len() > MAX_PRINTED {
            writeln!(text, "and {} more", run.failures.len() - MAX_PRINTED)?;
        }
        Ok(())
    }

    fn csv(&self) -> Vec<CsvTable> {
        let instant = |at_s: Option<f64>| at_s.map_or(String::new(), |at_s| at_s.to_string());
        let of_resource = |failure: &ResourceFailure| {
            let ResourceFailure { component, effect, at_s, repaired_s } = failure;
            vec![component.clone(), effect.clone(), at_s.to_string(), String::new(), instant(*repaired_s)]
        };
        let of_host = |failure: &HostFailure| {
            let HostFailure { component, at_s, lost_s, resumed_s, .. } = failure;
            vec![
                component.clone(),
                "dead".to_owned(),
                at_s.to_string(),
                lost_s.to_string(),
                instant(*resumed_s),
            ]
        };
        let of_hosts = self.job.iter().flat_map(|job| &job.run.failures).map(of_host);
        let header = ["component", "effect", "at_s", "lost_s", "resumed_s"];
        vec![CsvTable {
            name: "failures",
            header: header.map(str::to_owned).to_vec(),
            rows: self.resources.iter().map(of_resource).chain(of_hosts).collect(),
        }]
    }

    fn warnings(&self) -> &[String] {
        &self.left_out
    }
}

impl Failures {
    /// Adds the run of the job, which counts the hosts that die; returns the warning that is no longer true.
    pub(super) fn add_job(&mut self, job: Option<FailedJob>) -> &'static str {
        self.job = job;
        self.left_out.retain(|warning| warning != UNCOUNTED);
        UNCOUNTED
    }

    /// Returns the failures in one line.
    pub fn sentence(&self) -> String {
        let resources = match self.resources.len() {
            0 => String::new(),
            number => format!("{number} of links and speeds, "),
        };
        let Some(FailedJob { run, goodput, .. }) = &self.job else {
            let hosts = if self.left_out.iter().any(|warning| warning == UNCOUNTED) {
                "hosts are not counted".to_owned()
            } else {
                match self.of_jobs {
                    0 => "no host dies".to_owned(),
                    number => format!("{number} of hosts of jobs"),
                }
            };
            return format!("failures: {resources}{hosts}");
        };
        let JobRun { time_s, checkpoints, lost_s, failures, ended_by, .. } = run;
        let count = failures.len();
        match ended_by {
            None => format!(
                "failures: {resources}{count} of hosts, {lost_s:.6} s lost, {checkpoints} checkpoints; with them the job takes {time_s:.6} s \
                 (goodput {:.1} %)",
                100.0 * goodput
            ),
            Some(host) => format!(
                "failures: {resources}{count} of hosts; the job ends after {time_s:.6} s: {host} dies"
            ),
        }
    }
}
