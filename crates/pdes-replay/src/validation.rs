//! Validation of a replay against measured times, with the error split into computation and communication.
//!
//! The platform describes the machine on which the program was recorded (an identity simulation). For each kind of action and each
//! call site the time of all ranks is compared three times: measured, replayed, and replayed with the measured time of each
//! computation in place of its amount. The last two differ in computation, the first and the last in the rest.

mod calls;
mod computations;
mod durations;
mod measurement;
mod trust;

use std::path::Path;

use mpi_model::ActionKind;
use outputs::write_json;
use pdes_core::{Progress, SimTime};
use replay::{Outcome, RunError, RunSpec, Simulation};
use serde::Serialize;
use trace_mmap::{ConvertOptions, LoadOptions, Summary, TraceError, WriteError, write_with_measured_times};

pub use calls::{CallFit, Prediction, fit_calls};
pub use computations::measured_computations;
use measurement::{Class, Sum, Times};
pub use trust::Share;

/// Name of the format.
const FORMAT: &str = "pdes-replay validation";
/// Version of the format; it grows when a field changes its meaning or is removed.
const VERSION: u32 = 1;

/// A comparison of a replay with measured times, as written in JSON.
///
/// # Stability
/// Within one `version`, fields keep their names and meanings; new ones may be added.
#[derive(Clone, Debug, Serialize)]
pub struct Validation {
    /// `"pdes-replay validation"`.
    pub format: &'static str,
    /// Version of the format.
    pub version: u32,
    /// Version of the program that wrote the file.
    pub program_version: &'static str,
    /// Path of the trace, as given.
    pub trace: String,
    /// Path of the platform, or `"inline"`.
    pub platform: String,
    /// Network model.
    pub model: &'static str,
    /// Unit of the amounts of computation in the trace; null if unknown.
    pub computations: Option<String>,
    /// Number of ranks of the run.
    pub ranks: u32,
    /// Number of actions of the run.
    pub actions: u64,
    /// Number of actions with a measured time.
    pub measured_actions: u64,
    /// Time of the rank that took longest. The time of a rank begins when it has entered MPI.
    pub run_time: TimeComparison,
    /// Computation of all ranks.
    pub computation: TimeComparison,
    /// Communication (MPI calls) of all ranks.
    pub communication: TimeComparison,
    /// Comparison by kind of action, in descending order of measured time.
    pub calls: Vec<TimeComparison>,
    /// Comparison by call site, in descending order of measured time; `""` is the part before the first call site.
    pub regions: Vec<TimeComparison>,
    /// Time of each rank, by number.
    pub by_rank: Vec<TimeComparison>,
    /// Share of the measured time in calls that no replay models, which is missing in the replay; null if there are no such calls.
    pub unmodelled_share: Option<f64>,
    /// Shares of the replayed run time that are proportional to parameters of the machine, in descending order; none of a run that
    /// takes no time.
    pub shares: Vec<Share>,
    /// The largest error; null if there is none.
    pub residual: Option<Residual>,
}

/// A measured and a replayed time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimeComparison {
    /// Name of the kind of action, call site or rank.
    pub name: String,
    /// Number of actions with a measured time.
    pub count: u64,
    /// Measured time \[s\].
    pub measured_s: f64,
    /// Replayed time \[s\].
    pub replayed_s: f64,
    /// Time replayed with measured computations \[s\].
    pub replayed_with_measured_computations_s: f64,
    /// Replayed minus measured time \[s\]: the sum of the next two.
    pub error_s: f64,
    /// Error of computations: of their amounts and of the speed of hosts \[s\].
    pub computation_error_s: f64,
    /// Remaining error: of the communication model and of anything else \[s\].
    pub communication_error_s: f64,
    /// Error divided by the measured time; null if that is zero.
    pub error: Option<f64>,
}

/// The largest error of a kind of action: of computations due to their amounts, of calls due to the communication model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Residual {
    /// Name of the kind of action.
    pub name: String,
    /// `"computation"` or `"communication"`.
    pub part: &'static str,
    /// Error summed over all ranks \[s\].
    pub error_s: f64,
    /// Call site with the largest error of this sort; null if the trace has none.
    pub region: Option<String>,
}

