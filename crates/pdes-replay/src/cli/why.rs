//! The command that says why two runs differ.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use answers::{Factor, Why};
use anyhow::Result;
use clap::Args;
use outputs::FileRoles;
use pdes_core::Cluster;
use pdes_replay::Config;

use super::Misuse;
use super::answers::{AnswerArguments, check_files, on_first, refuse_schedules};
use super::progress::watch_replays;

#[derive(Debug, Args)]
pub(crate) struct WhyArguments {
    #[command(flatten)]
    answer: AnswerArguments,
    /// Configuration of the second run (TOML); by default that of the first run.
    #[arg(value_name = "OTHER")]
    other: Option<PathBuf>,
    /// Sets a value of the second run alone, such as network.latency_scale=2; may be repeated.
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    but: Vec<String>,
    /// Factors that are changed together, such as topology,placement; may be repeated.
    #[arg(long, value_name = "FACTOR,FACTOR", value_parser = parse_factors)]
    together: Vec<Factors>,
}

/// Factors that are changed together.
#[derive(Clone, Debug)]
struct Factors(Vec<Factor>);

fn parse_factors(text: &str) -> Result<Factors, String> {
    let factor = |name: &str| {
        let known = || Factor::ALL.map(Factor::name).join(", ");
        Factor::from_name(name.trim()).ok_or_else(|| format!("found {name:?}, expected of {}", known()))
    };
    Ok(Factors(text.split(',').map(factor).collect::<Result<_, _>>()?))
}

/// Compares two runs, writes and prints the causes.
pub(crate) fn run(arguments: &WhyArguments, quiet: bool, cluster: &mut Cluster) -> Result<()> {
    on_first(cluster, || find(arguments, quiet))
}

fn find(arguments: &WhyArguments, quiet: bool) -> Result<()> {
    let WhyArguments { answer, other, but, together } = arguments;
    if other.is_none() && but.is_empty() {
        let message = "there is no second run: name its configuration, or what it has otherwise with --but";
        return Err(Misuse(message.to_owned()).into());
    }
    let first = answer.config()?;
    let mut second = match other {
        Some(path) => Config::from_path(path)?,
        None => first.clone(),
    };
    but.iter().try_for_each(|setting| second.set(setting))?;
    refuse_schedules(&second)?;
    check_files(answer, &mut FileRoles::default(), &[&first, &second])?;
    let caveat = answer.caveat()?;
    let specs = [first.resolve()?, second.resolve()?];
    let together: Vec<Vec<Factor>> = together.iter().map(|Factors(factors)| factors.clone()).collect();
    let done = AtomicU64::new(0);
    let why =
        watch_replays(&done, || Why::of([&specs[0], &specs[1]], &together, caveat, answer.at_once(), &done))?;
    answer.finish(&why, quiet)
}
