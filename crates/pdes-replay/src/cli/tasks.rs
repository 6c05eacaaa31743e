//! The command that runs task graphs on the processors and accelerators of a node.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use machine::{Energy, PowerByName};
use netmodel::{HostPower, LinkPower, Platform};
use outputs::{AtomicFile, FileRoles, is_stdout};
use pdes_replay::write_json;
use replay::{PlatformChange, read_platform};
use serde::{Deserialize, Serialize};
use tasks::{Bounds, Execution, Node, Rates, SCHEDULERS, SchedulerEntry, TaskGraph, execute};

use super::{Misuse, summary};

/// Largest number of tiles in a row: 180,901 tasks.
const MAX_TILES: u64 = 101;

#[derive(Debug, Args)]
pub(crate) struct TasksArguments {
    /// Node: its platform, the rates of its cores by kernel, and its power (TOML).
    node: PathBuf,
    /// Number of tiles in a row of the matrix, whose Cholesky factorisation is the graph.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=MAX_TILES))]
    tiles: u64,
    /// Size of a tile: N by N numbers of double precision.
    #[arg(long, value_name = "N", default_value_t = 960, value_parser = clap::value_parser!(u32).range(1..=65536))]
    size: u32,
    #[arg(long, value_name = "NAME", value_parser = SCHEDULERS.map(|scheduler| scheduler.name), help = scheduler_help())]
    scheduler: Option<String>,
    /// File of the results (JSON).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Table of all tasks: who did each, and when (CSV).
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// A node.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeFile {
    /// Path of the platform, from the directory of the file.
    platform: PathBuf,
    memory: String,
    rates: BTreeMap<String, BTreeMap<String, f64>>,
    #[serde(default)]
    energy: NodeEnergy,
}

/// Power as in the section `[energy]` of a configuration.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct NodeEnergy {
    hosts: BTreeMap<String, HostPower>,
    links: BTreeMap<String, LinkPower>,
    traffic: BTreeMap<String, f64>,
}

/// The results; times in seconds.
#[derive(Debug, Serialize)]
struct Results {
    format: &'static str,
    version: u32,
    tiles: u64,
    size: u32,
    tasks: usize,
    flops: f64,
    bounds: Bounds,
    schedulers: Vec<SchedulerResult>,
}

/// The results of a scheduler.
#[derive(Debug, Serialize)]
struct SchedulerResult {
    name: &'static str,
    makespan_s: f64,
    /// Share of the larger bound by which the makespan is above it.
    above_bound: f64,
    flops_per_s: f64,
    copies: u64,
    copied_bytes: u64,
    /// Energy of the node \[J\].
    energy_j: f64,
    energy_delay_js: f64,
    /// Share of the makespan in which the workers of each kind compute, and of the tasks that they do.
    kinds: Vec<KindResult>,
}

#[derive(Debug, Serialize)]
struct KindResult {
    name: String,
    workers: usize,
    busy: f64,
    tasks: usize,
}

fn scheduler_help() -> String {
    let scheduler = |scheduler: &SchedulerEntry| format!("{}: {}", scheduler.name, scheduler.description);
    format!("Scheduler; by default each. {}", SCHEDULERS.iter().map(scheduler).collect::<Vec<_>>().join(" "))
}

/// Runs the graph under each scheduler, and prints the results.
pub(crate) fn run(arguments: &TasksArguments) -> Result<()> {
    let TasksArguments { node: path, tiles, size, scheduler, json, csv } = arguments;
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let file: NodeFile = toml::from_str(&text).with_context(|| path.display().to_string())?;
    let platform_path = path.parent().unwrap_or(Path::new("")).join(&file.platform);
    let mut roles = FileRoles::default();
    roles.input("node", path);
    roles.input("platform", &platform_path);
    let outputs = [("results", json), ("table of tasks", csv)];
    outputs.iter().for_each(|(what, path)| path.iter().for_each(|path| roles.output(what, path)));
    roles.check().map_err(Misuse::from)?;
    let mut platform = read_platform(&platform_path).with_context(|| platform_path.display().to_string())?;
    let NodeEnergy { hosts, links, traffic } = file.energy;
    let power = PowerByName { hosts, links, traffic, ..PowerByName::default() };
    let in_node = || format!("the node {}", path.display());
    power.check(&platform).map_err(anyhow::Error::from_boxed).with_context(in_node)?;
    power.apply(&mut platform);
    let graph = TaskGraph::cholesky(*tiles as usize, *size);
    let rates = Rates { memory: file.memory, rates: file.rates };
    let node = Node::new(&platform, &rates, &graph).with_context(in_node)?;
    let bounds = Bounds::of(&graph, &node);
    let is_asked = |entry: &&SchedulerEntry| scheduler.as_ref().is_none_or(|name| name == entry.name);
    let entries = SCHEDULERS.iter().filter(is_asked);
    let executions: Vec<(&SchedulerEntry, Execution)> =
        entries.map(|entry| (entry, execute(&graph, &node, entry.scheduler(&graph, &node)))).collect();
    let of_scheduler = |(entry, execution): &(&SchedulerEntry, Execution)| {
        SchedulerResult::new(entry, execution, (&graph, &node, &bounds), &power)
    };
    let results = Results {
        format: "pdes-replay tasks",
        version: 1,
        tiles: *tiles,
        size: *size,
        tasks: graph.tasks.len(),
        flops: graph.tasks.iter().map(|task| task.flops).sum(),
        bounds,
        schedulers: executions.iter().map(of_scheduler).collect(),
    };
    if let Some(path) = json {
        write_json(&results, path).with_context(|| path.display().to_string())?;
    }
    if let Some(path) = csv {
        write_csv(&executions, &graph, &node, path).with_context(|| path.display().to_string())?;
    }
    let to_stderr = [json, csv].into_iter().flatten().any(|path| is_stdout(path));
    summary::write(&results.table().expect("a text takes all"), to_stderr)
}

