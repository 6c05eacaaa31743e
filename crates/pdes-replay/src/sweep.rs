//! Sweeps: one program on many machines, or with many settings, in one command.

mod column;
mod csv_table;
mod grid;
mod journal;
mod layouts;
#[cfg(feature = "pictures")]
mod page;
#[cfg(feature = "parquet")]
mod parquet_table;
#[cfg(feature = "pictures")]
mod plot;
mod schema;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use netmodel::quantity::{Bandwidth, Seconds, Speed};
use replay::run_all;
use serde::{Deserialize, Serialize};

use crate::config::{Config, ConfigError};
use crate::report::Report;
pub use csv_table::write_csv;
use journal::Journal;
#[cfg(feature = "parquet")]
pub use parquet_table::write_parquet;
pub use schema::sweep_schema;

/// A grid of runs: every combination of the values of its axes.
///
/// ```
/// use pdes_replay::Sweep;
///
/// let directory = tempfile::tempdir()?;
/// let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text);
/// write("trace.txt", "0 init\n1 init\n0 compute 1e6\n0 send 1 0 984\n1 recv 0 0 984\n")?;
/// write("run.toml", "[trace]\npath = 'trace.txt'\n[platform.topology]\nkind = 'cluster'\nhosts = 2\nspeed = '1Gf'\nbandwidth = '1GBps'\nlatency = '1us'\n")?;
/// write("sweep.toml", "config = 'run.toml'\n[grid]\nnetwork.preset = ['raw', 'smpi']\nnetwork.latency_factor = [1, 1000]\n")?;
///
/// let sweep = Sweep::from_path(&directory.path().join("sweep.toml"))?;
/// let results = sweep.run(&directory.path().join("results"), 1, false, &Default::default())?;
/// assert_eq!(results.axes, ["network.latency_factor", "network.preset"]);
/// assert_eq!(results.rows[2].labels, ["1000", "raw"]);
/// // 1 ms of computation, two links of 1 us each, a thousand times, and 984 + 16 bytes at 1 ns each.
/// assert_eq!(results.rows[2].result.as_ref().unwrap().simulated_time_s, 0.003001);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sweep {
    /// The file, without links.
    path: PathBuf,
    axes: Vec<String>,
    points: Vec<Point>,
    /// The files that the runs read, each with its role.
    inputs: Vec<(&'static str, PathBuf)>,
}

/// A combination of the values of a sweep: a run, or the reason why it is left out.
#[derive(Debug)]
struct Point {
    labels: Vec<String>,
    cost: Option<f64>,
    run: Result<PlannedRun, String>,
}

/// A run of a sweep, with a complete configuration that has been checked. A program of it is generated when the run begins.
#[derive(Debug)]
struct PlannedRun {
    config: Config,
    preset: &'static str,
    /// Hash of everything that determines the result: equal keys are equal runs.
    key: String,
}

/// The reason why a sweep cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is not a sweep.
    #[error("the sweep {}: {message}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Error message, with the line if it is known.
        message: String,
    },
    /// The directory has the results of another sweep.
    #[error(
        "{} has the results of the sweep {other}: name another directory, or replace them with --fresh",
        directory.display()
    )]
    OtherSweep {
        /// The directory.
        directory: PathBuf,
        /// Path of the other sweep.
        other: String,
    },
    /// Another process writes results into the directory.
    #[error("another sweep is writing into {}: wait for it, or name another directory", directory.display())]
    Busy {
        /// The directory.
        directory: PathBuf,
    },
    /// The configuration of a run is invalid.
    #[error("the sweep {}: the run {labels}: {source}", path.display())]
    Run {
        /// The file.
        path: PathBuf,
        /// Values of the run.
        labels: String,
        /// Cause.
        source: ConfigError,
    },
    /// The base configuration is invalid, or a key of the sweep is unknown.
    #[error(transparent)]
    Base(#[from] ConfigError),
}

impl SweepError {
    /// Returns whether a file cannot be read or written, rather than its content being invalid.
    pub fn is_unreadable(&self) -> bool {
        match self {
            Self::File { .. } => true,
            Self::Base(error) => error.is_unreadable(),
            Self::Busy { .. } => true,
            Self::Format { .. } | Self::Run { .. } | Self::OtherSweep { .. } => false,
        }
    }
}

/// The results of a sweep.
#[derive(Clone, Debug, Default)]
pub struct SweepResults {
    /// Names of the axes.
    pub axes: Vec<String>,
    /// Names of the presets of the network, each once, in the order of the runs.
    pub presets: Vec<&'static str>,
    /// Runs; the last axis varies fastest.
    pub rows: Vec<SweepRow>,
    /// Number of runs with results from an earlier call.
    pub resumed: usize,
}

