//! Costs of calls, from programs whose calls were measured.
//!
//! A replay with measured computations lacks what the library itself does in a call as a program makes it: with cold caches, other
//! requests and unexpected messages. The residual of a call is its measured less its replayed time. A cost delays other ranks, too,
//! so that residuals are not costs; replays with the costs found so far, each adding what remains, converge to them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use calibration::{CallCost, CallPoint};
use mpi_model::{ActionKind, ChargedCall, Excerpt};
use pdes_core::{Progress, Rank};
use replay::{RunSpec, Simulation};
use tempfile::TempDir;
use trace_mmap::{ConvertOptions, LoadOptions, Trace, WorkMetric, write_with_measured_times};

use super::durations::Durations;
use super::{Validation, ValidationError, measured_computations, measurement};

/// Number of replays of each program.
const ROUNDS: usize = 4;
/// Part of the residuals at either end that count for nothing: calls during which the system ran something else, or that were the
/// first of their kind.
const TRIMMED: f64 = 0.25;
/// Number of calls of a class from which on it has the weight of any other, and of a kind from which on it gets a cost.
const ENOUGH_CALLS: (u64, u64) = (1000, 20);
/// Number of residuals of a class that are kept: every second one once there are more, and so on.
const MAX_KEPT: usize = 1 << 16;
/// Part by which computations may take longer than their amounts say before a recording counts as disturbed.
const DISTURBED: f64 = 0.03;
/// Number of classes of sizes per factor of two.
const CLASSES_PER_OCTAVE: f64 = 4.0;

/// Costs of calls that were fitted to programs.
#[derive(Clone, Debug, Default)]
pub struct CallFit {
    /// The costs, by the kind of call.
    pub costs: Vec<CallCost>,
    /// The programs, each predicted by the others.
    pub cross_validation: Vec<Prediction>,
    /// Sentences on recordings that are not reliable.
    pub warnings: Vec<String>,
}

/// A program, predicted with the costs of calls that were fitted to other programs.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// Path of its trace.
    pub trace: PathBuf,
    /// Relative error of the run time: without costs of calls, with those of the other programs, and with those of all.
    pub run_time: [f64; 3],
    /// Relative error of the time of communication, likewise.
    pub communication: [f64; 3],
}

/// Fits the costs of calls to programs that were recorded with times on the machine of a run.
///
/// If there are several programs, each is also predicted by the costs that the others have. Takes about
/// five replays of each program, and as many times the number of programs again for the predictions; 4 bytes of memory for each
/// action, and a temporary archive of 16 bytes for each.
///
/// # Errors
/// A trace cannot be read or has no measured times, or a replay fails.
pub fn fit_calls(machine: &RunSpec, traces: &[PathBuf]) -> Result<CallFit, ValidationError> {
    let spec = RunSpec { waits: Some(true), fast_forward: false, ..machine.without_outputs() };
    let programs = traces.iter().map(|trace| Program::load(&spec, trace)).collect::<Result<Vec<_>, _>>()?;
    let all: Vec<&Program> = programs.iter().collect();
    let costs = fit(&all)?;
    let warnings = programs.iter().filter_map(|program| program.disturbance()).collect();
    let mut cross_validation = Vec::new();
    for (index, program) in programs.iter().enumerate().filter(|_| programs.len() > 1) {
        let others: Vec<&Program> = programs
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index)
            .map(|(_, program)| program)
            .collect();
        let errors = [Vec::new(), fit(&others)?, costs.clone()]
            .iter()
            .map(|costs| program.errors(costs))
            .collect::<Result<Vec<_>, _>>()?;
        let [without, others, all] = errors[..] else { unreachable!("three sets of costs") };
        cross_validation.push(Prediction {
            trace: traces[index].clone(),
            run_time: [without.0, others.0, all.0],
            communication: [without.1, others.1, all.1],
        });
    }
    Ok(CallFit { costs, cross_validation, warnings })
}

/// A program with measured times, and the archive that replays its measured computations.
struct Program {
    path: PathBuf,
    spec: RunSpec,
    measured: Trace,
    /// Holds the archive of the run until the program is dropped.
    _directory: TempDir,
}

/// Calls of one kind and of about one size: their sizes and residuals.
#[derive(Default)]
struct Class {
    count: u64,
    bytes: f64,
    /// Every `stride`-th residual \[s\], where the stride is a power of two.
    residuals: Vec<f32>,
    stride: u64,
}

type Classes = BTreeMap<(ChargedCall, u32), Class>;

impl Program {
    fn load(spec: &RunSpec, trace: &Path) -> Result<Self, ValidationError> {
        let measured = trace_tools::load(trace, &LoadOptions::default())?;
        measurement::measured_times(&measured)?;
        let directory = tempfile::tempdir()?;
        let archive = directory.path().join("measured.pdt");
        write_with_measured_times(&measured, &archive, &ConvertOptions::default())?;
        let (path, spec) = (trace.to_owned(), RunSpec { trace: archive.into(), ..spec.clone() });
        Ok(Self { path, spec, measured, _directory: directory })
    }

    /// Returns a warning if computations took longer than their processor time, because other programs ran on the cores.
    fn disturbance(&self) -> Option<String> {
        let rate = match self.measured.provenance().work_metric.as_ref()? {
            WorkMetric::CpuTime { rate } => *rate,
            WorkMetric::Instructions | WorkMetric::Time { .. } => return None,
        };
        let (mut amount, mut seconds) = (0.0, 0.0);
        for region in measured_computations(&self.measured).ok()? {
            amount += region.amount;
            seconds += region.seconds;
        }
        let excess = seconds * rate / amount - 1.0;
        (excess > DISTURBED).then(|| {
            format!(
                "{}: computations took {:.0} % longer than their processor time; other programs had the cores, and calls took longer, \
                 too",
                self.path.display(),
                100.0 * excess
            )
        })
    }

