//! Comparison of a program with hypotheses about it, all replayed with one configuration.

#[cfg(feature = "pictures")]
mod page;
#[cfg(feature = "pictures")]
pub use page::PageError;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde::Serialize;
use trace_mmap::{ConvertOptions, LoadOptions, TraceError};
use trace_tools::transform::{Hypothesis, ORIGINAL, TransformError};

use crate::concurrent::run_all;
use crate::job::Job;
use crate::report::{Parts, RegionParts, Report, write_json};

/// Number of parts of a time that are no wait states, before these.
const OTHER_PARTS: usize = 4;

/// A program, and the programs that hypotheses make of it, ready to be replayed.
///
/// ```
/// use pdes_replay::{Config, WhatIf};
/// use trace_tools::transform::Hypothesis;
///
/// let directory = tempfile::tempdir()?;
/// let trace = directory.path().join("trace.txt");
/// std::fs::write(&trace, "0 init\n1 init\n0 compute 3e6\n1 compute 1e6\n")?;
/// let mut config = Config::default();
/// config.set(&format!("trace.path={trace:?}"))?;
/// config.set("platform.topology={ kind = 'cluster', hosts = 2, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }")?;
///
/// let text = "[[hypothesis]]\nname = 'even'\ntransform = [{ kind = 'balance' }]\n";
/// let hypotheses = Hypothesis::from_text(text, "even.toml".as_ref())?;
/// let results = directory.path().join("results");
/// let what_if = WhatIf::new(&config.resolve()?, &hypotheses, &results)?;
/// let compared = what_if.run(1, &Default::default())?;
/// assert_eq!(compared.hypotheses[1].simulated_time_s, Some(0.002));
/// assert_eq!(compared.hypotheses[1].change, Some(0.002 / 0.003 - 1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WhatIf {
    directory: PathBuf,
    runs: Vec<Run>,
    /// Holds the transformed traces.
    _traces: tempfile::TempDir,
}

/// A replay of the program, or of a transformed one.
#[derive(Debug)]
struct Run {
    name: String,
    job: Job,
}

/// The reason why hypotheses cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum WhatIfError {
    /// The trace of the program cannot be loaded.
    #[error("the trace: {0}")]
    Trace(#[from] TraceError),
    /// A hypothesis does not fit the program, or its trace cannot be written.
    #[error(transparent)]
    Transform(#[from] TransformError),
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

/// The results of the program and of hypotheses about it, as written in JSON.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIfResults {
    /// The program itself, named `original`, and then the hypotheses in their order.
    pub hypotheses: Vec<HypothesisResult>,
}

/// The result of the program, or of a hypothesis.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HypothesisResult {
    /// Name of the hypothesis.
    pub name: String,
    /// End time of the last rank \[s\]; null if the replay failed.
    pub simulated_time_s: Option<f64>,
    /// End time of the last rank \[ps\], exact.
    pub simulated_time_ps: Option<u64>,
    /// Change of the simulated time relative to that of the program: -0.1 is a tenth less.
    pub change: Option<f64>,
    /// True if all results of all ranks are those of the program.
    pub is_same: bool,
    /// A hash over the results of all ranks.
    pub digest: Option<String>,
    /// Time of all ranks in each wait state \[s\]; null if waits are not analysed.
    pub wait_states: Option<BTreeMap<&'static str, f64>>,
    /// Number of messages sent, point-to-point and inside collectives.
    pub messages: Option<u64>,
    /// Payload of these messages \[B\].
    pub message_bytes: Option<u64>,
    /// Warnings that a user should know before trusting the result.
    pub warnings: Vec<String>,
    /// Cause, if the replay failed, as in a deadlock.
    pub error: Option<String>,
    /// Time of all ranks by part, if waits are analysed.
    #[serde(skip)]
    pub total: Option<Parts>,
    /// The same by call site.
    #[serde(skip)]
    pub sites: Vec<RegionParts>,
}

