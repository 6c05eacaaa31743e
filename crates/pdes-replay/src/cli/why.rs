//! The command that says why two runs differ.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use answers::{Factor, Why};
use anyhow::Result;
use clap::Args;
use outputs::FileRoles;
use pdes_core::Cluster;
use pdes_replay::{Config, ConfigError};
use replay::file_kind::{PLATFORM, REPORT, TRACE, recognize};

use super::Misuse;
use super::answers::{AnswerArguments, check_files, on_first, refuse_schedules};
use super::progress::watch_replays;

#[derive(Debug, Args)]
pub(crate) struct WhyArguments {
    #[command(flatten)]
    answer: AnswerArguments,
    /// The second run: a configuration, or a report that carries one; or the platform or the trace in place of that of the first run; by default the
    /// same.
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

/// Returns the configuration of the second run by a file: its own, or that of the first run with another platform or trace.
fn second_run(first: &Config, path: &Path) -> Result<Config, ConfigError> {
    let with = |section: &str, key: &str| {
        let mut config = first.clone();
        config.set_path(section, key, path);
        config
    };
    let is_table = path.extension().is_some_and(|extension| extension == "toml");
    match recognize(path) {
        Some(REPORT) => Config::from_report(path),
        Some(PLATFORM) => Ok(with("platform", "file")),
        Some(TRACE) => Ok(with("trace", "path")),
        None if !is_table => Ok(with("trace", "path")),
        _ => Config::from_path(path),
    }
}

fn find(arguments: &WhyArguments, quiet: bool) -> Result<()> {
    let WhyArguments { answer, other, but, together } = arguments;
    if other.is_none() && but.is_empty() {
        let message = "there is no second run: name its configuration, or what it has otherwise with --but";
        return Err(Misuse(message.to_owned()).into());
    }
    let first = answer.config()?;
    let mut second = match other {
        Some(path) => second_run(&first, path)?,
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