/// The reason why a replay cannot be compared with measured times.
#[derive(Debug, thiserror::Error)]
pub enum ValidationError {
    /// The trace has no measured times.
    #[error("the trace has no measured times: record it with `trace acquire --with-times`")]
    NoTimes,
    /// A replay fails.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The trace is damaged.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A parameter cannot be changed.
    #[error(transparent)]
    Parameter(#[from] answers::MessageError),
    /// The trace with measured computations cannot be written.
    #[error("a temporary trace: {0}")]
    Write(#[from] WriteError),
    /// The temporary directory cannot be created.
    #[error("a temporary directory: {0}")]
    Temporary(#[from] std::io::Error),
}

impl Validation {
    /// Replays a trace twice, once with its measured computations, and compares the times; three more replays find the shares of the run
    /// time.
    ///
    /// A temporary archive holds the trace with its measured computations: up to 16 bytes per action.
    ///
    /// # Errors
    /// Returns an error if the trace has no measured times, or a replay fails.
    pub fn new(spec: &RunSpec) -> Result<Self, ValidationError> {
        let spec = RunSpec {
            fast_forward: false,
            waits: Some(true),
            histograms: false,
            matrix_groups: None,
            checkpoints: None,
            profile: None,
            certificate: None,
            ..spec.clone()
        };
        let simulation = Simulation::load(&spec)?;
        let measured = measurement::measured_times(simulation.trace())?;
        let (outcome, replayed) = replay(&simulation)?;
        let dir = tempfile::tempdir()?;
        let measured_trace = dir.path().join("measured_trace.pdt");
        let load = LoadOptions { threads: spec.reading_threads, ..LoadOptions::default() };
        let options = ConvertOptions { load, ..ConvertOptions::default() };
        let Summary { actions, .. } =
            write_with_measured_times(simulation.trace(), &measured_trace, &options)?;
        let (_, identity) =
            replay(&Simulation::load(&RunSpec { trace: measured_trace.into(), ..spec.clone() })?)?;
        let all = [&measured, &replayed, &identity];
        let calls = by_kind(all);
        let (computation, communication) = calls.iter().fold(
            (TimeComparison::zero("computation"), TimeComparison::zero("communication")),
            |(computation, communication), call| match call.name == ActionKind::Compute.name() {
                true => (computation.plus(call), communication),
                false => (computation, communication.plus(call)),
            },
        );
        let all_measured = computation.measured_s + communication.measured_s;
        let unmodelled = calls.iter().find(|call| call.name == Class::Unmodelled.name());
        let unmodelled_share = unmodelled.and_then(|call| relative(call.measured_s, all_measured));
        let regions = by_site(all);
        let shares = match outcome.simulated_time() {
            SimTime::ZERO => Vec::new(),
            end => trust::shares(&spec, end)?,
        };
        let residual = Residual::find(&calls, &regions);
        Ok(Self {
            format: FORMAT,
            version: VERSION,
            program_version: env!("CARGO_PKG_VERSION"),
            trace: simulation.spec().trace.to_string(),
            platform: simulation.spec().platform.to_string(),
            model: simulation.spec().model.key,
            computations: simulation.trace().provenance().work_metric.map(|counted| counted.to_string()),
            ranks: outcome.program().ends.len() as u32,
            actions,
            measured_actions: calls.iter().map(|call| call.count).sum(),
            run_time: run_time(all),
            computation,
            communication,
            calls,
            regions,
            by_rank: by_rank(all),
            unmodelled_share,
            shares,
            residual,
        })
    }

    /// Writes the comparison to a file, atomically.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        write_json(self, path)
    }
}

fn replay(simulation: &Simulation) -> Result<(Outcome, Times), RunError> {
    let outcome = simulation.replay(&Progress::new(simulation.spec().threads))?;
    let times = measurement::replayed_times(simulation.trace(), &outcome);
    Ok((outcome, times))
}

/// Times of all three: measured, replayed, and replayed with measured computations.
type TimeTriple<'a> = [&'a Times; 3];

/// Compares the kinds of action with measured times; others, such as finalize, have nothing to compare.
fn by_kind(all: TimeTriple<'_>) -> Vec<TimeComparison> {
    let [measured, ..] = all;
    let row = |class: &Class| {
        let sums = all.map(|times| times.by_kind.get(class).copied().unwrap_or_default());
        TimeComparison::of_sums(class.name().to_owned(), sums)
    };
    sorted(measured.by_kind.keys().map(row).collect())
}

fn by_site(all: TimeTriple<'_>) -> Vec<TimeComparison> {
    let [measured, ..] = all;
    let row = |site: &Option<String>| {
        let sums = all.map(|times| times.by_site.get(site).copied().unwrap_or_default());
        TimeComparison::of_sums(site.clone().unwrap_or_default(), sums)
    };
    sorted(measured.by_site.keys().map(row).collect())
}

/// Sorts by measured time, descending. The sort is stable.
fn sorted(mut rows: Vec<TimeComparison>) -> Vec<TimeComparison> {
    rows.sort_by(|one, other| other.measured_s.total_cmp(&one.measured_s));
    rows
}

fn by_rank(all: TimeTriple<'_>) -> Vec<TimeComparison> {
    let [measured, ..] = all;
    let rank =
        |rank: usize| TimeComparison::new(rank.to_string(), 0, all.map(|times| times.by_rank[rank].into()));
    (0..measured.by_rank.len()).map(rank).collect()
}

fn run_time(all: TimeTriple<'_>) -> TimeComparison {
    let longest = |times: &Times| times.by_rank.iter().copied().max().unwrap_or(0).into();
    TimeComparison::new("run time".to_owned(), 0, all.map(longest))
}

impl TimeComparison {
    fn of_sums(name: String, sums: [Sum; 3]) -> Self {
        Self::new(name, sums[0].count, sums.map(|sum| sum.picos))
    }

