//! The report of a run.

mod breakdown;
mod call_tree;
mod column;
mod communication;
mod critical_path;
mod energy;
mod epochs;
mod failures;
mod file_servers;
mod histograms;
mod ideal_machines;
mod jobs;
mod links;
#[cfg(feature = "pictures")]
pub(crate) mod page;
mod sampling;
mod saved;
mod section;
mod tables;
mod topology;
mod training;
mod verdict;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use mpi_model::collective::{Bounds, Operation, Selection};
use mpi_model::{ActionKind, OutcomeCount, Statistics};
use netmodel::{NetworkParameters, RoutingRule};
use outputs::write_json;
use pdes_core::Progress;
use replay::{
    CheckpointSummary, Digest, FastForward, NetworkPreset, Offload, Outcome, PartitionCut, PlacementPolicy,
    RecordedSpeed, RunError, RunSpec, Simulation,
};
use serde::Serialize;

use saved::flat;

pub(crate) use breakdown::site_name;
pub use breakdown::{Breakdown, CallParts, Imbalance, Parts, RankCall, RankParts, RegionParts};
pub use call_tree::{CallNode, CallTree};
pub use column::{Column, Fractions};
pub use communication::Communication;
pub use critical_path::{CriticalPath, PathCall, PathParts, PathRank, PathSegment};
pub use energy::{Energy, PartEnergy};
pub use epochs::Epochs;
pub use failures::{FailedJob, Failures, FailuresError, JobEnd};
pub use file_servers::FileServers;
pub use histograms::{Histogram, Histograms};
pub use ideal_machines::{IdealMachines, RunTimePart};
pub use jobs::{Job, Jobs, LostTime};
pub use links::{AllLinks, ContendedLink, Links};
#[cfg(feature = "pictures")]
pub(crate) use page::FOOTER;
#[cfg(feature = "pictures")]
pub use page::{Presentation, Timeline, TimelineError};
pub use sampling::Sampling;
pub use saved::{ReportError, SavedActionTotal, SavedReport};
pub use section::{CsvTable, Sections};
pub use training::Training;

/// Name of the format.
const FORMAT: &str = "pdes-replay report";
/// Version of the format; it grows when a field changes its meaning or is removed.
const VERSION: u32 = 1;

/// The results of a run, as written in JSON.
///
/// # Stability
/// Within one `version`, fields keep their names and meanings; new ones may be added.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `"pdes-replay report"`.
    pub format: &'static str,
    /// Version of the format.
    pub version: u32,
    /// Version of the program that wrote the report.
    pub program_version: &'static str,
    /// End time of the last rank \[s\].
    pub simulated_time_s: f64,
    /// End time of the last rank \[ps\], exact.
    pub simulated_time_ps: u64,
    /// Number of ranks of the run.
    pub ranks: u32,
    /// Number of actions of the run: the lines of the trace that are neither empty nor comments.
    pub actions: u64,
    /// Number of messages sent, point-to-point and inside collectives.
    pub messages: u64,
    /// Payload of these messages \[B\].
    pub message_bytes: u64,
    /// A hash over the results of all ranks (64 hexadecimal digits): equal digests mean equal results.
    pub digest: String,
    /// Wall-clock time of the run \[s\]: loading and replaying.
    pub wall_time_s: f64,
    /// Wall-clock time of loading the platform and the trace \[s\].
    pub load_s: f64,
    /// Wall-clock time of the replay \[s\].
    pub replay_s: f64,
    /// Actions per second of `replay_s`, without actions that were fast-forwarded or replayed by an earlier run.
    pub actions_per_s: f64,
    /// Largest resident memory of any process \[B\]; null if the system does not report it.
    pub peak_rss_bytes: Option<u64>,
    /// Actions that were fast-forwarded; null if all were replayed.
    pub fast_forward: Option<FastForward>,
    /// Checkpoint statistics; null if no checkpoints were requested.
    pub checkpoints: Option<CheckpointSummary>,
    /// Number of threads of each process.
    pub threads: usize,
    /// Number of processes of the run.
    pub processes: u32,
    /// Assignment of ranks to workers: `"blocks"`, `"auto"`, or a file.
    pub partition: String,
    /// Messages that cross the partition, compared with a partition into blocks; null if the partition is into blocks.
    pub cuts: Option<PartitionCut>,
    /// The rank that ended last; null if there are several jobs.
    pub slowest_rank: Option<RankEnd>,
    /// The rank that ended first; null if there are several jobs.
    pub fastest_rank: Option<RankEnd>,
    /// Simulated time by kind of action, summed over ranks; kinds that do not occur are left out.
    pub time_by_action: Vec<ActionTotal>,
    /// Inequality of the computations of ranks; null where there are no ranks, or several jobs.
    pub imbalance: Option<Imbalance>,
    /// Sections that not every run has.
    #[serde(flatten)]
    pub sections: Sections,
    /// Statistics of the network model; null if it has none.
    pub model_statistics: Option<serde_json::Value>,
    /// Outcomes that depended on simulated time, such as those of waitany, tests, and receives from any source.
    pub outcomes: Outcomes,
    /// All parameters that can change the result beside the trace and the platform.
    pub parameters: Parameters,
    /// Sections of the configuration that can change the result, with which the run can be repeated; null if there was no configuration.
    pub configuration: Option<toml::Table>,
    /// Warnings that a user should know before trusting the result.
    pub warnings: Vec<String>,
}

