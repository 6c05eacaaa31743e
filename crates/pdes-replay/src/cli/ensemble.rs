//! The command that runs a configuration many times, with failures of its own each time.

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use outputs::{AtomicFile, FileRoles};
use pdes_core::{SimDuration, SimTime};
use pdes_replay::{Config, Ensemble, EnsembleError, EnsembleResults, Members, available_threads, write_json};

use super::arguments::RunArguments;
use super::{Misuse, files, progress, run};

#[derive(Debug, Args)]
pub(crate) struct EnsembleArguments {
    /// Configuration of the run, with failures that have a mean time between failures.
    config: PathBuf,
    /// Number of runs, each with another seed.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: u64,
    /// Seed of the first run; the others follow.
    #[arg(long, value_name = "N", default_value_t = 1)]
    first_seed: u64,
    /// Runs once for each link of the platform, which is off, in place of seeds.
    #[arg(long, conflicts_with_all = ["seeds", "first_seed"])]
    each_link: bool,
    /// Time after which the links are off, such as 20ms; by default from the begin on.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, requires = "each_link")]
    at: Option<Duration>,
    /// Replays each run from its begin, not from the state of the one without failures before its first failure: the results are the same.
    #[arg(long)]
    from_begin: bool,
    /// Sets a value of the configuration, such as network.preset=lv08; may be repeated.
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,
    /// Number of runs at the same time; by default one for each core.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Directory of the results: ensemble.json, ensemble.csv and ensemble.html.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

/// Runs the ensemble, writes the results and prints them.
pub(crate) fn run(arguments: &EnsembleArguments, quiet: bool) -> Result<()> {
    let of_run = RunArguments {
        config: Some(arguments.config.clone()),
        set: arguments.set.clone(),
        ..RunArguments::default()
    };
    let config: Config = run::config(&of_run)?;
    let mut roles = FileRoles::default();
    files::add_run(&mut roles, &config);
    let [json, table, page] =
        ["ensemble.json", "ensemble.csv", "ensemble.html"].map(|name| arguments.output.join(name));
    for path in [&json, &table].into_iter().chain(cfg!(feature = "pictures").then_some(&page)) {
        roles.output("file of results", path);
    }
    roles.check().map_err(Misuse::from)?;
    let members = match arguments.each_link {
        true => Members::EachLink { at: begin_of_failures(arguments)? },
        false => Members::Seeds { first: arguments.first_seed, count: arguments.seeds },
    };
    let misuse = |error: EnsembleError| match error {
        EnsembleError::Config(error) => anyhow::Error::from(error),
        EnsembleError::NoChance => Misuse(error.to_string()).into(),
        error => error.into(),
    };
    let ensemble = Ensemble::new(&config, members).map_err(misuse)?;
    let ensemble = if arguments.from_begin { ensemble.from_begin() } else { ensemble };
    let at_once = arguments.jobs.map_or_else(available_threads, NonZeroUsize::get);
    let done = AtomicU64::new(0);
    let results = progress::watch_replays(&done, || ensemble.run(at_once, &done)).map_err(misuse)?;
    write_json(&results, &json).with_context(|| json.display().to_string())?;
    let write = || -> Result<()> {
        let mut file = AtomicFile::create(&table)?;
        results.write_csv(&mut file)?;
        Ok(file.commit().map(drop)?)
    };
    write().with_context(|| table.display().to_string())?;
    #[cfg(feature = "pictures")]
    write_page(&results, &page, arguments)?;
    if !quiet {
        write!(std::io::stdout().lock(), "{results}")?;
    }
    Ok(())
}

/// Returns the instant from which on links are off.
fn begin_of_failures(arguments: &EnsembleArguments) -> Result<SimTime, Misuse> {
    let after = SimDuration::try_from_secs_f64(arguments.at.unwrap_or_default().as_secs_f64());
    let instant = after.and_then(|after| SimTime::ZERO.checked_add(after));
    instant.ok_or_else(|| Misuse("--at: expected a time of 213 days at most".to_owned()))
}

/// Writes the page.
#[cfg(feature = "pictures")]
fn write_page(
    results: &EnsembleResults,
    page: &std::path::Path,
    arguments: &EnsembleArguments,
) -> Result<()> {
    let name = arguments.config.file_stem().unwrap_or_default().display();
    let kind = if arguments.each_link { "each link off" } else { "failures by chance" };
    results.write_page(&format!("{name}: {kind}, {} runs", results.runs.len()), page)?;
    tracing::info!("wrote {}", page.display());
    Ok(())
}