/// Writes a row for each task.
fn write_csv(
    executions: &[(&SchedulerEntry, Execution)],
    graph: &TaskGraph,
    node: &Node<'_>,
    path: &Path,
) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    writeln!(file, "scheduler,task,kernel,worker,host,begin_s,end_s")?;
    for (entry, execution) in executions {
        for (number, (task, run)) in graph.tasks.iter().zip(&execution.runs).enumerate() {
            let host = &node.platform.host(node.workers[run.worker].host).name;
            let (name, kernel, worker) = (entry.name, task.kernel.name(), run.worker);
            writeln!(file, "{name},{number},{kernel},{worker},{host},{},{}", run.begin, run.end)?;
        }
    }
    Ok(file.commit().map(drop)?)
}

impl SchedulerResult {
    fn new(
        entry: &SchedulerEntry,
        execution: &Execution,
        (graph, node, bounds): (&TaskGraph, &Node<'_>, &Bounds),
        power: &PowerByName,
    ) -> Self {
        let Execution { makespan, runs, copies, copied, hosts, links } = execution;
        let makespan_s = makespan.as_secs_f64();
        let platform: &Platform = node.platform;
        let traffic_j = power.traffic_j(platform, links);
        let energy = Energy::new(platform, hosts, links, *makespan).with_messages(0.0, traffic_j);
        let kind = |(number, kind): (usize, &tasks::WorkerKind)| {
            let own = || runs.iter().filter(|run| node.workers[run.worker].kind == number);
            let busy_s = own().fold(0.0, |busy_s, run| busy_s + (run.end - run.begin).as_secs_f64());
            let (name, workers, tasks) = (kind.name.clone(), kind.workers, own().count());
            KindResult { name, workers, busy: busy_s / (makespan_s * workers as f64), tasks }
        };
        Self {
            name: entry.name,
            makespan_s,
            above_bound: makespan_s / bounds.best_s() - 1.0,
            flops_per_s: graph.tasks.iter().map(|task| task.flops).sum::<f64>() / makespan_s,
            copies: *copies,
            copied_bytes: copied.get(),
            energy_j: energy.total_j(),
            energy_delay_js: energy.energy_delay_js(),
            kinds: node.kinds.iter().enumerate().map(kind).collect(),
        }
    }
}

impl Results {
    fn table(&self) -> Result<String, std::fmt::Error> {
        let Bounds { critical_path_s, area_s } = self.bounds;
        let mut text = String::new();
        writeln!(text, "{} tasks, {:.3} Tflop", self.tasks, self.flops / 1e12)?;
        writeln!(text, "bounds: critical path {critical_path_s:.6} s, area {area_s:.6} s")?;
        for result in &self.schedulers {
            let SchedulerResult {
                name,
                makespan_s,
                above_bound,
                flops_per_s,
                copied_bytes,
                energy_j,
                kinds,
                ..
            } = result;
            let busy: Vec<String> = kinds
                .iter()
                .map(|KindResult { name, busy, .. }| format!("{name} {:.0} %", 100.0 * busy))
                .collect();
            writeln!(
                text,
                "{name:<6} {makespan_s:.6} s, {:.1} % above; {:.3} Tflop/s, {:.3} GB copied, {energy_j:.1} J; busy: {}",
                100.0 * above_bound,
                flops_per_s / 1e12,
                *copied_bytes as f64 / 1e9,
                busy.join(", ")
            )?;
        }
        Ok(text)
    }
}