/// The end of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RankEnd {
    /// The rank.
    pub rank: u32,
    /// End time \[s\].
    pub end_s: f64,
}

/// Comparison of the outcomes that depended on simulated time with the recorded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Outcomes {
    /// Number of outcomes decided by simulated time.
    pub decided: u64,
    /// Number of outcomes that differ from the recorded run.
    pub different: u64,
    /// The first different outcome of the lowest rank that has one, of the first job if there are several.
    pub first_different: Option<ActionIndex>,
}

/// An action of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ActionIndex {
    /// The rank.
    pub rank: u32,
    /// The index of the action among those of the rank, from 0.
    pub action: u64,
}

/// The total of one kind of action over all ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActionTotal {
    /// Name of the action in a trace.
    pub action: &'static str,
    /// Number of actions.
    pub count: u64,
    /// Simulated time spent in them, waiting included \[s\].
    pub time_s: f64,
    /// Share of the time of all ranks, 0 to 1.
    pub share: f64,
}

/// The parameters of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Parameters {
    /// Path of the trace, as given.
    pub trace: String,
    /// Unit of its amounts of computation; null if unknown.
    pub computations: Option<String>,
    /// Speed of the machine on which the program ran [flop/s]; null if unknown.
    pub trace_speed: Option<f64>,
    /// Least and greatest factor, over hosts, by which computations take longer than on that machine; null if its speed is unknown.
    pub computation_factors: Option<[f64; 2]>,
    /// Speed of computations in regions of the program, as a factor of the speed of their host.
    pub region_speeds: BTreeMap<String, f64>,
    /// Traffic of computations with the memory, by unit of their amount \[B\].
    pub bytes_per_flop: f64,
    /// The same in regions of the program that differ.
    pub region_bytes_per_flop: BTreeMap<String, f64>,
    /// Regions of the program that accelerators compute.
    pub offload: Vec<Offload>,
    /// Path of the platform, or `"inline"`.
    pub platform: String,
    /// Path of the hosts file; null if `placement` says where ranks run.
    pub hosts: Option<String>,
    /// Placement of ranks without a hosts file: `"block"` or `"cyclic"`.
    pub placement: PlacementPolicy,
    /// Number of hosts with ranks.
    pub used_hosts: usize,
    /// Largest number of ranks of a host.
    pub ranks_per_host: u32,
    /// Routing rule of fat trees and dragonflies.
    pub routing: RoutingRule,
    /// Network model.
    pub model: &'static str,
    /// Length of an epoch \[s\]; 0 if rates change at every event.
    pub epoch_s: f64,
    /// Partition of the platform into regions: `"auto"`, the number requested, or a file; null without epochs.
    pub regions: Option<String>,
    /// Preset of the network's parameters.
    pub preset: &'static NetworkPreset,
    /// Multiple of the latencies of all links.
    pub latency_scale: f64,
    /// Multiple of the bandwidths of all links.
    pub bandwidth_scale: f64,
    /// All parameters of the network.
    pub network: NetworkParameters,
    /// Parameters of the MPI library.
    pub mpi: MpiParameters,
}

