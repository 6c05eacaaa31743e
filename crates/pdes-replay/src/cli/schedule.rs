//! The command that schedules workloads of batch jobs.

mod simulated;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use netmodel::quantity::{Bandwidth, Speed};
use outputs::{AtomicFile, FileRoles};
use pdes_replay::RunSpec;
use scheduling::{
    NodeRates, POLICIES, PolicyEntry, Reservations, RunTimes, Workload, find_policy, read_batsim, read_swf,
    simulate,
};

use super::Misuse;
use super::arguments::parse_rate;

#[derive(Debug, Args)]
pub(crate) struct ScheduleArguments {
    /// Workload: Standard Workload Format (.swf), or Batsim's JSON (.json).
    workload: PathBuf,
    /// Number of nodes of the machine; by default as many as the workload tells.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    nodes: Option<u32>,
    #[arg(long, value_name = "NAME", default_value = "easy", value_parser = POLICIES.map(|policy| policy.name), help = policy_help())]
    policy: String,
    /// Reserves numbers of nodes, of which any will do, in place of named ones.
    #[arg(long)]
    by_count: bool,
    /// Plans by the real run times, in place of the users' estimates.
    #[arg(long)]
    perfect_estimates: bool,
    /// Computing speed of a node, such as 1Gf, for profiles in flops.
    #[arg(long, value_name = "SPEED", value_parser = parse_rate::<Speed>)]
    speed: Option<f64>,
    /// Bandwidth of the link of a node, such as 10Gbps, for profiles in bytes.
    #[arg(long, value_name = "BANDWIDTH", value_parser = parse_rate::<Bandwidth>)]
    bandwidth: Option<f64>,
    /// Platform on whose hosts the jobs run, in place of fixed run times: jobs whose profiles are traces, or flops and bytes, share its network.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["speed", "bandwidth"])]
    platform: Option<PathBuf>,
    /// Configuration with a platform, a network model and the rest of a run, but for its jobs.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["speed", "bandwidth"])]
    config: Option<PathBuf>,
    /// Sets a value of the configuration, such as network.preset=lv08; may be repeated.
    #[arg(long, value_name = "SECTION.KEY=VALUE", conflicts_with_all = ["speed", "bandwidth"])]
    set: Vec<String>,
    /// Directory of the results: jobs.csv and schedule.html, with a platform also report.json.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

impl ScheduleArguments {
    /// Returns whether a platform decides how long jobs run.
    fn is_simulated(&self) -> bool {
        self.platform.is_some() || self.config.is_some() || !self.set.is_empty()
    }
}

/// Describes the policies.
fn policy_help() -> String {
    let policy = |policy: &PolicyEntry| format!("{}: {}", policy.name, policy.description);
    format!("Policy. {}", POLICIES.iter().map(policy).collect::<Vec<_>>().join(" "))
}

/// Schedules a workload, writes the schedule and prints its measures.
pub(crate) fn run(arguments: &ScheduleArguments, quiet: bool) -> Result<()> {
    let ScheduleArguments { workload: path, output, policy, .. } = arguments;
    let [table, page, report] = ["jobs.csv", "schedule.html", "report.json"].map(|name| output.join(name));
    let is_simulated = arguments.is_simulated();
    let mut roles = FileRoles::default();
    roles.input("workload", path);
    roles.output("table of jobs", &table);
    if is_simulated {
        roles.output("report", &report);
    }
    let inputs = [("platform", &arguments.platform), ("configuration", &arguments.config)];
    inputs.iter().for_each(|(what, path)| path.iter().for_each(|path| roles.input(what, path)));
    if cfg!(feature = "pictures") {
        roles.output("page", &page);
    }
    roles.check().map_err(Misuse::from)?;
    let mut workload = read(path, arguments)?;
    workload.warnings.iter().for_each(|warning| tracing::warn!("{}: {warning}", path.display()));
    if arguments.perfect_estimates {
        workload.perfect_estimates();
    }
    let spec = is_simulated.then(|| simulated::machine(arguments)).transpose()?;
    let hosts = spec.as_ref().map(simulated::hosts).transpose()?;
    let Some(nodes) = arguments.nodes.or(workload.nodes).or(hosts.map(|hosts| hosts.len() as u32)) else {
        let message =
            format!("{} does not tell how many nodes its machine has: give --nodes", path.display());
        return Err(Misuse(message).into());
    };
    let reservations = if arguments.by_count { Reservations::Counted } else { Reservations::Named };
    let entry = find_policy(policy).expect("the command line knows the policies only");
    let jobs = &workload.jobs;
    let schedule = match spec {
        None => simulate(jobs, nodes, entry.policy(reservations)).map_err(anyhow::Error::from),
        Some(spec) => {
            let queue = simulated::Queue::new(jobs, nodes, entry, reservations);
            let directory = path.parent().unwrap_or(Path::new(""));
            simulated::simulate(RunSpec { report: Some(report), ..spec }, queue, directory)
        }
    };
    let schedule = schedule.with_context(|| format!("the workload {}", path.display()))?;
    let write = || -> Result<()> {
        let mut file = AtomicFile::create(&table)?;
        schedule.write_csv(jobs, &mut file)?;
        Ok(file.commit().map(drop)?)
    };
    write().with_context(|| table.display().to_string())?;
    #[cfg(feature = "pictures")]
    {
        let name = path.file_stem().unwrap_or_default().display();
        schedule.write_page(jobs, &format!("{name} on {nodes} nodes ({policy})"), &page)?;
        tracing::info!("wrote {}", page.display());
    }
    if !quiet {
        write!(std::io::stdout().lock(), "{}", schedule.summary(jobs))?;
    }
    Ok(())
}

/// Reads a workload in the format that its suffix names.
fn read(path: &Path, arguments: &ScheduleArguments) -> Result<Workload> {
    let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
    let suffix = suffix.to_ascii_lowercase();
    if !["swf", "json"].contains(&&*suffix) {
        let path = path.display();
        let message = format!(
            "{path}: the suffix tells no format of a workload: name it .swf (Standard Workload Format) or .json (Batsim)"
        );
        return Err(Misuse(message).into());
    }
    let read = || -> Result<Workload> {
        let text = std::fs::read_to_string(path)?;
        let rates = NodeRates { speed: arguments.speed, bandwidth: arguments.bandwidth };
        let run_times = if arguments.is_simulated() { RunTimes::Simulated } else { RunTimes::Fixed(rates) };
        Ok(if suffix == "swf" { read_swf(&text)? } else { read_batsim(&text, run_times)? })
    };
    read().with_context(|| format!("the workload {}", path.display()))
}