/// A run of a sweep with its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepRow {
    /// Values of the axes.
    pub labels: Vec<String>,
    /// Sum of the costs of these values, in the unit of the file; `None` if none has a cost.
    pub cost: Option<f64>,
    /// Result of the run, or the error message.
    pub result: Result<RunResult, String>,
    /// There was no run, for the reason in the error message: the layout is impossible, or needs too much memory.
    pub is_left_out: bool,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// End time of the last rank \[s\].
    pub simulated_time_s: f64,
    /// End time of the last rank \[ps\], exact.
    pub simulated_time_ps: u64,
    /// Simulated time of all ranks in computations \[s\].
    pub compute_s: f64,
    /// Simulated time of all ranks in everything else: messages, waiting, collectives \[s\].
    pub communication_s: f64,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of actions of the run.
    pub actions: u64,
    /// Number of messages sent.
    pub messages: u64,
    /// Payload of these messages \[B\].
    pub message_bytes: u64,
    /// Wall-clock time \[s\].
    pub wall_time_s: f64,
    /// Actions per second of wall-clock time of the replay.
    pub actions_per_s: f64,
    /// A hash over the results of all ranks.
    pub digest: String,
    /// Warnings that a user should know before trusting the result.
    pub warnings: Vec<String>,
}

impl Sweep {
    /// Reads a sweep and checks the configuration of each of its runs. Paths are relative to the file.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, or the configuration of a run is invalid.
    pub fn from_path(path: &Path) -> Result<Self, SweepError> {
        let grid = grid::Grid::from_path(path)?;
        let base = grid.base()?;
        let (mut points, mut inputs) = (Vec::new(), Vec::new());
        for settings in grid.combinations() {
            let mut labels: Vec<String> = settings.iter().map(|setting| setting.label.clone()).collect();
            let costs = settings.iter().filter_map(|setting| setting.cost);
            let cost = costs.reduce(|one, other| one + other);
            let mut config = base.clone();
            if let Some(layouts) = grid.layouts() {
                let options = settings.iter().filter_map(|setting| setting.option.as_ref());
                let layout = layouts.layout(options).map_err(|error| SweepError::Format {
                    path: path.to_owned(),
                    message: format!("[layouts]: {error}"),
                })?;
                labels.push(layout.data.map(|data| data.to_string()).unwrap_or_default());
                match layout.program {
                    Ok(program) => config.insert("trace", "generate", program.into()),
                    Err(reason) => {
                        points.push(Point { labels, cost, run: Err(reason) });
                        continue;
                    }
                }
            }
            let source =
                |source| SweepError::Run { path: path.to_owned(), labels: labels.join(", "), source };
            settings.iter().for_each(|setting| setting.apply(&mut config));
            settings.iter().try_for_each(|setting| setting.apply_parts(&mut config)).map_err(source)?;
            if settings.iter().any(|setting| setting.sets("network", "model")) {
                config.remove_other_models();
            }
            // These outputs are for a single run: concurrent runs would overwrite each other's files.
            ["checkpoint", "timeline", "output"].iter().for_each(|section| config.remove_section(section));
            for input in config.input_files() {
                if !inputs.contains(&input) {
                    inputs.push(input);
                }
            }
            let spec = config.clone().check().map_err(source)?;
            let (preset, key) = (spec.preset.key, journal::key(&config, &spec));
            points.push(Point { labels, cost, run: Ok(PlannedRun { config, preset, key }) });
        }
        if let (true, Some(Err(reason))) =
            (points.iter().all(|point| point.run.is_err()), points.first().map(|point| &point.run))
        {
            let message = format!("[layouts]: no layout is possible; of the first, {reason}");
            return Err(SweepError::Format { path: path.to_owned(), message });
        }
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        Ok(Self { path, axes: grid.axis_names(), points, inputs })
    }

    /// Names of the files of results in the directory.
    pub const OUTPUTS: [&str; 4] = [journal::FILE_NAME, "sweep.csv", "sweep.parquet", "sweep.html"];

    /// Returns the files that the runs read, each with its role.
    pub fn input_files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        self.inputs.iter().map(|(role, path)| (*role, path.as_path()))
    }

    /// Returns the number of runs.
    pub fn len(&self) -> usize {
        self.runs().count()
    }

    /// Returns whether there are no runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn runs(&self) -> impl Iterator<Item = &PlannedRun> {
        self.points.iter().filter_map(|point| point.run.as_ref().ok())
    }

    /// Executes all runs, `at_once` at a time, except those with results in the directory unless `afresh` is set. Each result is
    /// appended to the directory at once; a run that fails is a row with its error message.
    ///
    /// `done` counts the runs that have ended.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be written to, or has the results of another sweep.
    ///
    /// # Panics
    /// Panics if `at_once` is zero.
    pub fn run(
        &self,
        directory: &Path,
        at_once: usize,
        afresh: bool,
        done: &AtomicU64,
    ) -> Result<SweepResults, SweepError> {
        let journal = Journal::open(directory, &self.path, afresh)?;
        let resumed = self.runs().filter(|run| journal.find(&run.key).is_some()).count();
        let runs: Vec<&PlannedRun> = self.runs().collect();
        let run = |planned: &&PlannedRun| -> Result<Result<RunResult, String>, SweepError> {
            if let Some(found) = journal.find(&planned.key) {
                return Ok(Ok(found));
            }
            let found = planned.replay();
            if let Ok(found) = &found {
                journal.add(&planned.key, found)?;
            }
            Ok(found)
        };
        let mut results = run_all(&runs, at_once, done, run)?.into_iter();
        let row = |Point { labels, cost, run }: &Point| SweepRow {
            labels: labels.clone(),
            cost: *cost,
            result: match run {
                Ok(_) => results.next().expect("each run has a result"),
                Err(reason) => Err(reason.clone()),
            },
            is_left_out: run.is_err(),
        };
        let rows = self.points.iter().map(row).collect();
        let mut presets = Vec::new();
        for preset in self.runs().map(|run| run.preset) {
            if !presets.contains(&preset) {
                presets.push(preset);
            }
        }
        Ok(SweepResults { axes: self.axes.clone(), presets, rows, resumed })
    }
}