/// The parameters of the MPI library.
#[derive(Clone, Debug, Serialize)]
pub struct MpiParameters {
    /// Selector of collective algorithms.
    pub collectives: &'static str,
    /// Algorithms chosen for single operations, by operation, or `measured`; they take precedence over the selector.
    pub algorithms: BTreeMap<&'static str, &'static str>,
    /// Rows of decision tables, by operation; they take precedence over both.
    pub table: BTreeMap<&'static str, Vec<TableRow>>,
    /// Size of the envelope that each message carries beside its payload \[B\].
    pub envelope_bytes: u64,
    /// Sends below this size do not wait for their receive \[B\].
    pub detached_below_bytes: u64,
    /// The data of messages below this size does not wait for the receive \[B\].
    pub eager_below_bytes: u64,
    /// Overhead of a detached blocking send.
    pub send_overhead: String,
    /// Overhead of a non-blocking send.
    pub isend_overhead: String,
    /// Overhead of completing a detached message.
    pub receive_overhead: String,
    /// Cost of posting a nonblocking receive \[s\].
    pub irecv_s: f64,
    /// Time of the library itself in calls, by the name of the action.
    pub call_overhead: BTreeMap<&'static str, String>,
    /// Cost of a test \[s\].
    pub test_s: f64,
    /// Growth of the costs of tests and probes with each failed one.
    pub test_grows: bool,
    /// Cost of a probe \[s\].
    pub iprobe_s: f64,
    /// Source of the outcomes that depend on time: `"reenact"` or `"recorded"`.
    pub outcomes: &'static str,
    /// Moments at which data move for which their sender waits: `"asynchronous"` or `"calls"`.
    pub progress: &'static str,
    /// Library whose collective accesses to files are modelled: `"smpi"` or `"romio"`.
    pub collective_io: &'static str,
    /// Cost of an allgather of 8 bytes for each communicator that is created.
    pub communicators_cost: bool,
}

/// A row of a decision table of collective algorithms; a bound that is null does not apply.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableRow {
    /// Upper bound of the number of ranks, exclusive.
    pub ranks_below: Option<u32>,
    /// Upper bound of the size, exclusive \[B\].
    pub bytes_below: Option<u64>,
    /// Name of the algorithm.
    pub algorithm: &'static str,
}

impl Report {
    /// Replays the traces of a run on this process, and returns the report, with the delays of jobs if the run asks for them.
    ///
    /// # Errors
    /// If an input is invalid, or as [`Simulation::replay`].
    pub fn of(spec: &RunSpec) -> Result<Self, RunError> {
        let simulation = Simulation::load(spec)?;
        let mut outcome = simulation.replay(&Progress::new(spec.threads))?;
        outcome.delays = spec.delays.then(|| answers::delays(spec, &outcome)).transpose()?;
        Ok(Self::new(&simulation, &outcome))
    }

    /// Assembles the report from a simulation and its outcome.
    pub fn new(simulation: &Simulation, outcome: &Outcome) -> Self {
        let spec = simulation.spec();
        let end = |rank: pdes_core::Rank| RankEnd {
            rank: rank.get(),
            end_s: outcome.program().ends[rank.index()].as_secs_f64(),
        };
        let is_alone = outcome.programs.len() == 1;
        let extremes = outcome.program().slowest_and_fastest().filter(|_| is_alone);
        let ends = outcome.programs.iter().flat_map(|program| program.ends.iter().copied());
        let (load, replay) = (simulation.load_time(), outcome.replay_time);
        let skipped = outcome.fast_forward.map_or(0, |found| found.skipped_actions);
        let actions = simulation.actions(outcome);
        let before = outcome.checkpoints.and_then(|summary| summary.resumed_from).unwrap_or_default();
        let sections = Sections::new(simulation, outcome);
        let warnings =
            [simulation.warnings(), simulation.outcome_warnings(outcome), sections.warnings()].concat();
        Self {
            format: FORMAT,
            version: VERSION,
            program_version: env!("CARGO_PKG_VERSION"),
            simulated_time_s: outcome.simulated_time().as_secs_f64(),
            simulated_time_ps: outcome.simulated_time().as_picos(),
            ranks: simulation.loaded_programs().map(|(_, trace, _)| trace.ranks()).sum(),
            actions,
            messages: statistics(outcome).map(|statistics| statistics.messages).sum(),
            message_bytes: statistics(outcome).map(|statistics| statistics.bytes.get()).sum(),
            digest: Digest::of(ends.zip(statistics(outcome))).to_string(),
            wall_time_s: (load + replay).as_secs_f64(),
            load_s: load.as_secs_f64(),
            replay_s: replay.as_secs_f64(),
            actions_per_s: rate(actions - skipped - before, replay),
            peak_rss_bytes: outcome.peak_rss_bytes,
            fast_forward: outcome.fast_forward,
            checkpoints: outcome.checkpoints,
            threads: spec.threads,
            processes: outcome.processes,
            partition: spec.partition.name(),
            cuts: outcome.cuts,
            slowest_rank: extremes.map(|(slowest, _)| end(slowest)),
            fastest_rank: extremes.map(|(_, fastest)| end(fastest)),
            time_by_action: totals(outcome),
            imbalance: Imbalance::of(&outcome.program().statistics).filter(|_| is_alone),
            sections,
            model_statistics: outcome.model_statistics.clone(),
            outcomes: outcomes(outcome),
            parameters: Parameters::new(simulation),
            configuration: None,
            warnings,
        }
    }

