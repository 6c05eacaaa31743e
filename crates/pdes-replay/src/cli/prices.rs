//! The command that finds what each part of a machine is worth to a run.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use answers::{Prices, PricesError};
use anyhow::Result;
use clap::Args;
use outputs::FileRoles;
use pdes_core::Cluster;

use super::Misuse;
use super::answers::{AnswerArguments, check_files, on_first, read_costs};
use super::progress::watch_replays;

#[derive(Debug, Args)]
pub(crate) struct PricesArguments {
    #[command(flatten)]
    answer: AnswerArguments,
    /// Costs of better links and hosts (TOML): ranks parameters by the time that a unit of money saves.
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Factors between which curves without contention are followed.
    #[arg(long, value_name = "LEAST..MOST", value_parser = parse_range, default_value = "0.25..4")]
    range: [f64; 2],
}

fn parse_range(text: &str) -> Result<[f64; 2], String> {
    let ends =
        text.split_once("..").and_then(|(least, most)| Some((least.parse().ok()?, most.parse().ok()?)));
    match ends {
        Some((least, most)) if 0.0 < least && least < 1.0 && 1.0 < most && most <= 1e6 => Ok([least, most]),
        _ => Err(format!(
            "found {text:?}, expected LEAST..MOST with 0 < LEAST < 1 < MOST <= 1e6, such as 0.25..4"
        )),
    }
}

/// Finds the prices, writes and prints them.
pub(crate) fn run(arguments: &PricesArguments, quiet: bool, cluster: &mut Cluster) -> Result<()> {
    on_first(cluster, || find(arguments, quiet))
}

fn find(arguments: &PricesArguments, quiet: bool) -> Result<()> {
    let PricesArguments { answer, costs, range } = arguments;
    let config = answer.config()?;
    let mut roles = FileRoles::default();
    costs.iter().for_each(|path| roles.input("file of costs", path));
    check_files(answer, &mut roles, &[&config])?;
    let (costs, caveat) = (costs.as_deref().map(read_costs).transpose()?, answer.caveat()?);
    let spec = config.resolve()?;
    let done = AtomicU64::new(0);
    let prices =
        watch_replays(&done, || Prices::of(&spec, *range, costs.as_ref(), caveat, answer.at_once(), &done));
    let prices = prices.map_err(|error| match error {
        PricesError::Costs(error) => Misuse(error.to_string()).into(),
        error => anyhow::Error::from(error),
    })?;
    answer.finish(&prices, quiet)
}
