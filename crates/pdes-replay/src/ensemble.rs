//! Ensembles: many runs of a configuration, each with failures of its own.

#[cfg(feature = "pictures")]
mod page;
mod sharing;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use machine::TimeDistribution;
use machine::failure::{
    FailingJob, FailureError, FailureList, FailureSection, FailuresSection, JobRun, ResourceFailures, Work,
    cable_names,
};
use pdes_core::{Progress, SimDuration, SimTime};
use replay::{
    CommonPast, Obstacle, Outcome, PlatformChange as _, ProgramOutcome, RunError, RunSpec, Simulation,
    run_all,
};
use serde::Serialize;

use crate::{Config, ConfigError};

/// The runs that an ensemble has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members {
    /// The failures of the configuration, under seeds from `first` on.
    Seeds {
        /// The first seed.
        first: u64,
        /// Number of seeds.
        count: u64,
    },
    /// Each cable of the platform off, one after the other, beside the failures of the configuration.
    EachLink {
        /// Instant from which on it is off.
        at: SimTime,
    },
}

/// An ensemble of runs.
#[derive(Debug)]
pub struct Ensemble {
    /// The run without failures.
    base: RunSpec,
    list: FailureList,
    section: FailuresSection,
    /// The section `[failures]` of several jobs whose hosts die in the course of the run.
    of_jobs: Option<toml::Table>,
    members: Members,
    /// Replays go on from states of the run without failures.
    shares: bool,
}

/// The results of an ensemble. Times are in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct EnsembleResults {
    /// `"pdes-replay ensemble"`.
    pub format: &'static str,
    /// Version of the format.
    pub version: u32,
    /// Number of replays for all runs: those that share their failures share a replay.
    pub replays: usize,
    /// Number of those that went on from a state of the run without failures.
    pub resumed: usize,
    /// The reason why none did; null if they could.
    pub not_shared: Option<String>,
    /// Time of the run without failures \[s\].
    pub without_failures_s: f64,
    /// Expected time (Daly) \[s\]; null unless hosts fail at random, and the job recovers.
    pub expected_s: Option<f64>,
    /// Number of runs in which the job was ended by a failure; their times do not count.
    pub ended: usize,
    /// Number of runs that have no result; their errors are with them.
    pub failed: usize,
    /// Times of the others; null if there are none.
    pub times: Option<TimeDistribution>,
    /// The shortest run.
    pub best: Option<MemberResult>,
    /// The longest run.
    pub worst: Option<MemberResult>,
    /// All runs, in their order.
    pub runs: Vec<MemberResult>,
}

/// The result of a run of an ensemble.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MemberResult {
    /// Its name, such as `seed 7`.
    pub name: String,
    /// Setting with which `pdes-replay run` repeats it.
    pub setting: String,
    /// Its time \[s\]; null if it has none.
    pub time_s: Option<f64>,
    /// Number of failures that have changed resources or stopped the job.
    pub failures: usize,
    /// Time that the job has lost by failures of hosts \[s\].
    pub lost_s: f64,
    /// The host whose failure has ended the job.
    pub ended_by: Option<String>,
    /// The reason why there is no result.
    pub error: Option<String>,
    /// Digest of its replay.
    pub digest: Option<String>,
}

/// Replays of the runs of an ensemble.
#[derive(Debug, Default)]
struct Replays {
    number: usize,
    past: Option<Arc<CommonPast>>,
    not_shared: Option<String>,
}

/// Time of a replay, and its digest.
type Replayed = Result<(f64, String), String>;