    /// Adds the run times on [machines without some costs](IdealMachines), if they are wanted: four replays without contention. A program whose
    /// course depends on times may not end there: a warning says so, unless they were asked for.
    ///
    /// # Errors
    /// As [`Simulation::replay`], if they were asked for.
    pub fn add_ideal_machines(&mut self, simulation: &Simulation, outcome: &Outcome) -> Result<(), RunError> {
        let spec = simulation.spec();
        if !IdealMachines::are_wanted(simulation, outcome) {
            return Ok(());
        }
        match IdealMachines::of(spec, outcome) {
            Ok(found) => self.sections.ideal_machines = Some(found),
            Err(error) if spec.ideal_machines == Some(true) => return Err(error),
            Err(error) => {
                let message = error.to_string();
                let why = message.lines().next().unwrap_or_default();
                let warning = "the run time is not divided, as the program does not end on an ideal machine";
                self.warnings.push(format!("{warning}: {why}"));
            }
        }
        Ok(())
    }

    /// Adds the run of the job on [hosts that die](FailedJob), if there are any: a replay for each set of other hosts that it moves to.
    ///
    /// # Errors
    /// If the platform lacks a host, or the job hardly ever ends.
    pub fn add_failures(&mut self, simulation: &Simulation, outcome: &Outcome) -> Result<(), FailuresError> {
        let Some(failures) = &mut self.sections.failures else { return Ok(()) };
        let counted = failures.add_job(FailedJob::of(simulation, outcome)?);
        self.warnings.retain(|warning| warning != counted);
        if let (Some(jobs), Some(job)) = (&mut self.sections.jobs, &failures.job) {
            jobs.0[0].failed = job.end();
        }
        Ok(())
    }

    /// Writes the report to a file, atomically.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        write_json(self, path)
    }
}

fn rate(actions: u64, time: Duration) -> f64 {
    actions as f64 / time.as_secs_f64().max(1e-9)
}

/// Returns the statistics of the ranks of all programs.
fn statistics(outcome: &Outcome) -> impl Iterator<Item = &Statistics> {
    outcome.programs.iter().flat_map(|program| &program.statistics)
}

/// Sums with 128 bits: the times of a million ranks overflow 64.
fn totals(outcome: &Outcome) -> Vec<ActionTotal> {
    let sum = |kind| -> u128 { statistics(outcome).map(|rank| u128::from(rank.time(kind).as_picos())).sum() };
    let count = |kind| -> u64 { statistics(outcome).map(|rank| rank.count(kind)).sum() };
    let all: u128 = ActionKind::ALL.into_iter().map(sum).sum();
    let total = |kind: ActionKind| ActionTotal {
        action: kind.name(),
        count: count(kind),
        time_s: sum(kind) as f64 / 1e12,
        share: if all == 0 { 0.0 } else { sum(kind) as f64 / all as f64 },
    };
    ActionKind::ALL.into_iter().map(total).filter(|total| total.count > 0 || total.time_s > 0.0).collect()
}

