//! The sections of a configuration as they stand in the file.
//!
//! The schema, the reference in `docs/configuration.md` and the names that a typo is compared with all come from these types. Documentation
//! of a field says what it means; its unit is `x-unit`, a default that is no value `x-default`, the page of the documentation that
//! says more `x-page`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mpi_model::{Outcomes, Parameters};
use netmodel::description::{HostDescription, LinkDescription, RouteDescription, TopologyDescription};
use netmodel::maxmin::Scope;
use netmodel::{FactorTable, FatPipes, PlatformDescription, Preset, RoutingRule};
use schemars::JsonSchema;
use serde::Deserialize;

use super::loggops::LogGopsSection;
use super::shapes;

/// A run of pdes-replay: which trace, on which machine, how.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "pdes-replay configuration")]
pub(super) struct Sections {
    /// The program.
    pub(super) trace: TraceSection,
    /// The machine: a file, or the platform itself.
    pub(super) platform: PlatformSection,
    /// How messages use the machine.
    pub(super) network: NetworkSection,
    /// What the MPI library does.
    pub(super) mpi: MpiSection,
    /// What computations of the program take beside the speed of hosts.
    pub(super) compute: ComputeSection,
    /// How the replay runs; none of this changes a result.
    pub(super) engine: EngineSection,
    /// How ranks are shared out among the workers of a run; changes no result.
    pub(super) parallel: ParallelSection,
    /// What is found out beside the times; changes no result.
    pub(super) analysis: AnalysisSection,
    /// From where an interrupted run goes on; changes no result.
    pub(super) checkpoint: CheckpointSection,
    /// What each rank does when, in a file; changes no result.
    pub(super) timeline: TimelineSection,
    /// What is written.
    pub(super) output: OutputSection,
    /// Parameters of the model `loggops`, for GOAL schedules, which are not replayed as traces.
    #[schemars(with = "LogGopsSection", extend("x-page" = "goal.md"))]
    pub(super) loggops: Option<toml::Table>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TraceSection {
    /// An archive (`.pdt`), a file list, a merged file, or a directory of `rank-N.txt`; text plain, gzip or zstd.
    #[schemars(extend("x-default" = "required", "x-page" = "traces.md"))]
    pub(super) path: Option<PathBuf>,
    /// Ranks of the run; ranks beyond those of the trace do nothing, fewer are an error.
    #[schemars(range(min = 1), extend("x-default" = "those of the trace"))]
    pub(super) ranks: Option<u32>,
    /// Actions kept in memory (16 B each); the rest goes to a temporary file that is mapped.
    #[schemars(extend("x-unit" = "B", "default" = 2_u64 << 30))]
    pub(super) memory_budget_bytes: Option<u64>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PlatformSection {
    /// SimGrid XML or TOML of our own.
    #[schemars(extend("x-default" = "this or `topology`", "x-page" = "platforms.md"))]
    pub(super) file: Option<PathBuf>,
    /// The platform itself, as in a TOML file.
    #[schemars(with = "TopologyDescription", extend("x-default" = "this or `file`", "x-page" = "platforms.md"))]
    topology: Option<toml::Table>,
    /// The hosts of a `topology` of the kind `graph`.
    #[schemars(with = "Vec<HostDescription>", extend("x-default" = "none"))]
    host: Option<toml::Value>,
    /// The links of a `topology` of the kind `graph`.
    #[schemars(with = "Vec<LinkDescription>", extend("x-default" = "none"))]
    link: Option<toml::Value>,
    /// The routes of a `topology` of the kind `graph`.
    #[schemars(with = "Vec<RouteDescription>", extend("x-default" = "none"))]
    route: Option<toml::Value>,
    /// A file: rank `i` runs on the host of line `i`, cyclically; `host:4` stands for four lines.
    #[schemars(extend("x-default" = "rank `i` on host `i`, cyclically"))]
    pub(super) hosts: Option<PathBuf>,
    /// The routes of fat trees and dragonflies: with SimGrid's peculiarities (`simgrid`), or without (`textbook`).
    #[schemars(extend("default" = RoutingRule::default(), "x-page" = "platforms.md"))]
    pub(super) routing: Option<RoutingRule>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NetworkSection {
    /// Messages share links and computations share cores (`flow`), or there is no contention (`loggps`); `loggops` is for GOAL schedules.
    #[schemars(extend("default" = "flow", "x-page" = "model.md"))]
    pub(super) model: Option<ModelName>,
    /// A set of the parameters below.
    #[schemars(extend("default" = Preset::default()))]
    pub(super) preset: Option<Preset>,
    /// When rates change: 0: whenever a message begins or ends, exactly; a time: at its multiples only; `auto`: at those of the shortest
    /// time between a send and the flow of its data. `flow` only.
    #[schemars(schema_with = "shapes::seconds_or_auto", extend("x-unit" = "s", "default" = 0, "x-page" = "epochs.md"))]
    pub(super) epoch_s: Option<toml::Value>,
    /// How the platform is cut for epochs: `auto`, as its shape suggests; a number, into about so many regions; a file, with the name of a
    /// host and that of its region in each line.
    #[schemars(schema_with = "shapes::regions", extend("default" = "auto", "x-page" = "epochs.md"))]
    pub(super) regions: Option<toml::Value>,
    /// Multiplies the latency of a route: a number, or a step function of the message size, `"0:2.0;257:1.9"`: a value holds for sizes
    /// above its threshold.
    #[schemars(extend("x-default" = "preset"))]
    pub(super) latency_factor: Option<FactorTable>,
    /// Multiplies the rate of a message, after sharing; written like `latency_factor`.
    #[schemars(extend("x-default" = "preset"))]
    pub(super) bandwidth_factor: Option<FactorTable>,
    /// What each link adds to the penalty of a flow, over the link's bandwidth (`network/weight-S`); `flow` only.
    #[schemars(range(min = 0), extend("x-unit" = "B", "x-default" = "preset"))]
    pub(super) weight_s: Option<f64>,
    /// TCP window: a message is not faster than window / (2 x latency); 0 lifts the limit.
    #[schemars(range(min = 0), extend("x-unit" = "B", "x-default" = "preset"))]
    pub(super) tcp_gamma: Option<f64>,
    /// Whether a message also takes 0.05 of its rate from the links of the way back.
    #[schemars(extend("x-default" = "preset"))]
    pub(super) cross_traffic: Option<bool>,
    /// `joint`: when its most demanding flow fills a fat pipe, all flows on it stop rising, as in SimGrid; `separate`: each has the
    /// capacity to itself; `flow` only.
    #[schemars(extend("x-default" = "`\"joint\"`, with `raw` `\"separate\"`"))]
    pub(super) fat_pipes: Option<FatPipes>,
    /// Which links are solved again when flows begin or end: `marked`, as SimGrid does, or `complete`; `flow` only.
    #[schemars(extend("x-default" = "`\"marked\"`, with `raw` `\"complete\"`", "x-page" = "model.md"))]
    pub(super) solve_scope: Option<Scope>,
    /// Events that lie less than this after another one happen with it, as in SimGrid (`surf/precision`); `flow` only.
    #[schemars(range(min = 0, max = 1), extend("x-unit" = "s", "x-default" = "1e-9, with `raw` 0"))]
    pub(super) precision_s: Option<f64>,
    /// Bandwidth of the built-in loopback link of hosts that have no other way to themselves (`network/loopback-bw`).
    #[schemars(extend("exclusiveMinimum" = 0, "x-unit" = "B/s", "default" = 1e10))]
    pub(super) loopback_bandwidth: Option<f64>,
    /// Latency of the built-in loopback link (`network/loopback-lat`).
    #[schemars(range(min = 0), extend("x-unit" = "s", "default" = 0))]
    pub(super) loopback_latency_s: Option<f64>,
}

/// The name of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ModelName {
    /// Messages share links, computations share cores.
    Flow,
    /// No contention.
    LogGps,
    /// GOAL schedules, as LogGOPSim charges them.
    LogGops,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = shapes::name_algorithms)]
pub(super) struct MpiSection {
    /// The selector of collective algorithms; `analytic` has closed forms instead.
    #[schemars(schema_with = "shapes::selectors", extend("default" = "default", "x-page" = "collectives.md"))]
    pub(super) collectives: Option<String>,
    /// The algorithm of barriers, by SimGrid's name.
    pub(super) barrier: Option<String>,
    /// The algorithm of broadcasts.
    pub(super) bcast: Option<String>,
    /// The algorithm of reductions.
    pub(super) reduce: Option<String>,
    /// The algorithm of reductions whose result all ranks get.
    pub(super) allreduce: Option<String>,
    /// The algorithm of gathers; those with counts have one.
    pub(super) gather: Option<String>,
    /// The algorithm of scatters; those with counts have one.
    pub(super) scatter: Option<String>,
    /// The algorithm of gathers whose result all ranks get.
    pub(super) allgather: Option<String>,
    /// The same with counts.
    pub(super) allgatherv: Option<String>,
    /// The algorithm of total exchanges.
    pub(super) alltoall: Option<String>,
    /// The same with counts.
    pub(super) alltoallv: Option<String>,
    /// The algorithm of reductions of which each rank gets a part.
    pub(super) reduce_scatter: Option<String>,
    /// For each operation rows `ranks_below`, `bytes_below` (both optional), `algorithm`: the first that holds decides, before all of the above.
    #[schemars(extend("x-default" = "none", "x-page" = "collectives.md"))]
    pub(super) table: BTreeMap<String, Vec<TableRow>>,
    /// What a message carries beside its payload.
    #[schemars(range(max = 281_474_976_710_656_u64), extend("x-unit" = "B", "default" = Parameters::default().envelope.get()))]
    pub(super) envelope_bytes: Option<u64>,
    /// A smaller message does not make its sender wait (`smpi/send-is-detached-thresh`).
    #[schemars(range(max = 281_474_976_710_656_u64), extend("x-unit" = "B", "default" = Parameters::default().detached_below.get()))]
    pub(super) detached_below_bytes: Option<u64>,
    /// The data of a smaller message does not wait for the receive (`smpi/async-small-thresh`); at most `detached_below_bytes`.
    #[schemars(range(max = 281_474_976_710_656_u64), extend("x-unit" = "B", "default" = Parameters::default().eager_below.get()))]
    pub(super) eager_below_bytes: Option<u64>,
    /// Paid by the sender before a detached blocking send (`smpi/os`): `"size:constant:slope;..."`, times with units or in seconds.
    #[schemars(extend("x-default" = "no cost"))]
    pub(super) send_overhead: Option<String>,
    /// Paid by the sender before a send that does not block (`smpi/ois`), written like `send_overhead`.
    #[schemars(extend("x-default" = "no cost"))]
    pub(super) isend_overhead: Option<String>,
    /// Paid by the receiver when it completes a detached message (`smpi/or`), written like `send_overhead`.
    #[schemars(extend("x-default" = "no cost"))]
    pub(super) receive_overhead: Option<String>,
    /// Paid before a receive that does not block is posted.
    #[schemars(range(min = 0), extend("x-unit" = "s", "default" = 0))]
    pub(super) irecv_s: Option<f64>,
    /// Cost of a test of requests (`smpi/test`).
    #[schemars(range(min = 0), extend("x-unit" = "s", "default" = Parameters::default().test.as_secs_f64()))]
    pub(super) test_s: Option<f64>,
    /// Whether tests and looks in vain make later ones dearer (`smpi/grow-injected-times`).
    #[schemars(extend("default" = Parameters::default().test_grows))]
    pub(super) test_grows: Option<bool>,
    /// Cost of a look for a message (`smpi/iprobe`).
    #[schemars(range(min = 0), extend("x-unit" = "s", "default" = Parameters::default().iprobe.as_secs_f64()))]
    pub(super) iprobe_s: Option<f64>,
    /// What depends on time is decided by simulated time (`reenact`), or as the trace says (`recorded`).
    #[schemars(extend("default" = Outcomes::default().name(), "x-page" = "model.md#what-depends-on-time"))]
    pub(super) outcomes: Option<OutcomesName>,
    /// Whether making a communicator that the trace uses costs an allgather of 8 bytes.
    #[schemars(extend("default" = Parameters::default().communicators_cost))]
    pub(super) communicators_cost: Option<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ComputeSection {
    /// How fast computations are in a region of the program, by its name, as a multiple of the speed of the host, which others have; `""` is
    /// what comes before any region.
    #[schemars(extend("x-page" = "calibration.md#computations-by-region"))]
    pub(super) region_speeds: BTreeMap<String, f64>,
}

/// Whose outcomes calls have that depend on time.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OutcomesName {
    /// Those of the simulated run.
    Reenact,
    /// Those of the recorded run.
    Recorded,
}

/// A row of a decision table of the user.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TableRow {
    /// Holds for fewer ranks than this.
    pub(super) ranks_below: Option<u32>,
    /// Holds for fewer bytes than this.
    #[schemars(extend("x-unit" = "B"))]
    pub(super) bytes_below: Option<u64>,
    /// The algorithm, by SimGrid's name.
    pub(super) algorithm: String,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EngineSection {
    /// Threads, of which a replay with `flow` uses one unless it has epochs, and one of a GOAL schedule one for each 64 ranks at most; where it is left out, text is read on as many as there are cores.
    #[schemars(range(min = 1, max = 1024), extend("default" = 1))]
    pub(super) threads: Option<usize>,
    /// How far ranks may run ahead of the slowest one that can run; changes memory and speed, never the result.
    #[schemars(schema_with = "shapes::seconds_or_auto", extend("x-unit" = "s", "default" = "auto"))]
    pub(super) run_ahead_s: Option<toml::Value>,
    /// Whether iterations whose outcome is known are passed over, exactly; `loggps` on one process, archives only.
    #[schemars(extend("default" = false, "x-page" = "fast-forward.md"))]
    pub(super) fast_forward: Option<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ParallelSection {
    /// Which worker (thread of a process) runs which rank: `blocks`, `auto`, or a file.
    #[schemars(extend("default" = "blocks", "x-page" = "parallel.md#partitions"))]
    pub(super) partition: Option<String>,
    /// The profile (`output.profile`) of an earlier replay with epochs: regions are put on processes so that those of each took about as
    /// long; without it, they have about as many actions.
    #[schemars(extend("x-default" = "none", "x-page" = "parallel.md#with-contention"))]
    pub(super) region_costs: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AnalysisSection {
    /// Whether the report says where the time went and who waited for whom.
    #[schemars(extend("x-default" = "true up to 65,536 ranks", "x-page" = "waits.md"))]
    pub(super) waits: Option<bool>,
    /// Whether messages and waits are counted by their size and length; needs `analysis.waits`, and nothing is fast-forwarded.
    #[schemars(extend("default" = false, "x-page" = "waits.md#histograms"))]
    pub(super) histograms: Option<bool>,
    /// Whether the report says what led to the end of the last rank; nothing is fast-forwarded.
    #[schemars(extend("default" = false, "x-page" = "critical-path.md"))]
    pub(super) critical_path: Option<bool>,
    /// Whether the report says what links carried, over time, and which held messages back; `flow` only.
    #[schemars(extend("x-default" = "true up to 65,536 links", "x-page" = "links.md"))]
    pub(super) links: Option<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CheckpointSection {
    /// Where to write checkpoints (`--checkpoint`); `loggps` on one process.
    #[schemars(extend("x-default" = "none", "x-page" = "checkpoints.md"))]
    pub(super) directory: Option<PathBuf>,
    /// Time between two checkpoints, such as `"30s"` or `"5m"` (`--every`).
    #[schemars(extend("default" = "5m"))]
    pub(super) every: Option<String>,
    /// Whether to go on from the checkpoint that is there (`--resume`).
    #[schemars(extend("default" = false))]
    pub(super) resume: Option<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TimelineSection {
    /// Where to write a timeline (`--timeline`).
    #[schemars(extend("x-default" = "none", "x-page" = "timelines.md"))]
    pub(super) file: Option<PathBuf>,
    /// Its format: `chrome`, `paje`, `otf2`, `csv`, `parquet` (`--timeline-format`).
    #[schemars(extend("x-default" = "by the end of the file's name"))]
    pub(super) format: Option<String>,
    /// The simulated time that it shows, such as `"10s..12s"` (`--timeline-window`).
    #[schemars(extend("x-default" = "all"))]
    pub(super) window: Option<String>,
    /// The ranks that it shows, such as `"0..64"`, the last one excluded (`--timeline-ranks`).
    #[schemars(extend("x-default" = "all"))]
    pub(super) ranks: Option<String>,
    /// Whether it shows messages inside collective operations.
    #[schemars(extend("default" = false))]
    pub(super) collectives: Option<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OutputSection {
    /// Where to write the report (JSON).
    #[schemars(extend("x-default" = "none", "x-page" = "report.md"))]
    pub(super) report: Option<PathBuf>,
    /// Where to write the profile of the parallelism (JSON); replays a second time, `loggps` only.
    #[schemars(extend("x-default" = "none", "x-page" = "parallel.md#profile"))]
    pub(super) profile: Option<PathBuf>,
}

impl PlatformSection {
    /// The platform that the section describes itself, if it does.
    pub(super) fn inline(&self) -> Result<Option<PlatformDescription>, toml::de::Error> {
        let Some(topology) = &self.topology else { return Ok(None) };
        let mut table = toml::Table::new();
        table.insert("topology".to_owned(), toml::Value::Table(topology.clone()));
        for (key, value) in [("host", &self.host), ("link", &self.link), ("route", &self.route)] {
            table.extend(value.clone().map(|value| (key.to_owned(), value)));
        }
        table.try_into().map(Some)
    }
}
