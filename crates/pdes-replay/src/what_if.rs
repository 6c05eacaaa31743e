//! Comparison of a program with hypotheses about it, all replayed with one configuration.

#[cfg(feature = "pictures")]
mod page;
mod result;
mod schema;
mod verification;

pub use answers::HopBytes;
#[cfg(feature = "pictures")]
pub use page::PageError;
pub use result::{HypothesisResult, WhatIfResults};
pub use schema::hypotheses_schema;
pub use verification::{Deviation, Verification};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use answers::{PlaceError, place};
use mpi_model::{Outcomes, Parameters};
use outputs::write_json;
use replay::{RunSpec, TraceFile, run_all};
use trace_mmap::{ConvertOptions, LoadOptions, TraceError};
use trace_tools::transform::{Hypothesis, ORIGINAL, TransformError};

use crate::config::{Config, ConfigError};
use crate::report::Report;

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
/// let what_if = WhatIf::new(&config, &hypotheses, None, &results)?;
/// let compared = what_if.run(1, &Default::default())?;
/// assert_eq!(compared.hypotheses[1].simulated_time_s, Some(0.002));
/// assert_eq!(compared.hypotheses[1].change, Some(0.002 / 0.003 - 1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WhatIf {
    directory: PathBuf,
    /// The program, and then the hypotheses.
    runs: Vec<Run>,
    /// The program as it was really modified.
    modified: Option<Run>,
    /// Holds the transformed traces.
    _traces: tempfile::TempDir,
}

impl WhatIfError {
    /// Returns whether the hypotheses are wrong, rather than a file that cannot be read or written.
    pub fn is_misuse(&self) -> bool {
        match self {
            Self::Setting { .. } | Self::FixedSetting { .. } => true,
            Self::Place(error) => error.is_misuse(),
            _ => false,
        }
    }
}

/// Name of the modified program.
const MODIFIED: &str = "modified";

/// A replay of the program, or of a transformed one.
#[derive(Debug)]
struct Run {
    name: String,
    spec: RunSpec,
    /// Trace that is changed, or replayed as it is.
    source: TraceFile,
    /// Set where ranks are placed otherwise.
    hop_bytes: Option<HopBytes>,
    /// True if the original program has receives from any source, or cancelled ones.
    has_open_receives: bool,
}