impl PlannedRun {
    fn replay(&self) -> Result<RunResult, String> {
        let spec = self.config.clone().resolve().map_err(|error| error.to_string())?;
        Report::of(&spec).map(RunResult::new).map_err(|error| error.to_string())
    }
}

impl RunResult {
    fn new(report: Report) -> Self {
        let total = |is_compute: bool| {
            let times =
                report.time_by_action.iter().filter(|total| (total.action == "compute") == is_compute);
            times.map(|total| total.time_s).sum()
        };
        Self {
            simulated_time_s: report.simulated_time_s,
            simulated_time_ps: report.simulated_time_ps,
            compute_s: total(true),
            communication_s: total(false),
            ranks: report.ranks,
            actions: report.actions,
            messages: report.messages,
            message_bytes: report.message_bytes,
            wall_time_s: report.wall_time_s,
            actions_per_s: report.actions_per_s,
            digest: report.digest,
            warnings: report.warnings,
        }
    }
}

impl SweepResults {
    /// Returns the number of runs that failed.
    pub fn failures(&self) -> usize {
        self.rows.iter().filter(|row| row.result.is_err() && !row.is_left_out).count()
    }

    /// Returns the first of the rows with the shortest simulated time; `None` if all failed.
    pub fn shortest(&self) -> Option<&SweepRow> {
        let done =
            self.rows.iter().filter_map(|row| Some((row, row.result.as_ref().ok()?.simulated_time_ps)));
        done.min_by_key(|(_, time)| *time).map(|(row, _)| row)
    }

    /// Returns the reasons why rows are left out, without their numbers, each with the number of rows and a whole reason.
    pub fn left_out(&self) -> Vec<(usize, &str)> {
        let mut kinds: Vec<(String, usize, &str)> = Vec::new();
        for reason in
            self.rows.iter().filter(|row| row.is_left_out).filter_map(|row| row.result.as_ref().err())
        {
            let kind: String = reason.chars().filter(|letter| !letter.is_ascii_digit()).collect();
            match kinds.iter_mut().find(|(other, ..)| *other == kind) {
                Some((_, count, _)) => *count += 1,
                None => kinds.push((kind, 1, reason)),
            }
        }
        kinds.into_iter().map(|(_, count, reason)| (count, reason)).collect()
    }

    /// Returns the simulated time of a row relative to the first row that did not fail.
    fn relative(&self, row: &SweepRow) -> Option<f64> {
        let first = self.rows.iter().find_map(|row| row.result.as_ref().ok())?;
        Some(row.result.as_ref().ok()?.simulated_time_s / first.simulated_time_s)
    }

    /// Returns the number that each label of an axis stands for, those with units in SI units; `None` if some label of a run is no number.
    pub(crate) fn positions(&self, axis: usize) -> Option<Vec<f64>> {
        let place =
            |row: &SweepRow| position(&row.labels[axis]).or_else(|| row.is_left_out.then_some(f64::NAN));
        self.rows.iter().map(place).collect()
    }

    /// Returns the axes with more than one value; all axes if there are none.
    pub fn varying(&self) -> Vec<usize> {
        let is_varied = |axis: &usize| {
            let mut labels = self.rows.iter().filter(|row| !row.is_left_out).map(|row| &row.labels[*axis]);
            let first = labels.next();
            labels.any(|label| Some(label) != first)
        };
        let all = 0..self.axes.len();
        let varying: Vec<usize> = all.clone().filter(is_varied).collect();
        if varying.is_empty() { all.collect() } else { varying }
    }
}

/// Returns the number that a label stands for: a plain one, or a time, a bandwidth or a speed.
fn position(label: &str) -> Option<f64> {
    let read = || toml::Value::String(label.to_owned());
    let number = label.trim().parse().ok();
    let number = number.or_else(|| read().try_into().ok().map(|Seconds(seconds)| seconds));
    let number = number.or_else(|| read().try_into().ok().map(|Bandwidth(bandwidth)| bandwidth));
    number
        .or_else(|| read().try_into().ok().map(|Speed(speed)| speed))
        .filter(|number: &f64| number.is_finite())
}