    fn spec_with(&self, costs: &[CallCost]) -> RunSpec {
        let mut spec = self.spec.clone();
        for cost in costs {
            let call = ChargedCall::from_name(&cost.call).expect("costs are those of calls");
            let overhead = cost.to_text().parse().expect("a fitted cost is an overhead");
            spec.mpi.call_overheads.insert(call, overhead);
        }
        spec
    }

    /// Returns the residuals of all calls with a measured time, for these costs.
    fn residuals(&self, costs: &[CallCost]) -> Result<Classes, ValidationError> {
        let durations = Arc::new(Durations::new(self.measured.ranks()));
        let simulation =
            Simulation::load(&self.spec_with(costs))?.with_event_sink(Excerpt::default(), durations.clone());
        simulation.replay(&Progress::new(simulation.spec().threads))?;
        drop(simulation);
        let durations = Arc::into_inner(durations).expect("the replay has ended");
        let mut classes = Classes::new();
        for (rank, replayed) in (0..).map(Rank::new).zip(durations.into_ranks()) {
            let trace = self.measured.rank(rank);
            let mut replayed = replayed.into_iter();
            // Timelines omit what takes no time; all other actions stand in both.
            for (action, time) in trace.measured().into_iter().flatten() {
                let kind = ActionKind::of(action, trace);
                if kind == ActionKind::Marker {
                    continue;
                }
                let Some(replayed) = replayed.next() else { break };
                if let Some((time, (call, bytes))) = time.zip(ChargedCall::of(action, trace)) {
                    let bytes = bytes as f64;
                    let size = if bytes > 0.0 { 1 + (bytes.log2() * CLASSES_PER_OCTAVE) as u32 } else { 0 };
                    let residual = time.as_secs_f64() as f32 - replayed;
                    classes.entry((call, size)).or_default().add(bytes, residual);
                }
            }
        }
        Ok(classes)
    }

    /// Returns the relative errors of run time and communication with these costs.
    fn errors(&self, costs: &[CallCost]) -> Result<(f64, f64), ValidationError> {
        let validation =
            Validation::new(&RunSpec { trace: self.path.clone().into(), ..self.spec_with(costs) })?;
        let part = |error: f64, of: f64| if of > 0.0 { error / of } else { 0.0 };
        let (run_time, communication) = (&validation.run_time, &validation.communication);
        Ok((
            part(run_time.communication_error_s, run_time.measured_s),
            part(communication.communication_error_s, communication.measured_s),
        ))
    }
}

impl Class {
    fn add(&mut self, bytes: f64, residual: f32) {
        self.stride = self.stride.max(1);
        if self.count.is_multiple_of(self.stride) {
            self.residuals.push(residual);
        }
        self.count += 1;
        self.bytes += bytes;
        if self.residuals.len() > MAX_KEPT {
            let mut place = 0;
            self.residuals.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// Returns the mean of the half of the residuals in the middle, and the range of that half \[s\].
    fn summary(mut self) -> (f64, f64) {
        self.residuals.sort_by(f32::total_cmp);
        let count = self.residuals.len();
        let trimmed = (count as f64 * TRIMMED) as usize;
        let kept = &self.residuals[trimmed..count - trimmed];
        let mean = kept.iter().map(|&residual| f64::from(residual)).sum::<f64>() / kept.len() as f64;
        let quartile = |part: f64| f64::from(self.residuals[((count - 1) as f64 * part) as usize]);
        (mean, quartile(0.75) - quartile(0.25))
    }
}

/// Fits the costs of calls to some programs.
fn fit(programs: &[&Program]) -> Result<Vec<CallCost>, ValidationError> {
    let mut costs: Vec<CallCost> = Vec::new();
    for _ in 0..ROUNDS {
        let mut points: BTreeMap<ChargedCall, (u64, f64, Vec<CallPoint>)> = BTreeMap::new();
        for program in programs {
            let classes = program.residuals(&costs)?;
            for ((call, _), class) in classes {
                let bytes = class.bytes / class.count as f64;
                let weight = class.count.min(ENOUGH_CALLS.0) as f64;
                let known = costs.iter().find(|cost| cost.call == call.name());
                let so_far = known.map_or(0.0, |cost| cost.curve.line(bytes as u64).at(bytes));
                let count = class.count;
                let (residual, spread) = class.summary();
                let (all, spreads, points) = points.entry(call).or_default();
                *all += count;
                *spreads += spread * weight;
                points.push(CallPoint { bytes, weight, seconds: so_far + residual });
            }
        }
        let protocol_changes_at = programs.first().map_or(0, |one| one.spec.mpi.detached_below.get());
        costs = points
            .into_iter()
            .filter(|(_, (count, ..))| *count >= ENOUGH_CALLS.1)
            .filter_map(|(call, (count, spreads, points))| {
                let weight: f64 = points.iter().map(|point| point.weight).sum();
                let curve = CallCost::fit(&points, protocol_changes_at)?;
                Some(CallCost { call: call.name().to_owned(), count, spread_s: spreads / weight, curve })
            })
            .collect();
    }
    Ok(costs)
}