    fn new(name: String, count: u64, picos: [u128; 3]) -> Self {
        let [measured, replayed, identity] = picos.map(|picos| picos as f64 / 1e12);
        Self {
            name,
            count,
            measured_s: measured,
            replayed_s: replayed,
            replayed_with_measured_computations_s: identity,
            error_s: replayed - measured,
            computation_error_s: replayed - identity,
            communication_error_s: identity - measured,
            error: relative(replayed - measured, measured),
        }
    }

    fn zero(name: &str) -> Self {
        Self::new(name.to_owned(), 0, [0; 3])
    }

    fn plus(self, other: &Self) -> Self {
        let measured_s = self.measured_s + other.measured_s;
        let error_s = self.error_s + other.error_s;
        Self {
            name: self.name,
            count: self.count + other.count,
            measured_s,
            replayed_s: self.replayed_s + other.replayed_s,
            replayed_with_measured_computations_s: self.replayed_with_measured_computations_s
                + other.replayed_with_measured_computations_s,
            error_s,
            computation_error_s: self.computation_error_s + other.computation_error_s,
            communication_error_s: self.communication_error_s + other.communication_error_s,
            error: relative(error_s, measured_s),
        }
    }
}

fn relative(error: f64, measured: f64) -> Option<f64> {
    (measured > 0.0).then(|| error / measured)
}

impl Residual {
    /// Finds the largest error: of computations in their own times, of communication in calls. Longer waits in calls that are due to
    /// computations count as errors of computation. At a tie, returns the kind with the largest measured time.
    fn find(calls: &[TimeComparison], regions: &[TimeComparison]) -> Option<Self> {
        type Part = (&'static str, fn(&TimeComparison) -> f64);
        let part_of = |call: &TimeComparison| -> Part {
            match call.name == ActionKind::Compute.name() {
                true => ("computation", |row| row.computation_error_s),
                false => ("communication", |row| row.communication_error_s),
            }
        };
        let size = |call: &&TimeComparison| part_of(call).1(call).abs();
        let call = calls.iter().reduce(|most, next| if size(&next) > size(&most) { next } else { most })?;
        let (of, part) = part_of(call);
        let region = regions.iter().max_by(|one, other| part(one).abs().total_cmp(&part(other).abs()));
        let region = region.map(|region| region.name.clone()).filter(|name| !name.is_empty());
        (part(call) != 0.0).then(|| Self { name: call.name.clone(), part: of, error_s: part(call), region })
    }
}
