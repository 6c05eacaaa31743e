//! The command that says what failures and checkpoints cost a job.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use machine::{CheckpointRestart, Ensemble};
use outputs::is_stdout;
use pdes_replay::write_json;
use serde::Serialize;

use super::{Misuse, summary};

#[derive(Debug, Args)]
pub(crate) struct GoodputArguments {
    /// Time of the job without failures and checkpoints, such as 24h.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    work: Duration,
    /// Time of a checkpoint, such as 60s.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    checkpoint: Duration,
    /// Time from a failure until work goes on from the last checkpoint.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    restart: Duration,
    /// Mean time between failures of all that the job uses, such as 1h; with --components, of each of them.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    mtbf: Duration,
    /// Number of components of which each may fail.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    components: u32,
    /// Work between two checkpoints; by default Daly's estimate of the best.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    interval: Option<Duration>,
    /// Number of runs that are simulated, each with failures of its own.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    runs: u32,
    /// Seed of the first run; the others follow.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// File of the results (JSON).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The results; times in seconds.
#[derive(Debug, Serialize)]
struct Results {
    format: &'static str,
    version: u32,
    job: CheckpointRestart,
    young_interval_s: f64,
    daly_interval_s: f64,
    expected_s: f64,
    goodput: f64,
    ensemble: Ensemble,
}

/// Simulates the runs and prints the results.
pub(crate) fn run(arguments: &GoodputArguments) -> Result<()> {
    let mut job = CheckpointRestart {
        work_s: arguments.work.as_secs_f64(),
        interval_s: 1.0,
        checkpoint_s: arguments.checkpoint.as_secs_f64(),
        restart_s: arguments.restart.as_secs_f64(),
        mtbf_s: arguments.mtbf.as_secs_f64() / f64::from(arguments.components),
    };
    job.interval_s =
        arguments.interval.map_or_else(|| job.daly_interval_s(), |interval| interval.as_secs_f64());
    job.check().map_err(|error| Misuse(error.to_string()))?;
    let ensemble = job.ensemble(arguments.seed, arguments.runs.into());
    let expected_s = job.expected_s();
    let results = Results {
        format: "pdes-replay goodput",
        version: 1,
        job,
        young_interval_s: job.young_interval_s(),
        daly_interval_s: job.daly_interval_s(),
        expected_s,
        goodput: job.work_s / ensemble.mean_s,
        ensemble,
    };
    if let Some(path) = &arguments.json {
        write_json(&results, path).with_context(|| path.display().to_string())?;
    }
    let to_stderr = arguments.json.as_deref().is_some_and(is_stdout);
    summary::write(&results.table().expect("a text takes all"), to_stderr)
}

impl Results {
    fn table(&self) -> Result<String, std::fmt::Error> {
        let Self { job, young_interval_s, daly_interval_s, expected_s, goodput, ensemble, .. } = self;
        let Ensemble { runs, mean_s, confidence_s, failures, lost_s, best, worst } = ensemble;
        let mut text = String::new();
        writeln!(
            text,
            "interval {:.1} s (Young {young_interval_s:.1} s, Daly {daly_interval_s:.1} s), one failure in {:.1} s",
            job.interval_s, job.mtbf_s
        )?;
        writeln!(text, "expected {expected_s:.1} s for {:.1} s of work (Daly)", job.work_s)?;
        writeln!(
            text,
            "{runs} runs: mean {mean_s:.1} +- {confidence_s:.1} s (95 %), goodput {:.1} %",
            100.0 * goodput
        )?;
        writeln!(text, "  {failures:.1} failures and {lost_s:.1} s of lost work on average")?;
        for (what, run) in [("shortest", best), ("longest", worst)] {
            writeln!(
                text,
                "  {what} {:.1} s with {} failures (seed {})",
                run.time_s, run.failures, run.seed
            )?;
        }
        Ok(text)
    }
}