fn outcomes(outcome: &Outcome) -> Outcomes {
    let ranks =
        || (0..).zip(&outcome.program().statistics).map(|(rank, statistics)| (rank, statistics.outcomes()));
    let first = |(rank, outcomes): (u32, OutcomeCount)| {
        outcomes.first_different.map(|action| ActionIndex { rank, action })
    };
    Outcomes {
        decided: statistics(outcome).map(|rank| rank.outcomes().decided).sum(),
        different: statistics(outcome).map(|rank| rank.outcomes().different).sum(),
        first_different: ranks().find_map(first),
    }
}

impl Parameters {
    /// Returns everything that can change the result of a simulation, in one line.
    pub fn describe(simulation: &Simulation) -> String {
        let parameters = serde_json::to_value(Self::new(simulation)).unwrap_or_default();
        let described = flat(&parameters).into_iter().map(|(key, value)| format!("{key}: {value}"));
        described.collect::<Vec<_>>().join(", ")
    }

    fn new(simulation: &Simulation) -> Self {
        let spec = simulation.spec();
        let speed = RecordedSpeed::of(simulation);
        Self {
            trace: spec.trace.to_string(),
            computations: simulation.trace().provenance().work_metric.map(|counted| counted.to_string()),
            trace_speed: speed.and_then(RecordedSpeed::machine),
            computation_factors: speed.and_then(RecordedSpeed::factors),
            region_speeds: spec.mpi.region_speeds.clone(),
            bytes_per_flop: spec.mpi.bytes_per_flop,
            region_bytes_per_flop: spec.mpi.region_bytes_per_flop.clone(),
            offload: spec.offloads.clone(),
            platform: spec.platform.to_string(),
            hosts: spec.hosts.as_ref().map(|hosts| hosts.display().to_string()),
            placement: spec.placement,
            used_hosts: simulation.placement().used_hosts(),
            ranks_per_host: simulation.placement().max_ranks(),
            routing: spec.routing,
            model: spec.model.key,
            epoch_s: simulation.epochs().map_or(0.0, |plan| plan.span.as_secs_f64()),
            regions: simulation.epochs().map(|_| spec.regions.to_string()),
            preset: spec.preset,
            latency_scale: spec.link_scale.latency,
            bandwidth_scale: spec.link_scale.bandwidth,
            network: spec.network.clone(),
            mpi: MpiParameters {
                collectives: spec.mpi.collectives.selector().name(),
                algorithms: algorithms(&spec.mpi.collectives),
                table: table(&spec.mpi.collectives),
                envelope_bytes: spec.mpi.envelope.get(),
                detached_below_bytes: spec.mpi.detached_below.get(),
                eager_below_bytes: spec.mpi.eager_below.get(),
                send_overhead: spec.mpi.send.to_string(),
                isend_overhead: spec.mpi.isend.to_string(),
                receive_overhead: spec.mpi.receive.to_string(),
                irecv_s: spec.mpi.irecv.as_secs_f64(),
                call_overhead: spec
                    .mpi
                    .call_overheads
                    .iter()
                    .map(|(call, overhead)| (call.name(), overhead.to_string()))
                    .collect(),
                test_s: spec.mpi.test.as_secs_f64(),
                test_grows: spec.mpi.test_grows,
                iprobe_s: spec.mpi.iprobe.as_secs_f64(),
                outcomes: spec.mpi.outcomes.name(),
                progress: spec.mpi.progress.name(),
                collective_io: spec.mpi.collective_io.name(),
                communicators_cost: spec.mpi.communicators_cost,
            },
        }
    }
}

fn algorithms(selection: &Selection) -> BTreeMap<&'static str, &'static str> {
    let chosen = |operation: Operation| {
        let algorithm = selection.measured(operation).map(|_| "measured").or(selection.chosen(operation));
        Some((operation.name(), algorithm?))
    };
    Operation::ALL.into_iter().filter_map(chosen).collect()
}

fn table(selection: &Selection) -> BTreeMap<&'static str, Vec<TableRow>> {
    let row = |(bounds, algorithm): (Bounds, _)| {
        let Bounds { ranks_below, bytes_below } = bounds;
        TableRow { ranks_below, bytes_below, algorithm }
    };
    let rows = |operation| selection.rows(operation).map(row).collect();
    let operations =
        Operation::ALL.into_iter().filter(|&operation| selection.rows(operation).next().is_some());
    operations.map(|operation| (operation.name(), rows(operation))).collect()
}