/// The reason why an ensemble cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum EnsembleError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Nothing differs from run to run.
    #[error("nothing fails by chance: name components in [[failure]] with mtbf, or take --each-link")]
    NoChance,
    /// The run without failures fails.
    #[error("the run without failures: {0}")]
    Run(#[from] RunError),
    /// The platform lacks a component.
    #[error(transparent)]
    Component(#[from] FailureError),
    /// The failures do not fit the platform.
    #[error("{0}")]
    Failures(Box<dyn Error + Send + Sync>),
}

/// Failures of one run.
struct Member {
    name: String,
    setting: String,
    failures: ResourceFailures,
}

impl Ensemble {
    /// Makes the ensemble of a configuration.
    ///
    /// # Errors
    /// If the configuration is wrong, or nothing in it differs from seed to seed.
    pub fn new(config: &Config, members: Members) -> Result<Self, EnsembleError> {
        let spec = config.clone().resolve()?;
        let of_jobs = spec.deaths.is_some().then(|| {
            let section = spec.extensions.get(FailuresSection::NAME).cloned();
            section.and_then(|section| section.try_into().ok()).unwrap_or_default()
        });
        let (list, section) = (FailureList::of(&spec), FailuresSection::of(&spec));
        let is_random = |failure: &FailureSection| failure.mtbf.is_some();
        if matches!(members, Members::Seeds { .. }) && !list.0.iter().any(is_random) {
            return Err(EnsembleError::NoChance);
        }
        let mut config = config.clone();
        [FailureList::NAME, FailuresSection::NAME].into_iter().for_each(|name| config.remove(name));
        let base = RunSpec { threads: 1, ..config.resolve()?.without_analyses() };
        Ok(Self { base, list, section, of_jobs, members, shares: true })
    }

    /// Replays each run from its begin, with the same results.
    #[must_use]
    pub fn from_begin(self) -> Self {
        Self { shares: false, ..self }
    }

    /// Runs all members, `at_once` at a time; `done` counts the replays. Runs in which nothing fails until the end of the run without failures
    /// share that one's replay, and runs with the same failures of links and speeds one of their own, which goes on from a state of that one
    /// before the first failure.
    ///
    /// # Errors
    /// If the run without failures fails, or the failures do not fit the platform.
    pub fn run(&self, at_once: usize, done: &AtomicU64) -> Result<EnsembleResults, EnsembleError> {
        let simulation = Simulation::load(&self.base)?;
        let members = self.members(&simulation);
        let (simulation, not_shared) = match &self.of_jobs {
            _ if !self.shares => (simulation, Some("asked for (--from-begin)".to_owned())),
            Some(_) => (simulation, Some(Obstacle::LaunchNotSaved.to_string())),
            None => sharing::keep(simulation, &members)?,
        };
        let outcome = simulation.replay(&Progress::new(1))?;
        let platform = simulation.platform();
        if let Some(section) = &self.of_jobs {
            let without_failures_s = time_of_jobs_s(&outcome);
            let replay = |member: &Member| Ok::<_, RunError>(self.replay_jobs(member, section));
            let runs = run_all(&members, at_once, done, replay)?;
            let replays = Replays { number: members.len() + 1, not_shared, past: None };
            return Ok(EnsembleResults::new(runs, replays, without_failures_s, None));
        }
        let end = outcome.simulated_time();
        let mut replays = BTreeMap::<String, (&ResourceFailures, Vec<usize>)>::new();
        for (index, member) in members.iter().enumerate() {
            if index == 0 {
                member.failures.check(platform).map_err(EnsembleError::Failures)?;
            }
            if !member.failures.before(platform, end)?.is_empty() {
                let alike = replays.entry(member.failures.key()).or_insert((&member.failures, Vec::new()));
                alike.1.push(index);
            }
        }
        let past = not_shared.is_none().then(|| simulation.kept_past()).transpose()?.map(Arc::new);
        let replays: Vec<(&ResourceFailures, Vec<usize>)> = replays.into_values().collect();
        let replay = |(failures, _): &(&ResourceFailures, Vec<usize>)| {
            Ok::<_, RunError>(self.replay(failures, past.as_ref()))
        };
        let times = run_all(&replays, at_once, done, replay)?;
        let start = outcome.program().start;
        let without_failures_s = (end - start).as_secs_f64();
        let mut of_members: Vec<Replayed> =
            vec![Ok((without_failures_s, sharing::digest(&outcome))); members.len()];
        for ((_, indices), time) in replays.iter().zip(times) {
            indices.iter().for_each(|&index| of_members[index] = time.clone());
        }
        let replays = Replays { number: replays.len() + 1, not_shared, past: past.clone() };
        let job = FailingJob::of(&simulation, &outcome, (&self.list, &self.section))?;
        let mut work = Work::new(&simulation, &outcome);
        let mut run_job = |seed, time_s: f64| {
            let Some(job) = &job else { return Ok((time_s, None)) };
            let run = job.run(seed, |hosts| match hosts == job.hosts() {
                true => Ok(time_s),
                false => work.time_s(hosts),
            });
            run.map(|run| (run.time_s, Some(run))).map_err(|error| error.to_string())
        };
        let mut runs = Vec::with_capacity(members.len());
        for (Member { name, setting, failures }, time) in members.into_iter().zip(of_members) {
            let mut result = MemberResult { name, setting, ..MemberResult::default() };
            let run = |(time_s, digest)| run_job(failures.seed, time_s).map(|run| (run, digest));
            match time.and_then(run) {
                Err(error) => result.error = Some(error),
                Ok(((time_s, run), digest)) => {
                    result.digest = Some(digest);
                    let length = SimDuration::try_from_secs_f64(time_s);
                    let until = length.and_then(|length| start.checked_add(length)).unwrap_or(SimTime::MAX);
                    result.failures = failures.before(platform, until)?.len();
                    result.take(time_s, run);
                }
            }
            runs.push(result);
        }
        let expected_s =
            job.as_ref().and_then(|job| job.model(without_failures_s)).map(|model| model.expected_s());
        Ok(EnsembleResults::new(runs, replays, without_failures_s, expected_s))
    }

    /// Lists the members.
    fn members(&self, simulation: &Simulation) -> Vec<Member> {
        let failures = |list: FailureList, seed| ResourceFailures { seed, ..list.resources(&self.section) };
        match self.members {
            Members::Seeds { first, count } => (0..count)
                .map(|number| first.wrapping_add(number))
                .map(|seed| Member {
                    name: format!("seed {seed}"),
                    setting: format!("--set failures.seed={seed}"),
                    failures: failures(self.list.clone(), seed),
                })
                .collect(),
            Members::EachLink { at } => cable_names(simulation.platform())
                .into_iter()
                .map(|name| {
                    let mut list = self.list.clone();
                    list.0.push(FailureSection::of_cable(&name, at.as_secs_f64()));
                    Member {
                        setting: format!("[[failure]] link = {name:?}, at = {}", at.as_secs_f64()),
                        name: format!("link {name}"),
                        failures: failures(list, self.section.seed()),
                    }
                })
                .collect(),
        }
    }

    /// Replays several jobs whose hosts die in the course of the run.
    fn replay_jobs(&self, member: &Member, section: &toml::Table) -> MemberResult {
        let Member { name, setting, .. } = member;
        let found = self.result_of_jobs(&member.failures, section);
        let found = found.unwrap_or_else(|error| MemberResult {
            error: Some(error.to_string()),
            ..MemberResult::default()
        });
        MemberResult { name: name.clone(), setting: setting.clone(), ..found }
    }

    fn result_of_jobs(
        &self,
        failures: &ResourceFailures,
        section: &toml::Table,
    ) -> Result<MemberResult, Box<dyn Error>> {
        let seed = i64::try_from(failures.seed)
            .map_err(|_| format!("failures.seed: found {}, expected at most {}", failures.seed, i64::MAX))?;
        let (mut spec, mut section) = (self.base.clone(), section.clone());
        section.insert("seed".to_owned(), seed.into());
        spec.extensions.insert(FailuresSection::NAME.to_owned(), section.into());
        FailureList(failures.list.clone()).apply(&mut spec)?;
        let simulation = Simulation::load(&spec)?;
        let outcome = simulation.replay(&Progress::new(1))?;
        let resources = failures.before(simulation.platform(), outcome.simulated_time())?;
        let deaths = || outcome.programs.iter().flat_map(|program| &program.deaths);
        let fatal = outcome.programs.iter().find_map(|program| program.fatal_death());
        Ok(MemberResult {
            time_s: Some(time_of_jobs_s(&outcome)),
            failures: resources.len() + deaths().count(),
            lost_s: deaths().fold(0.0, |lost_s, death| lost_s + death.lost.as_secs_f64()),
            ended_by: fatal.map(|death| death.component.clone()),
            digest: Some(sharing::digest(&outcome)),
            ..MemberResult::default()
        })
    }

    /// Replays the run with failures of resources, from a past that it has in common with the one without; returns its time \[s\], and its
    /// digest.
    fn replay(&self, failures: &ResourceFailures, past: Option<&Arc<CommonPast>>) -> Replayed {
        let mut spec = self.base.clone();
        spec.platform_changes.push(Arc::new(failures.clone()));
        let outcome = Simulation::load(&spec).and_then(|simulation| {
            let simulation = match past {
                Some(past) => simulation.going_on_from(past.clone()),
                None => simulation,
            };
            simulation.replay(&Progress::new(1))
        });
        let outcome = outcome.map_err(|error| error.to_string())?;
        let time = outcome.simulated_time() - outcome.program().start;
        Ok((time.as_secs_f64(), sharing::digest(&outcome)))
    }
}

/// Returns the time from the first start of a job to the last end \[s\].
fn time_of_jobs_s(outcome: &Outcome) -> f64 {
    let start = outcome.programs.iter().map(ProgramOutcome::first_start).min();
    (outcome.simulated_time() - start.unwrap_or(SimTime::ZERO)).as_secs_f64()
}

impl MemberResult {
    /// Takes the time of the run, and what hosts that die did to its job.
    fn take(&mut self, time_s: f64, run: Option<JobRun>) {
        self.time_s = Some(time_s);
        if let Some(JobRun { lost_s, failures, ended_by, .. }) = run {
            (self.lost_s, self.ended_by) = (lost_s, ended_by);
            self.failures += failures.len();
        }
    }

    /// Returns the time, if the job has done its work.
    fn whole_time_s(&self) -> Option<f64> {
        self.time_s.filter(|_| self.ended_by.is_none())
    }
}

impl EnsembleResults {
    fn new(
        runs: Vec<MemberResult>,
        Replays { number, past, not_shared }: Replays,
        without_failures_s: f64,
        expected_s: Option<f64>,
    ) -> Self {
        let times: Vec<f64> = runs.iter().filter_map(MemberResult::whole_time_s).collect();
        let done = || runs.iter().filter(|run| run.whole_time_s().is_some());
        let by_time = |one: &&MemberResult, other: &&MemberResult| {
            one.time_s.unwrap_or_default().total_cmp(&other.time_s.unwrap_or_default())
        };
        Self {
            format: "pdes-replay ensemble",
            version: 1,
            replays: number,
            resumed: past.map_or(0, |past| past.resumed()),
            not_shared,
            without_failures_s,
            expected_s,
            ended: runs.iter().filter(|run| run.ended_by.is_some()).count(),
            failed: runs.iter().filter(|run| run.error.is_some()).count(),
            times: TimeDistribution::of(&times),
            best: done().min_by(by_time).cloned(),
            worst: done().max_by(by_time).cloned(),
            runs,
        }
    }

    /// Writes the runs as CSV.
    ///
    /// # Errors
    /// Returns an error if they cannot be written.
    pub fn write_csv(&self, file: impl std::io::Write) -> csv::Result<()> {
        let mut csv = csv::Writer::from_writer(file);
        self.runs.iter().try_for_each(|run| csv.serialize(run))?;
        Ok(csv.flush()?)
    }
}

/// Prints the results as text.
impl fmt::Display for EnsembleResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} runs by {} replays; {:.6} s without failures",
            self.runs.len(),
            self.replays,
            self.without_failures_s
        )?;
        match &self.not_shared {
            None if self.resumed == 0 => {}
            None => writeln!(f, "{} replays go on from states of the one without failures", self.resumed)?,
            Some(why) => writeln!(f, "replays share no past: {why}")?,
        }
        if let Some(TimeDistribution { mean_s, confidence_s, median_s, p5_s, p95_s, .. }) = self.times {
            writeln!(
                f,
                "mean {mean_s:.6} +- {confidence_s:.6} s (95 %), median {median_s:.6} s, 5 % {p5_s:.6} s, 95 % {p95_s:.6} s"
            )?;
        }
        if let Some(expected_s) = self.expected_s {
            writeln!(f, "expected {expected_s:.6} s (Daly)")?;
        }
        for (what, run) in [("shortest", &self.best), ("longest", &self.worst)] {
            let Some(MemberResult { name, setting, time_s, failures, lost_s, .. }) = run else { continue };
            let time_s = time_s.unwrap_or_default();
            writeln!(f, "{what} {time_s:.6} s, {failures} failures, {lost_s:.6} s lost: {name} ({setting})")?;
        }
        let mut without = String::new();
        if self.ended > 0 {
            write!(without, "{} end by the failure of a host; ", self.ended)?;
        }
        if let Some(MemberResult { name, error: Some(error), .. }) =
            self.runs.iter().find(|run| run.error.is_some())
        {
            let why = error.lines().next().unwrap_or_default();
            write!(without, "{} have no result, the first {name}: {why}; ", self.failed)?;
        }
        match without.strip_suffix("; ") {
            Some(without) => writeln!(f, "{without}"),
            None => Ok(()),
        }
    }
}
