//! The command that seeks changes of a run that make it shorter.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use answers::{Allowed, Freedom, Optimum, OptimumError};
use anyhow::{Context, Result};
use clap::Args;
use outputs::FileRoles;
use pdes_core::Cluster;

use super::Misuse;
use super::answers::{AnswerArguments, check_files, on_first, read_costs};
use super::progress::watch_replays;

#[derive(Debug, Args)]
pub(crate) struct OptimizeArguments {
    #[command(flatten)]
    answer: AnswerArguments,
    /// Kinds of changes: algorithms, placement, aggregation, cables, frequency; by default algorithms and placement.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = parse_freedom)]
    allow: Vec<Freedom>,
    /// Costs of cables, and money to spend (TOML).
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Frequencies that hosts with slack may have, as parts of their own.
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = parse_part, default_values_t = Allowed::FREQUENCIES)]
    frequencies: Vec<f64>,
    /// Largest number of replays.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    replays: usize,
    /// File for the hosts of ranks, for platform.hosts.
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// File for all changes as a hypothesis (TOML), which what-if tests and trace transform applies.
    #[arg(long, value_name = "FILE")]
    patch: Option<PathBuf>,
}

fn parse_part(text: &str) -> Result<f64, String> {
    let part = text.parse().ok().filter(|part| *part >= 0.001 && *part < 1.0);
    part.ok_or_else(|| format!("found {text:?}, expected a number from 0.001 to below 1"))
}

fn parse_freedom(text: &str) -> Result<Freedom, String> {
    let found = Freedom::ALL.into_iter().find(|freedom| freedom.name() == text);
    found.ok_or_else(|| format!("found {text:?}, expected of {}", Freedom::ALL.map(Freedom::name).join(", ")))
}

/// Seeks changes, writes and prints them.
pub(crate) fn run(arguments: &OptimizeArguments, quiet: bool, cluster: &mut Cluster) -> Result<()> {
    on_first(cluster, || find(arguments, quiet))
}

fn find(arguments: &OptimizeArguments, quiet: bool) -> Result<()> {
    let OptimizeArguments { answer, allow, costs, frequencies, replays, hosts, patch } = arguments;
    let config = answer.config()?;
    let mut roles = FileRoles::default();
    costs.iter().for_each(|path| roles.input("file of costs", path));
    hosts.iter().for_each(|path| roles.output("hosts file", path));
    patch.iter().for_each(|path| roles.output("hypothesis", path));
    check_files(answer, &mut roles, &[&config])?;
    let caveat = answer.caveat()?;
    let costs = costs.as_deref().map(read_costs).transpose()?;
    if allow.contains(&Freedom::Cables) && costs.is_none() {
        return Err(
            Misuse("--allow cables needs --costs FILE, with [[cable]] and the budget".to_owned()).into()
        );
    }
    let default = Allowed::default();
    let freedoms = if allow.is_empty() { default.freedoms } else { allow.clone() };
    let allowed = Allowed { freedoms, replays: *replays, costs, frequencies: frequencies.clone() };
    let (spec, done) = (config.resolve()?, AtomicU64::new(0));
    let optimum = watch_replays(&done, || Optimum::of(&spec, &allowed, caveat, answer.at_once(), &done));
    let optimum = optimum.map_err(|error| match error {
        OptimumError::Costs(error) => Misuse(error.to_string()).into(),
        error => anyhow::Error::from(error),
    })?;
    if let Some(path) = patch {
        std::fs::write(path, &optimum.patch).with_context(|| format!("the hypothesis {}", path.display()))?;
        tracing::info!("wrote the hypothesis {}", path.display());
    }
    if let (Some(path), Some(names)) = (hosts, &optimum.hosts) {
        std::fs::write(path, names.join("\n") + "\n")
            .with_context(|| format!("the hosts file {}", path.display()))?;
        tracing::info!("wrote the hosts file {}", path.display());
    }
    answer.finish(&optimum, quiet)
}
