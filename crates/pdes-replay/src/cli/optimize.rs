//! The command that seeks changes of a run that make it shorter.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use answers::{Freedom, Optimum};
use anyhow::{Context, Result};
use clap::Args;
use outputs::FileRoles;
use pdes_core::Cluster;

use super::answers::{AnswerArguments, check_files, on_first};
use super::progress::watch_replays;

#[derive(Debug, Args)]
pub(crate) struct OptimizeArguments {
    #[command(flatten)]
    answer: AnswerArguments,
    /// What may be changed: algorithms, placement; by default both.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = parse_freedom)]
    allow: Vec<Freedom>,
    /// Largest number of replays.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    replays: usize,
    /// File for the hosts of ranks, for platform.hosts.
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
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
    let OptimizeArguments { answer, allow, replays, hosts } = arguments;
    let config = answer.config()?;
    let mut roles = FileRoles::default();
    hosts.iter().for_each(|path| roles.output("hosts file", path));
    check_files(answer, &mut roles, &[&config])?;
    let caveat = answer.caveat()?;
    let allow = if allow.is_empty() { &Freedom::ALL[..] } else { allow };
    let (spec, done) = (config.resolve()?, AtomicU64::new(0));
    let optimum =
        watch_replays(&done, || Optimum::of(&spec, allow, *replays, caveat, answer.at_once(), &done))?;
    if let (Some(path), Some(names)) = (hosts, &optimum.hosts) {
        std::fs::write(path, names.join("\n") + "\n")
            .with_context(|| format!("the hosts file {}", path.display()))?;
        tracing::info!("wrote the hosts file {}", path.display());
    }
    answer.finish(&optimum, quiet)
}