impl WhatIf {
    /// Applies hypotheses to the trace of a job, and writes the transformed traces into a temporary directory in `directory`, which
    /// is created if necessary. Other outputs of the job are left out.
    ///
    /// # Errors
    /// Fails if the trace cannot be loaded, or a hypothesis does not fit it, before anything is replayed.
    pub fn new(job: &Job, hypotheses: &[Hypothesis], directory: &Path) -> Result<Self, WhatIfError> {
        let load = job.load_options();
        let trace = Arc::new(trace_tools::load(&job.trace, &load)?);
        let failed = |source| WhatIfError::Write { path: directory.to_path_buf(), source };
        std::fs::create_dir_all(directory).map_err(failed)?;
        let traces = tempfile::Builder::new().prefix(".traces-").tempdir_in(directory).map_err(failed)?;
        let job = job.without_outputs();
        let options = ConvertOptions { load: LoadOptions { ranks: None, ..load }, ..Default::default() };
        let mut runs = vec![Run { name: ORIGINAL.to_owned(), job: job.clone() }];
        for hypothesis in hypotheses {
            let path = traces.path().join(format!("{}.pdt", hypothesis.name()));
            hypothesis.write(&trace, &job.trace, &path, &options)?;
            runs.push(Run { name: hypothesis.name().to_owned(), job: Job { trace: path, ..job.clone() } });
        }
        Ok(Self { directory: directory.to_path_buf(), runs, _traces: traces })
    }

    /// Returns the number of replays: that of the program, and one for each hypothesis.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Replays all programs, `at_once` at a time, and writes `summary.json`, and for each program its report as `reports/NAME.json`.
    /// `done` counts the replays that have ended. A replay that fails is a result with its error.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    ///
    /// # Panics
    /// Panics if `at_once` is zero.
    pub fn run(&self, at_once: usize, done: &AtomicU64) -> Result<WhatIfResults, WhatIfError> {
        let reports = self.directory.join("reports");
        write(&reports, std::fs::create_dir_all(&reports))?;
        let replay = |run: &Run| -> Result<HypothesisResult, WhatIfError> {
            let path = reports.join(format!("{}.json", run.name));
            let result = match run.job.replay() {
                Ok(report) => {
                    write(&path, report.write(&path))?;
                    HypothesisResult::new(&run.name, report)
                }
                Err(error) => HypothesisResult {
                    name: run.name.clone(),
                    error: Some(error.to_string()),
                    ..HypothesisResult::default()
                },
            };
            Ok(result)
        };
        let mut hypotheses: Vec<HypothesisResult> = run_all(&self.runs, at_once, done, replay)?;
        let original = hypotheses[0].clone();
        hypotheses.iter_mut().for_each(|result| result.compare(&original));
        let results = WhatIfResults { hypotheses };
        let path = self.directory.join("summary.json");
        write(&path, write_json(&results, &path))?;
        Ok(results)
    }
}

fn write<T>(path: &Path, written: std::io::Result<T>) -> Result<T, WhatIfError> {
    written.map_err(|source| WhatIfError::Write { path: path.to_path_buf(), source })
}

impl HypothesisResult {
    fn new(name: &str, report: Report) -> Self {
        let (total, sites) = match report.sections.breakdown {
            Some(breakdown) => (Some(breakdown.total), breakdown.regions),
            None => (None, Vec::new()),
        };
        Self {
            name: name.to_owned(),
            simulated_time_s: Some(report.simulated_time_s),
            simulated_time_ps: Some(report.simulated_time_ps),
            digest: Some(report.digest),
            wait_states: total.map(|total| total.named().into_iter().skip(OTHER_PARTS).collect()),
            messages: Some(report.messages),
            message_bytes: Some(report.message_bytes),
            warnings: report.warnings,
            total,
            sites,
            ..Self::default()
        }
    }

    fn compare(&mut self, original: &Self) {
        self.is_same = self.digest.is_some() && self.digest == original.digest;
        self.change = match (self.simulated_time_s, original.simulated_time_s) {
            (Some(own), Some(all)) if all > 0.0 => Some(own / all - 1.0),
            _ => self.is_same.then_some(0.0),
        };
    }

    /// Returns the change in words.
    pub fn describe_change(&self) -> String {
        match self.change {
            _ if self.is_same && self.name != ORIGINAL => "changes nothing".to_owned(),
            Some(change) => format!("{:+.2} %", 100.0 * change),
            None => "-".to_owned(),
        }
    }
}

impl WhatIfResults {
    /// Returns the program and then the hypotheses, those that save most first and failed ones last.
    pub fn by_gain(&self) -> Vec<&HypothesisResult> {
        let mut sorted: Vec<&HypothesisResult> = self.hypotheses.iter().collect();
        // The sort is stable: equal times keep their order.
        sorted[1..].sort_by_key(|result| result.simulated_time_ps.unwrap_or(u64::MAX));
        sorted
    }

    /// Returns the number of replays that failed.
    pub fn failures(&self) -> usize {
        self.hypotheses.iter().filter(|result| result.error.is_some()).count()
    }
}