/// The reason why hypotheses cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum WhatIfError {
    /// The trace of the program cannot be loaded.
    #[error("the trace: {0}")]
    Trace(#[from] TraceError),
    /// The trace of the modified program cannot be loaded.
    #[error("the trace of the modified program: {0}")]
    Modified(#[source] TraceError),
    /// The configuration is invalid.
    #[error(transparent)]
    Config(ConfigError),
    /// A hypothesis sets an invalid value of the configuration.
    #[error("the hypothesis {hypothesis:?}: {source}")]
    Setting {
        /// Name of the hypothesis.
        hypothesis: String,
        /// The reason.
        source: ConfigError,
    },
    /// A hypothesis sets a value of the configuration that is the same for all.
    #[error(
        "the hypothesis {hypothesis:?}: set = [{setting:?}]: sections other than trace, output and engine can be changed"
    )]
    FixedSetting {
        /// Name of the hypothesis.
        hypothesis: String,
        /// The setting.
        setting: String,
    },
    /// Ranks cannot be placed.
    #[error(transparent)]
    Place(#[from] PlaceError),
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

impl WhatIf {
    /// Applies hypotheses to the trace of a run, and writes the transformed traces into a temporary directory in `directory`, which
    /// is created if necessary. Other outputs of the run are left out. `modified` is the trace of the program as it was really
    /// modified, with which predictions are compared.
    ///
    /// # Errors
    /// Fails if the configuration is invalid, a trace cannot be loaded, or a hypothesis does not fit it, before anything is replayed.
    pub fn new(
        config: &Config,
        hypotheses: &[Hypothesis],
        modified: Option<&Path>,
        directory: &Path,
    ) -> Result<Self, WhatIfError> {
        let mut spec = config.clone().resolve().map_err(WhatIfError::Config)?.without_outputs();
        let load = spec.load_options();
        let trace = Arc::new(trace_tools::load(&spec.trace, &load)?);
        let is_chosen =
            config.section("analysis").is_some_and(|analysis| analysis.contains_key("critical_path"));
        let has_path = !is_chosen && !spec.fast_forward && trace.actions() <= MAX_PATH_ACTIONS;
        spec.critical_path |= has_path;
        if let Some(modified) = modified {
            trace_tools::load(modified, &load).map_err(WhatIfError::Modified)?;
        }
        let failed = |source| WhatIfError::Write { path: directory.to_path_buf(), source };
        std::fs::create_dir_all(directory).map_err(failed)?;
        let traces = tempfile::Builder::new().prefix(".traces-").tempdir_in(directory).map_err(failed)?;
        let options = ConvertOptions { load: LoadOptions { ranks: None, ..load }, ..Default::default() };
        let has_open_receives =
            trace.loaded_ranks().any(|rank| trace.rank(rank).has_timing_dependent_matching());
        let name = ORIGINAL.to_owned();
        let source = spec.trace.clone();
        let mut runs = vec![Run {
            name,
            spec: spec.clone(),
            source: source.clone(),
            hop_bytes: None,
            has_open_receives,
        }];
        for hypothesis in hypotheses {
            let name = hypothesis.name().to_owned();
            let mut spec = with_settings(config, hypothesis)?.without_outputs();
            spec.critical_path |= has_path;
            if hypothesis.changes_program() {
                let path = traces.path().join(format!("{name}.pdt"));
                hypothesis.write(&trace, &spec.trace, &path, &options)?;
                spec.trace = path.into();
            }
            let placements: Vec<_> = hypothesis.placements().collect();
            let mut hop_bytes = None;
            if !placements.is_empty() {
                let (hosts, found) = place(&spec, &placements)?;
                let path = traces.path().join(format!("{name}.hosts"));
                write(&path, std::fs::write(&path, hosts.join("\n") + "\n"))?;
                (spec.hosts, hop_bytes) = (Some(path), Some(found));
            }
            runs.push(Run { name, spec, source: source.clone(), hop_bytes, has_open_receives });
        }
        let modified = modified.map(|path| Run {
            name: MODIFIED.to_owned(),
            spec: RunSpec { trace: path.into(), ..spec },
            source: path.into(),
            hop_bytes: None,
            has_open_receives,
        });
        Ok(Self { directory: directory.to_path_buf(), runs, modified, _traces: traces })
    }

    /// Returns the number of programs that are replayed: the program, each hypothesis, and the modified program.
    pub fn runs(&self) -> usize {
        self.runs.len() + usize::from(self.modified.is_some())
    }

    /// Replays all programs, `at_once` at a time, and writes `summary.json`, and for each program its report as `reports/NAME.json`.
    /// A program whose course depends on time is replayed with both sources of outcomes; the report with the other one than
    /// configured is `reports/recorded/NAME.json` or `reports/reenact/NAME.json`. The report of the modified program is
    /// `modified.json`. `done` counts the programs that are done. A replay that fails is a result with its error.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    ///
    /// # Panics
    /// Panics if `at_once` is zero.
    pub fn run(&self, at_once: usize, done: &AtomicU64) -> Result<WhatIfResults, WhatIfError> {
        let reports = self.directory.join("reports");
        write(&reports, std::fs::create_dir_all(&reports))?;
        let all: Vec<&Run> = self.runs.iter().chain(&self.modified).collect();
        let replay =
            |run: &&Run| match self.modified.as_ref().is_some_and(|modified| std::ptr::eq(modified, *run)) {
                true => Ok(run.replay(run.spec.mpi.outcomes, &self.directory)?.0),
                false => run.replay_both(&reports),
            };
        let mut hypotheses: Vec<HypothesisResult> = run_all(&all, at_once, done, replay)?;
        let modified = if self.modified.is_some() { hypotheses.pop() } else { None };
        let results = WhatIfResults::new(hypotheses, modified);
        let path = self.directory.join("summary.json");
        write(&path, write_json(&results, &path))?;
        Ok(results)
    }
}

/// Largest number of actions of a program whose critical path is analysed without being asked for.
const MAX_PATH_ACTIONS: u64 = 10_000_000;

/// Actions, beside receives from any source, whose outcomes may depend on time.
const TIMED_ACTIONS: [&str; 6] = ["test", "waitany", "waitsome", "probe", "iprobe", "cancel"];

/// Sections of the configuration that a hypothesis cannot change.
const FIXED_SECTIONS: [&str; 3] = ["trace", "output", "engine"];

/// Resolves the configuration with the settings of a hypothesis.
fn with_settings(config: &Config, hypothesis: &Hypothesis) -> Result<RunSpec, WhatIfError> {
    let wrong = |source| WhatIfError::Setting { hypothesis: hypothesis.name().to_owned(), source };
    changed_config(config, hypothesis)?.resolve().map_err(wrong)
}

/// Returns the configuration with the settings of a hypothesis.
pub(crate) fn changed_config(config: &Config, hypothesis: &Hypothesis) -> Result<Config, WhatIfError> {
    let name = hypothesis.name();
    let wrong = |source| WhatIfError::Setting { hypothesis: name.to_owned(), source };
    let mut config = config.clone();
    for setting in hypothesis.settings() {
        let section = setting.split('.').next().unwrap_or_default();
        if FIXED_SECTIONS.contains(&section.trim()) {
            return Err(WhatIfError::FixedSetting { hypothesis: name.to_owned(), setting: setting.clone() });
        }
        config.set(setting).map_err(wrong)?;
    }
    Ok(config)
}

impl Run {
    /// Replays the program with the configured source of outcomes and, if its course depends on time, with the other one.
    fn replay_both(&self, reports: &Path) -> Result<HypothesisResult, WhatIfError> {
        let configured = self.spec.mpi.outcomes;
        let (mut result, may_depend_on_time) = self.replay(configured, reports)?;
        let other = match configured {
            Outcomes::Reenact => Outcomes::Recorded,
            Outcomes::Recorded => Outcomes::Reenact,
        };
        // Outcomes are counted where they are decided by simulated time.
        let is_unknown = configured == Outcomes::Recorded && may_depend_on_time;
        if is_unknown || result.error.is_some() || result.decided_outcomes > 0 {
            let (replayed, _) = self.replay(other, &reports.join(other.name()))?;
            let depends_on_time = result.decided_outcomes + replayed.decided_outcomes > 0;
            if replayed.error.is_none() && (depends_on_time || result.error.is_some()) {
                result.other_outcomes = Some(Box::new(replayed));
            }
        }
        Ok(result)
    }

    /// Replays the program, and writes the report into a directory. Returns false beside the result if the program has no calls that
    /// depend on time.
    fn replay(&self, outcomes: Outcomes, directory: &Path) -> Result<(HypothesisResult, bool), WhatIfError> {
        let spec = RunSpec { mpi: Parameters { outcomes, ..self.spec.mpi.clone() }, ..self.spec.clone() };
        match Report::of(&spec) {
            Ok(mut report) => {
                // Changed traces and hosts are in temporary files.
                if self.spec.trace != self.source {
                    report.parameters.trace = format!("{} ({})", self.source, self.name);
                }
                if self.hop_bytes.is_some() {
                    report.parameters.hosts = Some(format!("those of {}", self.name));
                }
                write(directory, std::fs::create_dir_all(directory))?;
                let path = directory.join(format!("{}.json", self.name));
                write(&path, report.write(&path))?;
                let hop_bytes = self.hop_bytes;
                let is_timed = |name: &str| TIMED_ACTIONS.contains(&name);
                let may_depend_on_time = self.has_open_receives
                    || report.time_by_action.iter().any(|total| total.count > 0 && is_timed(total.action));
                let result = HypothesisResult { hop_bytes, ..HypothesisResult::new(&self.name, report) };
                Ok((result, may_depend_on_time))
            }
            Err(error) => Ok((HypothesisResult::failed(&self.name, outcomes.name(), &error), true)),
        }
    }
}

fn write<T>(path: &Path, written: std::io::Result<T>) -> Result<T, WhatIfError> {
    written.map_err(|source| WhatIfError::Write { path: path.to_path_buf(), source })
}
