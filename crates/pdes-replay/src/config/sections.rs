//! The sections of a configuration file.
//!
//! The JSON schema, the reference in `docs/configuration.md` and the suggestions for typos are generated from these types. The doc
//! comment of a field is its description, `x-unit` its unit, `x-default` a default that is not a value, `x-page` the page of the
//! documentation with details, `x-value` what messages call its values.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mpi_model::{CollectiveIo, Outcomes, Parameters, Progress};
use netmodel::description::{HostDescription, LinkDescription, RouteDescription, TopologyDescription};
use netmodel::maxmin::Scope;
use netmodel::quantity::{Bandwidth, Seconds, Size, Speed};
use netmodel::storage::{FileSystemDescription, StorageDescription};
use netmodel::{FactorTable, FatPipes, MessageRouting, PlatformDescription, RoutingRule};
use replay::{MODELS, Model, NetworkPreset, PlacementPolicy};
use schemars::JsonSchema;
use serde::Deserialize;

use super::offload::OffloadSection;
use super::{OnlineSection, registries, value_schemas};

/// Configuration of a run of pdes-replay: the trace, the machine, and the options.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(title = "pdes-replay configuration", deny_unknown_fields)]
pub(super) struct Sections {
    /// The trace of the program.
    pub(super) trace: TraceSection,
    /// Programs that run at once on the machine, in place of `[trace]`.
    #[schemars(extend("x-page" = "jobs.md"))]
    pub(super) job: Vec<JobSection>,
    /// Options of runs of several jobs.
    pub(super) jobs: JobsSection,
    /// The machine: a platform file, or an inline platform.
    pub(super) platform: PlatformSection,
    /// Profiles of hosts and links: speeds, bandwidths and latencies over time, and when they are on.
    #[schemars(extend("x-page" = "jobs.md#profiles"))]
    pub(super) profile: Vec<ProfileSection>,
    /// The network model.
    pub(super) network: NetworkSection,
    /// The MPI library.
    pub(super) mpi: MpiSection,
    /// The speeds of computations, relative to those of hosts.
    pub(super) compute: ComputeSection,
    /// Execution of the replay; no effect on results.
    pub(super) engine: EngineSection,
    /// Assignment of ranks to the workers of a run; no effect on results.
    pub(super) parallel: ParallelSection,
    /// A program that runs [online](online.md), in place of a trace.
    pub(super) online: OnlineSection,
    /// Additional analyses; no effect on results.
    pub(super) analysis: AnalysisSection,
    /// Checkpoints, from which a run resumes; no effect on results.
    pub(super) checkpoint: CheckpointSection,
    /// Timeline of all ranks, in a file; no effect on results.
    pub(super) timeline: TimelineSection,
    /// Output files.
    pub(super) output: OutputSection,
    /// Sections of single models and of extensions, which are checked, and no others.
    #[serde(flatten, deserialize_with = "registries::read_named_sections")]
    #[schemars(skip)]
    pub(super) named: BTreeMap<String, toml::Value>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TraceSection {
    /// An archive (`.pdt`), text (a file list, a merged file, or a directory of `rank-N.txt`), or another trace.
    #[schemars(extend("x-value" = "the name of a file or a directory", "x-default" = "required", "x-page" = "traces.md"))]
    pub(super) path: Option<PathBuf>,
    /// In place of a path, a generated program: the arguments of `trace generate`.
    #[schemars(extend("x-value" = "such as `\"npb-lu --class S --ranks 8\"`", "x-default" = "none", "x-page" = "sweeps.md#numbers-of-ranks"))]
    pub(super) generate: Option<String>,
    /// Number of ranks; those beyond the trace do nothing, fewer are an error.
    #[schemars(range(min = 1), extend("x-default" = "those of the trace"))]
    pub(super) ranks: Option<u32>,
    /// Size of actions in memory (16 B each); the rest goes to a mapped temporary file.
    #[schemars(extend("default" = 2_u64 << 30))]
    pub(super) memory_budget_bytes: Option<Size>,
    /// Speed of the machine on which the program ran, where computations counted as times take the recorded times.
    #[schemars(extend("exclusiveMinimum" = 0, "x-default" = "the rate at which the trace counts times", "x-page" = "traces.md#speed"))]
    pub(super) speed: Option<Speed>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct JobSection {
    /// Name of the job, which no other one has.
    #[schemars(extend("x-default" = "`job-0`, `job-1`, ..."))]
    pub(super) name: Option<String>,
    /// The trace of its program, as `trace.path`.
    #[schemars(extend("x-value" = "the name of a file or a directory", "x-default" = "required", "x-page" = "traces.md"))]
    pub(super) trace: Option<PathBuf>,
    /// In place of a trace, a generated program, as `trace.generate`.
    #[schemars(extend("x-value" = "such as `\"npb-lu --class S --ranks 8\"`", "x-default" = "none"))]
    pub(super) generate: Option<String>,
    /// Number of ranks, as `trace.ranks`.
    #[schemars(range(min = 1), extend("x-default" = "those of the trace"))]
    pub(super) ranks: Option<u32>,
    /// Hosts file, as `platform.hosts`: which jobs with such files may share.
    #[schemars(extend("x-value" = "the name of a file", "x-default" = "none"))]
    pub(super) hosts: Option<PathBuf>,
    /// Placement of ranks without a hosts file.
    #[schemars(extend("x-default" = "`platform.placement`", "x-page" = "jobs.md#placements"))]
    pub(super) placement: Option<PlacementPolicy>,
    /// No other job has ranks on the hosts of this one.
    #[schemars(extend("x-default" = "true, with `hosts` false"))]
    pub(super) exclusive: Option<bool>,
    /// Instant at which the job starts.
    #[schemars(extend("default" = 0))]
    pub(super) start: Option<Seconds>,
    /// Number of times that the job runs, one after the other, on the same hosts.
    #[schemars(range(min = 1, max = 1000), extend("default" = 1, "x-page" = "jobs.md#repetitions"))]
    pub(super) repetitions: Option<usize>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct JobsSection {
    /// Slowdown of each job, and the time that it loses to each other one (`--slowdown`).
    #[schemars(extend("default" = false, "x-page" = "jobs.md#slowdown"))]
    pub(super) slowdown: bool,
    /// Seed of random placements.
    #[schemars(extend("default" = 0))]
    pub(super) seed: u64,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PlatformSection {
    /// Platform file: SimGrid XML or TOML.
    #[schemars(extend("x-value" = "the name of a file", "x-default" = "this or `topology`", "x-page" = "platforms.md"))]
    pub(super) file: Option<PathBuf>,
    /// Topology of an inline platform, as in a TOML file.
    #[schemars(with = "TopologyDescription", extend("x-default" = "this or `file`", "x-page" = "platforms.md"))]
    topology: Option<toml::Table>,
    /// Hosts of a `topology` of the kind `graph`.
    #[schemars(with = "Vec<HostDescription>", extend("x-default" = "none"))]
    host: Option<toml::Value>,
    /// Links of a `topology` of the kind `graph`.
    #[schemars(with = "Vec<LinkDescription>", extend("x-default" = "none"))]
    link: Option<toml::Value>,
    /// Routes of a `topology` of the kind `graph`.
    #[schemars(with = "Vec<RouteDescription>", extend("x-default" = "none"))]
    route: Option<toml::Value>,
    /// Storage devices of a `topology`.
    #[schemars(with = "Vec<StorageDescription>", extend("x-default" = "none", "x-page" = "storage.md"))]
    storage: Option<toml::Value>,
    /// Parallel file systems of a `topology`.
    #[schemars(with = "Vec<FileSystemDescription>", extend("x-default" = "none", "x-page" = "storage.md"))]
    file_system: Option<toml::Value>,
    /// Hosts file: rank `i` runs on the host of line `i`, cyclically; `host:4` stands for four lines.
    #[schemars(extend("x-value" = "the name of a file", "x-default" = "none"))]
    pub(super) hosts: Option<PathBuf>,
    /// Placement of ranks without a hosts file: all cores of a host first (`block`), one on each host in turn (`cyclic`), or by
    /// [jobs](jobs.md#placements).
    #[schemars(extend("x-default" = "`\"block\"`, for SimGrid's XML `\"cyclic\"`", "x-page" = "platforms.md#placement"))]
    pub(super) placement: Option<PlacementPolicy>,
    /// Routing in fat trees and dragonflies: with SimGrid's peculiarities, or without (`textbook`).
    #[schemars(extend("default" = RoutingRule::default(), "x-page" = "platforms.md"))]
    pub(super) routing: Option<RoutingRule>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ProfileSection {
    /// Name of the hosts, in which `*` stands for any text.
    #[schemars(extend("x-default" = "this or `link`"))]
    pub(super) host: Option<String>,
    /// Name of the links, as `host`; both directions of a cable have its name.
    #[schemars(extend("x-default" = "this or `host`"))]
    pub(super) link: Option<String>,
    /// The quantity that changes; a `state` is that of hosts or links.
    #[schemars(extend("x-default" = "required"))]
    pub(super) quantity: Option<ProfiledQuantityName>,
    /// Instants, each with the value from then on: a factor of the platform's value, or a text with a unit; a state is 0 (off) or 1.
    #[schemars(with = "Vec<Vec<serde_json::Value>>", extend("x-value" = "a list of instants with values", "x-default" = "this or `file`"))]
    pub(super) points: Option<Vec<(Seconds, toml::Value)>>,
    /// Profile file of SimGrid: factors of speeds, bandwidths, latencies, or states, in its units.
    #[schemars(extend("x-value" = "the name of a file", "x-default" = "this or `points`"))]
    pub(super) file: Option<PathBuf>,
    /// Time after which the points recur.
    #[schemars(extend("x-default" = "they do not recur"))]
    pub(super) period: Option<Seconds>,
}

/// Quantity of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ProfiledQuantityName {
    /// Speed of hosts.
    Speed,
    /// Bandwidth of links.
    Bandwidth,
    /// Latency of links.
    Latency,
    /// Hosts or links are on or off.
    State,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NetworkSection {
    /// Network model: messages share links and computations cores (`flow`), or nothing is shared, or `packets` wait in switches; `loggops`
    /// is for GOAL schedules.
    #[serde(deserialize_with = "registries::read_model")]
    #[schemars(schema_with = "registries::models", extend("default" = MODELS[0].key, "x-page" = "model.md"))]
    pub(super) model: Option<&'static Model>,
    /// Defaults of the parameters below, and of those of `[mpi]` that the network decides.
    #[serde(deserialize_with = "registries::read_preset")]
    #[schemars(schema_with = "registries::presets", extend("x-default" = "`\"links\"`, for SimGrid's XML `\"smpi\"`", "x-page" = "model.md#presets"))]
    pub(super) preset: Option<&'static NetworkPreset>,
    /// Epoch: rates change whenever a message begins or ends (0), at multiples of a time only, or at those of the shortest time between a
    /// send and the flow of its data (`auto`); `flow` only.
    #[schemars(schema_with = "value_schemas::seconds_or_auto", extend("x-unit" = "s", "default" = 0, "x-page" = "epochs.md"))]
    pub(super) epoch_s: Option<toml::Value>,
    /// Regions of the platform: along its structure (`auto`), about a number of them, or a file with a host and its region in each line.
    #[schemars(schema_with = "value_schemas::regions", extend("default" = "auto", "x-page" = "epochs.md"))]
    pub(super) regions: Option<toml::Value>,
    /// Multiple of the latencies of all links, whatever the preset.
    #[schemars(extend("exclusiveMinimum" = 0, "default" = 1))]
    pub(super) latency_scale: Option<f64>,
    /// Multiple of the bandwidths of all links.
    #[schemars(extend("exclusiveMinimum" = 0, "default" = 1))]
    pub(super) bandwidth_scale: Option<f64>,
    /// Factor of the latency of a route: a number, or a step function of the message size, `"0:2.0;257:1.9"`: a value holds for sizes above
    /// its threshold.
    #[schemars(extend("x-default" = "preset"))]
    pub(super) latency_factor: Option<FactorTable>,
    /// Factor of the rate of a message, after sharing, written like `latency_factor`.
    #[schemars(extend("x-default" = "preset"))]
    pub(super) bandwidth_factor: Option<FactorTable>,
    /// Penalty of a flow for each link, times the link's bandwidth (`network/weight-S`); `flow` only.
    #[schemars(range(min = 0), extend("x-unit" = "B", "x-default" = "preset"))]
    pub(super) weight_s: Option<f64>,
    /// TCP window: the rate of a message is at most window / (2 x latency); 0 removes the limit.
    #[schemars(range(min = 0), extend("x-unit" = "B", "x-default" = "preset"))]
    pub(super) tcp_gamma: Option<f64>,
    /// Cross traffic: a message also takes 0.05 of its rate from the reverse route.
    #[schemars(extend("x-default" = "preset"))]
    pub(super) cross_traffic: Option<bool>,
    /// Sharing of a fat pipe: when one flow fills it, all stop rising, as in SimGrid (`joint`), or each has the whole capacity
    /// (`separate`); `flow` only.
    #[schemars(extend("x-default" = "`\"joint\"`, with `raw` `\"separate\"`"))]
    pub(super) fat_pipes: Option<FatPipes>,
    /// Links that are solved again when flows begin or end: as in SimGrid (`marked`), or all (`complete`); `flow` only.
    #[schemars(extend("x-default" = "`\"marked\"`, with `raw` `\"complete\"`", "x-page" = "model.md"))]
    pub(super) solve_scope: Option<Scope>,
    /// Routes of messages: those of the platform (`minimal`), ways over third groups, switches or hosts (`valiant`), the better one of both
    /// when a message begins (`ugal`), or several at once (`spray`); exact `flow` only.
    #[schemars(extend("default" = "minimal", "x-page" = "model.md#messages-that-share-links-flow"))]
    pub(super) routing: Option<MessageRouting>,
    /// Seed of the routes beside those of the platform.
    #[schemars(extend("default" = 1))]
    pub(super) routing_seed: Option<u64>,
    /// Parts of a message with `spray`, of equal size, each on a route of its own.
    #[schemars(extend("default" = 4, "minimum" = 1, "maximum" = 64))]
    pub(super) routing_parts: Option<u8>,
    /// Precision of event times: events within this time after another one happen together with it (`surf/precision`); `flow` only.
    #[schemars(extend("maximum" = 1, "x-default" = "1e-9, with `raw` 0"))]
    pub(super) precision_s: Option<Seconds>,
    /// Bandwidth of the loopback of hosts without a route to themselves (`network/loopback-bw`).
    #[schemars(extend("exclusiveMinimum" = 0, "default" = 1e10))]
    pub(super) loopback_bandwidth: Option<Bandwidth>,
    /// Its latency (`network/loopback-lat`).
    #[schemars(extend("default" = 0))]
    pub(super) loopback_latency_s: Option<Seconds>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = value_schemas::add_algorithm_names)]
pub(super) struct MpiSection {
    /// Selector of collective algorithms; `analytic` has no messages.
    #[schemars(schema_with = "value_schemas::selectors", extend("default" = "default", "x-page" = "collectives.md"))]
    pub(super) collectives: Option<String>,
    /// Algorithm of barriers, by SimGrid's name.
    pub(super) barrier: Option<String>,
    /// Algorithm of broadcasts.
    pub(super) bcast: Option<String>,
    /// Algorithm of reductions to one rank.
    pub(super) reduce: Option<String>,
    /// Algorithm of allreduces.
    pub(super) allreduce: Option<String>,
    /// Algorithm of gathers; those with counts have only one.
    pub(super) gather: Option<String>,
    /// Algorithm of scatters; those with counts have only one.
    pub(super) scatter: Option<String>,
    /// Algorithm of allgathers.
    pub(super) allgather: Option<String>,
    /// Algorithm of allgathers with counts.
    pub(super) allgatherv: Option<String>,
    /// Algorithm of alltoalls.
    pub(super) alltoall: Option<String>,
    /// Algorithm of alltoalls with counts.
    pub(super) alltoallv: Option<String>,
    /// Algorithm of reduce-scatters.
    pub(super) reduce_scatter: Option<String>,
    /// For each operation, rows of `ranks_below`, `bytes_below` (both optional) and `algorithm`: the first that matches decides, before all
    /// of the above.
    #[schemars(extend("x-default" = "none", "x-page" = "collectives.md"))]
    pub(super) table: BTreeMap<String, Vec<TableRow>>,
    /// For each operation, files of times that nccl-tests measured, one for each number of ranks; before its algorithm, after the rows of
    /// `table`.
    #[schemars(extend("x-page" = "collectives.md"))]
    pub(super) measured: BTreeMap<String, Vec<PathBuf>>,
    /// Size of the envelope of each message, beside its payload.
    #[schemars(extend("maximum" = 1_u64 << 48, "default" = Parameters::default().envelope.get()))]
    pub(super) envelope_bytes: Option<Size>,
    /// Detached sends: the sender of a smaller message does not wait for the receive (`smpi/send-is-detached-thresh`).
    #[schemars(extend("maximum" = 1_u64 << 48, "x-default" = "preset"))]
    pub(super) detached_below_bytes: Option<Size>,
    /// Eager messages: the data of a smaller one does not wait for the receive (`smpi/async-small-thresh`); at most `detached_below_bytes`.
    #[schemars(extend("maximum" = 1_u64 << 48, "x-default" = "preset"))]
    pub(super) eager_below_bytes: Option<Size>,
    /// Cost before a detached blocking send (`smpi/os`): `"size:constant:slope;..."`, times with units or in seconds.
    #[schemars(extend("x-default" = "no cost"))]
    pub(super) send_overhead: Option<String>,
    /// Cost before a nonblocking send (`smpi/ois`), written like `send_overhead`.
    #[schemars(extend("x-default" = "no cost"))]
    pub(super) isend_overhead: Option<String>,
    /// Cost of receiving a detached message (`smpi/or`), written like `send_overhead`.
    #[schemars(extend("x-default" = "no cost"))]
    pub(super) receive_overhead: Option<String>,
    /// Cost of posting a nonblocking receive.
    #[schemars(extend("default" = 0))]
    pub(super) irecv_s: Option<Seconds>,
    /// Time of the library in calls by action, such as `{ allreduce = "2 us", isend = "0:80ns:0.1ns" }`: one time each, or as
    /// `send_overhead`.
    #[schemars(extend("x-page" = "model.md#costs-of-calls"))]
    pub(super) call_overhead: BTreeMap<String, String>,
    /// Cost of a test of requests (`smpi/test`).
    #[schemars(extend("x-default" = "1e-4 (SimGrid's), 0 for [recorded traces](model.md#polling)"))]
    pub(super) test_s: Option<Seconds>,
    /// Costs of tests and probes grow with each failed one (`smpi/grow-injected-times`).
    #[schemars(extend("x-default" = "true (SimGrid's), false for [recorded traces](model.md#polling)"))]
    pub(super) test_grows: Option<bool>,
    /// Cost of a probe (`smpi/iprobe`).
    #[schemars(extend("x-default" = "1e-4 (SimGrid's), 0 for [recorded traces](model.md#polling)"))]
    pub(super) iprobe_s: Option<Seconds>,
    /// Outcomes that depend on time: by simulated time (`reenact`), or as recorded.
    #[schemars(extend("default" = Outcomes::default().name(), "x-page" = "model.md#what-depends-on-time"))]
    pub(super) outcomes: Option<OutcomesName>,
    /// When data move for which their sender waits: at any time, or while the receiver is in `calls` of MPI.
    #[schemars(extend("default" = Progress::default().name(), "x-page" = "model.md#progress"))]
    pub(super) progress: Option<ProgressName>,
    /// Collective accesses to files: SMPI's, with a chunk for each rank, or ROMIO's, with aggregators and buffers.
    #[schemars(extend("default" = CollectiveIo::default().name(), "x-page" = "storage.md#collective-accesses"))]
    pub(super) collective_io: Option<CollectiveIoName>,
    /// Each communicator that the trace creates and uses costs an allgather of 8 bytes.
    #[schemars(extend("default" = Parameters::default().communicators_cost))]
    pub(super) communicators_cost: Option<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ComputeSection {
    /// Speed by region of the program, as a factor of that of the host, 1 by default; `""` is the part before any region.
    #[schemars(extend("x-page" = "calibration.md#computations-by-region"))]
    pub(super) region_speeds: BTreeMap<String, f64>,
    /// Traffic of a computation with the memory, in bytes for each unit of its amount, which the `memory_bandwidth` of hosts limits.
    #[schemars(extend("x-page" = "model.md#memory-bandwidth"))]
    pub(super) bytes_per_flop: f64,
    /// The same in regions of the program that differ.
    #[schemars(extend("x-page" = "model.md#memory-bandwidth"))]
    pub(super) region_bytes_per_flop: BTreeMap<String, f64>,
    /// Regions of the program that accelerators compute; the first entry that fits a region counts.
    #[schemars(extend("x-default" = "none", "x-page" = "model.md#accelerators"))]
    pub(super) offload: Vec<OffloadSection>,
}

/// Library whose collective accesses to files are modelled.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum CollectiveIoName {
    /// SMPI.
    Smpi,
    /// ROMIO.
    Romio,
}

/// Source of the outcomes that depend on time.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OutcomesName {
    /// The simulated run.
    Reenact,
    /// The recorded run.
    Recorded,
}

/// Moments at which data move for which their sender waits.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ProgressName {
    /// At any time.
    Asynchronous,
    /// In calls of the receiver.
    Calls,
}

/// A row of a user's decision table.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TableRow {
    /// Upper bound of the number of ranks, exclusive.
    pub(super) ranks_below: Option<u32>,
    /// Upper bound of the size, exclusive.
    #[schemars(extend("x-unit" = "B"))]
    pub(super) bytes_below: Option<u64>,
    /// Algorithm, by SimGrid's name.
    pub(super) algorithm: String,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EngineSection {
    /// Number of threads. Exact `flow` uses one, unless it can be cut into windows, a GOAL schedule one per 64 ranks at most. By default
    /// text is read on all cores.
    #[schemars(range(min = 1, max = 1024), extend("default" = 1))]
    pub(super) threads: Option<usize>,
    /// Bound on how far ranks run ahead of the slowest runnable one, for memory and speed.
    #[schemars(schema_with = "value_schemas::seconds_or_auto", extend("x-unit" = "s", "default" = "auto"))]
    pub(super) run_ahead_s: Option<toml::Value>,
    /// Fast-forwarding: iterations with a known outcome are skipped, exactly; archives only.
    #[schemars(extend("default" = false, "x-page" = "fast-forward.md"))]
    pub(super) fast_forward: Option<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ParallelSection {
    /// Assignment of ranks to workers (threads of all processes): `blocks`, `auto`, or a file.
    #[schemars(extend("default" = "blocks", "x-page" = "parallel.md#partitions"))]
    pub(super) partition: Option<String>,
    /// Profile (`output.profile`) of a replay with epochs, by which processes get regions that took about as long; without it, as many
    /// actions.
    #[schemars(extend("x-value" = "the name of a file", "x-default" = "none", "x-page" = "parallel.md#with-contention"))]
    pub(super) region_costs: Option<PathBuf>,
    /// Threads, and processes of `mpirun`, without a core of their own work; by default they wait, which is faster.
    #[schemars(extend("default" = false, "x-page" = "parallel.md"))]
    pub(super) oversubscribe: Option<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AnalysisSection {
    /// Wait-state analysis: the causes of lost time, and who waited for whom.
    #[schemars(extend("x-default" = "true up to 65,536 ranks", "x-page" = "waits.md"))]
    pub(super) waits: Option<bool>,
    /// Histograms of messages by size and of waits by length; needs `analysis.waits`.
    #[schemars(extend("default" = false, "x-page" = "waits.md#histograms"))]
    pub(super) histograms: Option<bool>,
    /// Communication matrix: bytes, messages and time in transfer between ranks.
    #[schemars(extend("default" = false, "x-page" = "waits.md#communication-matrix"))]
    pub(super) matrix: Option<bool>,
    /// Most rows of the matrix, 1 to 16384: neighbours among more ranks are counted together.
    #[schemars(extend("default" = 512, "x-page" = "waits.md#communication-matrix"))]
    pub(super) matrix_groups: Option<u32>,
    /// Run times on ideal machines: parts of the run time, by four replays without contention.
    #[schemars(extend("x-default" = "true in reports of up to 2 million replayed actions of an archive, 200,000 of text", "x-page" = "report.md#ideal-machines"))]
    pub(super) ideal_machines: Option<bool>,
    /// Critical path: the actions that lead to the end of the last rank; nothing is fast-forwarded.
    #[schemars(extend("default" = false, "x-page" = "critical-path.md"))]
    pub(super) critical_path: Option<bool>,
    /// Link analysis: loads of links over time, and the links that held messages back; not `contention-free`.
    #[schemars(extend("x-default" = "true with `flow` up to 65,536 links", "x-page" = "links.md"))]
    pub(super) links: Option<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CheckpointSection {
    /// Directory of checkpoints (`--checkpoint`).
    #[schemars(extend("x-value" = "the name of a directory", "x-default" = "none", "x-page" = "checkpoints.md"))]
    pub(super) directory: Option<PathBuf>,
    /// Wall-clock time between two checkpoints, such as `"30s"` or `"5m"` (`--every`).
    #[schemars(extend("default" = "5m"))]
    pub(super) every: Option<String>,
    /// Resume from the existing checkpoint (`--resume`).
    #[schemars(extend("default" = false))]
    pub(super) resume: Option<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TimelineSection {
    /// File of the timeline (`--timeline`).
    #[schemars(extend("x-value" = "the name of a file", "x-default" = "none", "x-page" = "timelines.md"))]
    pub(super) file: Option<PathBuf>,
    /// Format of the timeline: `chrome`, `paje`, `otf2`, `csv`, `parquet` (`--timeline-format`).
    #[schemars(extend("x-default" = "by the end of the file's name"))]
    pub(super) format: Option<String>,
    /// Interval of simulated time to show, such as `"10s..12s"` (`--timeline-window`).
    #[schemars(extend("x-default" = "all"))]
    pub(super) window: Option<String>,
    /// Ranks to show, such as `"0..64"`, the last one excluded (`--timeline-ranks`).
    #[schemars(extend("x-default" = "all"))]
    pub(super) ranks: Option<String>,
    /// Show the messages inside collective operations.
    #[schemars(extend("default" = false))]
    pub(super) collectives: Option<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OutputSection {
    /// File of the report (JSON).
    #[schemars(extend("x-value" = "the name of a file", "x-default" = "none", "x-page" = "report.md"))]
    pub(super) report: Option<PathBuf>,
    /// File of the profile of the parallelism (JSON), by a second replay.
    #[schemars(extend("x-value" = "the name of a file", "x-default" = "none", "x-page" = "parallel.md#profile"))]
    pub(super) profile: Option<PathBuf>,
    /// File of the certificate, which `tools/check-certificate` verifies.
    #[schemars(extend("x-value" = "the name of a file", "x-default" = "none", "x-page" = "certificates.md"))]
    pub(super) certificate: Option<PathBuf>,
}

impl PlatformSection {
    /// Returns the inline platform, if the section describes one.
    pub(super) fn inline(&self) -> Result<Option<PlatformDescription>, toml::de::Error> {
        let Some(topology) = &self.topology else { return Ok(None) };
        let mut table = toml::Table::new();
        table.insert("topology".to_owned(), toml::Value::Table(topology.clone()));
        let lists = [
            ("host", &self.host),
            ("link", &self.link),
            ("route", &self.route),
            ("storage", &self.storage),
            ("file_system", &self.file_system),
        ];
        for (key, value) in lists {
            table.extend(value.clone().map(|value| (key.to_owned(), value)));
        }
        table.try_into().map(Some)
    }
}
